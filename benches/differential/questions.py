"""Generates queries about the pushed data: all calls of querier.v1 except `AnalyzeQuery`, and the HTTP routes `render`, `render-diff` and `label-values`. Their arguments are random and mostly valid. Some requests are invalid on purpose, among them pushes to `/ingest`."""

import dataclasses
import urllib.parse

import pushes

QUERIER = "/querier.v1.QuerierService/"
STACKS = ["SelectMergeStacktraces tree", "SelectMergeStacktraces pprof", "SelectMergeStacktraces flame graph", "SelectMergeStacktraces cut",
          "SelectMergeStacktraces below", "SelectMergeStacktraces go_pgo", "SelectMergeStacktraces spans", "SelectMergeStacktraces traces", "SelectMergeProfile",
          "SelectMergeSpanProfile", "SelectSeries", "SelectSeries exemplars", "SelectHeatmap", "Diff", "render", "render-diff", "render dot"]
LABELS = ["ProfileTypes", "LabelNames", "LabelValues", "Series", "GetProfileStats", "label-values"]
WRONG = ["wrong querier", "wrong render", "wrong push"]
CALLS = STACKS + LABELS + WRONG


@dataclasses.dataclass
class Question:
    """One request, and the name of its call."""
    call: str
    method: str
    path: str
    body: object = None

    @property
    def reading(self):
        """Returns the name of the call that determines how the response is read. For a call with a wrong value, it is the call itself."""
        return self.path.rpartition("/")[2] if self.call == "wrong querier" else self.call


class Asker:
    """Generates queries from `pairs`, the profile types and services that one of the servers lists, so that most queries have a result."""

    def __init__(self, random, world, pairs):
        self.random, self.world, self.pairs = random, world, pairs
        self.types, self.services = (sorted(set(column)) for column in zip(*pairs))

    def range(self):
        """Returns a time range: in two of five cases a range with all data, otherwise a random part of it."""
        start, end = sorted([self.world.time(), self.world.time() + 1])
        if self.random.random() < 0.4:
            return self.world.start - 60_000, self.world.end + 60_000
        return start, end + 15_000

    def kind(self):
        """Returns a profile type and a service, which usually has profiles of this type."""
        kind, service = self.random.choice(self.pairs)
        return kind, service if self.random.random() < 0.9 else self.random.choice(self.services)

    def selector(self, service=None):
        service = service or self.random.choice(self.services)
        others = [f'region="{self.random.choice(pushes.REGIONS)}"', 'region!="eu"', 'pod=~"pod-[01]"', 'version=""', 'thread="t1"', 'region!~"e.*"', 'version!=""']
        if self.random.random() < 0.2:
            return self.random.choice(["{}", '{service_name=~".*-1"}', '{service_name=~"push-.+", region="eu"}', '{pod="pod-1"}', '{service_name="nobody"}'])
        matchers = [f'service_name="{service}"'] + self.random.sample(others, self.random.choice([0, 0, 1, 2]))
        return "{" + ", ".join(matchers) + "}"

    def merge(self, **more):
        (start, end), (kind, service) = self.range(), self.kind()
        return {"profileTypeID": kind, "labelSelector": self.selector(service), "start": start, "end": end, **more}

    def series(self, **more):
        group_by = self.random.choice([[], [], ["service_name"], ["region", "pod"], ["thread"], ["nothing"]])
        limit = {"limit": str(self.random.choice([1, 2, 5]))} if self.random.random() < 0.2 else {}
        return self.merge(groupBy=group_by, step=self.random.choice([1, 15, 15, 60, 7.5, 300]), **limit, **more)

    def query(self):
        kind, service = self.kind()
        return kind + self.selector(service)

    def get(self, call, route, **parameters):
        return Question(call, "GET", f"/pyroscope/{route}?" + urllib.parse.urlencode(parameters))

    def plain(self, call):
        """Returns a request to a plain route."""
        start, end = self.range()
        if call == "label-values":
            return self.get(call, call, label=self.random.choice(["__name__"] if self.random.random() < 0.3 else ["service_name", "region", "pod", "nothing"]),
                            **{"from": start // 1000, "until": end // 1000})
        if call == "render-diff":
            kind, service = self.kind()
            sides = {f"{side}{key}": value for side in ("left", "right") for key, value in zip(
                ("Query", "From", "Until"), (kind + self.selector(service), *[at // 1000 for at in self.range()]))}
            return self.get(call, call, **sides)
        more = {"format": "dot"} if call == "render dot" else {}
        if self.random.random() < 0.3:
            more["maxNodes"] = self.random.choice([0, 4, 16, 100])
        if not more and self.random.random() < 0.3:
            more["groupBy"] = self.random.choice(["region", "pod", "nothing"])
        if self.random.random() < 0.2:
            more["aggregation"] = self.random.choice(["sum", "avg", "none"])
        return self.get(call, "render", query=self.query(), **{"from": start // 1000, "until": end // 1000}, **more)

    def wrong(self, call):
        """Returns a request in which one value is random and usually invalid. If the response is an error, `answers` compares only its status and, except for pushes, its error code if it has one."""
        if call == "wrong render":
            broken = {"query": self.query(), "from": "now-1h", "until": "now"}
            broken["query"] = self.random.choice(["", "{", "no type", "x{a=}", "process_cpu{}"])
            return self.get(call, "render", **broken)
        if call == "wrong push":
            world, path, body = self.world, self.random.choice(["app", "", "app{", "a b", "app.nothing", "app{__x__=y}"]), b"main;work 1\n"
            kind = self.random.choice(["", "pprof", "jfr", "lines", "speedscope", "unheard"])
            query = {"name": path, "from": world.start // 1000, "until": world.start // 1000 + 10, **({"format": kind} if kind else {})}
            return Question(call, "POST", "/ingest?" + urllib.parse.urlencode(query), body)
        name = self.random.choice(["SelectMergeStacktraces", "SelectMergeProfile", "SelectSeries", "SelectMergeSpanProfile", "Series", "LabelNames", "LabelValues",
                                   "ProfileTypes", "SelectHeatmap", "Nothing"])
        body = self.merge(step=15, name="region", queryType="HEATMAP_QUERY_TYPE_INDIVIDUAL", matchers=[self.selector()])
        key = self.random.choice(["profileTypeID", "labelSelector", "start", "end", "step", "matchers", "maxNodes", "name", "spanSelector"])
        body[key] = self.random.choice(["", "x", "{a=}", [], ["{a="], ["{}"], {"a": 1}])
        return Question(call, "POST", QUERIER + name, body)

    def labels(self, call):
        """Returns a query about labels over a range with all profiles. For a shorter range, Pyroscope's result depends on the start and end of its blocks."""
        start, end = self.world.start - 60_000, self.world.end + 60_000
        matchers = [] if self.random.random() < 0.3 else [self.selector()]
        body = {"start": start, "end": end}
        if call in ("LabelNames", "LabelValues", "Series"):
            body["matchers"] = matchers
        if call == "LabelValues":
            body["name"] = self.random.choice(["service_name", "region", "pod", "thread", "nothing", "__profile_type__", "__name__", "__type__"])
        if call == "Series":
            body["labelNames"] = self.random.choice([[], ["service_name", "__profile_type__"], ["region"], ["pod", "nothing"]])
        return Question(call, "POST", QUERIER + call, {} if call == "GetProfileStats" else body)

    def ask(self, call):
        """Returns a query for a call of `CALLS`."""
        if call in WRONG:
            return self.wrong(call)
        if call in ("render", "render dot", "render-diff", "label-values"):
            return self.plain(call)
        if call in LABELS:
            return self.labels(call)
        cut = self.random.choice([2, 4, 8, 16, 50])
        body = {
            "SelectMergeStacktraces tree": lambda: self.merge(format="PROFILE_FORMAT_TREE"),
            "SelectMergeStacktraces pprof": lambda: self.merge(format="PROFILE_FORMAT_PPROF"),
            "SelectMergeStacktraces flame graph": self.merge,
            "SelectMergeStacktraces cut": lambda: self.merge(maxNodes=str(cut)),
            "SelectMergeStacktraces below": lambda: self.merge(stackTraceSelector={"callSite": [{"name": "main"}, {"name": self.random.choice(
                self.world.functions)}][:self.random.randrange(1, 3)]}, format=self.random.choice(["PROFILE_FORMAT_FLAMEGRAPH", "PROFILE_FORMAT_PPROF"])),
            "SelectMergeStacktraces go_pgo": lambda: self.merge(format="PROFILE_FORMAT_PPROF", stackTraceSelector={"goPgo": {
                "keepLocations": self.random.choice([0, 1, 3]), "aggregateCallees": self.random.random() < 0.5}}),
            "SelectMergeStacktraces spans": lambda: self.merge(spanSelector=self.random.sample(pushes.SPANS, 2)),
            "SelectMergeStacktraces traces": lambda: self.merge(traceIdSelector=self.random.sample(pushes.TRACES, 1)),
            "SelectMergeProfile": self.merge,
            "SelectMergeSpanProfile": lambda: self.merge(spanSelector=self.random.sample(pushes.SPANS, 2)),
            "SelectSeries": self.series,
            "SelectSeries exemplars": lambda: self.series(exemplarType=self.random.choice(["EXEMPLAR_TYPE_INDIVIDUAL", "EXEMPLAR_TYPE_SPAN"])),
            "SelectHeatmap": lambda: self.series(queryType=self.random.choice(["HEATMAP_QUERY_TYPE_INDIVIDUAL", "HEATMAP_QUERY_TYPE_SPAN"])),
            "Diff": self.diff,
        }[call]()
        return Question(call, "POST", QUERIER + call.split()[0], body)

    def diff(self):
        """Returns the two sides of a difference, both of one profile type."""
        left, right = self.merge(), self.merge()
        return {"left": left, "right": {**right, "profileTypeID": left["profileTypeID"]}}
