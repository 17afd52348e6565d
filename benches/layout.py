"""Compares physical layouts of the samples table: bytes per value, and the time of three queries in DuckDB.

In: the `tables` folder of a data folder that was compacted (`alluvium store compact`). Out: a Markdown table, such as the one in docs/adr/0004-layout.md.
The encoder is pyarrow's, whose sizes are within 3 % of Alluvium's. Run the script with the Python that `make tools` sets up:
`python benches/layout.py alluvium-data/tables`.
"""

import glob
import os
import sys
import tempfile
import time

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

COLUMNS = ["time", "series", "profile_type", "stack", "value"]
PAGE = 128 << 10


def read(tables):
    """Returns the samples of all merged files, with numbers for profile type and service."""
    series = pa.concat_tables(pq.ParquetFile(f).read() for f in files(tables, "series"))
    names = series["service_name"].to_pylist()
    rank = {name: number for number, name in enumerate(sorted(set(names)))}
    services = pa.array([rank[name] for name in names], pa.int32())
    rows = pa.concat_tables(pq.ParquetFile(f).read(columns=COLUMNS) for f in files(tables, "samples"))
    rows = rows.set_column(2, "profile_type", rows["profile_type"].dictionary_encode()).combine_chunks()
    kind = rows["profile_type"].combine_chunks()
    kind = kind.chunk(0) if isinstance(kind, pa.ChunkedArray) else kind
    place = pc.index_in(rows["series"], series["series"].combine_chunks()).combine_chunks()
    rows = rows.append_column("kind", kind.indices).append_column("service", services.take(place))
    counts = rows.group_by(["kind", "series", "stack"]).aggregate([("value", "count")])
    rows = rows.join(counts, ["kind", "series", "stack"])
    return rows.append_column("rare", pc.negate(rows["value_count"])).combine_chunks()


def files(tables, table):
    found = sorted(glob.glob(os.path.join(tables, table, "tenant=*", "day=*", "c*.parquet")))
    if not found:
        sys.exit(f"{tables}/{table} has no merged files")
    return found


def write(rows, path, level=3, group=1 << 20, bloom=False, **options):
    pq.write_table(
        rows, path, compression="zstd", compression_level=level, row_group_size=group, data_page_size=PAGE,
        write_batch_size=1024, write_page_index=True, **options,
    )
    return os.path.getsize(path) / len(rows)


def encoded(column, encoding):
    return {"use_dictionary": [name for name in COLUMNS if name != column], "column_encoding": {column: encoding}}


def lists(rows, keys, inner):
    """Returns one row for each combination of keys, with the other columns as lists."""
    return rows.group_by(keys, use_threads=False).aggregate([(name, "list") for name in inner])


def main(tables):
    rows = read(tables)
    db = duckdb.connect()
    db.execute("SET threads = 2")
    biggest = pc.value_counts(rows["kind"]).to_pylist()
    kind = max(biggest, key=lambda pair: pair["counts"])["values"]
    kind_name = rows.filter(pc.equal(rows["kind"], kind))["profile_type"][0].as_py()
    chosen = pc.unique(rows.filter(pc.equal(rows["service"], 0))["series"]).to_pylist()
    last = pc.max(rows["time"].cast(pa.int64())).as_py() - 300_000_000
    where = f"profile_type = '{kind_name}'"
    one = f"{where} AND series IN ({', '.join(map(str, chosen))})"
    questions = [where, one, f"{one} AND epoch_us(time) >= {last}"]
    print(f"{len(rows)} values; DuckDB {duckdb.__version__} on 2 threads, best of 7, milliseconds\n")
    print("| samples | bytes per value | all services, 1 h | one service, 1 h | one service, 5 min |\n| --- | --- | --- | --- | --- |")
    orders = {
        "type, series, time, stack": ["kind", "series", "time", "stack"],
        "type, series, stack, time": ["kind", "series", "stack", "time"],
        "type, service, stack, series, time": ["kind", "service", "stack", "series", "time"],
        "type, series, stacks by frequency, time": ["kind", "series", "rare", "stack", "time"],
    }
    variants = {
        "": {},
        ", zstd 9": {"level": 9},
        ", row groups of 64 Ki": {"group": 64 << 10},
        ", time delta packed": encoded("time", "DELTA_BINARY_PACKED"),
        ", stack delta packed": encoded("stack", "DELTA_BINARY_PACKED"),
        ", value plain": encoded("value", "PLAIN"),
    }
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "samples.parquet")
        for order, keys in orders.items():
            ordered = rows.take(pc.sort_indices(rows, [(key, "ascending") for key in keys]))
            for variant, options in variants.items():
                if variant not in ("", ", zstd 9") and order != "type, series, stack, time" and "delta" not in variant:
                    continue
                size = write(ordered.select(COLUMNS), path, **options)
                times = []
                for condition in questions if not variant or "groups" in variant else []:
                    query = f"SELECT stack, sum(value) FROM read_parquet('{path}') WHERE {condition} GROUP BY stack"
                    runs = []
                    for _ in range(7):
                        start = time.perf_counter()
                        db.execute(query).fetchall()
                        runs.append(time.perf_counter() - start)
                    times.append(f"{min(runs) * 1000:.1f}")
                print(f"| {order}{variant} | {size:.4f} | {' | '.join(times or [''] * 3)} |", flush=True)
            if keys[:2] == ["kind", "series"] and "rare" not in keys:
                heads, inner = keys[:3], [keys[3], "value"]
                listed = lists(ordered.select(["kind", "series", "time", "stack", "value"]), heads, inner)
                pq.write_table(listed, path, compression="zstd", compression_level=3)
                print(f"| lists for each {heads[2]} of a series | {os.path.getsize(path) / len(rows):.4f} | | | |", flush=True)


main(sys.argv[1])
