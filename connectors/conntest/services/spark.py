"""Answers SQL on standard input with JSON lines on standard output.

A request is one line, {"sql": "..."}; the answer one line, {"rows": [[...]]} or
{"error": "..."}. The first line says {"ready": true}.
"""
import datetime
import decimal
import json
import os
import sys

out = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)  # what Java prints goes to the log

from pyspark.sql import Row, SparkSession


def plain(v):
    if isinstance(v, decimal.Decimal):
        return format(v, "f")
    if isinstance(v, (bytes, bytearray)):
        return "0x" + bytes(v).hex()
    if isinstance(v, (datetime.datetime, datetime.date)):
        return str(v)
    if isinstance(v, Row):
        return {k: plain(x) for k, x in v.asDict().items()}
    if isinstance(v, (list, tuple)):
        return [plain(x) for x in v]
    if isinstance(v, dict):
        return [[plain(k), plain(x)] for k, x in v.items()]
    return v


def reply(x):
    out.write(json.dumps(x) + "\n")
    out.flush()


b = SparkSession.builder.master("local[1]")
for k, v in json.loads(sys.argv[1]).items():
    b = b.config(k, v)
spark = b.getOrCreate()
spark.sparkContext.setLogLevel("ERROR")
reply({"ready": True})
for line in sys.stdin:
    try:
        rows = spark.sql(json.loads(line)["sql"]).collect()
        reply({"rows": [[plain(v) for v in r] for r in rows]})
    except Exception as e:  # the test decides
        reply({"error": str(e)})
