package node

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/jobs/control"
)

// ready reads the messages of a readiness topic until there are some.
func (w *world) ready(n *Node, topic string, messages int) []readyValue {
	w.t.Helper()
	again := time.NewTicker(5 * time.Millisecond)
	defer again.Stop()
	for ctx := w.ctx(); ; {
		var out []readyValue
		err := n.Consume(ctx, control.Consume{Topic: topic, Range: "start:end"}, func(r *control.Record) error {
			var v readyValue
			err := json.Unmarshal(r.Value, &v)
			out = append(out, v)
			return err
		})
		if err != nil {
			w.t.Fatal(err)
		}
		if len(out) >= messages {
			return out
		}
		select {
		case <-ctx.Done():
			w.t.Fatalf("topic %s has %d messages, want %d: %+v", topic, len(out), messages, out)
		case <-again.C:
		}
	}
}

// TestReadinessOfACorrectedHour: an hour of a wide table is announced when it is over,
// and again, under the next version, with a row that came late. The partition then
// has all its rows once.
func TestReadinessOfACorrectedHour(t *testing.T) {
	w := newWorld(t)
	n := w.open()
	w.topic(n, "clicks", 1)
	click := func(uid int, at string) string {
		return fmt.Sprintf(`{"uid":%d,"ts":"2026-07-21T%s:00Z"}`, uid, at)
	}
	w.produce(n, "clicks", click(1, "00:10"), click(2, "00:20"), click(3, "01:10"))
	r, err := n.Start(w.ctx(), w.options("job", `SET 'execution.checkpointing.interval' = '20 ms';
CREATE TABLE clicks (uid BIGINT, ts TIMESTAMP_LTZ(3), WATERMARK FOR ts AS ts) WITH ('connector' = 'log', 'topic' = 'clicks',
  'scan.startup.mode' = 'earliest-offset', 'json.timestamp-format.standard' = 'ISO-8601');
CREATE WIDE TABLE hours (PRIMARY KEY (uid) NOT ENFORCED, hr AS DATE_FORMAT(window_start, 'yyyyMMddHH')) PARTITIONED BY (hr)
WINDOW TUMBLE(SIZE => INTERVAL '1' HOUR) ALLOWED LATENESS INTERVAL '30' MINUTE
WITH ('connector' = 'filesystem', 'path' = '`+filepath.Join(w.dir, "hours")+`', 'format' = 'json', 'wide.correction-interval' = '10 ms',
  'sink.partition-commit.trigger' = 'partition-time', 'partition.time-extractor.timestamp-pattern' = '$hr', 'partition.time-extractor.timestamp-formatter' = 'yyyyMMddHH',
  'sink.partition-commit.delay' = '1 h',
  'sink.partition-commit.policy.kind' = 'readiness-topic', 'sink.partition-commit.readiness-topic.name' = 'hours_ready')
AS UNION OF c TIME ts AS (SELECT uid, COUNT(*) AS n FROM clicks GROUP BY uid);
`))
	if err != nil {
		t.Fatal(explain(err))
	}
	hour := filepath.Join("hours", "hr=2026072100")
	for version, late := range []bool{false, true} {
		msgs := w.ready(n, "hours_ready", version+1)
		if v := msgs[version]; v.Partition != "hr=2026072100" || v.Version != uint32(version+1) || v.Rows == nil || *v.Rows != 2 {
			t.Errorf("message %d: %+v", version, v)
		}
		rows := w.rows(hour)
		if got := strings.Join(rows, "\n"); strings.Contains(got, `"n":2}`) != late || strings.Count(got, `"uid":`) != 2 {
			t.Errorf("version %d holds\n%s", version+1, got)
		}
		if !late {
			w.produce(n, "clicks", click(1, "00:30"))
		}
	}
	if err := r.Stop(w.ctx()); err != nil {
		t.Fatal(err)
	}
}
