"""Names the kind of a difference between two responses.

A name is the evidence of a test, not a guess: the two values are equal after a rewrite of both, or both servers respond equally to a variant of the query. The
names refer to the rows of the tables in `docs/compatibility/pyroscope.md`.
"""

import copy
import dataclasses
import json
import re
import urllib.parse

import questions

GENERATED = re.compile(r"(\$\$Lambda)(?:\$\d+)?[+./](?:0x)?[0-9a-f]+(?:/\d+)?|(java/lang/invoke/LambdaForm\$\w+)[+./]0x[0-9a-f]+(?:/\d+)?")
RATE_0 = re.compile(r"(process_cpu|wall):samples:count::")
PRIVATE = ("profile_name", "__otel__", "service.name")
# Names of kinds, each with the services of the pushes that meet it (see `pushes.World.service`).
SPECIAL = {"speedscope in nanoseconds": "nanoseconds", "values of a sample rate of 0": "rate", "frames without functions": "native", "negative values": "negative",
           "several special services": ""}


def on_stacks(value, rename):
    """Renames the stacks of a flame graph, a tree or a profile, and adds the values of stacks that get the same name."""
    if not isinstance(value, dict) or "status" in value:
        return value
    if "stacks" in value:
        return {**value, "stacks": on_stacks(value["stacks"], rename)}
    out = {}
    for key, numbers in value.items():
        name = rename(key)
        if name not in out:
            out[name] = numbers
        elif isinstance(numbers, list):
            out[name] = [sum(pair) for pair in zip(out[name], numbers)]
        elif isinstance(numbers, int):
            out[name] += numbers
    return out


def on_types(value):
    """Gives the types of texts with a sample rate of 0 one name."""
    text = json.dumps(value, sort_keys=True)
    text = RATE_0.sub(r"\1:samples:count:cpu:nanoseconds", text)
    value = json.loads(text)
    if isinstance(value, dict) and "names" in value:
        return {**value, "names": sorted(set(value["names"]))}
    if isinstance(value, list) and value and value[0].startswith("{"):
        types = [json.loads(one) for one in value]
        for one in types:
            if one["ID"].startswith(("process_cpu:samples:count:cpu", "wall:samples:count:cpu")):
                one.update(periodType="cpu", periodUnit="nanoseconds")
        return sorted({json.dumps(one, sort_keys=True) for one in types})
    if isinstance(value, list):
        periods = lambda one: re.sub(r"__period_(type|unit)__=(cpu|nanoseconds),?", "", one) if ":samples:count:cpu:nanoseconds" in one else one
        return sorted(set(map(periods, value)))
    return value


def on_labels(value):
    """Removes the labels that only Pyroscope stores."""
    if isinstance(value, dict) and isinstance(value.get("names"), list):
        return {**value, "names": [name for name in value["names"] if name not in PRIVATE]}
    if isinstance(value, list):
        return sorted({",".join(pair for pair in one.split(",") if not pair.startswith(PRIVATE)) for one in value})
    return value


def on_exemplars(change):
    """Returns a rewrite of time series that changes each exemplar."""
    def rewrite(value):
        if not isinstance(value, dict) or "status" in value:
            return value
        return {key: [[time, total, [change(one) for one in exemplars]] for time, total, exemplars in points] for key, points in value.items()}
    return rewrite


def on_slots(change):
    """Returns a rewrite of heatmaps that changes the pairs of a lower end and a count of each slot."""
    def rewrite(value):
        if not isinstance(value, dict) or "status" in value:
            return value
        parts = lambda pairs: [[end for end, _ in pairs], [count for _, count in pairs]]
        return {key: [[time, *parts(change(list(zip(ends, counts))))] for time, ends, counts in slots] for key, slots in value.items()}
    return rewrite


STACK_CALLS = ("SelectMerge", "Diff", "render")
# Name of the kind, start of the names of the calls, rewrite. A rewrite sees the values of the rewrites before it.
REWRITES = [
    ("names of generated Java classes", STACK_CALLS, lambda value: on_stacks(value, lambda key: GENERATED.sub(lambda found: (found[1] or found[2]) + "_", key))),
    ("a negative line of a Java frame", ("SelectMerge",), lambda value: on_stacks(value, lambda key: re.sub(r", (-\d+|4294967295)\)", ", 0)", key))),
    ("file and line of speedscope", ("SelectMerge",), lambda value: on_stacks(value, lambda key: key.replace("'a.rb', 0, 3)", "'', 0, 0)"))),
    ("names of binaries with the same build id", ("SelectMerge",), lambda value: on_stacks(value, lambda key: key.replace("'/usr/bin/app', 'ab12cd34'", "'app', 'ab12cd34'"))),
    ("types of a sample rate of 0", ("ProfileTypes", "LabelValues", "Series", "label-values"), on_types),
    ("labels that only Pyroscope stores", ("LabelNames", "Series"), on_labels),
    ("a series without the names asked for", ("Series",), lambda value: [one for one in value if one] if isinstance(value, list) else value),
    ("ranges of a heatmap that count nothing", ("SelectHeatmap",), on_slots(lambda pairs: [pair for pair in pairs if pair[1]])),
    ("lower ends of the ranges of a heatmap", ("SelectHeatmap",), on_slots(lambda pairs: [(0, count) for _, count in pairs])),
    ("ids and labels of exemplars", ("SelectSeries exemplars",), on_exemplars(lambda one: [one[0], one[2], one[3], one[4]])),
    ("exemplars of each set of sample labels", ("SelectSeries exemplars",), on_exemplars(lambda one: "exemplar")),
]


def explained(question, values, ask):
    """Returns the names of the kinds of the difference of two values, [] if they are equal, and None if no kind is known or one of them is an error."""
    ours, theirs = values
    if any(isinstance(value, dict) and "status" in value for value in values):
        return None
    names = rewritten(question, ours, theirs)
    if names is None and question.reading == "Series" and isinstance(ours, list) and isinstance(theirs, list) and only_zeros(question, ours, theirs, ask):
        return ["series whose values are all 0"]
    return names


def rewritten(question, ours, theirs):
    """Applies the rewrites of the call until the values are equal. Returns the names of those that changed a value, or None if the values stay different."""
    names = []
    for name, calls, rewrite in REWRITES:
        if ours == theirs:
            break
        if question.reading.startswith(calls):
            before = (ours, theirs)
            ours, theirs = rewrite(ours), rewrite(theirs)
            if before != (ours, theirs):
                names.append(name)
    return names if ours == theirs else None


def on_query(change):
    """Returns a variant of the body of a query, or of both sides of a difference."""
    def vary(question):
        if not isinstance(question.body, dict):
            return None
        body = copy.deepcopy(question.body)
        for side in (body.get("left"), body.get("right")) if "left" in body else (body,):
            change(side)
        return dataclasses.replace(question, body=body)
    return vary


def on_parameters(change):
    """Returns a variant of the parameters of a plain route."""
    def vary(question):
        path, _, query = question.path.partition("?")
        if question.body is not None or not query:
            return None
        return dataclasses.replace(question, path=path + "?" + urllib.parse.urlencode(change(dict(urllib.parse.parse_qsl(query)))))
    return vary


def without(services):
    """Returns a function that excludes special services from a selector."""
    matcher = f'service_name!~"special-{services}.+"'
    return lambda selector: "{" + ", ".join(part for part in (selector[1:-1].strip(), matcher) if part) + "}" if selector.startswith("{") else selector


def body_end(body):
    if isinstance(body.get("end"), int):
        body["end"] -= 1


def body_start(body):
    if isinstance(body.get("start"), int) and "step" in body:
        body["start"] += 1


def body_services(exclude):
    def change(body):
        if isinstance(body.get("labelSelector"), str):
            body["labelSelector"] = exclude(body["labelSelector"])
        if isinstance(body.get("matchers"), list):
            body["matchers"] = [exclude(one) for one in body["matchers"]] or [exclude("{}")]
    return change


def body_steps(body):
    if isinstance(body.get("step"), (int, float)) and isinstance(body.get("end"), int) and isinstance(body.get("start"), int):
        step = int(body["step"] * 1000)
        body["end"] = body["start"] + (body["end"] - body["start"]) // step * step


def body_callees(body):
    body.get("stackTraceSelector", {}).get("goPgo", {}).pop("aggregateCallees", None)


def parameters_end(parameters):
    return {key: int(value) * 1000 - 1 if key.lower().endswith("until") and value.isdigit() else value for key, value in parameters.items()}


def parameters_start(parameters):
    return {key: int(value) * 1000 + 1 if key == "from" and value.isdigit() else value for key, value in parameters.items()}


def parameters_services(exclude):
    change = lambda query: query[:query.index("{")] + exclude(query[query.index("{"):]) if "{" in query else query
    return lambda parameters: {key: change(value) if key.lower().endswith("query") else value for key, value in parameters.items()}


def dropped(*names):
    return lambda parameters: {key: value for key, value in parameters.items() if key not in names}


def either(on_body, on_route):
    """Returns a variant for queries with a body and for plain routes."""
    bodies, routes = on_query(on_body), on_parameters(on_route)
    return lambda question: bodies(question) or routes(question)


def variants(world):
    """Returns the names of kinds, each with the variant of a query that does not meet this kind."""
    start, end = world.start - 60_000, world.end + 60_000
    whole = either(lambda body: body.update(start=start, end=end), lambda parameters: {**parameters, "from": start // 1000, "until": end // 1000})
    return [
        ("a profile exactly at the end of the range", either(body_end, parameters_end)),
        ("a profile exactly one step before the start of a time series", either(body_start, parameters_start)),
        *((name, either(body_services(without(services)), parameters_services(without(services)))) for name, services in SPECIAL.items()),
        ("few nodes", either(lambda body: body.update(maxNodes="1000000"), lambda parameters: {**parameters, "maxNodes": 1_000_000})),
        ("functions of a call graph", on_parameters(dropped("format"))),
        ("values after the last whole step", on_query(body_steps)),
        ("lines of leaves for Go's compiler", on_query(body_callees)),
        ("aggregation", on_parameters(dropped("aggregation"))),
        ("labels and types of a part of the data", lambda question: whole(question) if question.reading in questions.LABELS else None),
    ]


def by_status(question, ours, theirs):
    """Returns the kind of two responses of which at least one is an error, or None."""
    statuses = tuple(one.get("status", 200) if isinstance(one, dict) else 200 for one in (ours, theirs))
    if statuses == (200, 200):
        return None
    if question.reading == "Nothing":
        return "a call that does not exist" if statuses == (501, 404) else None
    if question.reading == "label-values":
        return "label-values" if statuses == (200, 400) else None
    if question.reading == "SelectSeries exemplars":
        return "exemplars of spans where there are none" if statuses == (200, 500) else None
    if question.reading == "SelectMergeSpanProfile":
        return "SelectMergeSpanProfile without a valid span" if statuses in ((400, 200), (400, 500)) else None
    if question.call == "wrong push":
        return f"status of a wrong push to /ingest: {statuses[0]}, Pyroscope {statuses[1]}"
    return None


# Whether a series has only zeros, by its labels.
ZEROS = {}


def only_zeros(question, ours, theirs, ask):
    """Returns whether all series that only we list have no values, so that Pyroscope does not list them."""
    ours, theirs = on_labels(on_types(ours)), on_labels(on_types(theirs))
    more = set(ours) - set(theirs)
    if not more or set(theirs) - set(ours) - {""}:
        return False
    for one in more:
        pairs = dict(pair.split("=", 1) for pair in one.split(",") if "=" in pair)
        if "__profile_type__" not in pairs:
            return False
        absent = [f'{name}=""' for name in ("thread", "version") if name not in pairs]
        matchers = [f'{name}="{value}"' for name, value in pairs.items() if not name.startswith("__")] + absent
        body = {"profileTypeID": pairs["__profile_type__"], "labelSelector": "{" + ", ".join(matchers) + "}", "start": question.body["start"],
                "end": question.body["end"], "step": 15}
        if one not in ZEROS:
            values = ask(questions.Question("SelectSeries", "POST", questions.QUERIER + "SelectSeries", body))
            ZEROS[one] = not any("status" in side or any(point[1] for points in side.values() for point in points) for side in values)
        if not ZEROS[one]:
            return False
    return True


def of_all(question, together, ask):
    """Returns the names of the kinds that remain if all variants are applied, or None if the values still differ in an unknown way."""
    for _, vary in together:
        question = vary(question)
    return explained(question, ask(question), ask) if together else None


def kinds(question, ours, theirs, world, ask):
    """Returns the names of the kinds of a difference. `ask` sends a query to both servers and returns the two values. Returns an empty list if the difference has no known kind."""
    status = by_status(question, ours, theirs)
    if status:
        return [status]
    names = explained(question, (ours, theirs), ask)
    if names:
        return names
    together = []
    for name, vary in variants(world):
        variant = vary(question)
        if variant is None or variant == question:
            continue
        names = explained(variant, ask(variant), ask)
        if names is not None:
            return [name, *names]
        if not SPECIAL.get(name):
            together.append((name, vary))
    names = of_all(question, together, ask)
    # Only the variants without which the values differ are part of the kind.
    for one in list(together) if names is not None else []:
        fewer = [other for other in together if other != one]
        if (of_fewer := of_all(question, fewer, ask)) is not None:
            together, names = fewer, of_fewer
    if names is not None:
        return [*(name for name, _ in together), *names]
    if question.reading == "SelectHeatmap" and not re.search(r'service_name="(folded|lines|tree|trie|jfr|speedscope)', question.body.get("labelSelector", "")):
        return ["counts of a heatmap for profiles whose samples have labels"]
    return []
