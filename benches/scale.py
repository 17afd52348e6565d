#!/usr/bin/env python3
"""The model of docs/scale.md: computes fleets of pods from measured unit costs.

    benches/scale.py [NAME=VALUE ...]   print the tables of that page, with changed assumptions or settings of the code

`make figures` writes the tables between the marks of the page and checks them, with figures.py. Unit costs are medians of docs/benchmarks/*.json; a missing cost is
reported as not measured. ASSUMED has the values without a benchmark, each with its reason. CODE has the settings of the code, each with the text that states it. Every
counted request names the functions that send it. If the code no longer contains such a text or function, `wrong` reports it.
"""

import functools
import json
import math
import os
import pathlib
import statistics
import sys

# A test runs this file. No compiled file may be left in the source tree.
sys.dont_write_bytecode = True
from scale_model import STEPS, fleet

SOURCES = pathlib.Path(os.environ.get("ALLUVIUM_SOURCES", pathlib.Path(__file__).resolve().parent.parent))
SIZES = (10**4, 10**5, 10**6)
MIB = 1 << 20

# Name: value, unit, description, reason.
ASSUMED = {
    "profiles": (8, "per pod and minute", "profiles", "as in the measured fleet: CPU and heap, each four times a minute. Alloy scrapes five types from a Go program by "
                 "default, which makes 20 profiles per minute: see the table with other assumptions"),
    "kinds": (6, "", "number of sample types in the profiles of a pod", "two of CPU, four of heap (`src/testing/fleet/draw.rs`); a merge of at least `split` bytes writes separate files for each type"),
    "tenants": (1, "", "number of tenants, which are of equal size", "the usual installation; every flush writes separate files for each tenant"),
    "service_pods": (30, "", "number of pods of a service", "the measured fleet has three; a large fleet has larger services, not only more of them"),
    "retention": (30, "days", "retention of profiles", "a month, so that a release can be compared with the previous one"),
    "questions": (0.1, "per pod and day", "flame graph queries", "two per day by one engineer for every twenty pods; each over one hour, with nothing cached"),
    "whole": (0.01, "", "share of the flame graph queries that cover all services", "few users look at everything; all other queries are about one service"),
    "busy": (0.5, "", "share of its processors that a server uses on average", "the rest is for peaks, for the failure of a server, and for work that was not measured"),
    "node_cores": (2, "", "processors of a server", "as on the measured machine; no server with more was measured"),
    "node_gb": (8, "GB", "memory of a server", "as on the machine of `node_price`"),
    "latency": (0.1, "s", "duration of one request to S3", "public pages quote 100 to 200 ms from Amazon for small objects; not measured here"),
    "bandwidth": (100, "MB/s", "rate at which a query, or a reader of a table's log, reads from S3", "a usual figure for a few parallel requests; not measured"),
    "live_bytes": (200, "bytes", "size of a live file's entry in a checkpoint, compressed", "a path with two ids, four pairs of bounds, a checksum; not measured"),
    "entry_bytes": (400, "bytes", "memory of a server for a live file", "counted from `FileEntry` and its texts; not measured"),
    "found_bytes": (250, "bytes", "memory for an object of a listing", "counted from `ListedObject` and its path; not measured"),
    "slack": (4 / 3, "", "ratio of the memory of a head's columns to their contents", "vectors double their capacity when full. The model computes the profiles of a flush with this ratio, unless `make bench-disk` has measured them"),
    "page": (1000, "keys", "keys in the response to one LIST", "the maximum of S3, which is the default of `object_store`"),
    "put_price": (0.005, "$ per thousand", "price of PUT and LIST requests", "list price of S3 Standard, US East (N. Virginia), as public pages quote it; read on 2026-11-24 in stored "
                  "copies of these pages, which are not Amazon's own and mostly have no date. DELETE costs nothing; Alluvium deletes with POSTs of one key each, which the model counts as DELETE"),
    "get_price": (0.0004, "$ per thousand", "price of GET requests", "from the same source as the price of a PUT"),
    "gb_price": (0.023, "$ per GB and month", "price of storage", "from the same source as the price of a PUT, for the first 50 TB; 0.022 up to 500 TB, 0.021 beyond. Traffic within the region costs nothing"),
    "node_price": (0.0816, "$ per hour", "price of a server", "on-demand list price of m7g.large (two processors, 8 GB), US East (N. Virginia), from the same source as the price of a PUT. "
                   "It is a 64-bit Arm machine; the program was measured on x86-64"),
}

# Name: value, description, file, and the text in that file that states the value.
CODE = {
    "flush_bytes": (32 * MIB, "size in bytes at which a head is flushed", "src/store/config.rs", "flush_bytes: 32 << 20"),
    "value_bytes": (12, "bytes of a value in a head", "src/store/head/partition.rs", "self.stacks.capacity() * 4\n            + self.values.capacity() * 8"),
    "flush_age": (300, "seconds after which a head is flushed", "src/store/config.rs", "flush_age: Duration::from_mins(5)"),
    "sync": (15, "seconds between polls for commits of other servers", "src/store/tables/bucket/options.rs", "sync_interval: Duration::from_secs(15)"),
    "checkpoint": (50, "commits between checkpoints", "src/store/tables/delta/mod.rs", "CHECKPOINT_INTERVAL: u64 = 50"),
    "hint": (5, "commits between checks whether a checkpoint is due", "src/store/tables/delta/mod.rs", "CHECKPOINT_RETRY: u64 = 5"),
    "attempts": (20, "attempts of a commit", "src/store/tables/delta/mod.rs", "COMMIT_ATTEMPTS: usize = 20"),
    "fewest": (8, "minimum number of flushed files of one merge", "src/store/maintenance/plan.rs", "min_files: 8"),
    "inputs": (32, "maximum number of files of one merge", "src/store/maintenance/plan.rs", "max_inputs: 32"),
    "target": (16 * MIB, "size in bytes up to which files of a day are merged", "src/store/maintenance/plan.rs", "target_bytes: 16 << 20"),
    "split": (4 * MIB, "minimum size in bytes of a merge that writes separate files for each type", "src/store/maintenance/plan.rs", "split_bytes: 4 << 20"),
    "round": (10, "seconds between rounds of maintenance", "src/store/maintenance/config.rs", "interval: Duration::from_secs(10)"),
    "cpu_share": (0.5, "share of a processor for merging", "src/store/maintenance/config.rs", "cpu_share: 0.5"),
    "vacuum": (600, "seconds between vacuums", "src/store/maintenance/config.rs", "vacuum_interval: Duration::from_mins(10)"),
    "delay": (3600, "seconds until a removed file is deleted", "src/store/maintenance/config.rs", "deletion_delay: Duration::from_hours(1)"),
    "log_days": (7, "days for which entries of a table's log are kept", "src/store/maintenance/retention/vacuum.rs", "LOG_AGE: Duration = Duration::from_hours(168)"),
    "put": (16 * MIB, "maximum bytes of a file that is written by one PUT", "src/store/tables/bucket/mod.rs", "PUT_BYTES: u64 = 16 << 20"),
    "part": (8 * MIB, "bytes of each part of a file that one PUT cannot write", "src/store/tables/bucket/mod.rs", "PART_BYTES: usize = 8 << 20"),
    "block": (MIB, "bytes of a block that a query reads", "src/store/tables/bucket/cache.rs", "BLOCK_BYTES: u64 = 1 << 20"),
    "timeout": (60, "timeout of a query in seconds", "src/query/common/types.rs", "timeout: Duration::from_mins(1)"),
    "fleet_services": (20, "services of the measured fleet", "src/testing/fleet/shape.rs", "services: 20"),
    "fleet_pods": (3, "pods of each service of the measured fleet", "src/testing/fleet/shape.rs", "pods: 3"),
}
# Requests to S3: source, PUT, LIST, GET, and the functions, by file below src/store or src/query. a: attempts of a commit; p: the probability that the last commit
# of this server is older than the last checkpoint, so that the server must read the checkpoint.
REQUESTS = [
    ("flush: check the state of the four tables", "", "4", "4 × 3 p", {"store/flush/write.rs": "try_commit", "store/tables/delta/mod.rs": "reload committed"}),
    ("flush: write the files of each tenant and day; fewer if no stack is new", "4", "", "", {"store/flush/files.rs": "write_table", "store/tables/bucket/mod.rs": "upload"}),
    ("flush: append an entry to each of the four logs", "4 a", "4 a", "4 × 3 p a", {"store/tables/delta/mod.rs": "try_append refresh", "store/tables/delta/commit.rs": "commit"}),
    ("merge: read an input file that is not in the local cache, for every 16 MiB of the file", "", "", "1", {"store/maintenance/merge/input.rs": "open", "store/tables/bucket/mod.rs": "open_file"}),
    ("merge: write the new files", "1 to 6", "", "", {"store/maintenance/merge/rewrite.rs": "run", "store/flush/files.rs": "finish"}),
    ("merge: append an entry to the log", "a", "a", "2 × 5 a", {"store/maintenance/exchange.rs": "exchange", "store/tables/delta/replace.rs": "try_replace", "store/tables/delta/mod.rs": "list"}),
    ("write a checkpoint of a table, every 50 commits", "2", "1", "9", {"store/tables/delta/mod.rs": "checkpoint"}),
    ("check whether a checkpoint is due, every 5 commits", "", "", "1", {"store/tables/delta/mod.rs": "checkpoint_if_due last_checkpoint"}),
    ("read a checkpoint that another server wrote, on each server", "", "", "3", {"store/tables/delta/mod.rs": "refresh"}),
    ("read an entry of a log, once on each server", "", "", "1", {"store/tables/bucket/counted.rs": "remember"}),
    ("poll for commits of other servers, on each server, every 15 s", "", "4", "5 for each table that changed", {"store/flush/sync.rs": "poll", "store/tables/delta/mod.rs": "files"}),
    ("after each LIST of a log, a check for an entry that follows the last one; it costs less than a tenth of the LIST, and the computed prices do not include it", "", "", "1",
     {"store/tables/delta/log_store.rs": "complete find_file"}),
    ("vacuum of a table, on each server, every 10 minutes", "", "1 + pages of the table + 2 × pages of the table's log", "6",
     {"store/maintenance/retention/vacuum_job.rs": "run", "store/maintenance/retention/vacuum.rs": "dead_files read_on trim_log", "store/tables/root.rs": "parquet_files log_files"}),
    ("query with nothing cached", "", "", "3 for each file of the queried type and hour, 2 for each file of names",
     {"query/stacks/sums.rs": "blocks_of", "query/scan/read.rs": "choose", "store/tables/bucket/reader.rs": "read"}),
]


class Missing(Exception):
    """A bench that has not been run."""


class Kept:
    """The medians of docs/benchmarks, and the names of the benches whose medians were requested."""

    def __init__(self, folder):
        self.folder, self.results, self.asked = folder, {}, []

    def result(self, bench):
        if bench not in self.results:
            path = self.folder / f"{bench}.json"
            self.results[bench] = json.loads(path.read_text()) if path.exists() else None
        return self.results[bench]

    def __call__(self, bench, figure):
        values = (self.result(bench) or {}).get("figures", {}).get(figure)
        if not values:
            raise Missing(bench)
        self.asked += [(bench, figure)]
        return statistics.median(values)


# Name: description, and its value in the stored results. The figures that the model requires are in NEEDED.
UNITS = {
    "raw_kb": ("kB of pprof per profile", lambda of: of("server", "fill.raw_kb_per_profile")),
    "values": ("values per profile", lambda of: of("server", "fill.values") / of("server", "fill.profiles")),
    "take_ms": ("processor time to accept and flush a profile, at 500 per second, ms",
                lambda of: 1000 * of("server", "rate.cpu_s") / of("server", "rate.profiles")),
    "merge_ms": ("processor time to merge a profile in one step, ms", lambda of: 1000 * of("server", "merge.cpu_s") / of("server", "fill.profiles")),
    "most": ("profiles per second that one server accepts, with 64 clients on the same two processors", lambda of: of("server", "fill.profiles_per_s")),
    "flushed": ("bytes per stored value, as flushed", lambda of: of("server", "fill.stored.folder_bytes_per_value")),
    "stored": ("bytes per stored value, merged", lambda of: of("server", "merge.folder_bytes_per_value")),
    "peak_mb": ("peak resident memory during the fill, MB", lambda of: of("server", "fill.memory.peak_mb")),
    "service_ms": ("first flame graph of a service of three pods, one hour, ms", lambda of: of("server", "first.flame_service_1h.first_ms")),
    "whole_ms": ("first flame graph of all sixty pods, one hour, ms", lambda of: of("server", "first.flame_all_1h.first_ms")),
    "warm_ms": ("flame graph of a service of three pods, one hour, with cached rows: processor time, ms", lambda of: of("server", "query-merged.flame_service_1h.cpu_ms")),
    "per_flush": ("profiles per flush", lambda of: of("disk", "disk.profiles") / max(1, of("disk", "disk.jobs.flush"))),
    "disk_ms": ("acknowledgement on a real disk during flushes and merges, p99, ms", lambda of: of("disk", "disk.ack_ms.p99")),
    "offered": ("profiles per second in an open loop without a refusal; the model uses the lower of this rate and the rate with 64 clients", lambda of: of("peer", "ours.highest_rate_per_s")),
    "series_kb": ("memory of a series with functions that no other series has, kB: from the difference between a fleet of 1,000 services and one of 20",
                  lambda of: 1000 * (of("wide", "fill.memory.anon_mb") - of("small", "fill.memory.anon_mb")) / (980 * 3 * 2)),
    "wide_ms": ("first flame graph of one of a thousand services, over two minutes, ms", lambda of: of("wide", "first.flame_service_1h.first_ms")),
    "history": ("ratio of two durations of a query: with a history of ten times its range, and with a history of only its range", lambda of: of("growth", "growth.question.flame_service_1h.ratio")),
    "new_stacks": ("resident memory during an hour of deployments, MB", lambda of: of("soak", "window.resident_mb")),
    "scrape_ms": ("processor time of a collector to scrape and send a profile, ms",
                  lambda of: 600 * of("engine", "engine.scrape_cpu_percent") / of("engine", "engine.scrape_profiles_per_minute")),
    "ebpf": ("processor use of the whole-machine profiler, %", lambda of: of("profiler", "collector_99hz.both_cpu_percent")),
}
NEEDED = ("raw_kb", "values", "take_ms", "merge_ms", "most", "flushed", "stored", "peak_mb", "service_ms", "whole_ms")


def settings(**changed):
    """Returns the assumptions and the settings of the code by name, with some changes."""
    values = {name: value for name, (value, *_) in (ASSUMED | CODE).items()}
    # Numbers for changed designs: servers that list the same objects (None: all), threads that share maintenance, servers that share a query, seconds of a batch of
    # commits, and seconds between uploads of log segments to the bucket.
    values |= {"listers": None, "maintainers": 1, "askers": 1, "batch": None, "segment": None}
    values["usual_flush_bytes"] = CODE["flush_bytes"][0]
    unknown = changed.keys() - values.keys()
    if unknown:
        sys.exit(f"scale: unknown assumptions: {', '.join(sorted(unknown))}; the known ones are {', '.join(values)}")
    return values | changed


def units(of):
    needed = {name: UNITS[name][1](of) for name in NEEDED}
    return needed | {"per_flush": value_of("per_flush", of), "most": min(needed["most"], value_of("offered", of) or math.inf)}


def value_of(name, of):
    try:
        return UNITS[name][1](of)
    except Missing:
        return None


def shaped(unit, of, bench):
    """Returns the unit costs for profiles of another shape. Figures that only `server` measures are scaled by the CPU time of a fill."""
    per = lambda name: of(bench, name) / of(bench, "fill.profiles")
    took = per("fill.cpu_s") / (of("server", "fill.cpu_s") / of("server", "fill.profiles"))
    return unit | {"raw_kb": of(bench, "fill.raw_kb_per_profile"), "values": per("fill.values"), "take_ms": unit["take_ms"] * took, "merge_ms": 1000 * per("merge.cpu_s"),
                   "most": of(bench, "fill.profiles_per_s"), "per_flush": None, "flushed": of(bench, "fill.stored.folder_bytes_per_value"),
                   "stored": of(bench, "merge.folder_bytes_per_value"), "whole_ms": of(bench, "first.flame_all_1h.first_ms"),
                   "service_ms": of(bench, "first.flame_service_1h.first_ms")}


# Limits: name, description, the name of the fleet's value, the maximum of this value, its unit, and the numbers of the steps in CHANGES that raise the limit.
LIMITS = [
    ("a single server", "number of servers: if there are several, each has new profiles and a log that the others cannot read", "nodes", lambda s: 1, "",
     "1 roles, 2 queries on all heads, 3 a log that outlives its machine"),
    ("the thread that merges and cleans", "seconds of work per second of the one thread that merges and cleans", "maintenance", lambda s: 1, "", "4 one maintainer for each partition"),
    ("the thread that flushes", "seconds per second for which the thread that flushes and polls waits for S3", "flushing", lambda s: 1, "", "5 commits in batches"),
    ("the log of `samples`", "share of the time in which some server commits to the log of `samples`", "taken", lambda s: 1, "", "5 one committer, split tables"),
    ("the checkpoint of `samples`", "time to read the checkpoint of `samples`; the maximum is the time between two polls", "checkpoint_s", lambda s: s["sync"], "s", "5, larger files"),
    ("a vacuum", "time in which a vacuum lists all objects; the maximum is the time between two vacuums", "vacuum_s", lambda s: s["vacuum"], "s", "1, 4, 5, a shorter log"),
    ("memory", "memory of a server: its peak, its list of files, a listing", "memory_gb", lambda s: s["node_gb"], "GB", "4, 5, larger files"),
    ("a query about a service", "a flame graph of a service over an hour, nothing cached", "service_s", lambda s: s["timeout"], "s", "2, files by service"),
    ("a query about everything", "a flame graph of all services over an hour, nothing cached", "whole_s", lambda s: s["timeout"], "s", "2 on all servers"),
    ("the price of requests", "ratio of the cost of requests to the cost of servers and storage", "dear", lambda s: 1, "", "1, 4, 5; larger heads"),
]

# The steps of the plan in docs/scale.md ("What would be changed"), in order. Each row lists the changes that it adds to the rows above.
CHANGES = [
    ("the present program", {}),
    ("1 roles: only servers that run maintenance send listings", {"listers": 1}),
    ("2 a query runs on all servers", {"askers": "nodes"}),
    ("3 the log in the bucket, a segment every 250 ms (a replicated log sends no requests to S3)", {"segment": 0.25}),
    ("4 one maintainer for each partition, on all servers", {"maintainers": "nodes"}),
    ("5 commits of all servers in batches of 10 s", {"batch": 10}),
    ("6 other engines read the tables while servers run, at no additional cost", {}),
    ("not in the plan: merges up to 1.5 GiB for all types, log entries kept for a day", {"target": 1536 * MIB, "log_days": 1}),
]

# Other assumptions, for a fleet of a hundred thousand pods.
OTHERS = [
    ("as assumed", {}, None), ("20 profiles per pod and minute, all of the measured size", {"profiles": 20}, None), ("one profile per pod and minute", {"profiles": 1}, None),
    ("profiles of half the size (`bench-small`)", {}, "small"),
    ("ten times the queries", {"questions": 1}, None), ("a hundred tenants", {"tenants": 100}, None), ("a request to S3 takes 30 ms", {"latency": 0.03}, None),
    ("other values of present settings: one vacuum per hour, a whole processor for maintenance", {"vacuum": 3600, "cpu_share": 1}, None),
    ("a head of 256 MiB", {"flush_bytes": 256 * MIB}, None), ("servers may be 90 % busy", {"busy": 0.9}, None),
]

# Gaps of the model: description, the bench that would measure it (from tables.py or a new one), and the results that depend on it.
UNKNOWN = [
    ("profiles per flush, and the acknowledgement on a real disk", "disk", "the number of requests and commits per day"),
    ("memory of a series, and of stacks that no other service has", "wide", "memory of a server, because every server has profiles of all services"),
    ("queries with ten times the history", "growth", "whether a query about the last hour is slower after a month"),
    ("the highest rate in an open loop", "peer", "the number of servers"),
    ("an hour of deployments with new stacks", "soak", "memory, and how often the same stacks are written again"),
    ("requests of a flush, a merge, a poll and a vacuum", "a new bench: the load with an S3 server that counts requests. The metric `alluvium_store_object_requests_total` "
     "counts a listing once, however many pages it has", "all numbers of requests, which the model counts from the code"),
    ("duration of a request, and processor time of TLS and signatures", "a new bench: the load with a real S3", "the limits of the threads, of commits and of queries; the model includes no processor time for requests to a bucket"),
    ("commits per second of several writers to one log", "a new bench: the load with several servers on an S3 server", "the size from which tables must be split"),
    ("bytes of a checkpoint by live and removed files, and the time to read it", "a new bench: a log with a million files", "the number of files that a table may have"),
    ("merging of arriving files in three steps", "`make bench-soak`, with the durations of maintenance jobs", "processors for merging, which depend on a figure measured by hand"),
    ("a server with more than two processors", "`make bench-server` on such a machine", "the number of servers: one thread writes the log and one applies the profiles to the head, so a server with more processors may not accept more profiles"),
    ("queries over hours with a hundred files, about services with many pods", "a new bench: `growth` with a wide fleet in a bucket", "queries about one service and about all services; the model extrapolates their durations linearly"),
]


def short(value):
    """Formats a number with three significant digits."""
    if abs(value) >= 1e6:
        unit, name = next((unit, name) for unit, name in ((1e12, "trillion"), (1e9, "billion"), (1e6, "million")) if abs(value) >= unit)
        return f"{value / unit:.3g} {name}" if value / unit < 1000 else f"{value / unit:,.0f} {name}"
    if abs(value) >= 1000:
        return f"{round(value, 2 - math.floor(math.log10(abs(value)))):,.0f}"
    return f"{value:.3g}"


def two(value):
    """Formats a number with two significant digits."""
    digits = 1 - math.floor(math.log10(abs(value))) if value else 0
    return f"{round(value, digits):,.{max(digits, 0)}f}".removesuffix(".0")


def dollars(value):
    return f"${short(value)}"


def rows(titles, lines):
    head = ["| " + " | ".join(titles) + " |", "|" + " --- |" * len(titles)]
    return "\n".join(head + ["| " + " | ".join(line) + " |" for line in lines]) + "\n"


def pods_text(pods):
    return f"{pods:,} pods"


def changed_fleet(pods, unit, s):
    """Returns the fleet. A setting with the value "nodes" means that all servers share the work, and becomes the number of servers."""
    shared = [name for name, value in s.items() if value == "nodes"]
    if shared:
        nodes = fleet(pods, unit, s | {name: 1 for name in shared})["nodes"]
        s = s | {name: nodes for name in shared}
    return fleet(pods, unit, s)


def breaks(unit, s):
    """Returns the fleet size at which each limit is first exceeded, from ten pods up, with two digits.

    The size is infinite if the limit is never exceeded. The smallest size comes first.
    """
    found, steps = {}, 40
    for step in range(steps, 8 * steps + 1):
        pods = 10 ** (step / steps)
        m = changed_fleet(pods, unit, s)
        for limit in LIMITS:
            if limit[0] not in found and m[limit[2]] > limit[3](s):
                found[limit[0]] = round(pods, 1 - math.floor(step / steps))
        if len(found) == len(LIMITS):
            break
    return sorted(((found.get(limit[0], math.inf), limit) for limit in LIMITS), key=lambda passed: passed[0])


def units_table(of, s):
    lines = []
    for name, (label, value) in UNITS.items():
        of.asked = []
        try:
            worth = short(value(of))
        except Missing as missing:
            lines.append([label, "**not measured**", "", f"`make bench-{missing}` measures it"])
            continue
        bench = of.asked[0][0]
        result = of.result(bench)
        lines.append([label, worth, ", ".join(f"`{figure}`" for _, figure in of.asked), f"`{bench}.json`, {result['date']}, {result['commit']}"])
    by_hand = "by hand, `docs/benchmarks.md`, 2026-11-22, 7953d7d"
    lines.append(["ratio of the CPU time of merging in three steps to that of merging in one", short(STEPS), "7 CPU-seconds instead of 3", by_hand])
    return rows(["unit cost", "median", "figures", "bench, date, commit"], lines)


def assumed_table(of, s):
    return rows(["assumption", "value", "reason"], [[f"{what} (`{name}`)", f"{short(value)} {unit}".strip(), why] for name, (value, unit, what, why) in ASSUMED.items()])


def code_table(of, s):
    named = lambda value: f"{value // MIB} MiB" if value >= MIB else short(value)
    return rows(["setting of the code", "value", "file"], [[f"{what} (`{name}`)", named(value), f"`{path}`"] for name, (value, what, path, _) in CODE.items()])


def formula_table(of, s):
    functions = lambda where: "; ".join(f"`src/{path}`: " + ", ".join(f"`{name}`" for name in names.split()) for path, names in where.items())
    return rows(["operation", "PUT", "LIST", "GET", "functions"], [[what, put, listed, get, functions(where)] for what, put, listed, get, where in REQUESTS])


def fleets_table(of, s):
    unit = units(of)
    all_of = [changed_fleet(pods, unit, s) for pods in SIZES]
    scrape, ebpf = value_of("scrape_ms", of), value_of("ebpf", of)
    figure = lambda name, part=1: lambda m: short(m[name] / part)
    asked = lambda kind: lambda m: short(m["requests"][kind])
    price = lambda name: lambda m: dollars(m[name])
    lines = [
        ("profiles per second", figure("rate")), ("pprof per day, TB", figure("raw_day", 1e12)),
        ("processors: accept and flush", figure("take")), ("processors: merge", figure("merge")), ("processors: queries", figure("ask")),
        (f"servers of {s['node_cores']:g} processors, {100 * s['busy']:.0f} % busy", lambda m: f"**{m['nodes']}**"),
        ("memory of each server, GB", figure("memory_gb")), ("seconds between flushes of each server", figure("flush_s")),
        ("stored per day, GB", figure("stored_day", 1e9)), (f"kept for {s['retention']:g} days, TB", figure("stored_gb", 1e3)),
        ("live files", figure("files")), ("removed files that the checkpoint of `samples` still names", figure("tombstones")),
        ("PUT per day", asked(0)), ("LIST per day", asked(1)), ("GET per day", asked(2)),
        ("servers per month", price("$nodes")), ("storage per month", price("$stored")), ("requests per month", price("$requests")),
        ("total per month", lambda m: f"**{dollars(m['$'])}**"), ("total per pod and month, cents", lambda m: short(100 * m["$"] / m["pods"])),
        ("in addition, on the machines of the pods: processors of collectors that scrape", lambda m: short(m["rate"] * scrape / 1e3) if scrape else "not measured"),
    ]
    text = rows(["", *map(pods_text, SIZES)], [[label, *(show(m) for m in all_of)] for label, show in lines])
    return text + (f"\nThe whole-machine profiler takes {short(ebpf)} % of one processor of each machine of the fleet.\n" if ebpf else "")


def hour_table(of, s):
    """Returns the table of requests: of the measured fleet in an hour on one server, and of the fleets in a day."""
    unit, measured = units(of), s["fleet_services"] * s["fleet_pods"]
    fleets = [(fleet(measured, unit, s), 24)] + [(fleet(pods, unit, s), 1) for pods in SIZES]
    parts = lambda source, part: ", ".join(f"{kind} {short(count / part)}" for kind, count in zip(("PUT", "LIST", "GET"), source) if count > 0)
    sources = [source for source, counts in fleets[0][0]["by_source"].items() if any(counts)]
    lines = [[source, *(parts(m["by_source"][source], part) for m, part in fleets)] for source in sources]
    lines.append(["total", *(parts(m["requests"], part) for m, part in fleets)])
    lines.append(["dollars per month", *(dollars(m["$requests"]) for m, _ in fleets)])
    lines.append(["attempts of a commit (a), at most 20", *(short(m["attempts"]) for m, _ in fleets)])
    return rows(["", f"{measured} pods, one server, per **hour**", *(f"{pods_text(pods)}, per day" for pods in SIZES)], lines)


def breaks_table(of, s):
    unit = units(of)
    fleets = [changed_fleet(pods, unit, s) for pods in SIZES]
    lines, passed = [], [[] for _ in SIZES]
    for pods, (short_name, label, name, most, form, remedy) in breaks(unit, s):
        cells = []
        for m, broken in zip(fleets, passed):
            text = str(m[name]) if isinstance(m[name], int) else two(m[name])
            cells.append(f"**{text}**" if m[name] > most(s) else text)
            broken += [short_name] if m[name] > most(s) else []
        lines.append([label, f"{most(s):g} {form}".strip(), *cells, "never" if pods == math.inf else pods_text(int(pods)), remedy])
    says = [f"- {pods_text(pods)}: {len(broken)} of {len(LIMITS)}" + (f"; {', '.join(broken)}." if broken else ".") for pods, broken in zip(SIZES, passed)]
    return rows(["limit", "maximum", *map(pods_text, SIZES), "exceeded from", "steps that raise the limit"], lines) + "\nExceeded limits, in the order in which a growing fleet exceeds them:\n\n" + "\n".join(says) + "\n"


def changes_table(pods, of, s):
    unit, lines, changed = units(of), [], dict(s)
    shown = {"maintenance": "merging thread, s per second", "taken": "time share of commits to `samples`", "checkpoint_s": "time to read the checkpoint of `samples`, s",
             "service_s": "query about a service over an hour, s", "whole_s": "query about all services over an hour, s"}
    for label, change in CHANGES:
        changed |= change
        m = changed_fleet(pods, unit, changed)
        lines.append([label, str(m["nodes"]), dollars(m["$requests"]), dollars(m["$"]), *(two(m[name]) for name in shown)])
    return rows([pods_text(pods), "servers", "requests per month", "total per month", *shown.values()], lines)


def others_table(of, s):
    lines = []
    for label, change, bench in OTHERS:
        try:
            unit = shaped(units(of), of, bench) if bench else units(of)
        except Missing as missing:
            lines.append([label, f"not measured: `make bench-{missing}` measures it", "", "", "", ""])
            continue
        m = changed_fleet(10**5, unit, s | change)
        at, first = next((pods, limit[0]) for pods, limit in breaks(unit, s | change) if limit[2] != "nodes")
        lines.append([label, str(m["nodes"]), short(m["stored_gb"] / 1e3), dollars(m["$requests"]), dollars(m["$"]), f"{first}, at {pods_text(int(at))}"])
    return rows(["100,000 pods", "servers", "TB stored", "requests per month", "total per month", "first exceeded limit, apart from a single server"], lines)


def unknown_table(of, s):
    def by(bench):
        if " " in bench:
            return bench
        result = of.result(bench)
        return f"`make bench-{bench}`" + (f", run {result['date']}: see the unit costs" if result else ", not run yet")
    return rows(["not measured", "bench that would measure it", "results that depend on it"], [[what, by(bench), why] for what, bench, why in UNKNOWN])


TABLES = {
    "scale-units": units_table, "scale-assumed": assumed_table, "scale-code": code_table, "scale-formula": formula_table, "scale-fleets": fleets_table,
    "scale-hour": hour_table, "scale-breaks": breaks_table, "scale-changes": functools.partial(changes_table, SIZES[1]),
    "scale-changes-million": functools.partial(changes_table, SIZES[2]), "scale-others": others_table, "scale-unknown": unknown_table,
}


def table(name, folder, **changed):
    """Returns the text of a block of docs/scale.md, made from the JSON files in `folder`."""
    try:
        return TABLES[name](Kept(folder), settings(**changed))
    except Missing as missing:
        return f"Not measured yet: `make bench-{missing}` measures it.\n"


def wrong():
    """Returns the assumptions of the model that the code does not state any more, each as one line."""
    for name, (_, _, path, text) in CODE.items():
        source = SOURCES / path
        if not source.exists() or text not in source.read_text():
            yield f"benches/scale.py: {path} does not contain `{' '.join(text.split())}`, on which `{name}` of the model depends"
    for what, *_, where in REQUESTS:
        for path, names in where.items():
            source = SOURCES / "src" / path
            text = source.read_text() if source.exists() else ""
            for name in (name for name in names.split() if f"fn {name}(" not in text and f"fn {name}<" not in text):
                yield f"benches/scale.py: src/{path} has no function {name}, which sends the requests of `{what}`"


def main():
    given = [argument.partition("=") for argument in sys.argv[1:]]
    if not all(equals for _, equals, _ in given):
        sys.exit(__doc__)
    for name in TABLES:
        print(f"## {name}\n\n{table(name, SOURCES / 'docs/benchmarks', **{name: float(value) for name, _, value in given})}")


if __name__ == "__main__":
    main()
