"""Computes the figures of a fleet of pods: servers, files, commits, requests, waits, queries, dollars. scale.py has the assumptions and prints the results.

`unit` contains the measured unit costs, `s` the assumptions and settings of the code by name. Each step adds to `m` the values that the next steps need.
"""

import math

DAY, MONTH_DAYS, MONTH_HOURS = 86_400, 30, 730
# Number of tables of a store, and numbers of GET requests with which delta_kernel reads the last checkpoint of a table. Reading the footer takes two requests, and
# reading the columns takes one. To list the files (READ_FILES), it reads the footer twice. Otherwise (READ_ONE), it reads the footer once.
TABLES_OF_A_STORE, READ_FILES, READ_ONE = 4, 5, 3
# From docs/benchmarks.md, measured by hand on 2026-11-22 at 7953d7d: "Merging in one step instead of three saved 4 of 7 CPU-seconds". A bench merges in one
# step, a server in three.
STEPS = 7 / 3
# NAME_FILES: number of live files that remain in the table of stacks, and also in that of series, for a tenant's day after merging by size. TOMBSTONE_DAYS: number of
# days for which a checkpoint still names a removed file (the default of delta_kernel).
NAME_FILES, TOMBSTONE_DAYS = 8, 7


def puts(size, s):
    """Returns the number of PUT requests for a file."""
    return 1 if size <= s["put"] else 2 + math.ceil(size / s["part"])


def fleet(pods, unit, s):
    """Returns all figures that the tables show about a fleet of this many pods."""
    m = {"pods": pods, "rate": pods * s["profiles"] / 60}
    for part in (add_servers, add_files, add_commits, add_requests, add_waits, add_questions, add_dollars):
        part(m, unit, s)
    return m


def add_servers(m, unit, s):
    """Adds the processors, the servers, and the rate of their flushes."""
    per_day = m["rate"] * DAY
    m["raw_day"], m["stored_day"] = per_day * unit["raw_kb"] * 1e3, per_day * unit["values"] * unit["stored"]
    # A query without cached data uses at most the two processors of the measured machine, hence the factor 2 below. The server stops it at the timeout.
    m["asked"] = m["pods"] * s["questions"]
    measured = s["fleet_services"] * s["fleet_pods"]
    m["service_work"] = unit["service_ms"] / 1e3 * max(1, s["service_pods"] / s["fleet_pods"])
    m["whole_work"] = unit["whole_ms"] / 1e3 * max(1, m["pods"] / measured)
    cut = lambda seconds: min(seconds, s["timeout"] * s["askers"])
    m["take"] = m["rate"] * unit["take_ms"] / 1e3
    m["merge"] = m["rate"] * unit["merge_ms"] / 1e3 * STEPS
    m["ask"] = m["asked"] / DAY * 2 * ((1 - s["whole"]) * cut(m["service_work"]) + s["whole"] * cut(m["whole_work"]))
    cores = m["take"] + m["merge"] + m["ask"]
    m["nodes"] = max(math.ceil(cores / (s["node_cores"] * s["busy"])), math.ceil(m["rate"] / (unit["most"] * s["busy"])))
    if unit["per_flush"]:
        fits = unit["per_flush"] * s["flush_bytes"] / s["usual_flush_bytes"]
    else:
        fits = s["flush_bytes"] / (unit["values"] * s["value_bytes"] * s["slack"])
    m["flushes"] = max(per_day / fits, m["nodes"] * DAY / s["flush_age"])
    m["flush_s"] = m["nodes"] * DAY / m["flushes"]
    m["flushed_size"] = per_day / m["flushes"] * unit["values"] * unit["flushed"] / s["tenants"]


def add_files(m, unit, s):
    """Computes the merges of a day of all tenants.

    Adds the number of files that remain. Flushed files are merged in groups, then the files of each hour, then those of the day up to the target size.
    """
    tenants = s["tenants"]
    kinds = lambda size: s["kinds"] if size >= s["split"] else 1
    inputs = min(max(m["flushes"] / DAY * s["round"], s["fewest"]), s["inputs"])
    m["firsts"] = tenants * m["flushes"] / inputs
    m["first_kinds"] = kinds(inputs * m["flushed_size"])
    m["first_size"] = inputs * m["flushed_size"] / m["first_kinds"] * unit["stored"] / unit["flushed"]
    of_hour = lambda files: tenants * 24 * math.ceil(files / tenants / 24 / s["inputs"])
    m["hours"] = of_hour(m["firsts"] * m["first_kinds"])
    m["hour_files"] = m["hours"] / 24 / tenants
    m["hour_kinds"] = kinds(m["stored_day"] / m["hours"])
    m["days"], files = 0, m["hours"] * m["hour_kinds"]
    m["hour_size"] = m["stored_day"] / files
    merged = tenants * math.ceil(m["stored_day"] / tenants / s["target"])
    if m["hour_size"] < s["target"] / 2 and merged * kinds(s["target"]) < files:
        m["days"], files = merged, merged * kinds(s["target"])
    m["day_size"] = m["stored_day"] / files
    # Number of live files of a day by table: samples, profiles, stacks, series.
    m["live_day"] = [files, of_hour(m["firsts"]), NAME_FILES * tenants, NAME_FILES * tenants]
    m["files"], m["sample_files"] = sum(m["live_day"]) * s["retention"], files * s["retention"]
    removed = tenants * m["flushes"] + m["firsts"]
    m["removed_day"] = [tenants * m["flushes"] + m["firsts"] * m["first_kinds"] + (m["hours"] * m["hour_kinds"] if m["days"] else 0), removed, removed, removed]
    m["tombstones"] = m["removed_day"][0] * TOMBSTONE_DAYS


def add_commits(m, unit, s):
    """Adds the entries of the four logs per day, and the cost of a commit that competes with others."""
    both = m["flushes"] + m["firsts"]
    m["commits"] = [both + m["hours"] + m["days"], both + m["live_day"][1], both, both]
    if s["batch"]:
        m["commits"] = [min(table, DAY / s["batch"]) for table in m["commits"]]
    # A commit is a LIST and a PUT. If two commits overlap, one of them fails and is tried again.
    m["taken"] = m["commits"][0] / DAY * 2 * s["latency"]
    others = 0 if s["batch"] else m["taken"] * (m["nodes"] - 1) / m["nodes"]
    m["attempts"] = min(s["attempts"], 1 / (1 - others)) if others < 1 else s["attempts"]


def add_requests(m, unit, s):
    """Adds the PUT, LIST and GET requests per day by origin."""
    nodes, tenants, flushes, attempts = m["nodes"], s["tenants"], m["flushes"], m["attempts"]
    all_commits, merges = sum(m["commits"]), 4 * m["firsts"] + m["hours"] + m["days"] + m["live_day"][1]
    batched = bool(s["batch"])
    flush_commits, merge_commits = (0, 0) if batched else (TABLES_OF_A_STORE * flushes, merges)
    # The probability that the last commit of a server is older than the last checkpoint, summed over the tables.
    late = 0 if batched else sum(min(1, table * nodes / flushes / s["checkpoint"]) for table in m["commits"])
    written = m["firsts"] * (m["first_kinds"] * puts(m["first_size"], s) + 3) + m["hours"] * m["hour_kinds"] * puts(m["hour_size"], s) + m["live_day"][1]
    written += m["days"] * s["kinds"] * puts(m["day_size"], s)
    read = TABLES_OF_A_STORE * tenants * flushes * (nodes - 1) / nodes + m["firsts"] * (m["first_kinds"] * math.ceil(m["first_size"] / s["put"]) + 1)
    read += m["hours"] * m["hour_kinds"] * math.ceil(m["hour_size"] / s["put"]) if m["days"] else 0
    m["pages"] = 0
    for commits, live, removed in zip(m["commits"], m["live_day"], m["removed_day"]):
        log = commits * (1 + 1 / s["checkpoint"]) * s["log_days"]
        there = live * s["retention"] + removed * (s["delay"] + s["vacuum"] / 2) / DAY + log
        m["pages"] += 1 + math.ceil(there / s["page"]) + 2 * math.ceil(log / s["page"])
        m["listed"] = max(there, m.get("listed", 0))
    checkpoints = all_commits / s["checkpoint"]
    looks = DAY / s["sync"] * nodes
    m["changed"] = sum(1 - math.exp(-table / DAY * s["sync"]) for table in m["commits"])
    vacuums = DAY / s["vacuum"] * (s["listers"] or nodes)
    flushed = tenants * flushes * (3 + puts(m["flushed_size"], s))
    m["by_source"] = {
        "flushes": (flushed + flush_commits * attempts, flush_commits * (1 + attempts), flushes * READ_ONE * late * (1 + attempts)),
        "merges": (written + merge_commits * attempts, merge_commits * attempts, 2 * READ_FILES * merges * attempts + read),
        "commits in batches": (all_commits, all_commits, 0) if batched else (0, 0, 0),
        "checkpoints": (2 * checkpoints, checkpoints, checkpoints * (READ_FILES + 1 + READ_ONE + READ_ONE * nodes) + all_commits / s["hint"]),
        "entries, read by every server": (0, 0, all_commits * nodes),
        "polls for commits of other servers": (0, looks * TABLES_OF_A_STORE, looks * READ_FILES * m["changed"]),
        "vacuum": (0, vacuums * m["pages"], vacuums * (READ_FILES + 1) * TABLES_OF_A_STORE),
        "queries": (0, 0, m["asked"] * (3 * m["hour_files"] + 2 * 2 * NAME_FILES)),
        "segments of the log": (nodes * DAY / s["segment"], 0, 0) if s["segment"] else (0, 0, 0),
    }
    m["requests"] = tuple(sum(source[kind] for source in m["by_source"].values()) for kind in range(3))


def add_waits(m, unit, s):
    """Adds the busy seconds per second of a server's maintenance thread and flush thread, each of which sends one request after the other. Also adds the time to read a checkpoint, the time of a vacuum, and the memory of a server."""
    # If all servers list the same objects, they share the deletions: each server deletes the files that it finds first.
    listing, deleting = (s["maintainers"], s["maintainers"]) if s["listers"] else (1, m["nodes"])
    waits = sum(m["by_source"]["merges"]) / s["maintainers"] + sum(m["removed_day"]) / deleting
    waits += DAY / s["vacuum"] * (m["pages"] + (READ_FILES + 1) * TABLES_OF_A_STORE) / listing
    m["maintenance"] = m["merge"] / s["cpu_share"] / s["maintainers"] + waits * s["latency"] / DAY
    looks = DAY / s["sync"] * (TABLES_OF_A_STORE + READ_FILES * m["changed"])
    m["flushing"] = (sum(m["by_source"]["flushes"]) / m["nodes"] + looks) * s["latency"] / DAY
    m["checkpoint_s"] = m["sample_files"] * s["live_bytes"] / 1e6 / s["bandwidth"]
    m["vacuum_s"] = m["pages"] * s["latency"] / listing
    m["memory_gb"] = (unit["peak_mb"] + (2 * m["files"] * s["entry_bytes"] + m["listed"] / listing * s["found_bytes"]) / 1e6) / 1e3


def add_questions(m, unit, s):
    """Adds the durations of queries without any cached data.

    They read the files of one type and hour. Ids of series are hashes, so the pods of a service are scattered all over a file.
    """
    hour_mb = m["stored_day"] / 24 / s["tenants"] / s["kinds"] / 1e6
    m["service_mb"] = min(hour_mb, m["hour_files"] * (1 + s["service_pods"]) * s["block"] / 1e6)
    m["service_s"] = (m["service_mb"] / s["bandwidth"] + m["service_work"]) / s["askers"]
    m["whole_s"] = (hour_mb / s["bandwidth"] + m["whole_work"]) / s["askers"]


def add_dollars(m, unit, s):
    """Adds the prices per month."""
    put, listed, get = m["requests"]
    m["stored_gb"] = m["stored_day"] * s["retention"] / 1e9
    m["$requests"] = MONTH_DAYS * ((put + listed) * s["put_price"] + get * s["get_price"]) / 1e3
    left, m["$stored"] = m["stored_gb"], 0
    for size, less in ((50e3, 0), (450e3, 0.001), (math.inf, 0.002)):
        m["$stored"] += min(left, size) * (s["gb_price"] - less)
        left -= min(left, size)
    m["$nodes"] = m["nodes"] * s["node_price"] * MONTH_HOURS
    m["$"] = m["$requests"] + m["$stored"] + m["$nodes"]
    m["dear"] = m["$requests"] / (m["$nodes"] + m["$stored"])
