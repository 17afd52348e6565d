#!/usr/bin/env python3
"""Measures builds: one line of JSON per build, with wall time and CPU time of all its processes in seconds.

    benches/builds.py usual     the builds of a clone: check, program and tests, and the release program
    benches/builds.py dist      the program that is shipped

The sources of all dependencies are downloaded first. `agent check`, `dev`, `release` and `dist` begin in an empty target folder. `tests` continues in the folder of `dev`. `dev again` and
`release again` repeat a build after one file was touched. Other work of the machine affects the times, so the machine must be idle, as for all benches. If ALLUVIUM_BUILDS names a folder, the target folders are created in it. The folder
must not exist yet, and is not deleted.
"""

import json
import os
import pathlib
import resource
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
AGENT = ["--no-default-features", "--features", "agent"]
LAST = "src/lang/scanner.rs"
# Name, arguments of cargo, and the file that is touched before the build. None means that the build begins in an empty target folder. Otherwise it uses the folder of the build before it, and "" means that no file is touched.
USUAL = [
    ("agent check", ["check", *AGENT, "--lib"], None),
    ("dev", ["build", "--bin", "alluvium"], None),
    ("tests", ["test", "--no-run", "--lib", "--bins", "--tests"], ""),
    ("dev again", ["build", "--bin", "alluvium"], LAST),
    ("release", ["build", "--release", "--bin", "alluvium"], None),
    ("release again", ["build", "--release", "--bin", "alluvium"], LAST),
]
DIST = [("dist", ["build", "--profile", "dist", "--bin", "alluvium"], None)]


def main():
    match sys.argv[1:]:
        case ["usual"]:
            builds = USUAL
        case ["dist"]:
            builds = DIST
        case _:
            sys.exit(__doc__)
    subprocess.run(["cargo", "fetch", "--locked"], cwd=ROOT, check=True)
    with tempfile.TemporaryDirectory(prefix="alluvium-builds.") as passing:
        kept = os.environ.get("ALLUVIUM_BUILDS")
        if kept:
            os.mkdir(kept)
        measure(builds, pathlib.Path(kept or passing))


def measure(builds, folders):
    for name, words, touched in builds:
        if touched is None:
            folder = folders / name.replace(" ", "-")
        elif touched:
            (ROOT / touched).touch()
        before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
        done = subprocess.run(["cargo", *words[:1], "--locked", *words[1:]], cwd=ROOT, env=os.environ | {"CARGO_TARGET_DIR": str(folder)})
        wall, after = time.monotonic() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
        if done.returncode:
            sys.exit(f"`cargo {' '.join(words)}` failed with status {done.returncode}")
        cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        print(json.dumps({"mode": name, "wall_s": round(wall, 1), "cpu_s": round(cpu, 1), "load_average": os.getloadavg()}), flush=True)


if __name__ == "__main__":
    main()
