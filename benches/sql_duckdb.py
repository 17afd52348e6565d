#!/usr/bin/env python3
"""Ten queries about profiles, sent to Alluvium as SQL over HTTP and to DuckDB over the same Parquet files.

DuckDB runs each query in two ways: over views of the Parquet files, and over its own tables. With the views, each query reads and groups the rows of all stacks again. The script
creates the tables from the same rows before the measurement. The tables store the function, file and line of the leaf in columns of their own, as Alluvium's cache in memory
does. The first query after the start of a server, or of a new DuckDB instance, is called cold. The repetitions after it are called warm. If the script runs as root, it empties the system's page cache before a cold query. If two responses differ, the script ends.

In: the program, and a data folder that it has filled and merged. No server may use the folder. Out: one line of JSON per query, with all times, and a last line about DuckDB's tables.

    benches/sql_duckdb.py --program target/release/alluvium --data ./alluvium-data

Needs the Python packages duckdb and deltalake, which `make tools` installs.
"""

import argparse
import datetime
import json
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

import deltalake
import duckdb

# Frames are leaf first, so the running function is frames[1]. DuckDB has no table `flat`, so the views below replace it.
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
CREATE VIEW flat_frames AS SELECT * FROM flat;
"""

# DuckDB's own tables: rows of `flat` with the names of the leaf, and the frames of each stack once.
TABLES = """
CREATE TABLE own.samples AS SELECT * FROM samples;
CREATE TABLE own.profiles AS SELECT * FROM profiles;
CREATE TABLE own.stacks AS SELECT stack, frames, frames[1].function AS function, frames[1].file AS file, frames[1].line AS line FROM stacks;
CREATE TABLE own.series AS SELECT * FROM series;
CREATE TABLE own.leaves AS SELECT time, profile_type, value, stack, service_name, labels, function, file, line FROM flat;
CREATE VIEW own.flat AS SELECT * FROM own.leaves;
CREATE VIEW own.flat_frames AS SELECT l.*, k.frames FROM own.leaves l JOIN own.stacks k USING (stack);
"""

# Name, Alluvium's SQL, and DuckDB's SQL if it differs, else None. {cpu} stands for a profile type, {service} for a service, {function} for a function.
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
     "SELECT service_name, sum(value) AS v FROM flat_frames WHERE profile_type = '{cpu}' "
     "AND list_contains(list_transform(frames, lambda f: f.function), '{function}') GROUP BY service_name ORDER BY v DESC, service_name"),
    ("functions by pattern", "SELECT sum(value) AS v FROM flat WHERE profile_type = '{cpu}' AND function LIKE '%a%'", None),
    ("samples of each type", "SELECT profile_type, count(*) AS n, sum(value) AS v FROM samples GROUP BY profile_type ORDER BY profile_type", None),
    ("stacks by value", "SELECT stack, sum(value) AS v FROM samples WHERE profile_type = '{cpu}' GROUP BY stack ORDER BY v DESC, stack LIMIT 10", None),
    ("a line of time", "SELECT time_bucket('15s', time) AS t, sum(total) AS v FROM profiles WHERE profile_type = '{cpu}' GROUP BY t ORDER BY t",
     # The time is in seconds, because Python needs another package for a value with a time zone.
     "SELECT epoch(time_bucket(INTERVAL '15 seconds', time))::BIGINT AS t, sum(total) AS v FROM profiles WHERE profile_type = '{cpu}' GROUP BY t ORDER BY t"),
]


class Server:
    """Runs Alluvium on a data folder until the `with` block ends."""

    def __init__(self, program, data):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.url = "http://127.0.0.1:%d" % free.getsockname()[1]
        listen = self.url.removeprefix("http://")
        self.process = subprocess.Popen([program, "serve", "--listen", listen, "--data", data], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def __enter__(self):
        while self.process.poll() is None:
            try:
                urllib.request.urlopen(self.url + "/ready").read()
                return self
            except urllib.error.URLError:
                time.sleep(0.005)
        sys.exit("the server ended during its start")

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()

    def ask(self, sql):
        request = urllib.request.Request(self.url + "/api/v1/sql", sql.encode(), {"content-type": "text/plain", "accept": "application/json"})
        try:
            with urllib.request.urlopen(request) as answer:
                return [list(row.values()) for row in json.load(answer)]
        except urllib.error.HTTPError as error:
            sys.exit(f"{sql}: {error.read().decode()}")


class Duck:
    """DuckDB over the Parquet files of a data folder, and over its own tables in a database file."""

    def __init__(self, data, tenant, database):
        self.files, self.database = {}, database
        for table in ["samples", "profiles", "stacks", "series"]:
            live = deltalake.DeltaTable(os.path.join(data, "tables", table)).file_uris([("tenant", "=", tenant)])
            self.files[table] = ", ".join("'" + path.replace("file://", "").replace("'", "''") + "'" for path in live)
        began = time.perf_counter()
        self.run(self.open(False), TABLES)
        self.made_in = time.perf_counter() - began

    def open(self, tables):
        """Returns a new DuckDB that has read no data yet. If `tables` is true, its queries read its own tables, otherwise the views of the Parquet files."""
        db = duckdb.connect()
        db.execute(f"SET TimeZone = 'UTC'; SET threads = {os.cpu_count()}")
        db.execute(f"ATTACH '{self.database}' AS own" + (" (READ_ONLY)" if tables else ""))
        if tables:
            db.execute("USE own")
        else:
            self.run(db, VIEWS.format(**self.files))
        return db

    def run(self, db, statements):
        for statement in filter(str.strip, statements.split(";")):
            db.execute(statement)


def timed(work):
    began = time.perf_counter()
    answer = work()
    return (time.perf_counter() - began) * 1000, answer


def drop_page_cache():
    os.sync()
    try:
        pathlib.Path("/proc/sys/vm/drop_caches").write_text("1")
        return True
    except OSError:
        return False


def plain(value):
    """Returns the value as a text that is equal for equal values of both engines. Numbers beyond 2^53 are texts in Alluvium's JSON."""
    if hasattr(value, "timestamp"):
        return f"{value.timestamp():.0f}"
    text = str(value)
    if len(text) > 19 and text[10] == "T":
        return f"{datetime.datetime.fromisoformat(text.replace('Z', '+00:00')).timestamp():.0f}"
    return text


def measured(ask, runs):
    """Returns the milliseconds of the first response and of later responses, and the response as text."""
    cold, answer = timed(ask)
    warm = [round(timed(ask)[0], 2) for _ in range(runs)]
    return {"cold_ms": round(cold, 2), "warm_ms": warm}, [[plain(value) for value in row] for row in answer]


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--program", default="target/release/alluvium")
    arguments.add_argument("--data", default="./alluvium-data", help="data folder of the server")
    arguments.add_argument("--tenant", default="anonymous")
    arguments.add_argument("--runs", type=int, default=5)
    arguments.add_argument("--type", default="process_cpu:cpu:nanoseconds:cpu:nanoseconds")
    given = arguments.parse_args()

    with Server(given.program, given.data) as server:
        busiest = server.ask(f"SELECT service_name, function, sum(value) AS v FROM flat WHERE profile_type = '{given.type}' GROUP BY 1, 2 ORDER BY 3 DESC LIMIT 1")
    if not busiest:
        sys.exit(f"there are no profiles of the type {given.type}")
    names = {"cpu": given.type, "service": busiest[0][0], "function": busiest[0][1].replace("'", "''")}
    with tempfile.TemporaryDirectory(dir=pathlib.Path(given.data).parent) as folder:
        duck = Duck(given.data, given.tenant, os.path.join(folder, "own.duckdb"))
        for name, ours, theirs in QUESTIONS:
            sql = (theirs or ours).format(**names)
            dropped = drop_page_cache()
            with Server(given.program, given.data) as server:
                mine, answer = measured(lambda: server.ask(ours.format(**names)), given.runs)
            figures = {"alluvium": mine}
            for kind in ("views", "tables"):
                dropped &= drop_page_cache()
                db = duck.open(kind == "tables")
                figures[kind], other = measured(lambda: db.sql(sql).fetchall(), given.runs)
                db.close()
                if answer != other:
                    sys.exit(f"{name}: the results differ\nAlluvium {answer[:3]}\nDuckDB   {other[:3]}, {kind}")
            print(json.dumps({"mode": name, **figures, "page_cache_dropped": dropped, "rows": len(answer), "load_average": os.getloadavg()}), flush=True)
        print(json.dumps({"mode": "duckdb", "version": duckdb.__version__, "tables_made_in_s": round(duck.made_in, 2),
                          "tables_mb": round(os.path.getsize(duck.database) / 1e6, 1)}))


if __name__ == "__main__":
    main()
