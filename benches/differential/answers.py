"""Converts responses to comparable values: unordered lists lose their order, and trees and profiles become stacks with their values."""

import base64
import json
import re


def flame_graph(graph, width=4):
    """Converts the levels of a flame graph to stacks of names with total and own value. A node consists of `width` numbers: four, or seven in the graph of a difference."""
    if not graph:
        return {}
    sides, out, above = (width - 1) // 3, {}, []
    for level in graph.get("levels") or []:
        values = [int(value) for value in (level.get("values", []) if isinstance(level, dict) else level)]
        at, nodes = [0] * sides, []
        for node in (values[start:start + width] for start in range(0, len(values), width)):
            ends = []
            for side in range(sides):
                begin = at[side] + node[side * 3]
                at[side] = begin + node[side * 3 + 1]
                ends.append((begin, at[side]))
            caller = next((path for path, spans in above if all(outer[0] <= inner[0] and inner[1] <= outer[1] for inner, outer in zip(ends, spans))), ())
            path = (*caller, graph["names"][node[-1]])
            nodes.append((path, ends))
            kept = out.setdefault(path, [0] * (2 * sides))
            for number in range(2 * sides):
                kept[number] += node[number // 2 * 3 + 1 + number % 2]
        above = nodes
    return {";".join(path): values for path, values in out.items()}


def whole_graph(graph, width=4):
    """Converts a flame graph as `flame_graph` does, and adds the other numbers of the response."""
    graph = graph or {}
    beside = {key: int(graph.get(key, 0)) for key in ("total", "maxSelf", "leftTicks", "rightTicks")}
    return {"stacks": flame_graph(graph, width), **(beside if graph.get("names") else {})}


def tree(data):
    """Converts the bytes of a tree, in which the last child comes first, to stacks with their own values."""
    data, at, out = base64.b64decode(data or ""), 0, {}

    def number():
        nonlocal at
        value = shift = 0
        while True:
            value |= (data[at] & 0x7F) << shift
            shift, at = shift + 7, at + 1
            if data[at - 1] < 0x80:
                return value

    waiting = [()] if data else []
    while waiting:
        caller = waiting.pop()
        length = number()
        name, at = data[at:at + length].decode(), at + length
        own, children = number(), number()
        path = (*caller, name) if name else caller
        if own:
            out[";".join(path)] = out.get(";".join(path), 0) + own
        waiting += [path] * children
    return out


def profile(message, addresses=True):
    """Converts a pprof to stacks with all data of their frames, the labels of the samples, and the types.

    Time, duration and period are omitted, because Pyroscope guesses them.
    """
    message = message or {}
    strings = message.get("stringTable", [""])
    text = lambda entry, key: strings[int(entry.get(key, 0))]
    functions = {one["id"]: one for one in message.get("function", [])}
    mappings = {one["id"]: one for one in message.get("mapping", [])}
    locations, out = {}, {}
    for one in message.get("location", []):
        mapping = mappings.get(one.get("mappingId"), {})
        of_file = (text(mapping, "filename"), text(mapping, "buildId")) if mapping else ("", "")
        frames = []
        for line in one.get("line", []):
            function = functions[line["functionId"]]
            frames.append((text(function, "name"), text(function, "filename"), int(function.get("startLine", 0)), int(line.get("line", 0))))
        locations[one["id"]] = (tuple(frames), of_file, int(one.get("address", 0)) if addresses else 0)
    for sample in message.get("sample", []):
        stack = tuple(locations[one] for one in sample.get("locationId", []))
        labels = tuple(sorted((text(label, "key"), text(label, "str"), int(label.get("num", 0))) for label in sample.get("label", [])))
        key = repr((stack, labels))
        values = [int(value) for value in sample["value"]]
        out[key] = [sum(pair) for pair in zip(out[key], values)] if key in out else values
    of_type = lambda entry: (text(entry, "type"), text(entry, "unit")) if entry else None
    beside = {"types": [of_type(one) for one in message.get("sampleType", [])], "period_type": of_type(message.get("periodType")),
              "default": text(message, "defaultSampleType")}
    return {"stacks": out, **(beside if out else {})}


def labels(pairs):
    return ",".join(sorted(f"{one['name']}={one.get('value', '')}" for one in pairs or []))


def exemplar(one):
    return [one.get(key, "") for key in ("timestamp", "profileId", "spanId", "traceId", "value")] + [labels(one.get("labels"))]


def lines(answer):
    """Converts time series to a map from labels to points with their times, values and exemplars."""
    return {labels(one.get("labels")): [[int(point.get("timestamp", 0)), point.get("value", 0), [exemplar(each) for each in point.get("exemplars", [])]]
                                        for point in one.get("points", [])] for one in answer.get("series", [])}


def heat(answer):
    return {labels(one.get("labels")): [[int(slot["timestamp"]), slot.get("yMin", []), slot.get("counts", [])] for slot in one.get("slots", [])]
            for one in answer.get("series", [])}


def rendered(answer):
    """Converts flamebearer JSON. If the query has groups, the field `timeline` is omitted, because Pyroscope returns the time series of only one group in it."""
    bearer = answer.get("flamebearer", {})
    double = answer.get("metadata", {}).get("format") == "double"
    graph = {"names": bearer.get("names"), "levels": bearer.get("levels")}
    rest = {key: value for key, value in answer.items() if key != "flamebearer" and value != 0 and (key != "timeline" or not answer.get("groups"))}
    return {"stacks": flame_graph(graph, 7 if double else 4), "ticks": bearer.get("numTicks"), "self": bearer.get("maxSelf"), **rest}


def read(call, status, body):
    """Converts the response of a call to a comparable value. An error becomes its status and code."""
    if status != 200:
        try:
            return {"status": status, "code": json.loads(body).get("code")} if call != "wrong push" else {"status": status}
        except (ValueError, AttributeError):
            return {"status": status}
    if call == "wrong push":
        return {"status": status}
    if call == "render dot":
        return {"arrows": len(re.findall(rb"^\s*[Nn]\d+ -> [Nn]\d+", body, re.MULTILINE)), "empty": not body.strip()}
    answer = json.loads(body)
    if call.startswith("SelectMergeStacktraces") and "pprof" in answer:
        return profile(answer["pprof"].get("profile"))
    if call in ("SelectMergeStacktraces pprof", "SelectMergeStacktraces go_pgo"):
        return profile({})
    if call == "SelectMergeStacktraces tree":
        return tree(answer.get("tree"))
    if call == "SelectMergeStacktraces cut":
        return {"total": int((answer.get("flamegraph") or {}).get("total", 0))}
    if call.startswith(("SelectMergeStacktraces", "SelectMergeSpanProfile")):
        return whole_graph(answer.get("flamegraph"))
    readers = {"SelectMergeProfile": profile, "SelectSeries": lines, "SelectSeries exemplars": lines, "SelectHeatmap": heat,
               "Diff": lambda one: whole_graph(one.get("flamegraph"), 7), "render": rendered, "render-diff": rendered,
               "ProfileTypes": lambda one: sorted(json.dumps(each, sort_keys=True) for each in one.get("profileTypes", [])),
               "Series": lambda one: sorted(labels(each.get("labels")) for each in one.get("labelsSet", []))}
    return readers.get(call, lambda one: one)(answer)


def differences(ours, theirs, at="", most=6):
    """Returns the paths at which two values differ, as at most `most` lines of text."""
    if type(ours) is type(theirs) is dict:
        out = []
        for key in sorted(set(ours) | set(theirs), key=str):
            if len(out) >= most:
                break
            if key not in ours or key not in theirs:
                only = "alluvium" if key in ours else "pyroscope"
                out.append(f"{at}/{key}: only {only} has {str(ours.get(key, theirs.get(key)))[:300]}")
            else:
                out += differences(ours[key], theirs[key], f"{at}/{key}", most)
        return out[:most]
    if ours == theirs:
        return []
    if type(ours) is type(theirs) is list and all(isinstance(one, str) for one in ours + theirs):
        common = [[text for text in one if text in other] for one, other in ((ours, theirs), (theirs, ours))]
        return [f"{at}: only alluvium {sorted(set(ours) - set(theirs))[:8]}, only pyroscope {sorted(set(theirs) - set(ours))[:8]}, "
                f"order of the others {'equal' if common[0] == common[1] else 'differs'}"]
    if type(ours) is type(theirs) is list and len(ours) == len(theirs):
        return [line for number, pair in enumerate(zip(ours, theirs)) for line in differences(*pair, f"{at}[{number}]", most)][:most]
    return [f"{at}: alluvium {str(ours)[:300]}, pyroscope {str(theirs)[:300]}"]
