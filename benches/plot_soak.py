"""Draws the results of the bench `soak` as SVG: memory, latencies and CPU time over time. figures.py writes docs/images/soak.svg with this module."""

WIDTH, PANEL, LEFT, RIGHT, GAP, TOP = 880, 120, 70, 20, 46, 34
COLOURS = ["#3b6fb6", "#c4632b"]


def nice(most):
    """Returns the end of an axis: the next number that is 1, 2 or 5 times a power of ten."""
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


def svg(figures):
    """Returns the SVG for the figures of docs/benchmarks/soak.json, which have one value per window of ten seconds."""
    values = lambda name: figures[f"window.{name}"]
    minutes = [at / 60 for at in values("at_s")]
    panels = [
        ("Memory, MB", [("private", values("anon_mb")), ("resident", values("resident_mb"))]),
        ("Acknowledgement of a push, ms", [("p50", values("ack_ms.p50")), ("p99", values("ack_ms.p99"))]),
        ("Flame graph of a service, ms", [("p50", values("flame_graph_ms.p50")), ("p99", values("flame_graph_ms.p99"))]),
        ("CPU time of the server, seconds per second", [("", [used / 10 for used in values("cpu_s")])]),
    ]
    height = TOP + len(panels) * (PANEL + GAP)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" font-size="12" fill="#666">']
    for number, (title, lines) in enumerate(panels):
        panel(out, TOP + number * (PANEL + GAP), title, minutes, lines)
    return "\n".join([*out, "</svg>", ""])
