#!/usr/bin/env python3
"""Measures the cost and the accuracy of the eBPF profiler, and compares it with perf. Prints one line of JSON per part.

    sudo benches/ebpf.py target/release/alluvium [--seconds 60] [--hertz 99] [--depth 0] [--only collector|beside|slowdown|mixed] [--churn 600]

Two programs keep two CPUs busy. Each measures the share of the CPU time that each of its functions uses. First, `alluvium run` profiles the machine as a collector does. The kernel reports the CPU time and the
resident memory of Alluvium's process, the run time of its BPF program (kernel.bpf_stats_enabled), and the memory of the kernel maps. Then `alluvium record` and `perf record --call-graph dwarf`
record the two programs at the same time. The script compares the shares of the functions, with and without their callees, between the two recordings. It also compares the shares without callees with the programs' own measurements.
`slowdown` runs a fixed piece of work alternately with and without the profiler. `mixed` keeps node, Java, Python and a compiler busy.
"""

import argparse
import http.server
import json
import os
import pathlib
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
FUNCTIONS = ("half", "third", "fifth")
CONFIG = """
discovery.process "all" { }

pyroscope.ebpf "machine" {
	targets      = discovery.process.all.targets
	forward_to   = [pyroscope.write.sink.receiver]
	sample_rate  = %d
	targets_only = false
	demangle     = "templates"

	budget {
		cpu_percent = 0
	}
}

pyroscope.write "sink" {
	endpoint {
		url = "http://127.0.0.1:%d"
	}
}
"""


class Sink(http.server.BaseHTTPRequestHandler):
    received = 0

    def do_POST(self):
        Sink.received += len(self.rfile.read(int(self.headers.get("content-length", 0))))
        self.send_response(200)
        self.send_header("content-type", "application/proto")
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


def cpu_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def memory(pid, name="VmRSS"):
    """Returns the part `name` of the memory of a process in units of 10^6 bytes: VmRSS is the resident memory, RssAnon the private part, and RssFile the mapped file pages."""
    text = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(re.search(rf"^{name}:\s+(\d+) kB", text, re.M).group(1)) * 1024 / 1e6


def memories(pid):
    return {"anon_mb": memory(pid, "RssAnon"), "file_mb": memory(pid, "RssFile"), "peak_mb": memory(pid, "VmHWM")}


def kernel_side(pid):
    """Returns the run time in ns and the number of runs of a process' BPF program, and the bytes of all its maps."""
    nanos = runs = 0
    for entry in pathlib.Path(f"/proc/{pid}/fdinfo").iterdir():
        try:
            text = entry.read_text()
        except OSError:
            continue
        found = dict(re.findall(r"^(\w+):\s+(\d+)$", text, re.M))
        if "run_cnt" in found and int(found["run_cnt"]) > runs:
            nanos, runs = int(found["run_time_ns"]), int(found["run_cnt"])
    # The inner maps belong to the outer maps and to no process, so this function finds the maps by their names.
    ours = {"ring", "scratch", "snapshot_scratch", "counters", "processes", "tables", "mappings", "rows", "registers"}
    maps = json.loads(subprocess.run(["bpftool", "-j", "map", "show"], capture_output=True, text=True).stdout or "[]")
    total = sum(int(entry.get("bytes_memlock", 0)) for entry in maps if entry.get("name", "").split(".")[0] in ours)
    return nanos, runs, total


def result(part, **figures):
    rounded = {name: round(value, 4) if isinstance(value, float) else value for name, value in figures.items()}
    print(json.dumps({"mode": part, "load_average": os.getloadavg(), **rounded}), flush=True)


def whole_stacks(said):
    """Returns the summary of `alluvium record` with its number of samples, and the percentage of samples whose stack is complete."""
    found = re.search(r"^(\d+) samples .*; (\d+) with an incomplete stack", said, re.M)
    samples, incomplete = map(int, found.groups()) if found else (0, 0)
    return {"whole_stacks_percent": 100 * (1 - incomplete / samples) if samples else None, "samples": samples, "said": " ".join(said.splitlines()[:2])}


def busy(folder, seconds, depth=0):
    programs = []
    for name in ("first", "second"):
        path = folder / name
        source = ROOT / "integration/fixtures/ebpf/shares.c"
        subprocess.run(["gcc", "-O2", "-fomit-frame-pointer", "-o", path, source], check=True)
        programs.append(subprocess.Popen([path, str(seconds), str(depth)], stdout=subprocess.PIPE, text=True))
    return programs


def truth(programs):
    total = dict.fromkeys(FUNCTIONS, 0)
    process = 0
    for program in programs:
        for line in program.communicate()[0].splitlines():
            name, value = line.split()
            if name in total:
                total[name] += int(value)
            elif name == "process":
                process += int(value)
    return {name: value / sum(total.values()) * 100 for name, value in total.items()}, process / 1e9


def start_collector(options, folder):
    """Runs the collector with a receiver for its pushes."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Sink)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    config = folder / "bench.river"
    config.write_text(CONFIG % (options.hertz, server.server_address[1]))
    log = open(folder / "run.log", "w")
    return subprocess.Popen(
        [options.alluvium, "run", config, "--storage.path", folder / "storage", "--server.http.listen-addr", "127.0.0.1:0"],
        stdout=log, stderr=log)


def collector(options, folder):
    agent = start_collector(options, folder)
    programs = busy(folder, options.seconds * 2, options.depth)
    # After this time, the unwind tables of the running programs are complete.
    time.sleep(20)
    cpu, (nanos, runs, _), at = cpu_seconds(agent.pid), kernel_side(agent.pid), time.monotonic()
    start_cpu = cpu
    peak_maps, resident = 0, []
    while time.monotonic() - at < options.seconds:
        time.sleep(1)
        resident.append(memory(agent.pid))
        peak_maps = max(peak_maps, kernel_side(agent.pid)[2])
    elapsed = time.monotonic() - at
    agent_cpu = (cpu_seconds(agent.pid) - cpu) / elapsed * 100
    nanos_after, runs_after, _ = kernel_side(agent.pid)
    result(f"collector_{options.hertz}hz",
           seconds=elapsed, stack_depth=options.depth + 5, agent_cpu_percent=agent_cpu,
           program_cpu_percent=(nanos_after - nanos) / elapsed / 1e7, program_us_a_tick=(nanos_after - nanos) / max(1, runs_after - runs) / 1000,
           both_cpu_percent=agent_cpu + (nanos_after - nanos) / elapsed / 1e7, ticks=runs_after - runs, start_cpu_s=start_cpu,
           resident_mb=resident, **memories(agent.pid), maps_mb=peak_maps / 1e6, sent_kb=Sink.received / 1e3)
    agent.terminate()
    agent.wait()
    for program in programs:
        program.kill()
        program.wait()


PROGRAMS = ("first", "second")


def shares(stacks):
    """Computes shares from stacks (root first, with weights).

    Returns the share of each leaf, of each function including its callees, and of each stack, and the total weight.
    """
    leaf, inclusive, stack_weights, whole = {}, {}, {}, 0
    for names, value in stacks:
        whole += value
        leaf[names[-1]] = leaf.get(names[-1], 0) + value
        for name in set(names):
            inclusive[name] = inclusive.get(name, 0) + value
        stack_weights[";".join(names)] = stack_weights.get(";".join(names), 0) + value
    part = lambda weights: {name: value / max(1, whole) * 100 for name, value in weights.items()}
    return part(leaf), part(inclusive), part(stack_weights), whole


def our_stacks(path):
    for line in path.read_text().splitlines():
        stack, value = line.rsplit(" ", 1)
        names = stack.split(";")
        if names[0] in PROGRAMS and len(names) > 1:
            yield names[1:], int(value)


def perf_stacks(perf, data):
    """Returns the stacks that `perf script` unwinds from the stack memory that `perf record --call-graph dwarf` copied."""
    child = subprocess.Popen(
        [perf, "script", "--no-inline", "-F", "comm,ip,sym", "-i", data, "--comms", ",".join(PROGRAMS)],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    names = None
    for line in child.stdout:
        if not line.strip():
            if names:
                yield names[::-1], 1
            names = None
        elif not line.startswith((" ", "\t")):
            names = []
        elif names is not None:
            name = line.split(None, 1)[1].strip() if len(line.split(None, 1)) > 1 else "[unknown]"
            name = re.sub(r"(@@?GLIBC\S*|\+0x[0-9a-f]+)$", "", name)
            # libc's start function has two names: perf reads one from the symbol table, and Alluvium reads the other from the debug information.
            names.append("__libc_start_main_impl" if name == "__libc_start_main" else name)
    child.wait()


def both(ours, theirs, least):
    """Returns the names whose share is at least `least` percent in one of the two results, by descending share."""
    names = [name for name in set(ours) | set(theirs) if max(ours.get(name, 0), theirs.get(name, 0)) >= least]
    return sorted(names, key=lambda name: -max(ours.get(name, 0), theirs.get(name, 0)))


def side_by_side(options, folder):
    output, data = folder / "ours.folded", folder / "perf.data"
    usage = {}

    def run(name, command):
        child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=open(folder / f"{name}.log", "w"))
        _, _, used = os.wait4(child.pid, 0)
        usage[name] = used.ru_utime + used.ru_stime

    commands = {
        "alluvium": [options.alluvium, "record", "--all", "-F", str(options.hertz), "-d", f"{options.seconds + 8}s", "-o", output],
        "perf": [options.perf, "record", "-q", "-a", "-F", str(options.hertz), "-e", "cpu-clock", "--call-graph", "dwarf", "-o", data,
                 "--", "sleep", str(options.seconds + 8)],
    }
    threads = [threading.Thread(target=run, args=item) for item in commands.items()]
    for thread in threads:
        thread.start()
    # Both profilers start before the programs and stop after them. So if a profiler finds less CPU time than the programs used, it missed samples.
    time.sleep(3)
    programs = busy(folder, options.seconds, options.depth)
    true_shares, process = truth(programs)
    for thread in threads:
        thread.join()
    ours, ours_inclusive, our_weights, seconds = shares(our_stacks(output))
    theirs, theirs_inclusive, their_weights, samples = shares(perf_stacks(options.perf, data))
    seconds /= 1e9
    worst = lambda a, b: max((abs(a.get(name, 0) - b.get(name, 0)) for name in both(a, b, 5)), default=float("nan"))
    top = lambda weights: {name for name, _ in sorted(weights.items(), key=lambda item: -item[1])[:3]}
    self_time = {name: {"truth": true_shares[name], "alluvium": ours.get(name, 0), "perf": theirs.get(name, 0)} for name in FUNCTIONS}
    with_calls = {name: {"alluvium": ours_inclusive.get(name, 0), "perf": theirs_inclusive.get(name, 0)} for name in both(ours_inclusive, theirs_inclusive, 5)}
    result("beside", cpu_s=process, self_percent=self_time, with_calls_percent=with_calls,
           worst_self_points=worst(ours, theirs), worst_with_calls_points=worst(ours_inclusive, theirs_inclusive),
           same_three_stacks=top(our_weights) == top(their_weights),
           found_percent={"alluvium": seconds / process * 100, "perf": samples / options.hertz / process * 100},
           used_cpu_s={"alluvium": usage["alluvium"], "perf": usage["perf"]},
           written_mb={"alluvium": output.stat().st_size / 1e6, "perf": data.stat().st_size / 1e6},
           **whole_stacks((folder / "alluvium.log").read_text()))


PIECES_C = """
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#define BLOCK 100
static unsigned table[16384];
volatile unsigned sink;
static long now(clockid_t clock) { struct timespec t; clock_gettime(clock, &t); return t.tv_sec * 1000000000L + t.tv_nsec; }
static int compare(const void *a, const void *b) { long x = *(const long *)a, y = *(const long *)b; return (x > y) - (x < y); }
int main(int count, char **arguments) {
	long end = now(CLOCK_MONOTONIC) + atol(arguments[1]) * 1000000000L, took[BLOCK], usual = 0, more = 0;
	for (unsigned i = 0; i < 16384; i++) table[i] = i * 2654435761u;
	while (now(CLOCK_MONOTONIC) < end) {
		for (int piece = 0; piece < BLOCK; piece++) {
			long start = now(CLOCK_THREAD_CPUTIME_ID);
			unsigned sum = 0;
			for (unsigned i = 0; i < 60000; i++) sum += table[(sum + i * 17) % 16384];
			sink += sum;
			took[piece] = now(CLOCK_THREAD_CPUTIME_ID) - start;
		}
		long sorted[BLOCK];
		__builtin_memcpy(sorted, took, sizeof(took));
		qsort(sorted, BLOCK, sizeof(long), compare);
		long median = sorted[BLOCK / 2];
		/* If a piece takes half a millisecond more than the median, the host ran another virtual machine: no interrupt of the profiler takes that long. */
		for (int piece = 0; piece < BLOCK; piece++)
			if (took[piece] - median < 500000) {
				usual += median;
				more += took[piece] - median;
			}
	}
	/* The time for which this program ran, and for which it waited while others ran on its CPU. */
	long ran = 0, waited = 0;
	FILE *stat = fopen("/proc/self/schedstat", "r");
	if (!stat || fscanf(stat, "%ld %ld", &ran, &waited) != 2) return 1;
	printf("%ld %ld %ld %ld\\n", more, usual, waited, ran);
}
"""


def slowdown(options, folder):
    """On each CPU, repeats a fixed piece of work of about 0.1 ms, alternately with and without the profiler.

    The speed of this machine changes by a fifth from one moment to the next, so totals are meaningless. Each piece is compared with the median of the hundred
    pieces around it. A piece takes more CPU time if it was interrupted or if its memory was evicted from the caches. `interrupted` is this additional CPU time, in
    percent of the usual CPU time. `preempted` is the time for which the scheduler ran other threads on the same CPU, including the profiler's own, in percent of the
    whole time. The cost of the profiler is the difference between the runs with and without it.
    """
    (folder / "pieces.c").write_text(PIECES_C)
    subprocess.run(["gcc", "-O2", "-o", folder / "pieces", folder / "pieces.c"], check=True)

    def once():
        children = [subprocess.Popen([folder / "pieces", "5"], stdout=subprocess.PIPE, text=True) for _ in range(os.cpu_count())]
        answers = [[int(number) for number in child.communicate()[0].split()] for child in children]
        more, usual, waited, ran = (sum(column) for column in zip(*answers))
        return {"interrupted": 100 * more / usual, "preempted": 100 * waited / (waited + ran)}

    once()
    runs = {True: [], False: []}
    for pair in range(options.pairs):
        # The order alternates, because the machine may be warmer in the second of two runs.
        for profiled in (pair % 2 == 0, pair % 2 == 1):
            agent = start_collector(options, folder) if profiled else None
            if agent:
                time.sleep(4)
            runs[profiled].append(once())
            if agent:
                agent.terminate()
                agent.wait()
    changes = [sum(with_it.values()) - sum(without.values()) for with_it, without in zip(runs[True], runs[False])]
    parts = {part: {word: statistics.mean(run[part] for run in runs[profiled]) for word, profiled in (("with", True), ("without", False))}
             for part in ("interrupted", "preempted")}
    # With a probability of 95 %, the true mean differs from `mean` by at most `uncertain`.
    parts |= {"lost": {"with": changes}, "mean": {"with": statistics.mean(changes)}, "uncertain": {"with": 2.1 * statistics.stdev(changes) / len(changes) ** 0.5}}
    result(f"slowdown_{options.hertz}hz", pairs=options.pairs, percent=parts)


MIXED_JAVA = """
public class Work {
    static double work(int n) { double x = 0; for (int i = 1; i < n; i++) x += Math.sqrt(i) * Math.sin(i); return x; }
    public static void main(String[] a) { double x = 0; while (true) x += work(10000); }
}
"""


def mixed(options, folder):
    """Runs programs of many runtimes at once. Measures the memory of the kernel maps, the CPU time of each thread of the collector, and its resident memory."""
    (folder / "Work.java").write_text(MIXED_JAVA)
    subprocess.run(["javac", "-d", folder, folder / "Work.java"], check=True)
    (folder / "work.rs").write_text("fn main() { let v: Vec<String> = (0..10).map(|i| format!(\"{i:?}\")).collect(); println!(\"{v:?}\"); }")
    script = "import json\nwhile True: json.loads(json.dumps({str(i): [i] * 9 for i in range(999)}))"
    commands = [["node", "--perf-basic-prof", "-e", "for (;;) JSON.parse(JSON.stringify({ a: [1, 2, 3].map((x) => x * 2) }))"]]
    commands += [["java", "-XX:+PreserveFramePointer", "-cp", folder, "Work"]] * 2 + [["python3", "-c", script]] * 4
    commands += [["sh", "-c", f"cd '{folder}' && while :; do rustc -O work.rs; done"]]
    programs = [subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=folder, start_new_session=True) for command in commands]
    try:
        time.sleep(3)
        agent = start_collector(options, folder)
        at, resident, peak_maps = time.monotonic(), [], 0
        while time.monotonic() - at < options.seconds:
            time.sleep(1)
            resident.append(memory(agent.pid))
            peak_maps = max(peak_maps, kernel_side(agent.pid)[2])
        cpu = {}
        for task in pathlib.Path(f"/proc/{agent.pid}/task").iterdir():
            fields = (task / "stat").read_text().rsplit(")", 1)[1].split()
            name = (task / "comm").read_text().strip()
            cpu[name] = cpu.get(name, 0) + (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        figures = dict(resident_mb=resident, **memories(agent.pid), maps_mb=peak_maps / 1e6, threads_cpu_s=cpu, cpu_s=sum(cpu.values()))
        agent.terminate()
        agent.wait()
        done = subprocess.run(
            [options.alluvium, "record", "--all", "-F", str(options.hertz), "-d", f"{options.seconds}s", "-o", folder / "mixed.pb.gz"],
            capture_output=True, text=True)
        # The figures cover node, two JVMs, four Pythons and rustc, since the start of the collector.
        result(f"mixed_{options.hertz}hz", seconds=options.seconds, **figures, **whole_stacks(done.stderr))
    finally:
        for program in programs:
            os.killpg(program.pid, 9)
            program.wait()
            pathlib.Path(f"/tmp/perf-{program.pid}.map").unlink(missing_ok=True)


def churn(options, folder):
    """Runs two hundred binaries that live 50 ms, again and again. Measures resident memory, kernel maps and CPU time near the end of each sixth of the time."""
    for name in ("shares", "churn"):
        subprocess.run(["gcc", "-O2", "-o", folder / name, ROOT / f"integration/fixtures/ebpf/{name}.c"], check=True)
    for index in range(200):
        (folder / f"short{index}").write_bytes((folder / "shares").read_bytes())
        (folder / f"short{index}").chmod(0o755)
    agent = subprocess.Popen(
        [options.alluvium, "record", "--all", "-F", str(options.hertz), "-d", f"{options.churn}s", "-o", folder / "churn.pb.gz"],
        stdout=subprocess.DEVNULL, stderr=open(folder / "churn.log", "w"))
    children = subprocess.Popen([folder / "churn", str(options.churn - 5), "1", folder / "short", "200", "0.05"], stdout=subprocess.PIPE, text=True)
    at = time.monotonic()
    sixths = {"resident_mb": [], "maps_mb": [], "cpu_s": []}
    for part in range(1, 7):
        time.sleep(max(0, at + options.churn * part / 6 - 3 - time.monotonic()))
        sixths["resident_mb"].append(memory(agent.pid))
        sixths["maps_mb"].append(kernel_side(agent.pid)[2] / 1e6)
        sixths["cpu_s"].append(cpu_seconds(agent.pid))
    children.communicate()
    agent.wait()
    result("churn", seconds=options.churn, sixth={str(number): {name: values[number] for name, values in sixths.items()} for number in range(6)},
           **whole_stacks((folder / "churn.log").read_text()))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("alluvium", type=lambda text: str(pathlib.Path(text).resolve()))
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--hertz", type=int, default=99)
    parser.add_argument("--perf", default="perf")
    parser.add_argument("--depth", type=int, default=0, help="number of calls between main and the work")
    parser.add_argument("--pairs", type=int, default=16, help="number of pairs of runs with and without the profiler")
    parser.add_argument("--only", choices=("collector", "beside", "slowdown", "mixed"))
    parser.add_argument("--churn", type=int, default=0, help="run only the part `churn`, for this many seconds: two hundred binaries that live 50 ms start again and again")
    options = parser.parse_args()
    switch = pathlib.Path("/proc/sys/kernel/bpf_stats_enabled")
    before = switch.read_text()
    # If the script is interrupted, it must end the programs that keep the machine busy.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    switch.write_text("1")
    try:
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            if options.churn:
                churn(options, folder)
            else:
                parts = {"collector": collector, "beside": side_by_side, "slowdown": slowdown, "mixed": mixed}
                for name, part in parts.items():
                    if options.only in (None, name):
                        part(options, folder)
    finally:
        switch.write_text(before)


if __name__ == "__main__":
    main()
