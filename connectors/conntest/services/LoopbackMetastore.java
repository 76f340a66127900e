import java.net.InetSocketAddress;
import org.apache.hadoop.hive.conf.HiveConf;
import org.apache.hadoop.hive.metastore.HiveMetaStore;
import org.apache.hadoop.hive.metastore.IHMSHandler;
import org.apache.hadoop.hive.metastore.TUGIBasedProcessor;
import org.apache.hadoop.hive.thrift.TUGIContainingTransport;
import org.apache.thrift.protocol.TBinaryProtocol;
import org.apache.thrift.server.TThreadPoolServer;
import org.apache.thrift.transport.TServerSocket;

/**
 * A Hive Metastore 2.3 that listens on loopback alone: its own main class has no
 * setting for the address. The handler, which is what answers, is Hive's, and works for
 * the user that a client names.
 */
public class LoopbackMetastore {
    public static void main(String[] args) throws Exception {
        HiveConf conf = new HiveConf(HiveMetaStore.class);
        IHMSHandler handler =
            HiveMetaStore.newRetryingHMSHandler(new HiveMetaStore.HMSHandler("metastore", conf, false), conf);
        TServerSocket socket = new TServerSocket(new InetSocketAddress("127.0.0.1", Integer.parseInt(args[0])));
        TThreadPoolServer.Args server = new TThreadPoolServer.Args(socket)
            .processor(new TUGIBasedProcessor<IHMSHandler>(handler))
            .transportFactory(new TUGIContainingTransport.Factory())
            .protocolFactory(new TBinaryProtocol.Factory())
            .minWorkerThreads(2)
            .maxWorkerThreads(50);
        new TThreadPoolServer(server).serve();
    }
}
