"""The list of benches and their tables: data for figures.py.

BENCHES lists the benches in the order in which `make bench-all` runs them. `commands` run from the root of the repository; `{folder}` is a new folder that is
removed after the run. `minutes` is the duration of all runs of one measurement on two cores, without the build. `needs` lists environment variables,
and `programs` lists programs on the path. Both are checked before anything is built.
TABLES has the tables by the name in `<!-- figures: NAME -->`. A column is a title and a pattern in which `*` is the figure of the row. A row is a label, a figure and
its target. A row misses its target if the median of a column in `judged` misses it. Without `judged`, only the last column is compared.
"""

LOAD = "cargo bench --locked --bench load -- "
AT = " --url http://127.0.0.1:4041 --folder {folder}"
AGENT = "--no-default-features --features agent"
BUILD_SERVER = "cargo build --locked --release"
BUILD_AGENT = f"cargo build --locked --release {AGENT}"
EBPF = "python3 benches/ebpf.py {program} "

BENCHES = {
    "hot": {"minutes": 2, "runs": 3, "commands": [f"cargo bench --locked {AGENT} --bench alluvium"]},
    "files": {"minutes": 1, "runs": 3, "commands": [f"cargo bench --locked {AGENT} --bench files"]},
    "pods": {"minutes": 4, "runs": 3, "commands": [f"cargo bench --locked {AGENT} --bench engine -- pods"]},
    "engine": {"minutes": 13, "runs": 3, "commands": [f"cargo bench --locked {AGENT} --bench engine"]},
    "server": {"minutes": 25, "runs": 3, "commands": [LOAD + "server" + AT + " --seconds 30"]},
    "small": {"minutes": 12, "runs": 3, "commands": [LOAD + "small" + AT]},
    "wide": {"minutes": 15, "runs": 3, "commands": [LOAD + "wide" + AT + " --minutes 2"]},
    "disk": {"minutes": 15, "runs": 3, "commands": [LOAD + "disk" + AT + " --seconds 180"]},
    "growth": {"minutes": 20, "runs": 1, "commands": [LOAD + "growth" + AT + " --minutes 30 --repeat 101"]},
    "page": {"minutes": 3, "runs": 3, "programs": ["chromium", "node", "npm"], "commands": ["npm ci --prefix ui --no-audit --no-fund", "node ui/test/figures.mjs"]},
    "sql": {"minutes": 15, "runs": 1, "commands": [BUILD_SERVER, LOAD + "fill" + AT, "{python} benches/sql_duckdb.py --program {program} --data {folder}/data --runs 11"]},
    "profiler": {"minutes": 7, "runs": 1, "programs": ["bpftool", "gcc"], "commands": [BUILD_AGENT, EBPF + "--only collector --hertz 999", EBPF + "--only collector"]},
    "perf": {"minutes": 4, "runs": 1, "programs": ["gcc", "perf"], "commands": [BUILD_AGENT, EBPF + "--only beside"]},
    "slowdown": {"minutes": 8, "runs": 1, "programs": ["gcc"], "commands": [BUILD_AGENT, EBPF + "--only slowdown --pairs 24"]},
    "mixed": {"minutes": 4, "runs": 1, "programs": ["bpftool", "java", "javac", "node"], "commands": [BUILD_AGENT, EBPF + "--only mixed"]},
    "churn": {"minutes": 10, "runs": 1, "programs": ["bpftool", "gcc"], "commands": [BUILD_AGENT, EBPF + "--churn 600"]},
    "soak": {"minutes": 62, "runs": 1, "commands": [LOAD + "soak" + AT + " --seconds 3600 --minutes 15"]},
    "peer": {"minutes": 90, "runs": 1, "needs": ["PEER"], "commands": [LOAD + "peer" + AT + " --seconds 20 --rounds 3 --peer '{peer}'"]},
    "builds": {"minutes": 45, "runs": 1, "commands": ["python3 benches/builds.py usual"]},
    "dist": {"minutes": 30, "runs": 1, "commands": ["python3 benches/builds.py dist"]},
}

QUESTIONS = [
    ("flame graph, all services, 1 h, ms", "flame_all_1h", "<= 17"),
    ("flame graph, one service, 1 h, ms", "flame_service_1h", "<= 3"),
    ("flame graph, one service, 5 min, ms", "flame_service_5m", "<= 2"),
    ("heap of a namespace, 1 h, ms", "flame_namespace_heap_1h", None),
    ("timelines of all profiles by service, 15 s steps, ms", "series_by_service", "<= 4"),
    ("merged pprof of one service, ms", "merged_pprof_service", "<= 5"),
    ("difference of two halves, ms", "diff_service_halves", "<= 4"),
    ("label names, ms", "label_names", "<= 1"),
    ("label values, ms", "label_values", "<= 1"),
    ("profile types, ms", "profile_types", "<= 1"),
    ("series, ms", "series", None),
]
ONE = {"Alluvium": "*"}


def memory(label, mode, target=None):
    """Returns rows about the memory of a process at the end of a step: the peak so far, and the present resident memory, private pages and mapped file pages."""
    return [(f"{label}: peak resident memory, MB", f"{mode}.memory.peak_mb", *([target] if target else [])),
            (f"{label}: resident memory at the end of this step, MB", f"{mode}.memory.resident_mb"),
            (f"{label}: private part of the resident memory, MB", f"{mode}.memory.anon_mb"),
            (f"{label}: mapped file pages in the resident memory, MB", f"{mode}.memory.file_mb")]


def profiler(both):
    """Returns rows about the collector while two programs keep two CPUs busy."""
    return [("agent, % of a CPU", "agent_cpu_percent"), ("BPF program, % of a CPU", "program_cpu_percent"), ("agent and BPF program, % of a CPU", "both_cpu_percent", both),
            ("BPF program, us per tick", "program_us_a_tick", "<= 15"), ("CPU time of the start, s", "start_cpu_s"), ("resident memory, MB", "resident_mb", "<= 120"),
            ("peak resident memory, MB", "peak_mb"), ("private memory, MB", "anon_mb"), ("mapped file pages, MB", "file_mb"), ("kernel maps, MB", "maps_mb", "<= 24")]


FILLED = [
    ("profiles per second, 64 clients", "fill.profiles_per_s"),
    ("kB of pprof per profile", "fill.raw_kb_per_profile"),
    ("acknowledgement p50, 64 clients, ms", "fill.ack_ms.p50"),
    ("acknowledgement p99, 64 clients, ms", "fill.ack_ms.p99"),
    ("errors", "fill.errors", "<= 0"),
    ("MB of pprof per CPU-second, until the acknowledgement", "fill.raw_mb_per_cpu_s_until_acknowledged"),
    ("MB of pprof per CPU-second, until the server is idle", "fill.raw_mb_per_cpu_s"),
    ("MB of pprof per CPU-second, including all merges", "merge.raw_mb_per_cpu_s_with_fill"),
    ("bytes per stored value, tables and their logs, merged", "merge.folder_bytes_per_value"),
    ("stored data, merged, MB", "merge.folder_mb"),
    *memory("after the fill", "fill"),
]
FLAMES = [row for row in QUESTIONS if row[1].startswith("flame")]

TABLES = {
    "server": {"bench": "server", "columns": ONE, "rows": [
        ("MB of pprof per CPU-second, until the acknowledgement", "fill.raw_mb_per_cpu_s_until_acknowledged"),
        ("MB of pprof per CPU-second, until everything is committed and the server is idle", "fill.raw_mb_per_cpu_s", ">= 95"),
        ("MB of pprof per CPU-second, including all merges", "merge.raw_mb_per_cpu_s_with_fill"),
        ("profiles per second, 64 clients at full speed", "fill.profiles_per_s"),
        ("acknowledgement p50, 64 clients, ms", "fill.ack_ms.p50"),
        ("acknowledgement p99, 64 clients, ms", "fill.ack_ms.p99"),
        ("acknowledgement p50, 500 profiles/s, ms", "rate.ack_ms.p50", "<= 3"),
        ("acknowledgement p99, 500 profiles/s, ms", "rate.ack_ms.p99", "<= 15"),
        ("acknowledgement p99, during flame graph queries, ms", "both.push.ack_ms.p99", "<= 15"),
        ("errors, 64 clients", "fill.errors", "<= 0"),
        ("errors, 500 profiles/s", "rate.errors", "<= 0"),
        ("errors, during flame graph queries", "both.push.errors", "<= 0"),
        *memory("fill", "fill", "<= 160"),
        *memory("500 profiles/s and queries", "both", "<= 160"),
        ("bytes per stored value, all tables and their logs, merged", "merge.folder_bytes_per_value", "<= 1.0"),
        ("bytes per stored value, without the logs", "merge.parquet_bytes_per_value"),
        ("start until ready with the data of the fill, s", "start.ready_with_data_s", "<= 1"),
        ("start until ready after SIGKILL during pushes, s", "killed.ready_with_data_s", "<= 1"),
        ("acknowledged pushes before the SIGKILL", "killed.acknowledged_before"),
        ("pushes without a response at the SIGKILL", "killed.under_way"),
    ]},
    "questions": {"bench": "server", "columns": {"first query of a new process": "first.*.first_ms", "after the fill": "query.*.median_ms",
                                                 "merged": "query-merged.*.median_ms"}, "judged": ["after the fill", "merged"], "rows": QUESTIONS},
    "rest": {"bench": "server", "columns": {"without pushes": "both.flame_graph_idle_ms.*", "during 500 profiles/s": "both.push.flame_graph_meanwhile_ms.*"}, "rows": [
        ("flame graph of one service, p50, ms", "p50"), ("flame graph of one service, p90, ms", "p90"), ("flame graph of one service, p99, ms", "p99"),
        ("first query, which may read files and is excluded from the quantiles, ms", "first"),
        ("ratio of the p99 during pushes to the p99 without pushes", "p99_times_rest", "<= 2"),
    ]},
    "peer": {"bench": "peer", "columns": {"Pyroscope": "peer.*", "Alluvium": "ours.*"}, "rows": [
        ("highest offered rate without refusals and with a p99 below 1 s, profiles/s", "highest_rate_per_s"),
        ("offered rate at which the run ended, profiles/s", "refused_at_per_s"),
        ("64 clients at full speed, profiles/s", "fill.profiles_per_s"),
        ("acknowledgement p50, 64 clients, ms", "fill.ack_ms.p50"), ("acknowledgement p99, 64 clients, ms", "fill.ack_ms.p99"),
        ("errors, 64 clients", "fill.errors"),
        ("MB of pprof per CPU-second, until the acknowledgement", "fill.raw_mb_per_cpu_s_until_acknowledged"),
        ("MB of pprof per CPU-second, until the server is idle", "fill.raw_mb_per_cpu_s"),
        ("MB of pprof per CPU-second, including all merges (only Alluvium merges on demand)", "merge.raw_mb_per_cpu_s_with_fill"),
        ("idle server, % of a CPU, not included in the other rows", "idle_cpu_percent"),
        ("bytes per stored value of the whole data folder (of Alluvium: after merges)", "stored_at_rest.folder_bytes_per_value"),
        ("peak resident memory during fill and queries, MB", "memory_after_questions.peak_mb"),
        ("private memory after fill and queries, MB", "memory_after_questions.anon_mb"),
        ("start until ready with an empty folder, s", "ready_empty_s"), ("start until ready with the data of the fill, s", "ready_with_data_s"),
        *[(f"{label[:-4]}: first query of a new process, ms", f"first.{name}.first_ms") for label, name, _ in QUESTIONS],
        *[(f"{label[:-4]}: warm, ms", f"query.{name}.median_ms") for label, name, _ in QUESTIONS],
        ("flame graph, all services: sum of its values", "query.flame_all_1h.total"),
    ], "texts": [("Version that the peer reports", "peer.version"), ("Command of the peer", "peer.command"), ("Command of Alluvium", "ours.command"),
                 ("First errors of the peer", "peer.fill.first_error"), ("First errors with rising rates", "step.first_error"),
                 ("The page cache was dropped before first queries", "peer.first.page_cache_dropped")]},
    "growth": {"bench": "growth", "columns": {"newest half hour only": "growth.question.*.one_ms", "ten times the history": "growth.question.*.ten_ms",
                                             "ratio of first queries": "growth.question.*.first_ratio", "ratio of later queries": "growth.question.*.ratio"},
               "rows": [(label, name, "<= 1.2") for label, name, _ in QUESTIONS]},
    "small": {"bench": "small", "columns": ONE, "rows": FILLED + [
        (f"{label[:-4]}: first query of a new process, ms", f"first.{name}.first_ms") for label, name, _ in FLAMES]},
    "wide": {"bench": "wide", "columns": ONE, "rows": FILLED + [
        row for label, name, _ in FLAMES for row in
        ((f"{label[:-4]}: first query of a new process, ms", f"first.{name}.first_ms"), (f"{label[:-4]}: warm, ms", f"query.{name}.median_ms"))]},
    "disk": {"bench": "disk", "columns": ONE, "rows": [
        ("acknowledgement p50, ms", "disk.ack_ms.p50", "<= 3"), ("acknowledgement p90, ms", "disk.ack_ms.p90"),
        ("acknowledgement p99, ms", "disk.ack_ms.p99", "<= 15"), ("acknowledgement maximum, ms", "disk.ack_ms.max"),
        ("errors", "disk.errors", "<= 0"), ("flushes during the run", "disk.jobs.flush"), ("merges during the run", "disk.jobs.compact"),
        *memory("at the end", "disk")], "texts": [("File system", "disk.file_system")]},
    "soak": {"bench": "soak", "columns": {"windows of 10 s": "*"}, "rows": [
        ("profiles", "soak.profiles"), ("errors", "soak.errors", "<= 0"), ("profiles per window", "window.profiles"),
        ("acknowledgement p50, ms", "window.ack_ms.p50", "<= 3"), ("acknowledgement p99, ms", "window.ack_ms.p99", "<= 15"),
        ("flame graph over a quarter of an hour p50, ms", "window.flame_graph_ms.p50"), ("CPU seconds", "window.cpu_s"),
        ("resident memory, MB", "window.resident_mb"), ("private memory, MB", "window.anon_mb"), ("mapped file pages, MB", "window.file_mb"), ("load average", "window.load_average")]},
    "sql": {"bench": "sql", "columns": {f"{who}, {when}": f"*.{key}.{when}_ms" for who, key in (("DuckDB's views", "views"), ("DuckDB's tables", "tables"),
                                                                                           ("Alluvium", "alluvium")) for when in ("cold", "warm")},
            "rows": [(f"{name}, ms", name) for name in (
                "top 10 functions", "top 10 functions of each service", "time of each service", "functions of one service", "lines of one service",
                "below one function", "functions by pattern", "samples of each type", "stacks by value", "a line of time")],
            "texts": [("DuckDB", "duckdb.version"), ("The page cache was dropped before cold queries", "a line of time.page_cache_dropped")]},
    "page": {"bench": "page", "columns": {"the page": "page.*"}, "rows": [
        ("compressed JavaScript of the first view, kB", "javascript_kb", "<= 150"),
        ("from the navigation to the first services, ms", "usable_ms.services", "<= 300"),
        ("from the navigation to a flame graph, ms", "usable_ms.profile", "<= 300"),
        ("50,000 nodes, from the response to the drawn flame graph, ms", "nodes_50k.picture_ms", "<= 50"),
        ("50,000 nodes, a redraw when the pointer moves, ms", "nodes_50k.hover_ms", "<= 4"),
        ("200,000 nodes, from the response to the drawn flame graph, ms", "nodes_200k.picture_ms", "<= 150"),
        ("200,000 nodes, a redraw when the pointer moves, ms", "nodes_200k.hover_ms"),
        *[row for show in ("cards", "table", "map") for row in (
            (f"5,000 services as {show}, from the responses to the drawn list, ms", f"services_5000.{show}.sight_ms", "<= 300"),
            (f"5,000 services as {show}, filtering, ms", f"services_5000.{show}.filter_ms", "<= 300"))]]},
    "engine": {"bench": "engine", "columns": {"collector": "engine.*"}, "rows": [
        ("size of the collector-only release program, MB", "binary_mb", "<= 30"),
        ("3,000 blocks: start until ready, s", "chain_ready_seconds", "<= 0.2"),
        ("3,000 blocks: reload without a change, s", "chain_reload_seconds", "<= 0.05"),
        ("3,000 blocks: reload with one changed block, s", "chain_reload_one_changed_seconds"),
        ("3,000 blocks: resident memory, MB", "chain_resident_mb", "<= 25"),
        ("3,000 blocks: private memory, MB", "chain_anon_mb"), ("3,000 blocks: mapped file pages, MB", "chain_file_mb"),
        ("3,000 blocks, after reloads: resident memory, MB", "chain_reloaded_resident_mb", "<= 25"),
        ("3,000 blocks, after changes: resident memory, MB", "chain_changed_resident_mb"),
        ("3,000 blocks with a regular expression each: start until ready, s", "regex_ready_seconds"),
        ("3,000 blocks with a regular expression each: resident memory, MB", "regex_resident_mb"), ("3,000 blocks with a regular expression each: private memory, MB", "regex_anon_mb"),
        ("idle, one component: resident memory, MB", "idle_resident_mb", "<= 15"), ("idle, one component: private memory, MB", "idle_anon_mb"),
        ("idle, one component: % of a CPU", "idle_cpu_percent", "<= 0.1"),
        ("100 targets, 5 types every 15 s: % of a CPU", "scrape_cpu_percent"), ("100 targets: resident memory, MB", "scrape_resident_mb"),
        ("100 targets: private memory, MB", "scrape_anon_mb"), ("100 targets: profiles scraped per minute", "scrape_profiles_per_minute")]},
    "pods": {"bench": "pods", "columns": {"collector": "engine.*"}, "rows": [
        ("targets", "pods_targets"), ("changes of pods per second", "pods_changes_per_second"),
        ("% of a CPU", "pods_cpu_percent", "<= 5"), ("resident memory, MB", "pods_resident_mb", "<= 60"),
        ("peak resident memory, MB", "pods_peak_mb"), ("private memory, MB", "pods_anon_mb"), ("mapped file pages, MB", "pods_file_mb")]},
    "hot": {"bench": "hot", "columns": {"MB/s": "*.mb_per_s", "median, us": "*.median_us"}, "rows": [
        (name, name) for name in (
            "pprof_gunzip", "pprof_decode", "pprof_stack_ids", "pprof_gunzip_decode_stack_ids", "pprof_encode", "pprof_gzip", "tree_insert_profile",
            "tree_to_flamegraph", "flamegraph_svg", "delta_next", "selector_parse")]},
    "files": {"bench": "files", "columns": {"file, MB": "*.mb", "median, us": "*.median_us", "MB/s": "*.mb_per_s"}, "rows": [
        ("JFR", "jfr", ">= 30"), ("output of `perf script`, to which `perf.data` is converted", "perf_script", ">= 100"),
        ("folded stacks", "collapsed", ">= 200"), ("pprof", "pprof"), ("text format of Go profiles", "go_text"), ("speedscope", "speedscope"),
        ("`.cpuprofile`", "cpuprofile"), ("Chrome trace, CPU profile", "chrome_trace"), ("Chrome trace, calls", "durations"),
        ("Firefox profile", "firefox"), ("`.nettrace`", "nettrace")]},
    "language": {"bench": "hot", "columns": {"median, us": "*.median_us", "MB/s": "*.mb_per_s"}, "rows": [
        ("parse", "lang_parse", ">= 50"), ("format", "lang_print")]},
    "profiler": {"bench": "profiler", "columns": {"99 Hz": "collector_99hz.*"}, "rows": profiler("<= 0.5")},
    "profiler-999": {"bench": "profiler", "columns": {"999 Hz": "collector_999hz.*"}, "rows": profiler("<= 2")},
    "perf": {"bench": "perf", "columns": {"truth": "beside.*.truth", "perf": "beside.*.perf", "Alluvium": "beside.*.alluvium"}, "rows": [
        *[(f"self time of {name}, %", f"self_percent.{name}") for name in ("half", "third", "fifth")],
        ("CPU time found, %", "found_percent"), ("CPU time used, s (perf unwinds only later)", "used_cpu_s"), ("written, MB", "written_mb")],
        "texts": [("The three largest stacks are the same", "beside.same_three_stacks")]},
    "slowdown": {"bench": "slowdown", "columns": {"without the collector": "slowdown_99hz.percent.*.without", "with the collector": "slowdown_99hz.percent.*.with"}, "rows": [
        ("interrupted, % of the CPU time of fixed work", "interrupted"),
        ("preempted, % of the time", "preempted"),
        ("increase of interrupted and preempted time together, % of the time", "lost"), ("mean of the increase", "mean"),
        ("95 % confidence interval of the mean of the increase, plus or minus", "uncertain")]},
    "mixed": {"bench": "mixed", "columns": {"node, two JVMs, four Pythons, rustc": "mixed_99hz.*"}, "rows": [
        ("resident memory, MB", "resident_mb", "<= 120"), ("peak resident memory, MB", "peak_mb"), ("kernel maps, MB", "maps_mb", "<= 24"),
        ("CPU time since the start, s", "cpu_s"), ("complete stacks, %", "whole_stacks_percent", ">= 98")]},
    "churn": {"bench": "churn", "columns": {f"after {number + 1}/6 of the time": f"churn.sixth.{number}.*" for number in range(6)}, "rows": [
        ("resident memory, MB", "resident_mb"), ("kernel maps, MB", "maps_mb"), ("total CPU time, s", "cpu_s")]},
    "builds": {"bench": "builds", "columns": {"wall time, s": "*.wall_s", "processor time, s": "*.cpu_s"}, "rows": [
        ("the collector alone, `cargo check`", "agent check"), ("`dev`, the program", "dev"), ("`dev`, all tests, after a build of the program", "tests"),
        ("`dev`, after one file of `lang` was touched", "dev again"), ("`release`, the program", "release"),
        ("`release`, after one file of `lang` was touched", "release again")]},
    "dist": {"bench": "dist", "columns": {"wall time, s": "*.wall_s", "processor time, s": "*.cpu_s"}, "rows": [("`dist`, the program", "dist")]},
}
