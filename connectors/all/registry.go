package all

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/millrace/millrace/connectors/blackhole"
	"github.com/millrace/millrace/connectors/clickhouse"
	"github.com/millrace/millrace/connectors/datagen"
	"github.com/millrace/millrace/connectors/filesystem"
	"github.com/millrace/millrace/connectors/format"
	"github.com/millrace/millrace/connectors/format/csvfmt"
	"github.com/millrace/millrace/connectors/format/jsonfmt"
	"github.com/millrace/millrace/connectors/format/parquetfmt"
	"github.com/millrace/millrace/connectors/format/rawfmt"
	"github.com/millrace/millrace/connectors/hdfs"
	"github.com/millrace/millrace/connectors/hive"
	"github.com/millrace/millrace/connectors/http"
	"github.com/millrace/millrace/connectors/kafka"
	"github.com/millrace/millrace/connectors/logtopic"
	"github.com/millrace/millrace/connectors/nexmark"
	"github.com/millrace/millrace/connectors/print"
	"github.com/millrace/millrace/connectors/redis"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/storage/client"
	"github.com/millrace/millrace/storage/vfs"
)

// Deps are what connectors need from the program. The zero value serves for
// checking files and describing connectors.
type Deps struct {
	// Log is the open log of connector 'log'; nil: its tables can be checked
	// and not opened.
	Log *client.Client
	// FS is the filesystem of connector 'filesystem', and where files on their
	// way to HDFS lie; nil: the system's.
	FS vfs.FS
	// StagingDir is where blocks on their way to ClickHouse, and rows on their way
	// to Redis or a webhook, lie, and the locks of commands that are told of partitions,
	// a folder of the data directory; "": tables of these connectors can be checked and
	// not written.
	StagingDir string
	// Pools are shared by all Parquet files being written; nil: new ones.
	Pools *parquetfmt.Pools
	// Clock paces connector 'datagen'; nil: the system's.
	Clock datagen.Clock
	// Stdout and Stderr are where connector 'print' writes; nil: the
	// program's own.
	Stdout, Stderr io.Writer
}

// Formats are the formats of records. Parquet is a file format and belongs to
// connector 'filesystem', which has no use for raw: lines are not told apart by it.
func Formats() []format.Format {
	return []format.Format{jsonfmt.Format{}, csvfmt.Format{}, rawfmt.Format{}}
}

// Registry returns the built-in connectors: log, kafka, upsert-kafka, filesystem, hive,
// clickhouse, redis, http, datagen, nexmark, print and blackhole.
func Registry(d Deps) (*connector.Registry, error) {
	if d.FS == nil {
		d.FS = vfs.NewOS()
	}
	if d.Stdout == nil {
		d.Stdout = os.Stdout
	}
	if d.Stderr == nil {
		d.Stderr = os.Stderr
	}
	files := filesystem.New(d.FS, d.Pools, jsonfmt.Format{}, csvfmt.Format{}).With(hdfs.NewScheme(d.FS, nil))
	if d.StagingDir != "" {
		files.CommandsIn(filepath.Join(d.StagingDir, "commands"))
	}
	r, err := connector.NewRegistry(
		logtopic.New(d.Log, Formats()...),
		kafka.New(Formats()...),
		kafka.NewUpsert(Formats()...),
		files,
		hive.New(files),
		clickhouse.New(d.FS, d.StagingDir),
		redis.New(d.FS, d.StagingDir),
		http.New(d.FS, d.StagingDir),
		datagen.New(d.Clock),
		nexmark.New(),
		print.New(d.Stdout, d.Stderr),
		blackhole.New(),
	)
	if err != nil {
		return nil, fmt.Errorf("registering connectors: %w", err)
	}
	return r, nil
}
