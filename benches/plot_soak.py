#!/usr/bin/env python3
"""Draws a soak: memory, latencies and processor time over time, as an SVG.

In: what `cargo bench --bench load -- soak` printed, one JSON document a line. Out: an SVG on standard output, and on standard error the
means of the first and the last quarter, which say whether something grows:

    cargo bench --bench load -- soak --url http://127.0.0.1:4040 --seconds 3600 > soak.json
    benches/plot_soak.py soak.json > docs/images/soak.svg
"""

import json
import statistics
import sys

WIDTH, PANEL, LEFT, RIGHT, GAP, TOP = 880, 120, 70, 20, 46, 34
COLOURS = ["#3b6fb6", "#c4632b"]


def nice(most):
    """The end of an axis: the next of 1, 2, 5 times a power of ten."""
    step = 1
    while True:
        for factor in (1, 2, 5):
            if most <= factor * step:
                return factor * step
        step *= 10


def panel(out, top, title, minutes, lines):
    end = nice(max(max(values) for _, values in lines))
    x = lambda minute: LEFT + (WIDTH - LEFT - RIGHT) * minute / minutes[-1]
    y = lambda value: top + PANEL * (1 - min(value, end) / end)
    out.append(f'<text x="{LEFT}" y="{top - 8}" font-weight="bold">{title}</text>')
    for part in (0, 0.5, 1):
        at = y(end * part)
        out.append(f'<line x1="{LEFT}" y1="{at:.1f}" x2="{WIDTH - RIGHT}" y2="{at:.1f}" stroke="#8884" />')
        out.append(f'<text x="{LEFT - 8}" y="{at + 4:.1f}" text-anchor="end">{end * part:g}</text>')
    for minute in range(0, int(minutes[-1]) + 1, 10):
        out.append(f'<text x="{x(minute):.1f}" y="{top + PANEL + 16}" text-anchor="middle">{minute} min</text>')
    for (name, values), colour in zip(lines, COLOURS):
        points = " ".join(f"{x(minute):.1f},{y(value):.1f}" for minute, value in zip(minutes, values))
        out.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.4" />')
    for number, ((name, _), colour) in enumerate(zip(lines, COLOURS)):
        if name:
            out.append(f'<text x="{WIDTH - RIGHT - 60 * (len(lines) - 1 - number)}" y="{top - 8}" text-anchor="end" fill="{colour}">{name}</text>')


def main():
    with open(sys.argv[1]) as lines:
        rows = [row for row in map(json.loads, filter(str.strip, lines)) if row.get("mode") == "soak-window"]
    minutes = [row["at_s"] / 60 for row in rows]
    panels = [
        ("Resident memory, MB", [("", [row["resident_mb"] for row in rows])]),
        ("Acknowledgement of a push, ms", [("p50", [row["ack_ms"]["p50"] for row in rows]), ("p99", [row["ack_ms"]["p99"] for row in rows])]),
        ("Flame graph of a service, ms", [("p50", [row["flame_graph_ms"]["p50"] for row in rows]), ("p99", [row["flame_graph_ms"]["p99"] for row in rows])]),
        ("Processor time of the server, seconds a second", [("", [row["cpu_s"] / 10 for row in rows])]),
    ]
    height = TOP + len(panels) * (PANEL + GAP)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" font-size="12" fill="#666">']
    for number, (title, lines) in enumerate(panels):
        panel(out, TOP + number * (PANEL + GAP), title, minutes, lines)
    out.append("</svg>")
    print("\n".join(out))

    quarter = len(rows) // 4
    profiles, errors = sum(row["profiles"] for row in rows), sum(row["errors"] for row in rows)
    print(f"{profiles} profiles in {minutes[-1]:.0f} min, {errors} errors; load average {rows[0]['load_average'][0]} to {rows[-1]['load_average'][0]}", file=sys.stderr)
    for title, lines in panels:
        for name, values in lines:
            first, last = statistics.mean(values[:quarter]), statistics.mean(values[-quarter:])
            print(f"{title} {name}: first quarter {first:.2f}, last quarter {last:.2f}, most {max(values):.2f}", file=sys.stderr)


if __name__ == "__main__":
    main()
