#!/usr/bin/env python3
"""Ten questions about functions, asked of a running server by SQL and of DuckDB over the same Parquet files.

In: the URL of a server and its data folder. Out: for each question the median time of both and their ratio (below 1: we are faster), as a table
or, with --json, as JSON. The answers are compared, too: a question whose answers differ ends the program.

Needs the Python packages duckdb and deltalake, which `make tools` installs:

    benches/sql_duckdb.py --url http://localhost:4040 --data ./alluvium-data
"""

import argparse
import json
import os
import statistics
import sys
import time
import urllib.request

import deltalake
import duckdb

# Leaf first: the function that was running is frames[1]. DuckDB has no table `flat`; the views below are what it stands for.
VIEWS = """
CREATE VIEW samples AS SELECT * FROM read_parquet([{samples}], hive_partitioning = true);
CREATE VIEW profiles AS SELECT * FROM read_parquet([{profiles}], hive_partitioning = true);
CREATE VIEW stacks AS SELECT stack, any_value(frames) AS frames
    FROM read_parquet([{stacks}], hive_partitioning = true) GROUP BY stack;
CREATE VIEW series AS SELECT series, any_value(service_name) AS service_name, any_value(labels) AS labels
    FROM read_parquet([{series}], hive_partitioning = true) GROUP BY series;
CREATE VIEW flat AS SELECT p.time, p.profile_type, p.value, p.stack, s.service_name, s.labels, k.frames,
        k.frames[1].function AS function, k.frames[1].file AS file, k.frames[1].line AS line
    FROM samples p JOIN series s USING (series) JOIN stacks k USING (stack);
"""

# Name, our SQL, DuckDB's where it is another. {cpu} is the type, {service} a service.
QUESTIONS = [
    ("top 10 functions", "SELECT function, sum(value) AS v FROM flat WHERE profile_type = '{cpu}' "
     "GROUP BY function ORDER BY v DESC, function LIMIT 10", None),
    ("top 10 functions of each service", "SELECT service_name, function, v FROM (SELECT service_name, function, v, row_number() OVER "
     "(PARTITION BY service_name ORDER BY v DESC, function) AS n FROM (SELECT service_name, function, sum(value) AS v FROM flat "
     "WHERE profile_type = '{cpu}' GROUP BY service_name, function) a) b WHERE n <= 10 ORDER BY service_name, v DESC, function", None),
    ("time of each service", "SELECT service_name, sum(value) AS v FROM flat WHERE profile_type = '{cpu}' "
     "GROUP BY service_name ORDER BY v DESC, service_name", None),
    ("functions of one service", "SELECT function, sum(value) AS v, count(*) AS n FROM flat WHERE profile_type = '{cpu}' "
     "AND service_name = '{service}' GROUP BY function ORDER BY v DESC, function LIMIT 50", None),
    ("lines of one service", "SELECT file, line, sum(value) AS v FROM flat WHERE profile_type = '{cpu}' AND service_name = '{service}' "
     "GROUP BY file, line ORDER BY v DESC, file, line LIMIT 20", None),
    ("below one function", "SELECT service_name, sum(value) AS v FROM flat WHERE profile_type = '{cpu}' "
     "AND stack_contains(frames, '{function}') GROUP BY service_name ORDER BY v DESC, service_name",
     "SELECT service_name, sum(value) AS v FROM flat WHERE profile_type = '{cpu}' "
     "AND list_contains(list_transform(frames, lambda f: f.function), '{function}') GROUP BY service_name ORDER BY v DESC, service_name"),
    ("functions by pattern", "SELECT sum(value) AS v FROM flat WHERE profile_type = '{cpu}' AND function LIKE '%a%'", None),
    ("samples of each type", "SELECT profile_type, count(*) AS n, sum(value) AS v FROM samples GROUP BY profile_type ORDER BY profile_type", None),
    ("stacks by value", "SELECT stack, sum(value) AS v FROM samples WHERE profile_type = '{cpu}' GROUP BY stack ORDER BY v DESC, stack LIMIT 10", None),
    ("a line of time", "SELECT time_bucket('15s', time) AS t, sum(total) AS v FROM profiles WHERE profile_type = '{cpu}' GROUP BY t ORDER BY t",
     # As seconds: Python's value of a time zone would need one more package.
     "SELECT epoch(time_bucket(INTERVAL '15 seconds', time))::BIGINT AS t, sum(total) AS v FROM profiles WHERE profile_type = '{cpu}' GROUP BY t ORDER BY t"),
]


def ask(url, sql):
    request = urllib.request.Request(url + "/api/v1/sql", sql.encode(), {"content-type": "text/plain", "accept": "application/json"})
    try:
        with urllib.request.urlopen(request) as answer:
            return [list(row.values()) for row in json.load(answer)]
    except urllib.error.HTTPError as error:
        sys.exit(f"{sql}: {error.read().decode()}")


def median(work, runs):
    work()
    times = []
    for _ in range(runs):
        began = time.perf_counter()
        answer = work()
        times.append((time.perf_counter() - began) * 1000)
    return statistics.median(times), answer


def plain(value):
    """The same text for the same value, whichever engine it comes from: numbers beyond 2^53 are texts in our JSON."""
    if hasattr(value, "timestamp"):
        return f"{value.timestamp():.0f}"
    text = str(value)
    if len(text) > 19 and text[10] == "T":
        import datetime
        return f"{datetime.datetime.fromisoformat(text.replace('Z', '+00:00')).timestamp():.0f}"
    return text


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--url", default="http://localhost:4040")
    arguments.add_argument("--data", default="./alluvium-data", help="the server's data folder")
    arguments.add_argument("--tenant", default="anonymous")
    arguments.add_argument("--runs", type=int, default=5)
    arguments.add_argument("--type", default="process_cpu:cpu:nanoseconds:cpu:nanoseconds")
    arguments.add_argument("--json", action="store_true")
    given = arguments.parse_args()

    urllib.request.urlopen(urllib.request.Request(given.url + "/flush", b"", method="POST")).read()
    files = {}
    for table in ["samples", "profiles", "stacks", "series"]:
        live = deltalake.DeltaTable(os.path.join(given.data, "tables", table)).file_uris([("tenant", "=", given.tenant)])
        files[table] = ", ".join("'" + path.replace("file://", "").replace("'", "''") + "'" for path in live)
    db = duckdb.connect()
    db.sql("SET TimeZone = 'UTC'")
    db.execute(f"SET threads = {os.cpu_count()}")
    for statement in VIEWS.format(**files).split(";"):
        if statement.strip():
            db.execute(statement)
    names = {"cpu": given.type}
    busiest = ask(given.url, f"SELECT service_name, function, sum(value) AS v FROM flat WHERE profile_type = '{given.type}' GROUP BY 1, 2 ORDER BY 3 DESC LIMIT 1")
    if not busiest:
        sys.exit(f"there are no profiles of the type {given.type}")
    names["service"], names["function"] = busiest[0][0], busiest[0][1].replace("'", "''")

    results = []
    for name, ours, theirs in QUESTIONS:
        mine, other = ours.format(**names), (theirs or ours).format(**names)
        our_time, our_rows = median(lambda: ask(given.url, mine), given.runs)
        their_time, their_rows = median(lambda: db.sql(other).fetchall(), given.runs)
        left = [[plain(value) for value in row] for row in our_rows]
        right = [[plain(value) for value in row] for row in their_rows]
        if left != right:
            sys.exit(f"{name}: the answers differ\nours   {left[:3]}\nDuckDB {right[:3]}")
        results.append({"question": name, "alluvium_ms": round(our_time, 2), "duckdb_ms": round(their_time, 2),
                        "ratio": round(our_time / their_time, 2), "rows": len(left)})
    if given.json:
        print(json.dumps(results, indent=1))
        return
    print(f"| question | Alluvium ms (over HTTP) | DuckDB {duckdb.__version__} ms (in process) | ratio |\n| --- | --- | --- | --- |")
    for row in results:
        print(f"| {row['question']} | {row['alluvium_ms']} | {row['duckdb_ms']} | {row['ratio']} |")
    geometric = statistics.geometric_mean(row["ratio"] for row in results)
    print(f"| geometric mean | | | {geometric:.2f} |")


if __name__ == "__main__":
    main()
