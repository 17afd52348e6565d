"""The list of benches and their tables: data for figures.py.

BENCHES lists the benches in the order in which `make bench-all` runs them. `commands` run from the root of the repository; `{folder}` is a new folder that is
removed after the run. `minutes` is the duration of one measurement on two cores, of all runs together and without building. `needs` lists environment variables,
and `programs` lists programs on the path. Both are checked before anything is built.
TABLES has the tables by the name in `<!-- figures: NAME -->`. A column is a title and a pattern in which `*` is the figure of the row. A row is a label, a figure and
its target. A row misses its target when the median of a column in `judged` does; without `judged`, the last column decides.
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
    ("time lines of all, by service, 15 s steps, ms", "series_by_service", "<= 4"),
    ("merged pprof of a service, ms", "merged_pprof_service", "<= 5"),
    ("difference of two halves, ms", "diff_service_halves", "<= 4"),
    ("label names, ms", "label_names", "<= 1"),
    ("label values, ms", "label_values", "<= 1"),
    ("profile types, ms", "profile_types", "<= 1"),
    ("series, ms", "series", None),
]
ONE = {"Alluvium": "*"}


def memory(label, mode, target=None):
    """Rows about a process' memory: the maximum, and at that moment its private pages and its mapped file pages."""
    return [(f"{label}: most resident, MB", f"{mode}.memory.peak_mb", *([target] if target else [])),
            (f"{label}: resident then, MB", f"{mode}.memory.resident_mb"),
            (f"{label}: of it memory of its own, MB", f"{mode}.memory.anon_mb"),
            (f"{label}: of it pages of files, MB", f"{mode}.memory.file_mb")]


def profiler(both):
    """Rows about the collector while two programs keep two CPUs busy."""
    return [("agent, % of a CPU", "agent_cpu_percent"), ("BPF program, % of a CPU", "program_cpu_percent"), ("both, % of a CPU", "both_cpu_percent", both),
            ("BPF program, us a tick", "program_us_a_tick", "<= 15"), ("CPU of the start, s", "start_cpu_s"), ("resident, MB", "resident_mb", "<= 120"),
            ("most resident, MB", "peak_mb"), ("memory of its own, MB", "anon_mb"), ("pages of files, MB", "file_mb"), ("maps in the kernel, MB", "maps_mb", "<= 24")]


FILLED = [
    ("profiles a second, 64 clients", "fill.profiles_per_s"),
    ("kB of pprof a profile", "fill.raw_kb_per_profile"),
    ("acknowledgement p50, 64 clients, ms", "fill.ack_ms.p50"),
    ("acknowledgement p99, 64 clients, ms", "fill.ack_ms.p99"),
    ("errors", "fill.errors", "<= 0"),
    ("MB of pprof a CPU-second, until acknowledged", "fill.raw_mb_per_cpu_s_until_acknowledged"),
    ("MB of pprof a CPU-second, until at rest", "fill.raw_mb_per_cpu_s"),
    ("MB of pprof a CPU-second, and merged for good", "merge.raw_mb_per_cpu_s_with_fill"),
    ("bytes a stored value, tables and logs, merged", "merge.folder_bytes_per_value"),
    ("stored, merged, MB", "merge.folder_mb"),
    *memory("after filling", "fill"),
]
FLAMES = [row for row in QUESTIONS if row[1].startswith("flame")]

TABLES = {
    "server": {"bench": "server", "columns": ONE, "rows": [
        ("MB of pprof a CPU-second, until acknowledged", "fill.raw_mb_per_cpu_s_until_acknowledged"),
        ("MB of pprof a CPU-second, until committed and at rest", "fill.raw_mb_per_cpu_s", ">= 95"),
        ("MB of pprof a CPU-second, and merged for good", "merge.raw_mb_per_cpu_s_with_fill"),
        ("profiles a second, 64 clients as fast as they can", "fill.profiles_per_s"),
        ("acknowledgement p50, 64 clients, ms", "fill.ack_ms.p50"),
        ("acknowledgement p99, 64 clients, ms", "fill.ack_ms.p99"),
        ("acknowledgement p50, 500 profiles/s, ms", "rate.ack_ms.p50", "<= 3"),
        ("acknowledgement p99, 500 profiles/s, ms", "rate.ack_ms.p99", "<= 15"),
        ("acknowledgement p99, flame graphs asked meanwhile, ms", "both.push.ack_ms.p99", "<= 15"),
        ("errors, 64 clients", "fill.errors", "<= 0"),
        ("errors, 500 profiles/s", "rate.errors", "<= 0"),
        ("errors, flame graphs asked meanwhile", "both.push.errors", "<= 0"),
        *memory("filling", "fill", "<= 160"),
        *memory("500 profiles/s and questions", "both", "<= 160"),
        ("bytes a stored value, all tables and their logs, merged", "merge.folder_bytes_per_value", "<= 1.0"),
        ("the same without the logs", "merge.parquet_bytes_per_value"),
        ("start to ready with that data, s", "start.ready_with_data_s", "<= 1"),
        ("start to ready after SIGKILL in the middle of pushes, s", "killed.ready_with_data_s", "<= 1"),
        ("pushes acknowledged before that kill", "killed.acknowledged_before"),
        ("pushes without an answer at that kill", "killed.under_way"),
    ]},
    "questions": {"bench": "server", "columns": {"first of a new process": "first.*.first_ms", "after filling": "query.*.median_ms",
                                                 "merged": "query-merged.*.median_ms"}, "judged": ["after filling", "merged"], "rows": QUESTIONS},
    "rest": {"bench": "server", "columns": {"at rest": "both.flame_graph_idle_ms.*", "while 500 profiles/s come": "both.push.flame_graph_meanwhile_ms.*"}, "rows": [
        ("flame graph of a service, p50, ms", "p50"), ("p90, ms", "p90"), ("p99, ms", "p99"),
        ("the first, which may read files, counted in none of these, ms", "first"),
        ("p99 while profiles come, times that at rest", "p99_times_rest", "<= 2"),
    ]},
    "peer": {"bench": "peer", "columns": {"Pyroscope": "peer.*", "Alluvium": "ours.*"}, "rows": [
        ("highest offered rate without a refusal and with p99 below 1 s, profiles/s", "highest_rate_per_s"),
        ("the rate at which it ended, profiles/s", "refused_at_per_s"),
        ("64 clients as fast as they can, profiles/s", "fill.profiles_per_s"),
        ("acknowledgement p50, 64 clients, ms", "fill.ack_ms.p50"), ("acknowledgement p99, 64 clients, ms", "fill.ack_ms.p99"),
        ("errors, 64 clients", "fill.errors"),
        ("MB of pprof a CPU-second, until acknowledged", "fill.raw_mb_per_cpu_s_until_acknowledged"),
        ("MB of pprof a CPU-second, until at rest", "fill.raw_mb_per_cpu_s"),
        ("MB of pprof a CPU-second, and merged for good (ours alone merges on demand)", "merge.raw_mb_per_cpu_s_with_fill"),
        ("idle, % of a CPU, not charged above", "idle_cpu_percent"),
        ("bytes a stored value, the whole folder, ours merged", "stored_at_rest.folder_bytes_per_value"),
        ("most resident, filling and questions, MB", "memory_after_questions.peak_mb"),
        ("of its own then, MB", "memory_after_questions.anon_mb"),
        ("start to ready, empty, s", "ready_empty_s"), ("start to ready with that data, s", "ready_with_data_s"),
        *[(f"{label[:-4]}: first of a new process, ms", f"first.{name}.first_ms") for label, name, _ in QUESTIONS],
        *[(f"{label[:-4]}: warm, ms", f"query.{name}.median_ms") for label, name, _ in QUESTIONS],
        ("flame graph, all services: sum of its values", "query.flame_all_1h.total"),
    ], "texts": [("The peer says it is version", "peer.version"), ("It was started by", "peer.command"), ("Ours was started by", "ours.command"),
                 ("First errors of the peer", "peer.fill.first_error"), ("First errors at rising rates", "step.first_error"),
                 ("The system's cache of files was emptied before first questions", "peer.first.page_cache_dropped")]},
    "growth": {"bench": "growth", "columns": {"newest only": "growth.question.*.one_ms", "with nine times more": "growth.question.*.ten_ms",
                                             "first, times that of the newest": "growth.question.*.first_ratio", "times that of the newest": "growth.question.*.ratio"},
               "rows": [(label, name, "<= 1.2") for label, name, _ in QUESTIONS]},
    "small": {"bench": "small", "columns": ONE, "rows": FILLED + [
        (f"{label[:-4]}: first of a new process, ms", f"first.{name}.first_ms") for label, name, _ in FLAMES]},
    "wide": {"bench": "wide", "columns": ONE, "rows": FILLED + [
        row for label, name, _ in FLAMES for row in
        ((f"{label[:-4]}: first of a new process, ms", f"first.{name}.first_ms"), (f"{label[:-4]}: warm, ms", f"query.{name}.median_ms"))]},
    "disk": {"bench": "disk", "columns": ONE, "rows": [
        ("acknowledgement p50, ms", "disk.ack_ms.p50", "<= 3"), ("acknowledgement p90, ms", "disk.ack_ms.p90"),
        ("acknowledgement p99, ms", "disk.ack_ms.p99", "<= 15"), ("the longest, ms", "disk.ack_ms.max"),
        ("errors", "disk.errors", "<= 0"), ("flushes meanwhile", "disk.jobs.flush"), ("merges meanwhile", "disk.jobs.compact"),
        *memory("at the end", "disk")], "texts": [("File system", "disk.file_system")]},
    "soak": {"bench": "soak", "columns": {"windows of 10 s": "*"}, "rows": [
        ("profiles", "soak.profiles"), ("errors", "soak.errors", "<= 0"), ("profiles a window", "window.profiles"),
        ("acknowledgement p50, ms", "window.ack_ms.p50", "<= 3"), ("acknowledgement p99, ms", "window.ack_ms.p99", "<= 15"),
        ("flame graph of a quarter of an hour p50, ms", "window.flame_graph_ms.p50"), ("CPU seconds", "window.cpu_s"),
        ("resident, MB", "window.resident_mb"), ("of its own, MB", "window.anon_mb"), ("pages of files, MB", "window.file_mb"), ("load average", "window.load_average")]},
    "sql": {"bench": "sql", "columns": {f"{who}, {when}": f"*.{key}.{when}_ms" for who, key in (("DuckDB's views", "views"), ("DuckDB's tables", "tables"),
                                                                                           ("Alluvium", "alluvium")) for when in ("cold", "warm")},
            "rows": [(f"{name}, ms", name) for name in (
                "top 10 functions", "top 10 functions of each service", "time of each service", "functions of one service", "lines of one service",
                "below one function", "functions by pattern", "samples of each type", "stacks by value", "a line of time")],
            "texts": [("DuckDB", "duckdb.version"), ("The system's cache of files was emptied before cold questions", "a line of time.page_cache_dropped")]},
    "page": {"bench": "page", "columns": {"the page": "page.*"}, "rows": [
        ("compressed JavaScript of the first view, kB", "javascript_kb", "<= 150"),
        ("from the address to the first services, ms", "usable_ms.services", "<= 300"),
        ("from the address to a flame graph, ms", "usable_ms.profile", "<= 300"),
        ("50,000 nodes, from the answer to the picture, ms", "nodes_50k.picture_ms", "<= 50"),
        ("50,000 nodes, a redraw where one points, ms", "nodes_50k.hover_ms", "<= 4"),
        ("200,000 nodes, from the answer to the picture, ms", "nodes_200k.picture_ms", "<= 150"),
        ("200,000 nodes, a redraw where one points, ms", "nodes_200k.hover_ms"),
        *[row for show in ("cards", "table", "map") for row in (
            (f"5,000 services as {show}, from the answers to the list, ms", f"services_5000.{show}.sight_ms", "<= 300"),
            (f"5,000 services as {show}, a filter, ms", f"services_5000.{show}.filter_ms", "<= 300"))]]},
    "engine": {"bench": "engine", "columns": {"collector": "engine.*"}, "rows": [
        ("program, release, collector alone, MB", "binary_mb", "<= 30"),
        ("3,000 blocks: start to ready, s", "chain_ready_seconds", "<= 0.2"),
        ("3,000 blocks: reload without a change, s", "chain_reload_seconds", "<= 0.05"),
        ("3,000 blocks: reload with one changed, s", "chain_reload_one_changed_seconds"),
        ("3,000 blocks: resident, MB", "chain_resident_mb", "<= 25"),
        ("of it memory of its own, MB", "chain_anon_mb"), ("of it pages of files, MB", "chain_file_mb"),
        ("3,000 blocks, after reloads: resident, MB", "chain_reloaded_resident_mb", "<= 25"),
        ("3,000 blocks, after changes: resident, MB", "chain_changed_resident_mb"),
        ("3,000 blocks with a regular expression each: start to ready, s", "regex_ready_seconds"),
        ("the same: resident, MB", "regex_resident_mb"), ("of it memory of its own, MB", "regex_anon_mb"),
        ("idle, one component: resident, MB", "idle_resident_mb", "<= 15"), ("of it memory of its own, MB", "idle_anon_mb"),
        ("idle, one component: % of a CPU", "idle_cpu_percent", "<= 0.1"),
        ("100 targets, 5 types every 15 s: % of a CPU", "scrape_cpu_percent"), ("the same: resident, MB", "scrape_resident_mb"),
        ("of it memory of its own, MB", "scrape_anon_mb"), ("profiles scraped a minute", "scrape_profiles_per_minute")]},
    "hot": {"bench": "hot", "columns": {"MB/s": "*.mb_per_s", "median, us": "*.median_us"}, "rows": [
        (name, name) for name in (
            "pprof_gunzip", "pprof_decode", "pprof_stack_ids", "pprof_gunzip_decode_stack_ids", "pprof_encode", "pprof_gzip", "tree_insert_profile",
            "tree_to_flamegraph", "flamegraph_svg", "delta_next", "selector_parse")]},
    "files": {"bench": "files", "columns": {"file, MB": "*.mb", "median, us": "*.median_us", "MB/s": "*.mb_per_s"}, "rows": [
        ("JFR", "jfr", ">= 30"), ("the output of `perf script`, as which `perf.data` is read", "perf_script", ">= 100"),
        ("folded stacks", "collapsed", ">= 200"), ("pprof", "pprof"), ("text of Go's profiles", "go_text"), ("speedscope", "speedscope"),
        ("`.cpuprofile`", "cpuprofile"), ("trace of Chrome, CPU profile", "chrome_trace"), ("trace of Chrome, calls", "durations"),
        ("Firefox profile", "firefox"), ("`.nettrace`", "nettrace")]},
    "language": {"bench": "hot", "columns": {"median, us": "*.median_us", "MB/s": "*.mb_per_s"}, "rows": [
        ("parse", "lang_parse", ">= 50"), ("lay out", "lang_print")]},
    "profiler": {"bench": "profiler", "columns": {"99 Hz": "collector_99hz.*"}, "rows": profiler("<= 0.5")},
    "profiler-999": {"bench": "profiler", "columns": {"999 Hz": "collector_999hz.*"}, "rows": profiler("<= 2")},
    "perf": {"bench": "perf", "columns": {"truth": "beside.*.truth", "perf": "beside.*.perf", "Alluvium": "beside.*.alluvium"}, "rows": [
        *[(f"self time of {name}, %", f"self_percent.{name}") for name in ("half", "third", "fifth")],
        ("CPU time found, %", "found_percent"), ("CPU used, s (perf has yet to unwind)", "used_cpu_s"), ("written, MB", "written_mb")],
        "texts": [("The three greatest stacks are the same", "beside.same_three_stacks")]},
    "slowdown": {"bench": "slowdown", "columns": {"without": "slowdown_99hz.percent.*.without", "with the collector": "slowdown_99hz.percent.*.with"}, "rows": [
        ("interrupted, % of the CPU time of fixed work", "interrupted"),
        ("preempted, % of the time", "preempted"),
        ("lost by both, % of the time", "lost"), ("its mean", "mean"),
        ("95 % of the time the mean is within", "uncertain")]},
    "mixed": {"bench": "mixed", "columns": {"node, two JVMs, four Pythons, rustc": "mixed_99hz.*"}, "rows": [
        ("resident, MB", "resident_mb", "<= 120"), ("most resident, MB", "peak_mb"), ("maps in the kernel, MB", "maps_mb", "<= 24"),
        ("CPU from the start on, s", "cpu_s"), ("whole stacks, %", "whole_stacks_percent", ">= 98")]},
    "churn": {"bench": "churn", "columns": {f"after {number + 1} of 6": f"churn.sixth.{number}.*" for number in range(6)}, "rows": [
        ("resident, MB", "resident_mb"), ("maps in the kernel, MB", "maps_mb"), ("CPU in all, s", "cpu_s")]},
    "builds": {"bench": "builds", "columns": {"wall time, s": "*.wall_s", "processor time, s": "*.cpu_s"}, "rows": [
        ("the collector alone, checked (`cargo check`)", "agent check"), ("`dev`, the program", "dev"), ("`dev`, then all tests", "tests"),
        ("`dev`, one file of `lang` touched", "dev again"), ("`release`, the program", "release"),
        ("`release`, one file of `lang` touched", "release again")]},
    "dist": {"bench": "dist", "columns": {"wall time, s": "*.wall_s", "processor time, s": "*.cpu_s"}, "rows": [("`dist`, the program", "dist")]},
}
