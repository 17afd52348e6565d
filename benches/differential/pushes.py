"""Generates random pushes from a seed, in every format that both Pyroscope and Alluvium accept. Both servers receive the same bytes.

A push is a POST request: a path with its query, headers and a body. The times of the profiles are 2 to 40 minutes before the time of the run, because by default Alluvium refuses profiles that are more than an hour old.
"""

import dataclasses
import gzip
import json
import urllib.parse

import protobuf

SPEEDSCOPE = "https://www.speedscope.app/file-format-schema.json"
MINUTE = 60_000
# Name of the profile, sample types, period type and period.
KINDS = [
    ("process_cpu", [("samples", "count"), ("cpu", "nanoseconds")], ("cpu", "nanoseconds"), 10_000_000),
    ("memory", [("alloc_objects", "count"), ("alloc_space", "bytes"), ("inuse_objects", "count"), ("inuse_space", "bytes")], ("space", "bytes"), 524288),
    ("mutex", [("contentions", "count"), ("delay", "nanoseconds")], ("contentions", "count"), 1),
    ("block", [("contentions", "count"), ("delay", "nanoseconds")], ("contentions", "count"), 1),
    ("goroutines", [("goroutine", "count")], ("goroutine", "count"), 1),
    ("wall", [("wall", "nanoseconds")], ("wall", "nanoseconds"), 1_000_000),
    ("made_up", [("things", "count")], None, 0),
]
SUFFIXES = ["", ".cpu", ".itimer", ".wall", ".inuse_objects", ".inuse_space", ".alloc_objects", ".alloc_space", ".alloc_in_new_tlab_objects",
            ".alloc_outside_tlab_bytes", ".live", ".goroutines", ".mutex_count", ".mutex_duration", ".block_count", ".block_duration", ".lock_count",
            ".lock_duration", ".exceptions", ".bytes", ".seconds", ".milliseconds", ".microseconds", ".nanoseconds"]
REGIONS = ["eu", "us", "ap-1", "münchen"]
SPANS = ["00000bac2a5ab0c7", "8e7d0123456789ab", "0123456789abcdef"]
TRACES = ["0af7651916cd43dd8448eb211c80319c", "4bf92f3577b34da6a3ce929d0e0e4736"]


@dataclasses.dataclass
class Push:
    """One POST request. `format` describes it in a report."""
    format: str
    path: str
    headers: dict
    body: bytes


class World:
    """The data from which pushes are made: a random generator, a range of times, function names, and a Java recording (JFR)."""

    def __init__(self, random, now_ms, recording):
        self.random, self.recording = random, recording
        self.start = now_ms // 15_000 * 15_000 - 40 * MINUTE
        self.end = now_ms // 15_000 * 15_000 - 2 * MINUTE
        self.functions = ["main"] + [f"pkg{number % 7}.(*T{number % 5}).Do{number}" for number in range(40)]
        self.functions += ["a b c", "größe", "std::vector<int>::push_back", "com/example/App.run"]
        self.used = set()

    def service(self, format, special=""):
        """Returns the name of a service of a format. Pushes for which a table of the documentation lists a difference have services of their own, `special-...`."""
        return f"special-{special}-{self.random.randrange(2)}" if special else f"{format.replace(' ', '-')}-{self.random.randrange(2)}"

    def moment(self, service):
        """Returns a time like `time`, in a second in which the service has no profile yet. If two profiles of a series have the same time, Pyroscope drops one when it compacts."""
        for _ in range(10_000):
            time = self.time()
            if (service, time // 1000) not in self.used:
                self.used.add((service, time // 1000))
                return time
        raise SystemExit(f"too many pushes: service {service!r} has a profile in almost every second")

    def time(self):
        """Returns a time in milliseconds. About one time in three is a multiple of 15 s."""
        span = (self.end - self.start) // 15_000
        step = self.start + self.random.randrange(span) * 15_000
        return step if self.random.random() < 0.3 else step + self.random.randrange(15_000)

    def labels(self):
        """Returns the labels of a series, without its service."""
        labels = {"region": self.random.choice(REGIONS[:3]), "pod": f"pod-{self.random.randrange(4)}"}
        if self.random.random() < 0.2:
            labels["version"] = f"1.{self.random.randrange(3)}"
        return labels

    def stacks(self, most=30):
        """Returns up to `most` stacks, root first. Several stacks share callers, and sometimes a stack occurs twice."""
        stacks = [["main"]]
        for _ in range(self.random.randrange(1, most)):
            base = self.random.choice(stacks)
            stacks.append(base[:self.random.randrange(1, len(base) + 1)] + self.random.choices(self.functions, k=self.random.randrange(1, 5)))
        return stacks

    def value(self):
        return self.random.choice([1, 2, 3, 10, 1000, 12_345_678, self.random.randrange(1, 1 << 31)])


def pprof(world, kind, time_ms, special=""):
    """Returns a profile in the pprof format. It has inlined functions, file names and mappings; some samples have labels, and some values are 0. With `special` "native", it also has
    frames without functions; with "negative", it also has negative values."""
    random, strings = world.random, {"": 0}
    _, types, period_type, period = kind
    # If a sample has only zeros, Pyroscope 2.2 drops it, and then panics on some profiles with numeric labels.
    has_numbers = random.random() < 0.5

    def text(value):
        return strings.setdefault(value, len(strings))

    mappings = [{"id": 1, "memoryStart": 0x400000, "memoryLimit": 0x800000, "filename": text("/usr/bin/app"), "buildId": text("ab12cd34"),
                 "hasFunctions": 1, "hasFilenames": 1, "hasLineNumbers": 1, "hasInlineFrames": 1},
                {"id": 2, "memoryStart": 0x7F0000000000, "memoryLimit": 0x7F0000100000, "fileOffset": 0x1000, "filename": text("/lib/libc.so.6")}]
    functions, locations, samples = {}, {}, []

    def function(name):
        if name not in functions:
            functions[name] = {"id": len(functions) + 1, "name": text(name), "systemName": text(name), "filename": text(f"src/{len(name) % 5}.go"),
                               "startLine": len(name) * 10}
        return functions[name]["id"]

    def location(names, line):
        key = (*names, line)
        if key not in locations:
            number = len(locations) + 1
            at = {"id": number, "mappingId": 1, "address": 0x400000 + number * 16}
            if names:
                at["line"] = [{"functionId": function(name), "line": line + inlined} for inlined, name in enumerate(names)]
            else:
                at.update(mappingId=2, address=0x7F0000000000 + line * 64)
            locations[key] = at
        return locations[key]["id"]

    for stack in world.stacks():
        leaf_first, ids = stack[::-1], []
        while leaf_first:
            take = 2 if len(leaf_first) > 1 and random.random() < 0.1 else 1
            ids.append(location(tuple(leaf_first[:take]), random.randrange(3)))
            leaf_first = leaf_first[take:]
        if special == "native" and random.random() < 0.3:
            ids.insert(0, location((), random.randrange(4)))
        values = [world.value() if random.random() < 0.9 else 0 for _ in types]
        if special == "negative" and random.random() < 0.3:
            values[0] = -values[0]
        if has_numbers and not any(values):
            values[0] = 1
        labels = []
        if random.random() < 0.3:
            labels.append({"key": text("thread"), "str": text(f"t{random.randrange(3)}")})
        if has_numbers and random.random() < 0.2:
            labels.append({"key": text("bytes"), "num": random.randrange(1, 4096), "numUnit": text("bytes")})
        if random.random() < 0.15:
            labels.append({"key": text("profile_id"), "str": text(random.choice(SPANS))})
        elif random.random() < 0.1:
            labels += [{"key": text("span_id"), "str": text(random.choice(SPANS))}, {"key": text("trace_id"), "str": text(random.choice(TRACES))}]
        samples.append({"locationId": ids, "value": values, "label": labels})
    profile = {"sampleType": [{"type": text(name), "unit": text(unit)} for name, unit in types], "sample": samples, "mapping": mappings,
               "location": list(locations.values()), "function": list(functions.values()), "timeNanos": time_ms * 1_000_000 + random.randrange(1_000_000),
               "durationNanos": 15_000_000_000, "period": period, "defaultSampleType": text(types[-1][0])}
    # Without this field, Pyroscope 2.2 panics when it drops a sample of the profile.
    profile["periodType"] = {"type": text(period_type[0]), "unit": text(period_type[1])} if period_type else {"type": 0, "unit": 0}
    profile["stringTable"] = list(strings)
    return protobuf.encode("Profile", profile)


def packed(world, data):
    """Returns the data, randomly compressed with gzip or unchanged."""
    return gzip.compress(data, 1, mtime=0) if world.random.random() < 0.6 else data


def push(world, codec):
    """Returns a push of push.v1: one to three series, each with one or two profiles."""
    series = []
    for _ in range(world.random.randrange(1, 4)):
        kind = world.random.choice(KINDS)
        special = world.random.choice(["native", "negative"]) if world.random.random() < 0.1 else ""
        service = world.service(f"push {codec}", special)
        labels = {"__name__": kind[0], "service_name": service, **world.labels()}
        if not special and world.random.random() < 0.05:
            del labels["service_name"]
            service = ""
        samples = [{"rawProfile": packed(world, pprof(world, kind, world.moment(service), special)), "ID": identity(world)} for _ in range(world.random.randrange(1, 3))]
        series.append({"labels": [{"name": name, "value": value} for name, value in labels.items()], "samples": samples})
    message = {"series": series}
    body = protobuf.encode("PushRequest", message) if codec == "proto" else json.dumps(protobuf.to_json("PushRequest", message)).encode()
    return Push(f"push {codec}", "/push.v1.PusherService/Push", {"content-type": f"application/{codec}"}, body)


def identity(world):
    bits = f"{world.random.getrandbits(128):032x}"
    return f"{bits[:8]}-{bits[8:12]}-4{bits[13:16]}-8{bits[17:20]}-{bits[20:]}"


def ingest_path(world, app, **query):
    labels = ",".join(f"{name}={value}" for name, value in world.labels().items())
    time = world.moment(app.partition(".")[0]) // 1000
    return "/ingest?" + urllib.parse.urlencode({"name": f"{app}{{{labels}}}", "from": time, "until": time + 10, **query})


def form(parts):
    """Returns the headers and the body of a multipart form. Each part is a file, and no file contains the boundary."""
    boundary = "differential-boundary-7f3a"
    body = b"".join(b"--%s\r\nContent-Disposition: form-data; name=\"%s\"; filename=\"%s\"\r\nContent-Type: application/octet-stream\r\n\r\n%s\r\n"
                    % (boundary.encode(), name.encode(), name.encode(), data) for name, data in parts.items())
    return {"content-type": f"multipart/form-data; boundary={boundary}"}, body + b"--%s--\r\n" % boundary.encode()


def ingest_pprof(world, multipart):
    kind = world.random.choice(KINDS)
    app = world.service("form" if multipart else "pprof")
    body = packed(world, pprof(world, kind, world.moment(app)))
    spy = world.random.choice(["gospy", "gospy", "nodespy", "pyspy", "rbspy", "unknown"])
    if not multipart:
        return Push("ingest pprof", ingest_path(world, app, format="pprof", spyName=spy), {"content-type": "application/octet-stream"}, body)
    parts = {"profile": body}
    if world.random.random() < 0.5:
        names = {name: {"units": unit, "aggregation": "sum", "display-name": name, "sampled": True} for name, unit in kind[1]}
        if world.random.random() < 0.3:
            names[kind[1][0][0]]["display-name"] = "renamed"
        parts["sample_type_config"] = json.dumps(names).encode()
    headers, body = form(parts)
    return Push("ingest form", ingest_path(world, app, spyName=spy), headers, body)


def text_path(world, kind, **query):
    """Returns the path of a push of text, a tree or a trie, with a random profile type and sample rate."""
    if world.random.random() < 0.5:
        query["sampleRate"] = world.random.choice([0, 19, 99, 100, 1000])
    app = world.service(kind, "" if query.get("sampleRate") != 0 else "rate")
    return ingest_path(world, app + world.random.choice(SUFFIXES), **query)


def folded(world):
    lines = [f"{';'.join(stack)} {world.value() % 10_000}" for stack in world.stacks()]
    return Push("ingest folded", text_path(world, "folded"), {}, "\n".join(lines).encode() + b"\n")


def lines(world):
    stacks = [";".join(stack) for stack in world.stacks() for _ in range(world.random.randrange(1, 4))]
    return Push("ingest lines", text_path(world, "lines", format="lines"), {}, "\n".join(stacks).encode() + b"\n")


def node(name, value, children):
    return protobuf.varint(len(name)) + name + protobuf.varint(value) + protobuf.varint(children)


def tree(world):
    """Returns a push in the format `tree`, in which each node is a frame."""
    root = {}
    for stack in world.stacks():
        at = root
        for name in stack:
            at = at.setdefault(name, [0, {}])[1] if name is not stack[-1] else at.setdefault(name, [0, {}])
            if isinstance(at, list):
                at[0] += world.value() % 10_000
                at = at[1]

    def write(name, value, children):
        return node(name.encode(), value, len(children)) + b"".join(write(child, *below) for child, below in sorted(children.items()))

    headers = {"content-type": "binary/octet-stream+tree"} if world.random.random() < 0.5 else {}
    query = {} if headers else {"format": "tree"}
    return Push("ingest tree", text_path(world, "tree", **query), headers, write("", 0, root))


def trie(world):
    """Returns a push in the format `trie`, in which the function names of a stack are joined to one text, root first."""
    values = {}
    for stack in world.stacks():
        values[";".join(stack).encode()] = world.value() % 10_000

    def write(prefix, name, keys):
        rest = sorted(key[len(prefix):] for key in keys if len(key) > len(prefix))
        groups = {}
        for one in rest:
            groups.setdefault(one[:1], []).append(one)
        below = b""
        for group in groups.values():
            shared = group[0] if len(group) == 1 else group[0][:next((at for at, pair in enumerate(zip(group[0], group[-1])) if pair[0] != pair[1]),
                                                                     min(len(group[0]), len(group[-1])))]
            below += write(prefix + shared, shared, [prefix + one for one in group])
        return node(name, values.get(prefix, 0), len(groups)) + below

    headers = {"content-type": "binary/octet-stream+trie"} if world.random.random() < 0.5 else {}
    query = {} if headers else {"format": "trie"}
    return Push("ingest trie", text_path(world, "trie", **query), headers, write(b"", b"", list(values)))


def jfr(world, multipart):
    """Returns a push of the Java recording, as the body or in a multipart form. The form also contains labels for a context that does not occur in the recording."""
    rate = {} if world.random.random() < 0.5 else {"sampleRate": world.random.choice([19, 99, 100, 1000])}
    path = ingest_path(world, world.service("jfr form" if multipart else "jfr"), format="jfr", spyName="javaspy", **rate)
    if not multipart or not world.recording:
        return Push("ingest jfr", path, {"content-type": "application/octet-stream"}, world.recording)
    snapshot = {"contexts": [{"key": 1, "value": {"labels": [{"key": 1, "value": 2}]}}],
                "strings": [{"key": 1, "value": "endpoint"}, {"key": 2, "value": f"/path/{world.random.randrange(3)}"}]}
    headers, body = form({"jfr": packed(world, world.recording), "labels": packed(world, protobuf.encode("LabelsSnapshot", snapshot))})
    return Push("ingest jfr form", path, headers, body)


def speedscope(world):
    """Returns a push of a speedscope file with one profile of samples."""
    names, samples, weights = {}, [], []
    for stack in world.stacks():
        samples.append([names.setdefault(name, len(names)) for name in stack])
        weights.append(world.value() % 10_000)
    unit = world.random.choice(["none", "nanoseconds", "microseconds", "milliseconds", "seconds"])
    file = {"$schema": SPEEDSCOPE, "shared": {"frames": [{"name": name, "file": "a.rb", "line": 3} for name in names]},
            "profiles": [{"type": "sampled", "name": "one", "unit": unit, "startValue": 0, "endValue": sum(weights), "samples": samples, "weights": weights}]}
    app = world.service("speedscope", "nanoseconds" if unit == "nanoseconds" else "")
    return Push("ingest speedscope", ingest_path(world, app, format="speedscope"), {}, json.dumps(file).encode())


def otlp(world, codec):
    """Returns a push of OTLP with a dictionary, one or two profiles, links, and attributes of samples."""
    random, strings, stacks, attributes = world.random, {"": 0}, [{"locationIndices": []}], [{"keyStrindex": 0}]
    functions, locations = {"": 0}, [{"mappingIndex": 0}]

    def text(value):
        return strings.setdefault(value, len(strings))

    def attribute(key, value):
        attributes.append({"keyStrindex": text(key), "value": {"stringValue": value}})
        return len(attributes) - 1

    def location(name):
        functions.setdefault(name, len(functions))
        locations.append({"mappingIndex": 1, "address": 0x400000 + len(locations), "lines": [{"functionIndex": functions[name], "line": 7}]})
        return len(locations) - 1

    build = attribute("process.executable.build_id.gnu", "ab12cd34")
    service = world.service(f"otlp {codec}") if random.random() < 0.9 else ""
    links = [{"traceId": b"", "spanId": b""}] + [{"traceId": bytes.fromhex(trace), "spanId": bytes.fromhex(span)} for trace, span in zip(TRACES, SPANS)]

    def profile():
        types, period_type, period = random.choice([(("samples", "count"), ("cpu", "nanoseconds"), 50_000_000), (("off_cpu", "nanoseconds"), None, 0),
                                                    (("things", "count"), ("made", "count"), 1)])
        samples = []
        for stack in world.stacks(12):
            stacks.append({"locationIndices": [location(name) for name in reversed(stack)]})
            sample = {"stackIndex": len(stacks) - 1, "values": [world.value() % 10_000 + 1]}
            if random.random() < 0.3:
                sample["attributeIndices"] = [attribute("thread.name", f"t{random.randrange(3)}")]
            # In JSON, Pyroscope decodes the ids of links as base64 and loses them.
            if codec == "proto" and random.random() < 0.2:
                sample["linkIndex"] = random.randrange(1, len(links))
            samples.append(sample)
        one = {"sampleType": {"typeStrindex": text(types[0]), "unitStrindex": text(types[1])}, "samples": samples,
               "timeUnixNano": world.moment(service) * 1_000_000, "durationNano": 10_000_000_000}
        if period_type:
            one.update(periodType={"typeStrindex": text(period_type[0]), "unitStrindex": text(period_type[1])}, period=period)
        return one

    resource = [{"key": "service.name", "value": {"stringValue": service}}] if service else []
    resource += [{"key": "host.name", "value": {"stringValue": f"host-{random.randrange(2)}"}}]
    message = {"resourceProfiles": [{"resource": {"attributes": resource}, "scopeProfiles": [
        {"scope": {"name": "scope"}, "profiles": [profile() for _ in range(random.randrange(1, 3))]}]}]}
    message["dictionary"] = {
        "mappingTable": [{"memoryStart": 0}, {"memoryStart": 0x400000, "memoryLimit": 0x800000, "filenameStrindex": text("app"), "attributeIndices": [build]}],
        "locationTable": locations, "functionTable": [{"nameStrindex": text(name), "filenameStrindex": text("app.c") if name else 0} for name in functions],
        "linkTable": links, "attributeTable": attributes, "stackTable": stacks, "stringTable": list(strings)}
    proto = codec == "proto"
    body = protobuf.encode("Export", message) if proto else json.dumps(protobuf.to_json("Export", message)).encode()
    return Push(f"otlp {codec}", "/v1development/profiles", {"content-type": "application/x-protobuf" if proto else "application/json"}, body)


MAKERS = [lambda world: push(world, "json"), lambda world: push(world, "proto"), lambda world: ingest_pprof(world, False),
          lambda world: ingest_pprof(world, True), folded, lines, tree, trie, lambda world: jfr(world, False), lambda world: jfr(world, True),
          speedscope, lambda world: otlp(world, "json"), lambda world: otlp(world, "proto")]


def draw(world, count):
    """Returns up to `count` pushes, with the formats in turn. Without a recording, the JFR pushes are omitted, so there are fewer."""
    return [push for push in (MAKERS[number % len(MAKERS)](world) for number in range(count)) if push.body]
