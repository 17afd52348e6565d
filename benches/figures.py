#!/usr/bin/env python3
"""Runs benches, stores their results as JSON, and writes the tables of the documentation from them.

    benches/figures.py run NAME [ARGUMENT ...]   measure into docs/benchmarks/NAME.json; with arguments, only print the result
    benches/figures.py all                       run in turn every bench without a result from the last day, so that the run can be stopped and continued
    benches/figures.py tables                    write the tables of docs/benchmarks*.md and docs/scale.md again
    benches/figures.py check                     report differences between the documents, the results in JSON, the commands of the benches, and the code

A bench consists of one or more commands (`BENCHES` in tables.py), which print lines of JSON. Every number in a line becomes a value of the figure MODE.PATH. MODE is the field `mode` of the
line, or else the field `name`. PATH is the path of the number in the line. A figure that occurs several times, in several runs or in a list, has several values. Tables show their median, minimum and maximum.
"""

import datetime
import json
import os
import pathlib
import platform
import re
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

# A test runs this file. No compiled file may be left in the source tree.
sys.dont_write_bytecode = True
import plot_soak
import scale
from tables import BENCHES, TABLES

ROOT = pathlib.Path(os.environ.get("ALLUVIUM_FIGURES", pathlib.Path(__file__).resolve().parent.parent))
KEPT = ROOT / "docs/benchmarks"
# `all` measures again if a result is older than this.
NEW_ENOUGH = datetime.timedelta(days=1)
# Before a bench, the script waits up to `PATIENCE` seconds until the load average of the machine is at most `AT_REST`.
AT_REST, PATIENCE = 0.5, 900
BLOCK = re.compile(r"(<!-- figures: (\S+) -->\n).*?(<!-- end of figures -->)", re.S)
BY_HAND = re.compile(r"Measured on \d{4}-\d\d-\d\d at [0-9a-f]{7,40}, by hand:[^`]*`[^`]+`", re.S)
FIGURE = re.compile(r"\d ?(ms|us|s|min|h|MB|kB|GB|%|points|profiles/s|CPU-s|times|samples)(?![A-Za-z0-9])")


def git(*arguments):
    return subprocess.run(["git", "-C", ROOT, *arguments], check=True, capture_output=True, text=True).stdout.strip()


def machine():
    cpu = re.search(r"model name\s*: (.*)", pathlib.Path("/proc/cpuinfo").read_text())
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return {"cpu": cpu.group(1) if cpu else platform.machine(), "cores": os.cpu_count(), "memory_gb": round(memory / 1e9),
            "kernel": platform.release()}


def wait_for_rest():
    deadline = time.monotonic() + PATIENCE
    while os.getloadavg()[0] > AT_REST and time.monotonic() < deadline:
        time.sleep(5)
    return round(os.getloadavg()[0], 2)


def collect(line, figures, texts):
    """Adds the values of a line of JSON to `figures` (lists of numbers by name) and to `texts`."""
    def walk(name, value):
        if isinstance(value, dict):
            for key, part in value.items():
                walk(f"{name}.{key}", part)
        elif name.endswith(".load_average"):
            figures.setdefault(name, []).append(value[0] if isinstance(value, list) else value)
        elif isinstance(value, bool) or isinstance(value, str):
            texts.setdefault(name, [])
            texts[name] += [str(value)] if str(value) not in texts[name] else []
        elif isinstance(value, (int, float)):
            figures.setdefault(name, []).append(value)
        elif isinstance(value, list):
            for part in value:
                walk(name, part)
    document = json.loads(line)
    mode = str(document.pop("mode", document.pop("name", "")))
    walk(mode, document)


def run(name, further=()):
    """Measures a bench. Without additional arguments, the result is stored."""
    bench = BENCHES[name]
    dirty = [line for line in git("status", "--porcelain").splitlines() if " docs/benchmarks" not in line]
    if dirty and not further:
        sys.exit("figures: commit these files first, because a figure belongs to a commit:\n" + "\n".join(dirty))
    missing = [word for word in bench.get("needs", ()) if not os.environ.get(word)]
    if missing:
        sys.exit(f"figures: {name} needs {', '.join(missing)} in the environment, see docs/benchmarks.md")
    missing = [program for program in bench.get("programs", ()) if not shutil.which(program)]
    if missing:
        sys.exit(f"figures: {name} needs {', '.join(missing)} on the PATH, see docs/benchmarks-ebpf.md")
    figures, texts = {}, {}
    started, load = datetime.datetime.now(datetime.timezone.utc), None
    for number in range(1 if further else bench["runs"]):
        with tempfile.TemporaryDirectory(prefix="alluvium-bench.") as folder:
            for at, command in enumerate(bench["commands"]):
                last = at + 1 == len(bench["commands"])
                places = {"folder": folder, "program": program(), "python": os.environ.get("ALLUVIUM_PYTHON", sys.executable),
                          "peer": os.environ.get("PEER", "")}
                words = [word.format(**places) for word in shlex.split(command)] + (list(further) if last else [])
                if not command.startswith("cargo build"):
                    load = wait_for_rest() if load is None and not further else load
                print(f"figures: {name}, run {number + 1}: {command}", file=sys.stderr, flush=True)
                child = subprocess.run(words, cwd=ROOT, stdout=subprocess.PIPE, text=True)
                for line in filter(lambda line: line.startswith("{"), child.stdout.splitlines()):
                    collect(line, figures, texts)
                if child.returncode:
                    raise RuntimeError(f"`{command}` failed with status {child.returncode}")
    result = {"bench": name, "commands": bench["commands"], "date": started.strftime("%Y-%m-%d %H:%M UTC"), "commit": git("rev-parse", "--short=10", "HEAD"),
              "machine": machine(), "load_average_before": load, "minutes": round((datetime.datetime.now(datetime.timezone.utc) - started).seconds / 60),
              "runs": bench["runs"], "texts": texts, "figures": figures}
    if further:
        print(written(result))
    else:
        KEPT.mkdir(exist_ok=True)
        (KEPT / f"{name}.json").write_text(written(result))
        write_tables()


def program():
    return str(pathlib.Path(os.environ.get("CARGO_TARGET_DIR", "target"), "release/alluvium").resolve())


def written(result):
    """Formats a result as JSON with one line per figure, so that a diff shows the changed figures."""
    text = json.dumps(result, indent=1)
    return re.sub(r"\[\s+([^\[\]{}]*?)\s+\]", lambda found: "[" + re.sub(r"\s+", " ", found.group(1)) + "]", text) + "\n"


def run_all():
    failed = []
    for name, bench in BENCHES.items():
        kept = KEPT / f"{name}.json"
        if kept.exists():
            date = datetime.datetime.strptime(json.loads(kept.read_text())["date"], "%Y-%m-%d %H:%M UTC")
            if datetime.datetime.now(datetime.timezone.utc).replace(tzinfo=None) - date < NEW_ENOUGH:
                print(f"figures: {name} was measured at {date}", file=sys.stderr)
                continue
        print(f"figures: {name} takes about {bench['minutes']} minutes", file=sys.stderr, flush=True)
        try:
            run(name)
        except (RuntimeError, SystemExit) as error:
            failed.append(f"{name}: {error}")
    if failed:
        sys.exit("figures: not measured:\n" + "\n".join(failed))


def number(value):
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def cell(values):
    if not values:
        return ""
    middle, low, high = (number(value) for value in (statistics.median(values), min(values), max(values)))
    return middle if low == high else f"{middle} ({low} to {high})"


def is_short(values, target):
    sign, bound = target.split()
    return statistics.median(values) > float(bound) if sign == "<=" else statistics.median(values) < float(bound)


def rows(shape):
    """Returns label, figure and target of each row. The target may be empty."""
    return [(label, figure, (target or [""])[0] or "") for label, figure, *target in shape["rows"]]


def table(name):
    """Returns the text between the markers of a table in a page: the source of its figures, the table, and the missed targets."""
    if name in scale.TABLES:
        return scale.table(name, KEPT)
    shape = TABLES[name]
    kept = KEPT / f"{shape['bench']}.json"
    if not kept.exists():
        return f"Not measured yet: `make bench-{shape['bench']}` measures it.\n"
    result = json.loads(kept.read_text())
    host, load, figures = result["machine"], result["load_average_before"], result["figures"]
    busy = ", **on a busy machine**" if load is None or load > 2 * AT_REST else ""
    lines = [f"`make bench-{shape['bench']}`, {result['date']}, commit {result['commit']}, {result['runs']} run{'s' * (result['runs'] > 1)}; "
             f"{host['cores']} cores ({host['cpu']}), {host['memory_gb']} GB, Linux {host['kernel']}, load average before the run {load}{busy}. "
             "Median (lowest to highest).", ""]
    columns, has_targets = shape["columns"], any(target for _, _, target in rows(shape))
    titles = ["", *columns, *(["target", ""] if has_targets else [])]
    lines += ["| " + " | ".join(titles) + " |", "|" + " --- |" * len(titles)]
    short = []
    for label, figure, target in rows(shape):
        values = {title: figures.get(pattern.replace("*", figure)) for title, pattern in columns.items()}
        cells = [cell(found) for found in values.values()]
        if has_targets:
            words = target.replace("<=", "at most").replace(">=", "at least")
            judged = [values[title] for title in shape.get("judged", list(columns)[-1:]) if target and values[title]]
            missed = [number(statistics.median(found)) for found in judged if is_short(found, target)]
            cells += [words, ("**missed**" if missed else "met") if judged else ""]
            short += [f"{label} {' and '.join(missed)}, {words}"] if missed else []
        lines.append("| " + " | ".join([label, *cells]) + " |")
    if has_targets:
        lines += ["", "Missed targets: " + "; ".join(short) + "." if short else "No target is missed."]
    for label, text in shape.get("texts", ()):
        lines += ["", f"{label}: " + ", ".join(f"`{part}`" for part in result["texts"].get(text, ["nothing"])) + "."]
    return "\n".join(lines) + "\n"


def pages():
    return [page for pattern in ("docs/**/benchmarks*.md", "docs/adr/0001*.md", "docs/scale.md") for page in sorted(ROOT.glob(pattern))]


def generated():
    """Returns every file that contains figures, with the text that it should have."""
    for page in pages():
        yield page, BLOCK.sub(lambda found: found.group(1) + table(found.group(2)) + found.group(3), page.read_text())
    soak = KEPT / "soak.json"
    if soak.exists():
        yield ROOT / "docs/images/soak.svg", plot_soak.svg(json.loads(soak.read_text())["figures"])


def write_tables():
    for path, text in generated():
        path.write_text(text)


def check():
    """Returns the errors, each as one line."""
    for page in pages():
        text, place = page.read_text(), page.relative_to(ROOT)
        for name in (name for _, name, _ in BLOCK.findall(text) if name not in TABLES | scale.TABLES):
            yield f"{place}: there is no table {name}"
            return
        for section in re.split(r"^(?=## )", BLOCK.sub("", text), flags=re.M):
            if FIGURE.search(section) and not BY_HAND.search(section):
                yield f"{place}: figures without a command in `{section.splitlines()[0]}`: generate them or write `Measured on DATE at COMMIT, by hand: COMMAND`"
    yield from scale.wrong()
    for path, text in generated():
        if path.read_text() != text:
            yield f"{path.relative_to(ROOT)}: differs from the JSON files; `make figures` writes it"
    for name, shape in TABLES.items():
        kept = KEPT / f"{shape['bench']}.json"
        if shape["bench"] not in BENCHES:
            yield f"table {name}: there is no bench {shape['bench']}"
        elif kept.exists():
            figures = json.loads(kept.read_text())["figures"]
            for _, figure, _ in rows(shape):
                if not any(pattern.replace("*", figure) in figures for pattern in shape["columns"].values()):
                    yield f"table {name}: {kept.name} has no figure {figure}"
    for kept in sorted(KEPT.glob("*.json")):
        result = json.loads(kept.read_text())
        for key in ("date", "commit", "machine", "runs", "figures"):
            if not result.get(key):
                yield f"{kept.name}: no {key}"
        if result.get("commands") != BENCHES.get(kept.stem, {}).get("commands"):
            yield f"{kept.name}: the commands of the bench {kept.stem} have changed: measure it again"


def main():
    match sys.argv[1:]:
        case ["run", name, *further] if name in BENCHES:
            run(name, further)
        case ["all"]:
            run_all()
        case ["tables"]:
            write_tables()
        case ["check"]:
            wrong = list(check())
            print("\n".join(wrong))
            sys.exit(1 if wrong else 0)
        case _:
            sys.exit(f"{__doc__}\nBenches: {', '.join(BENCHES)}")


if __name__ == "__main__":
    main()
