import java.io.BufferedReader;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.math.BigDecimal;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.LocalTime;
import java.time.Period;
import java.time.ZoneOffset;
import java.time.format.DateTimeFormatter;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.runtime.minicluster.MiniCluster;
import org.apache.flink.runtime.minicluster.MiniClusterConfiguration;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.node.ArrayNode;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.flink.table.api.EnvironmentSettings;
import org.apache.flink.table.api.ResultKind;
import org.apache.flink.table.api.TableEnvironment;
import org.apache.flink.table.api.TableResult;
import org.apache.flink.table.types.DataType;
import org.apache.flink.table.types.logical.ArrayType;
import org.apache.flink.table.types.logical.LocalZonedTimestampType;
import org.apache.flink.table.types.logical.LogicalType;
import org.apache.flink.table.types.logical.LogicalTypeRoot;
import org.apache.flink.table.types.logical.MapType;
import org.apache.flink.table.types.logical.MultisetType;
import org.apache.flink.table.types.logical.RowType;
import org.apache.flink.table.types.logical.TimeType;
import org.apache.flink.table.types.logical.TimestampType;
import org.apache.flink.types.Row;
import org.apache.flink.util.CloseableIterator;

/**
 * Answers SQL on standard input with JSON lines on standard output, over one cluster in this JVM.
 *
 * <p>A request is {"reset": {"key": "value"}}, which begins a session with these settings, or
 * {"sql": "..."}, one statement of it. The answer is {"types": [...], "rows": [[...]], "kinds":
 * [...]}, or {"error": "...", "stage": "plan" or "run"}. A value is its text, or null.
 */
public class FlinkSession {
    public static void main(String[] args) throws Exception {
        PrintStream out = new PrintStream(new FileOutputStream(FileDescriptor.out), true, StandardCharsets.UTF_8);
        System.setOut(System.err);
        Configuration c = new Configuration();
        c.setString("rest.address", "127.0.0.1");
        c.setString("rest.bind-address", "127.0.0.1");
        c.setString("taskmanager.memory.network.min", "32m");
        c.setString("taskmanager.memory.network.max", "32m");
        c.setString("taskmanager.memory.managed.size", "128m");
        MiniCluster cluster = new MiniCluster(new MiniClusterConfiguration.Builder().setConfiguration(c)
                .setNumTaskManagers(1).setNumSlotsPerTaskManager(4).withRandomPorts().build());
        cluster.start();
        int port = cluster.getRestAddress().get().getPort();
        ObjectMapper json = new ObjectMapper();
        out.println("{\"ready\": true}");
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        TableEnvironment env = null;
        for (String line; (line = in.readLine()) != null; ) {
            JsonNode request = json.readTree(line);
            ObjectNode answer = json.createObjectNode();
            try {
                if (request.has("reset")) {
                    env = session(port, request.get("reset"));
                } else {
                    run(env, request.get("sql").asText(), answer);
                }
            } catch (Throwable e) {
                answer.removeAll();
                answer.put("stage", e instanceof RunFailure ? "run" : "plan");
                answer.put("error", cause(e instanceof RunFailure ? e.getCause() : e));
            }
            out.println(json.writeValueAsString(answer));
        }
        System.exit(0);
    }

    static TableEnvironment session(int port, JsonNode settings) {
        Configuration c = new Configuration();
        c.setString("execution.target", "remote");
        c.setString("rest.address", "127.0.0.1");
        c.setString("rest.port", String.valueOf(port));
        c.setString("parallelism.default", "1");
        c.setString("restart-strategy.type", "none");
        Iterator<Map.Entry<String, JsonNode>> fields = settings.fields();
        while (fields.hasNext()) {
            Map.Entry<String, JsonNode> f = fields.next();
            c.setString(f.getKey(), f.getValue().asText());
        }
        return TableEnvironment.create(EnvironmentSettings.newInstance().withConfiguration(c).build());
    }

    /** A statement that was planned and failed as it ran. */
    static class RunFailure extends Exception {
        RunFailure(Throwable cause) {
            super(cause);
        }
    }

    static void run(TableEnvironment env, String sql, ObjectNode answer) throws RunFailure {
        TableResult result = env.executeSql(sql);
        if (result.getResultKind() == ResultKind.SUCCESS) {
            return;
        }
        try {
            List<DataType> types = result.getResolvedSchema().getColumnDataTypes();
            ArrayNode names = answer.putArray("types");
            for (DataType t : types) {
                names.add(t.getLogicalType().asSummaryString());
            }
            ArrayNode rows = answer.putArray("rows");
            ArrayNode kinds = answer.putArray("kinds");
            try (CloseableIterator<Row> it = result.collect()) {
                while (it.hasNext()) {
                    Row r = it.next();
                    kinds.add(r.getKind().shortString());
                    ArrayNode row = rows.addArray();
                    for (int i = 0; i < r.getArity(); i++) {
                        Object v = r.getField(i);
                        row.add(v == null ? null : text(v, types.get(i).getLogicalType()));
                    }
                }
            }
        } catch (Throwable e) {
            throw new RunFailure(e);
        }
    }

    /** The innermost failure, by its first line. */
    static String cause(Throwable e) {
        while (e.getCause() != null && e.getCause() != e) {
            e = e.getCause();
        }
        String m = String.valueOf(e.getMessage());
        int end = m.indexOf('\n');
        return e.getClass().getSimpleName() + ": " + (end < 0 ? m : m.substring(0, end));
    }

    static final DateTimeFormatter SECONDS = DateTimeFormatter.ofPattern("uuuu-MM-dd HH:mm:ss");
    static final DateTimeFormatter CLOCK = DateTimeFormatter.ofPattern("HH:mm:ss");

    /** A value's text. Values inside others have only a Java class where the type is not known. */
    static String text(Object v, LogicalType t) {
        if (v == null) {
            return "NULL";
        }
        if (v instanceof Boolean) {
            return (Boolean) v ? "TRUE" : "FALSE";
        }
        if (v instanceof BigDecimal) {
            return ((BigDecimal) v).toPlainString();
        }
        if (v instanceof byte[]) {
            StringBuilder b = new StringBuilder();
            for (byte x : (byte[]) v) {
                b.append(String.format("%02x", x));
            }
            return b.toString();
        }
        if (v instanceof LocalDate) {
            return v.toString();
        }
        if (v instanceof LocalTime) {
            return CLOCK.format((LocalTime) v) + fraction(((LocalTime) v).getNano(), ((TimeType) t).getPrecision());
        }
        if (v instanceof LocalDateTime) {
            return SECONDS.format((LocalDateTime) v) + fraction(((LocalDateTime) v).getNano(), ((TimestampType) t).getPrecision());
        }
        if (v instanceof Instant) {
            LocalDateTime utc = LocalDateTime.ofInstant((Instant) v, ZoneOffset.UTC);
            return SECONDS.format(utc) + fraction(utc.getNano(), ((LocalZonedTimestampType) t).getPrecision());
        }
        if (v instanceof Period) {
            long m = ((Period) v).toTotalMonths();
            return (m < 0 ? "-" : "+") + Math.abs(m) / 12 + "-" + String.format("%02d", Math.abs(m) % 12);
        }
        if (v instanceof Duration) {
            Duration d = ((Duration) v).abs();
            return (((Duration) v).isNegative() ? "-" : "+") + d.toDays() + String.format(" %02d:%02d:%02d.%03d",
                    d.toHoursPart(), d.toMinutesPart(), d.toSecondsPart(), d.toMillisPart());
        }
        return nested(v, t);
    }

    static String nested(Object v, LogicalType t) {
        List<String> parts = new ArrayList<>();
        if (t.getTypeRoot() == LogicalTypeRoot.ARRAY) {
            LogicalType element = ((ArrayType) t).getElementType();
            int n = java.lang.reflect.Array.getLength(v);
            for (int i = 0; i < n; i++) {
                parts.add(text(java.lang.reflect.Array.get(v, i), element));
            }
            return "[" + String.join(", ", parts) + "]";
        }
        if (v instanceof Map) {
            LogicalType key = t instanceof MapType ? ((MapType) t).getKeyType() : ((MultisetType) t).getElementType();
            LogicalType value = t instanceof MapType ? ((MapType) t).getValueType() : null;
            Map<String, String> sorted = new TreeMap<>();
            ((Map<?, ?>) v).forEach((k, x) -> sorted.put(text(k, key), value == null ? x.toString() : text(x, value)));
            sorted.forEach((k, x) -> parts.add(k + "=" + x));
            return "{" + String.join(", ", parts) + "}";
        }
        if (v instanceof Row) {
            Row r = (Row) v;
            for (int i = 0; i < r.getArity(); i++) {
                parts.add(text(r.getField(i), ((RowType) t).getTypeAt(i)));
            }
            return "(" + String.join(", ", parts) + ")";
        }
        return v.toString();
    }

    static String fraction(int nanos, int digits) {
        return digits == 0 ? "" : "." + String.format("%09d", nanos).substring(0, digits);
    }
}
