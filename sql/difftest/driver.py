"""Runs the statements of package difftest in DuckDB: one JSON text a line in, one JSON object a line out."""
import datetime
import decimal
import json
import math
import sys

import duckdb


def plain(v):
    if v is None or isinstance(v, (bool, int, str)):
        return v
    if isinstance(v, float):
        return v if math.isfinite(v) else {float("inf"): "Infinity", float("-inf"): "-Infinity"}.get(v, "NaN")
    if isinstance(v, decimal.Decimal):
        return format(v, "f")
    if isinstance(v, list):
        return "[" + ", ".join("NULL" if x is None else str(plain(x)) for x in v) + "]"
    if isinstance(v, datetime.date):
        return v.isoformat()
    return str(v)


con = duckdb.connect(config={"autoinstall_known_extensions": "false", "threads": 1})
con.execute("SET TimeZone = 'UTC'")
for line in sys.stdin:
    try:
        result = con.execute(json.loads(line))
        rows = [[plain(v) for v in row] for row in result.fetchall()] if result.description else []
        answer = {"rows": rows}
    except duckdb.Error as e:
        answer = {"error": type(e).__name__ + ": " + str(e)}
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()
