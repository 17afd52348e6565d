#!/usr/bin/env python3
"""What the eBPF profiler costs and how true it is, beside perf on the same minute. Prints the tables of docs/benchmarks-ebpf.md.

    sudo benches/ebpf.py target/release/alluvium [--seconds 60] [--hertz 99] [--perf /usr/bin/perf]

Two programs of known shares keep two CPUs busy. First `alluvium run` profiles the machine as a collector does and its cost is read from the kernel: CPU of
the process, time of the BPF program (kernel.bpf_stats_enabled), resident memory, memory of the maps. Then `alluvium record` and `perf record --call-graph dwarf`
watch the same minute, and the shares of the functions are compared with each other and with what the programs measured of themselves.
"""

import argparse
import http.server
import json
import os
import pathlib
import re
import subprocess
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


def memory(pid, name):
    text = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(re.search(rf"^{name}:\s+(\d+) kB", text, re.M).group(1)) / 1024


def kernel_side(pid):
    """Run time and runs of the BPF program of a process, and bytes of all its maps."""
    nanos = runs = 0
    for entry in pathlib.Path(f"/proc/{pid}/fdinfo").iterdir():
        try:
            text = entry.read_text()
        except OSError:
            continue
        found = dict(re.findall(r"^(\w+):\s+(\d+)$", text, re.M))
        if "run_cnt" in found and int(found["run_cnt"]) > runs:
            nanos, runs = int(found["run_time_ns"]), int(found["run_cnt"])
    # Inner maps are held by outer ones and by no process.
    ours = {"ring", "scratch", "snapshot_scratch", "counters", "processes", "tables", "mappings", "rows", "registers"}
    maps = json.loads(subprocess.run(["bpftool", "-j", "map", "show"], capture_output=True, text=True).stdout or "[]")
    total = sum(int(entry.get("bytes_memlock", 0)) for entry in maps if entry.get("name", "").split(".")[0] in ours)
    return nanos, runs, total


def busy(folder, seconds):
    programs = []
    for name in ("first", "second"):
        path = folder / name
        source = ROOT / "integration/fixtures/ebpf/shares.c"
        subprocess.run(["gcc", "-O2", "-fomit-frame-pointer", "-o", path, source], check=True)
        programs.append(subprocess.Popen([path, str(seconds)], stdout=subprocess.PIPE, text=True))
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


def collector(options, folder):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Sink)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    config = folder / "bench.river"
    config.write_text(CONFIG % (options.hertz, server.server_address[1]))
    log = open(folder / "run.log", "w")
    started = time.monotonic()
    agent = subprocess.Popen(
        [options.alluvium, "run", config, "--storage.path", folder / "storage", "--server.http.listen-addr", "127.0.0.1:0"],
        stdout=log, stderr=log)
    programs = busy(folder, options.seconds * 2)
    # The first interval holds the compiling of tables.
    time.sleep(20)
    cpu, (nanos, runs, _), at = cpu_seconds(agent.pid), kernel_side(agent.pid), time.monotonic()
    start_cpu = cpu
    peak_maps, resident = 0, []
    while time.monotonic() - at < options.seconds:
        time.sleep(1)
        resident.append(memory(agent.pid, "VmRSS"))
        peak_maps = max(peak_maps, kernel_side(agent.pid)[2])
    elapsed = time.monotonic() - at
    agent_cpu = (cpu_seconds(agent.pid) - cpu) / elapsed * 100
    nanos_after, runs_after, _ = kernel_side(agent.pid)
    print(f"collector, {options.hertz} Hz, two busy programs, {elapsed:.0f} s after a start of {at - started:.0f} s")
    print(f"  agent CPU                 {agent_cpu:.2f} % of one CPU")
    print(f"  BPF program               {(nanos_after - nanos) / elapsed / 1e7:.3f} % of one CPU, "
          f"{(nanos_after - nanos) / max(1, runs_after - runs) / 1000:.1f} us a tick, {runs_after - runs} ticks")
    print(f"  CPU of the start          {start_cpu:.2f} s")
    print(f"  resident, mean and peak   {sum(resident) / len(resident):.0f} and {memory(agent.pid, 'VmHWM'):.0f} MB")
    print(f"  kernel maps, peak         {peak_maps / 1e6:.1f} MB")
    print(f"  profiles sent             {Sink.received / 1024:.0f} KiB")
    agent.terminate()
    agent.wait()
    for program in programs:
        program.kill()
        program.wait()


def folded_shares(path):
    leaf, whole = {}, 0
    for line in path.read_text().splitlines():
        stack, value = line.rsplit(" ", 1)
        names = stack.split(";")
        if names[0] in ("first", "second"):
            leaf[names[-1]] = leaf.get(names[-1], 0) + int(value)
            whole += int(value)
    return {name: value / whole * 100 for name, value in leaf.items()}, whole / 1e9


def perf_shares(perf, data):
    text = subprocess.run(
        [perf, "report", "--stdio", "--no-children", "-g", "none", "--sort", "comm,sym", "-n", "-i", data],
        capture_output=True, text=True).stdout
    leaf, whole = {}, 0
    for line in text.splitlines():
        found = re.match(r"\s*[\d.]+%\s+(\d+)\s+(first|second)\s+\[.\]\s+(\S+)", line) or \
            re.match(r"\s*[\d.]+%\s+(\d+)\s+(first|second)\s+\[k\]\s+(\S+)", line)
        if found:
            leaf[found.group(3)] = leaf.get(found.group(3), 0) + int(found.group(1))
            whole += int(found.group(1))
    return {name: value / max(1, whole) * 100 for name, value in leaf.items()}, whole


def side_by_side(options, folder):
    output, data = folder / "ours.folded", folder / "perf.data"
    usage = {}

    def run(name, command):
        child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=open(folder / f"{name}.log", "w"))
        _, _, used = os.wait4(child.pid, 0)
        usage[name] = used.ru_utime + used.ru_stime

    programs = busy(folder, options.seconds)
    commands = {
        "alluvium": [options.alluvium, "record", "--all", "-F", str(options.hertz), "-d", f"{options.seconds + 5}s", "-o", output],
        "perf": [options.perf, "record", "-q", "-a", "-F", str(options.hertz), "-e", "cpu-clock", "--call-graph", "dwarf", "-o", data,
                 "--", "sleep", str(options.seconds + 5)],
    }
    threads = [threading.Thread(target=run, args=item) for item in commands.items()]
    for thread in threads:
        thread.start()
    true_shares, process = truth(programs)
    for thread in threads:
        thread.join()
    ours, seconds = folded_shares(output)
    theirs, samples = perf_shares(options.perf, data)
    print(f"side by side, {options.hertz} Hz, {process:.1f} s of CPU in two programs")
    print("  self time of      truth   alluvium       perf")
    for name in FUNCTIONS:
        print(f"  {name:<12} {true_shares[name]:8.2f} % {ours.get(name, 0):8.2f} % {theirs.get(name, 0):8.2f} %")
    ranked = lambda shares: [name for name, _ in sorted(shares.items(), key=lambda item: -item[1])[:3]]
    worst = max(abs(ours.get(name, 0) - theirs.get(name, 0)) for name in set(ours) | set(theirs)) if theirs else float("nan")
    print(f"  top three         {', '.join(ranked(ours))} / {', '.join(ranked(theirs))}; greatest difference {worst:.2f} points")
    print(f"  CPU time found    {seconds / process * 100:.1f} % by alluvium, {samples / options.hertz / process * 100:.1f} % by perf")
    print(f"  CPU used          {usage['alluvium']:.2f} s by alluvium, {usage['perf']:.2f} s by perf (which has yet to unwind)")
    print(f"  written           {output.stat().st_size / 1e6:.2f} MB by alluvium, {data.stat().st_size / 1e6:.1f} MB by perf")
    print("  " + "\n  ".join((folder / "alluvium.log").read_text().splitlines()[:2]))


def churn(options, folder):
    """Two hundred binaries that live 50 ms, again and again: resident memory and maps at the ends of each sixth of the time."""
    for name in ("shares", "churn"):
        subprocess.run(["gcc", "-O2", "-o", folder / name, ROOT / f"integration/fixtures/ebpf/{name}.c"], check=True)
    for index in range(200):
        (folder / f"short{index}").write_bytes((folder / "shares").read_bytes())
        (folder / f"short{index}").chmod(0o755)
    agent = subprocess.Popen(
        [options.alluvium, "record", "--all", "-F", str(options.hertz), "-d", f"{options.churn}s", "-o", folder / "churn.pb.gz"],
        stdout=subprocess.DEVNULL, stderr=open(folder / "churn.log", "w"))
    load = subprocess.Popen([folder / "churn", str(options.churn - 5), "1", folder / "short", "200", "0.05"], stdout=subprocess.PIPE, text=True)
    print(f"churn of 200 binaries, {options.churn} s")
    at = time.monotonic()
    for part in range(1, 7):
        time.sleep(max(0, at + options.churn * part / 6 - 3 - time.monotonic()))
        print(f"  after {time.monotonic() - at:4.0f} s   resident {memory(agent.pid, 'VmRSS'):.1f} MB, "
              f"kernel maps {kernel_side(agent.pid)[2] / 1e6:.1f} MB, CPU {cpu_seconds(agent.pid):.1f} s", flush=True)
    print(f"  children: {load.communicate()[0].split()}")
    agent.wait()
    print("  " + "\n  ".join((folder / "churn.log").read_text().splitlines()[:2]))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("alluvium", type=lambda text: str(pathlib.Path(text).resolve()))
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--hertz", type=int, default=99)
    parser.add_argument("--perf", default="perf")
    parser.add_argument("--churn", type=int, default=0, help="seconds of churn instead of the other two")
    options = parser.parse_args()
    switch = pathlib.Path("/proc/sys/kernel/bpf_stats_enabled")
    before = switch.read_text()
    switch.write_text("1")
    try:
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            if options.churn:
                churn(options, folder)
            else:
                collector(options, folder)
                side_by_side(options, folder)
    finally:
        switch.write_text(before)


if __name__ == "__main__":
    main()
