"""Answers one request of package oracle; see doc.go for the protocol."""
import datetime
import decimal
import json
import math
import sys


def plain(v):
    if v is None or isinstance(v, (bool, int, str)):
        return v
    if isinstance(v, float):
        if math.isnan(v):
            return "NaN"
        if math.isinf(v):
            return "Infinity" if v > 0 else "-Infinity"
        return v
    if isinstance(v, decimal.Decimal):
        return format(v, "f")
    if isinstance(v, (bytes, bytearray, memoryview)):
        return "0x" + bytes(v).hex()
    if isinstance(v, (datetime.datetime, datetime.date, datetime.time)):
        return v.isoformat()
    if isinstance(v, (list, tuple)):
        return [plain(x) for x in v]
    if isinstance(v, dict):
        return {k if isinstance(k, str) else str(plain(k)): plain(x) for k, x in v.items()}
    return str(v)


def emit(columns, types, rows):
    out = sys.stdout
    out.write(json.dumps({"columns": columns, "types": types}) + "\n")
    for row in rows:
        out.write(json.dumps([plain(v) for v in row]) + "\n")


def query(req):
    import duckdb

    con = duckdb.connect(config={"autoinstall_known_extensions": "false"})
    con.execute("SET TimeZone = 'UTC'")
    result = con.execute(req["sql"])
    if result.description is None:
        emit([], [], [])
        return
    emit([d[0] for d in result.description], [str(d[1]) for d in result.description], result.fetchall())


def stored(t):
    """The type under which clock values are the integers that are stored."""
    import pyarrow as pa

    if pa.types.is_timestamp(t) or pa.types.is_time64(t):
        return pa.int64()
    if pa.types.is_date32(t) or pa.types.is_time32(t):
        return pa.int32()
    if pa.types.is_map(t):
        return pa.map_(t.key_type, stored(t.item_type))
    if pa.types.is_list(t):
        return pa.list_(t.value_field.with_type(stored(t.value_type)))
    if pa.types.is_struct(t):
        return pa.struct([t.field(i).with_type(stored(t.field(i).type)) for i in range(t.num_fields)])
    return t


def parquet(req):
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pq.read_table(req["path"])
    columns = []
    for f, c in zip(table.schema, table.columns):
        t = stored(f.type)
        columns.append((c.cast(t) if t != f.type else c).to_pylist())
    emit([f.name for f in table.schema], [str(f.type) for f in table.schema], zip(*columns) if columns else [])


def main():
    req = json.load(sys.stdin)
    {"query": query, "parquet": parquet}[req["op"]](req)


try:
    main()
except Exception as e:  # the caller prints it: a stack of ours helps nobody
    sys.stderr.write(type(e).__name__ + ": " + str(e) + "\n")
    sys.exit(1)
