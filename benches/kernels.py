#!/usr/bin/env python3
"""Boots Debian's kernels for x86-64 and 64-bit Arm under qemu and checks the profiler there. Prints the table of docs/benchmarks-ebpf.md.

    benches/kernels.py [--arch x86_64|aarch64] [--suite bookworm] [--program ARCH=PATH] [--seconds 10] [--hertz 99] [--keep]

apt-get downloads the kernels as Debian packages into a cache folder outside the clone, and they are never installed. The script uses separate package lists, so the
host's apt is not affected. Each kernel boots in software emulation (no KVM is needed). Its initramfs has busybox, the collector (built here in release mode, for
64-bit Arm with Debian's cross compiler) and programs from integration/fixtures/ebpf that measure the CPU shares of their own functions. In the emulated machine, `alluvium record --all` records the programs, once with
the BPF program and once with perf events alone. The emulated machine sends the recording over the serial console, and the script compares it with the programs' own measurements.
The emulation is slow: a run takes minutes per kernel.
"""

import argparse
import base64
import collections
import gzip
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
FIXTURES = ROOT / "integration/fixtures/ebpf"
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
SUITES = ("bullseye", "bookworm", "trixie", "trixie-backports")
# Debian's names of the tested kernels. The `cloud` kernels, for virtual machines, have the same sources as the ordinary kernels, but fewer drivers and a quarter of the
# download size. The kernel `arm64-16k` has larger pages.
FLAVOURS = {"x86_64": ["cloud-amd64"], "aarch64": ["cloud-arm64", "arm64-16k"]}
SHARES = ("half", "third", "fifth")
# If a stack contains one of these functions, it is a stack of the test program itself, and not of the shell that executes it or of the dynamic linker.
KNOWN = {"main", "shares_main", "pool_thread", "pool_work", "handler_work", "loaded_work", "half", "third", "fifth", "work", "descend"}
DEEP = {"threads", "deep", "frames", "frames-bare", "frames-largest"}
# Minimum percentage of complete stacks of the program `frames-largest`. Until the unwind table of a new program exists, 16 KiB of its stack are copied, so stacks with a larger frame are incomplete.
WHOLE_OF_LARGEST = 90
WAYS = ("pool_work", "handler_work", "loaded_work")

ARCHITECTURES = {
    "x86_64": {
        "debian": "amd64",
        "prefix": "",
        "libraries": ("/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/lib64"),
        "qemu": ["qemu-system-x86_64", "-M", "q35", "-cpu", "max"],
        "console": "ttyS0",
        "flags": {"frames-largest": ["-O2", "-fomit-frame-pointer", "-DLARGEST"]},
    },
    "aarch64": {
        "debian": "arm64",
        "prefix": "aarch64-linux-gnu-",
        "libraries": ("/usr/aarch64-linux-gnu/lib",),
        # The emulated processor signs addresses with qemu's own algorithm, because the emulation of the architecture's algorithm is slow.
        "qemu": ["qemu-system-aarch64", "-M", "virt", "-cpu", "max,pauth-impdef=on"],
        "console": "ttyAMA0",
        "flags": {"signed": ["-O2", "-mbranch-protection=standard"], "unsigned": ["-O2", "-mbranch-protection=none"]},
    },
}
# Name: compiler flags. `threads` is made from threads.c, the programs whose names begin with `frames` from frames.c, all others from shares.c.
PROGRAMS = {
    "framed": ["-O2", "-fno-omit-frame-pointer"],
    "bare": ["-O2", "-fomit-frame-pointer"],
    "deep": ["-O1", "-fomit-frame-pointer"],
    "static": ["-O2", "-static", "-fomit-frame-pointer"],
    "frames": ["-O2"],
    "frames-bare": ["-O2", "-fomit-frame-pointer"],
    "threads": ["-O2", "-fomit-frame-pointer"],
}


def run(*command, **options):
    done = subprocess.run([str(part) for part in command], stdin=subprocess.DEVNULL, capture_output=True, text=True, **options)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout


# --- Debian's packages ---------------------------------------------------------------------------------------------------------


class Packages:
    """apt with separate lists of several suites and both architectures, below the cache folder."""

    def __init__(self, cache, suites):
        self.cache = cache
        root = cache / "apt"
        for folder in ("state/lists/partial", "cache/archives/partial"):
            (root / folder).mkdir(parents=True, exist_ok=True)
        site = run("apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages", "Codename: bookworm").split()
        if not site:
            sys.exit("apt has no list of Debian bookworm: run `apt-get update`")
        sources = root / "sources.list"
        lines = "".join(f"deb [arch=amd64,arm64 signed-by={KEYRING}] {site[0]} {suite} main\n" for suite in suites)
        self.options = []
        for option in (
            f"Dir::State={root}/state",
            f"Dir::Cache={root}/cache",
            f"Dir::Etc::sourcelist={sources}",
            "Dir::Etc::sourceparts=-",
            "Dir::State::status=/dev/null",
            "APT::Architecture=amd64",
            "APT::Architectures=amd64,arm64",
            "APT::Sandbox::User=root",
            "Acquire::Languages=none",
            "Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false",
        ):
            self.options += ["-o", option]
        stale = not sources.exists() or sources.read_text() != lines or time.time() - sources.stat().st_mtime > 86400
        if stale:
            print("kernels: reading the lists of", ", ".join(suites), file=sys.stderr, flush=True)
            sources.write_text(lines)
            run("apt-get", *self.options, "update")

    def show(self, package, suite):
        """Returns the fields of a package in a suite, or an empty dictionary."""
        done = subprocess.run(
            ["apt-cache", *self.options, "show", f"{package}/{suite}"], stdin=subprocess.DEVNULL, capture_output=True, text=True
        )
        first = done.stdout.split("\n\n")[0]
        return dict(re.findall(r"^([A-Za-z-]+): (.*)$", first, re.M))

    def unpack(self, package, version, into, pattern):
        """Downloads a package, extracts the first file whose path matches `pattern`, and deletes the package."""
        into.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=self.cache) as folder:
            run("apt-get", *self.options, "download", f"{package}={version}", cwd=folder)
            (package,) = pathlib.Path(folder).glob("*.deb")
            reader = subprocess.Popen(["dpkg-deb", "--fsys-tarfile", package], stdout=subprocess.PIPE)
            with tarfile.open(fileobj=reader.stdout, mode="r|") as archive:
                for member in archive:
                    if member.isfile() and re.fullmatch(pattern, member.name):
                        (into / pathlib.PurePath(member.name).name).write_bytes(archive.extractfile(member).read())
                        break
            reader.terminate()
            reader.wait()

    def kernel(self, suite, flavour, arch):
        """Returns the version and the image of a suite's kernel, or None if the suite has no such kernel."""
        debian = ARCHITECTURES[arch]["debian"]
        meta = self.show(f"linux-image-{flavour}:{debian}", suite)
        found = re.search(r"(linux-image-[0-9][^ ]*) \(= ([^)]*)\)", meta.get("Depends", ""))
        if not found:
            return None
        name, version = found.groups()
        # Newer kernel packages depend on a separate package with the image.
        binary = re.search(r"(linux-binary-[0-9][^ ]*) \(", self.show(f"{name}:{debian}", suite).get("Depends", ""))
        package = binary.group(1) if binary else name
        folder = self.cache / arch / name.removeprefix("linux-image-")
        if not list(folder.glob("vmlinuz*")):
            print(f"kernels: {package} {version}", file=sys.stderr, flush=True)
            self.unpack(f"{package}:{debian}", version, folder, r"\./(boot|usr/lib/modules/.*)/vmlinuz.*")
        (image,) = list(folder.glob("vmlinuz*"))[:1] or sys.exit(f"{package} has no kernel image")
        return version, image

    def busybox(self, arch):
        debian = ARCHITECTURES[arch]["debian"]
        folder = self.cache / arch / "busybox"
        if not (folder / "busybox").exists():
            package = self.show(f"busybox-static:{debian}", "bookworm")
            self.unpack(f"busybox-static:{debian}", package["Version"], folder, r"\./(usr/)?bin/busybox")
        return folder / "busybox"


# --- the contents of the machine -----------------------------------------------------------------------------------------------


def collector(arch):
    """Builds the collector for the architecture."""
    print(f"kernels: building the collector for {arch}", file=sys.stderr, flush=True)
    triple = f"{arch}-unknown-linux-gnu"
    command = ["cargo", "build", "--locked", "--release", "--no-default-features", "--features", "agent"]
    environment = dict(os.environ)
    if arch != os.uname().machine:
        command += ["--target", triple]
        tool = ARCHITECTURES[arch]["prefix"]
        name = triple.replace("-", "_")
        environment[f"CC_{name}"] = f"{tool}gcc"
        environment[f"AR_{name}"] = f"{tool}ar"
        environment[f"CARGO_TARGET_{name.upper()}_LINKER"] = f"{tool}gcc"
        # With this setting, jemalloc supports pages of up to 64 KiB.
        environment["JEMALLOC_SYS_WITH_LG_PAGE"] = "16"
    if subprocess.run(command, cwd=ROOT, env=environment).returncode:
        sys.exit(f"the collector does not build for {arch} (rustup target add {triple}; Debian: gcc-aarch64-linux-gnu libc6-dev-arm64-cross)")
    metadata = run("cargo", "metadata", "--no-deps", "--format-version", "1", cwd=ROOT)
    target = pathlib.Path(re.search(r'"target_directory":"([^"]+)"', metadata).group(1))
    return (target / triple if "--target" in command else target) / "release/alluvium"


def compile_programs(arch, folder):
    about = ARCHITECTURES[arch]
    compiler = about["prefix"] + "gcc"
    programs = dict(PROGRAMS)
    for name, flags in about["flags"].items():
        programs[name] = flags
    for name, flags in programs.items():
        source = FIXTURES / ("threads.c" if name == "threads" else "frames.c" if name.startswith("frames") else "shares.c")
        # The functions work in turns. The turns are short, so that all functions lose the same share if the host gives the emulated machine too little CPU time.
        run(compiler, *flags, "-DTURN=1", "-o", folder / name, source, "-pthread")
    run(compiler, "-O2", "-shared", "-fPIC", "-fomit-frame-pointer", "-o", folder / "loaded.so", FIXTURES / "loaded.c")
    return list(programs)


def libraries(arch, files):
    """Returns the shared libraries that programs need, and the dynamic linker, each with its path."""
    found, open_ends = {}, list(files)
    while open_ends:
        text = run("readelf", "-W", "-d", "-l", open_ends.pop())
        for name in re.findall(r"\(NEEDED\).*\[(.*)\]", text):
            if name not in found:
                places = [pathlib.Path(folder, name) for folder in ARCHITECTURES[arch]["libraries"]]
                found[name] = next((place for place in places if place.exists()), None) or sys.exit(f"{arch}: no {name}")
                open_ends.append(found[name])
        for path in re.findall(r"interpreter: (/[^]]+)\]", text):
            name = pathlib.Path(path).name
            places = [pathlib.Path(folder, name) for folder in ARCHITECTURES[arch]["libraries"]]
            found[path] = next(place for place in places if place.exists())
    return {path if path.startswith("/") else f"/lib/{path}": place for path, place in found.items()}


def initramfs(entries):
    """Returns a cpio archive in the format `newc`, made from a map of paths. The values are bytes for files and None for folders."""
    archive = bytearray()

    def add(number, path, mode, data):
        name = path.encode() + b"\0"
        fields = [number, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name), 0]
        archive.extend(b"070701" + b"".join(b"%08X" % field for field in fields) + name)
        archive.extend(bytes(-len(archive) % 4) + data)
        archive.extend(bytes(-len(archive) % 4))

    for number, (path, data) in enumerate(entries.items(), 1):
        add(number, path, 0o040755 if data is None else 0o100755, data or b"")
    add(0, "TRAILER!!!", 0, b"")
    return bytes(archive)


# The script that runs in the machine. `record` waits until the profiler has opened perf events.
INIT = r"""#!/bin/busybox sh
export PATH=/bin LD_LIBRARY_PATH=/lib
busybox mount -t proc proc /proc
busybox mount -t sysfs sys /sys
busybox mount -t devtmpfs dev /dev 2>/dev/null
busybox --install -s /bin
exec >/dev/console 2>&1 </dev/null
echo 1 > /proc/sys/kernel/printk
mkdir -p /tmp/out
cd /work

send() { for file in "$@"; do echo "@@@ FILE ${file##*/}"; gzip -c "$file" | base64; echo "@@@ END"; done; }

record() { # NAME HERTZ "FLAGS" "LANE" "LANE"
    name=$1; echo "@@@ STEP $name"
    ./alluvium record --all --top 0 -F $2 $3 -o /tmp/out/$name.folded 2> /tmp/out/$name.summary &
    recorder=$!
    tries=0
    until ls -l /proc/$recorder/fd 2>/dev/null | grep -q perf_event || [ $tries -gt 600 ] || ! kill -0 $recorder 2>/dev/null; do sleep 0.2; tries=$((tries + 1)); done
    # In this time, the profiler reads the processes that already run.
    sleep 3
    cat /proc/$recorder/fdinfo/* 2>/dev/null | grep -E '^(verified_insns|prog_jited|memlock|map_type)' > /tmp/out/$name.kernel
    (eval "$4") & first=$!
    (eval "$5") & second=$!
    wait $first; wait $second
    kill -INT $recorder
    wait $recorder
    echo "status $?" >> /tmp/out/$name.summary
    send /tmp/out/$name.summary /tmp/out/$name.kernel
    [ ! -e /tmp/out/$name.folded ] || send /tmp/out/$name.folded
}

echo "@@@ KERNEL $(uname -r) $(cat /proc/version)"
@STEPS@
send /tmp/out/*.truth
echo "@@@ DONE"
poweroff -f
"""


def steps(names, options):
    seconds = options.seconds

    def once(prefix, name):
        arguments = f"{seconds} ./loaded.so" if name == "threads" else f"{seconds} 400" if name == "deep" else f"{seconds}"
        return f"./{name} {arguments} > /tmp/out/{prefix}-{name}.truth"

    def lanes(prefix, wanted):
        first = "; ".join(once(prefix, name) for name in wanted[::2])
        second = "; ".join(once(prefix, name) for name in wanted[1::2]) or "true"
        return f"'{first}' '{second}'"

    return (
        f"record program {options.hertz} '' {lanes('program', names)}\n"
        f"record events {options.event_hertz} --no-bpf {lanes('events', ['bare', 'framed'])}"
    )


# --- the machine ---------------------------------------------------------------------------------------------------------------


def boot(arch, image, initrd, log, limit):
    about = ARCHITECTURES[arch]
    append = f"console={about['console']} quiet loglevel=1 panic=-1 oops=panic"
    command = [*about["qemu"], "-accel", "tcg,thread=multi", "-smp", "2", "-m", "1024", "-display", "none", "-nic", "none", "-no-reboot"]
    command += ["-kernel", str(image), "-initrd", str(initrd), "-append", append, "-serial", f"file:{log}", "-monitor", "none"]
    machine = subprocess.Popen(command, stdin=subprocess.DEVNULL)
    until = time.monotonic() + limit
    try:
        while machine.poll() is None and time.monotonic() < until:
            time.sleep(1)
            if "@@@ DONE" in log.read_text(errors="replace") if log.exists() else False:
                break
    finally:
        if machine.poll() is None:
            machine.terminate()
        machine.wait()
    return log.read_text(errors="replace").replace("\r", "")


def files_of(text):
    """Returns the files that the machine sent, by name."""
    found = {}
    for name, body in re.findall(r"^@@@ FILE (\S+)\n(.*?)^@@@ END", text, re.M | re.S):
        try:
            found[name] = gzip.decompress(base64.b64decode("".join(body.split()))).decode(errors="replace")
        except (ValueError, OSError, EOFError) as error:
            sys.exit(f"{name} arrived damaged over the console: {error}")
    return found


def judge(files, prefix, name, hertz):
    """Compares the samples of a program with its own measurements.

    Returns the number of samples, the recorded and the true share of each function, the largest difference between the two in percentage points, the percentage of complete
    stacks, and the most frequent incomplete stacks. Returns None if the measurements or all samples are missing.
    """
    functions = WAYS if name == "threads" else SHARES
    truth = {key: int(value) for key, value in re.findall(r"^(\S+) (\d+)$", files.get(f"{prefix}-{name}.truth", ""), re.M)}
    stacks = []
    for line in files.get(f"{prefix}.folded", "").splitlines():
        stack, value = line.rsplit(" ", 1)
        frames = stack.split(";")
        if frames[0].rsplit("/", 1)[-1] == name:
            stacks.append((frames, int(value)))
    known = [(frames, value) for frames, value in stacks if not KNOWN.isdisjoint(frames)]
    total = sum(value for _, value in known)
    if not truth or not total:
        return None
    whole = sum(value for frames, value in known if is_whole(frames[1:]))
    found = {key: sum(value for frames, value in known if key in frames) for key in functions}
    all_found, all_true = sum(found.values()), sum(truth.get(key, 0) for key in functions)
    if not all_true:
        return None
    shares = {key: (100 * found[key] / max(all_found, 1), 100 * truth[key] / all_true) for key in functions}
    broken = collections.Counter()
    for frames, value in known:
        if not is_whole(frames[1:]):
            broken[";".join(frames[1:4])] += value
    return {
        "samples": round(total * hertz / 1e9),
        "off": max(abs(seen - true) for seen, true in shares.values()),
        "shares": shares,
        "whole": 100 * whole / total,
        "broken": ", ".join(f"{round(value * hertz / 1e9)} {stack}" for stack, value in broken.most_common(3)),
    }


def is_whole(frames):
    """Returns whether a stack (root first) begins where the process or the thread began.

    The C library has no names for the two frames below a thread's function.
    """
    if "pool_thread" in frames:
        return frames.index("pool_thread") == 2
    return frames[0] == "_start"


def report(arch, version, text, names, options):
    files = files_of(text)
    kernel = (re.findall(r"^@@@ KERNEL (\S+)", text, re.M) or ["did not start"])[0]
    print(f"\n## {kernel} ({version}), {arch}\n")
    is_good = bool(files)
    rows = []
    for prefix, wanted, hertz in (("program", names, options.hertz), ("events", ["bare", "framed"], options.event_hertz)):
        summary = files.get(f"{prefix}.summary", "no result arrived\n")
        print(f"{prefix}: " + summary.strip().replace("\n", "\n    "))
        facts = files.get(f"{prefix}.kernel", "")
        verified = re.findall(r"^verified_insns:\s+(\d+)", facts, re.M)
        jited = re.findall(r"^prog_jited:\s+(\d+)", facts, re.M)
        by_program = "by perf events" not in summary and bool(jited)
        off, whole, samples = 0.0, 100.0, 0
        for name in wanted:
            found = judge(files, prefix, name, hertz)
            if found is None:
                print(f"    {name}: no samples")
                is_good = False
                continue
            shares = ", ".join(f"{key} {seen:.2f} % (true {true:.2f})" for key, (seen, true) in found["shares"].items())
            print(f"    {name}: {found['samples']} samples, {shares}; {found['whole']:.2f} % complete stacks{', incomplete: ' * bool(found['broken'])}{found['broken']}")
            # Perf events copy 16 KiB of one stack. Frames beyond 16 KiB are missing, and so is the code that a signal handler on a separate stack interrupted.
            if name in DEEP and not by_program:
                continue
            whole = min(whole, found["whole"])
            is_good &= found["whole"] >= (WHOLE_OF_LARGEST if name == "frames-largest" else options.whole)
            # The three functions of `threads` run one after the other, so a lack of CPU time on the host affects their shares unequally.
            if name != "threads":
                off, samples = max(off, found["off"]), samples + found["samples"]
                # The bound is three standard deviations of a share of one half.
                is_good &= found["off"] <= max(1.5, 150 / max(found["samples"], 1) ** 0.5)
        loaded = "yes" if by_program else "no"
        # If the host gives the emulated machine no CPU time, the emulated clock continues, but the machine misses its ticks.
        counted = re.search(r"of (\d+) ticks.* (\d+) missed", summary)
        incomplete = re.search(r"^(\d+) samples.* (\d+) with an incomplete", summary, re.M)
        incomplete = f"{100 * int(incomplete[2]) / max(int(incomplete[1]), 1):.1f} %" if incomplete else "-"
        missed = f"{100 * int(counted[2]) / max(int(counted[1]), 1):.0f} %" if counted else "-"
        rows.append((kernel, arch, loaded, (verified or ["-"])[-1], samples, missed, f"{off:.2f}", f"{whole:.2f} %", incomplete))
    return rows, is_good


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--arch", choices=sorted(ARCHITECTURES), action="append")
    parser.add_argument("--suite", choices=SUITES, action="append", help="Debian suite whose kernels are tested")
    parser.add_argument("--flavour", choices=sum(FLAVOURS.values(), []), action="append")
    parser.add_argument("--program", action="append", default=[], metavar="ARCH=PATH", help="use this collector instead of building one")
    parser.add_argument("--only", action="append", help="run only the test program with this name")
    parser.add_argument("--seconds", type=float, default=10, help="CPU seconds of each program on the emulated machine")
    parser.add_argument("--hertz", type=int, default=99)
    parser.add_argument("--event-hertz", type=int, default=49, help="ticks per second of the recording with perf events alone, which copy 16 KiB of stack per tick")
    parser.add_argument("--whole", type=float, default=99, help="minimum percentage of complete stacks of each program")
    parser.add_argument("--limit", type=int, default=1800, help="timeout of an emulated machine in seconds")
    parser.add_argument("--cache", type=pathlib.Path, default=pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache"), "alluvium/kernels"))
    parser.add_argument("--keep", action="store_true", help="keep the output of the consoles in the cache folder")
    options = parser.parse_args()
    built = dict(pair.split("=", 1) for pair in options.program)

    packages = Packages(options.cache, SUITES)
    rows, is_good = [], True
    with tempfile.TemporaryDirectory(prefix="alluvium-kernels-") as folder:
        for arch in options.arch or sorted(ARCHITECTURES, reverse=True):
            work = pathlib.Path(folder, arch)
            work.mkdir()
            names = [name for name in compile_programs(arch, work) if name in (options.only or [name])]
            shutil.copy(built[arch] if arch in built else collector(arch), work / "alluvium")
            entries = {name: None for name in ("bin", "dev", "lib", "lib64", "proc", "sys", "tmp", "work")}
            entries["bin/busybox"] = packages.busybox(arch).read_bytes()
            for path, place in libraries(arch, list(work.iterdir())).items():
                entries[path.lstrip("/")] = place.read_bytes()
            for path in sorted(work.iterdir()):
                entries[f"work/{path.name}"] = path.read_bytes()
            entries["init"] = INIT.replace("@STEPS@", steps(names, options)).encode()
            initrd = work / "initramfs.cpio"
            initrd.write_bytes(initramfs(entries))
            wanted = [(suite, flavour) for flavour in FLAVOURS[arch] for suite in options.suite or SUITES]
            for suite, flavour in wanted:
                kernel = packages.kernel(suite, flavour, arch) if flavour in (options.flavour or [flavour]) else None
                if kernel is None:
                    continue
                version, image = kernel
                log = (options.cache if options.keep else work) / f"console-{suite}-{flavour}.log"
                log.unlink(missing_ok=True)
                started = time.monotonic()
                text = boot(arch, image, initrd, log, options.limit)
                more, good = report(arch, version, text, names, options)
                print(f"    {time.monotonic() - started:.0f} s", flush=True)
                rows += more
                is_good &= good
    print("\n| kernel | architecture | BPF program | instructions verified | samples | missed ticks | largest difference of a share, points | complete stacks of the programs, minimum | incomplete stacks of all samples |")
    print("|" + " --- |" * 9)
    for row in rows:
        print("| " + " | ".join(map(str, row)) + " |")
    sys.exit(0 if is_good else 1)


if __name__ == "__main__":
    main()
