"""Sends the same pushes and then the same queries to Pyroscope and Alluvium, and compares the responses.

Both servers must be running and empty. `--seed` and `--now` determine all random data, so that a run can be repeated. With `--ask-only`, nothing is pushed. Responses
are compared as values: unordered lists without their order, trees and profiles as stacks with their values. For each format of a push, the driver
prints for how many pairs of a profile type and a service all totals are equal. For each call, it prints how many responses are equal, and how many differ in a known way (see
`kinds.py`). It also prints the other differences.

    python3 benches/differential --pyroscope http://127.0.0.1:4041 --alluvium http://127.0.0.1:4040 --pushes 1000 --sets 50
"""

import argparse
import collections
import concurrent.futures
import http.client
import json
import pathlib
import random
import re
import sys
import time
import urllib.parse

import answers
import kinds
import pushes
import questions


def send(url, method, path, body, headers):
    """Sends one request. Returns status and body of the response."""
    at = urllib.parse.urlsplit(url)
    connection = http.client.HTTPConnection(at.hostname, at.port, timeout=60)
    try:
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def ask(url, question):
    """Sends a query. Returns status and body of the response."""
    body = question.body
    headers = {} if question.method == "GET" or isinstance(body, bytes) else {"content-type": "application/json", "accept": "application/json; allow-utf8-labelnames=true"}
    if body is not None and not isinstance(body, bytes):
        body = json.dumps(body).encode()
    return send(url, question.method, question.path, body, headers)


def push_all(urls, drawn, workers):
    """Sends all pushes to the servers and prints the number of pushes by format and statuses. Returns a line for each push to which the servers respond with different statuses."""
    def one(push):
        return [send(url, "POST", push.path, push.body, push.headers) for url in urls.values()]

    with concurrent.futures.ThreadPoolExecutor(workers) as pool:
        statuses = list(pool.map(one, drawn))
    counts, unequal = collections.Counter(), []
    for push, each in zip(drawn, statuses):
        counts[push.format, *(status for status, _ in each)] += 1
        if len({status for status, _ in each}) > 1:
            unequal.append(f"only one server accepted {push.format} {push.path}, services {services(push)}: "
                           + "; ".join(f"{name} {status} {body[:200]!r}" for name, (status, body) in zip(urls, each)))
    for key, count in sorted(counts.items(), key=str):
        print("pushed", count, *key)
    return unequal


def services(push):
    """Returns the services of a push whose path or JSON body names them."""
    if "name=" in push.path:
        return [urllib.parse.unquote(push.path.partition("name=")[2]).partition("{")[0].partition(".")[0]]
    return sorted({text.decode() for text in re.findall(rb"(?:push|otlp|special)-\w+-\d", push.body)})


def known(url, world):
    """Returns the pairs of a profile type and a service for which a server lists series, sorted."""
    within = {"start": world.start - 60_000, "end": world.end + 60_000, "labelNames": ["__profile_type__", "service_name"]}
    _, body = ask(url, questions.Question("", "POST", questions.QUERIER + "Series", within))
    pairs = [{one["name"]: one["value"] for one in each["labels"]} for each in json.loads(body).get("labelsSet", [])]
    return sorted((one["__profile_type__"], one["service_name"]) for one in pairs)


def settled(urls, world, seconds):
    """Waits up to `seconds` seconds until both servers list the same pairs (see `known`), because Pyroscope updates its index with a delay. Returns a dictionary from the name of each server to its pairs."""
    until, seen = time.monotonic() + seconds, {}
    while time.monotonic() < until:
        seen = {name: known(url, world) for name, url in urls.items()}
        if len(set(map(repr, seen.values()))) == 1:
            break
        time.sleep(3)
    return seen


def totals(urls, pairs, world):
    """Compares, for each pair of a profile type and a service, the total of the flame graph and the sum of the time series of both servers. Prints the counts for each format and the pairs that differ."""
    start, end = world.start - 60_000, world.end + 60_000

    def one(pair):
        within = {"profileTypeID": pair[0], "labelSelector": f'{{service_name="{pair[1]}"}}', "start": start, "end": end}
        out = []
        for url in urls.values():
            _, graph = ask(url, questions.Question("", "POST", questions.QUERIER + "SelectMergeStacktraces", within))
            _, series = ask(url, questions.Question("", "POST", questions.QUERIER + "SelectSeries", {**within, "step": 15}))
            points = [point.get("value", 0) for line in json.loads(series).get("series", []) for point in line["points"]]
            out += [int((json.loads(graph).get("flamegraph") or {}).get("total", 0)), int(sum(points))]
        return out

    counts, unequal = collections.defaultdict(lambda: [0, 0]), []
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        for pair, values in zip(pairs, pool.map(one, pairs)):
            name = pair[1].rpartition("-")[0] or pair[1]
            counts[name][0] += len(set(values)) == 1
            counts[name][1] += 1
            if len(set(values)) > 1:
                unequal.append(f"total of {pair[0]} of {pair[1]}: " + ", ".join(
                    f"{server} flame graph {values[at * 2]} series {values[at * 2 + 1]}" for at, server in enumerate(urls)))
    for name, (equal, count) in sorted(counts.items()):
        print(f"totals {name} equal {equal} of {count}")
    print("\n".join(unequal))


def compare(urls, asked, world, shown, report):
    """Sends all queries to both servers and names the kind of each difference. Prints the differences without a known kind, at most `shown` per call, the counts of each kind and of each call. Writes each
    differing response to `report`, if there is one, as a line of JSON. Returns the number of differences without a known kind."""
    def values(question):
        return [answers.read(question.reading, *ask(url, question)) for url in urls.values()]

    def one(question):
        replies = [ask(url, question) for url in urls.values()]
        ours, theirs = (answers.read(question.reading, *reply) for reply in replies)
        unequal = answers.differences(ours, theirs)
        return replies, ours, theirs, unequal, kinds.kinds(question, ours, theirs, world, values) if unequal else []

    counts, found = collections.defaultdict(lambda: [0, 0, 0, 0, 0]), collections.Counter()
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        # Wrong pushes that only one server accepts change the data, so they follow after the last response to a query.
        parts = [[question for question in asked if (question.call == "wrong push") == is_last] for is_last in (False, True)]
        for question, (replies, ours, theirs, unequal, names) in (pair for part in parts for pair in zip(part, pool.map(one, part))):
            count = counts[question.call]
            count[0] += 1
            count[1] += not unequal
            count[2] += bool(names)
            count[3] += replies[0][1] == replies[1][1]
            count[4] += replies[0][0] == 200 and len(replies[0][1]) > 60
            if unequal:
                found[question.call, "; ".join(names) or "unknown"] += 1
            if unequal and report:
                line = {"call": question.call, "path": question.path, "body": question.body, "kinds": names, "alluvium": ours, "pyroscope": theirs}
                report.write(json.dumps(line, default=bytes.decode) + "\n")
            if unequal and not names and count[0] - count[1] - count[2] <= shown:
                print(f"\n{question.call}: {question.method} {urllib.parse.unquote(question.path)} {'' if question.body is None else question.body}")
                print("\n".join(f"    {line}" for line in unequal))
    print(f"\n{'call':40} asked equal known same bytes with data")
    for call, (asked_, equal, known_, same, data) in counts.items():
        print(f"{call:40} {asked_:5} {equal:5} {known_:5} {same:10} {data:9}")
    print("\nresponses that differ, by call and kind")
    for (call, name), count in sorted(found.items()):
        print(f"{count:5} {call}: {name}")
    return sum(count[0] - count[1] - count[2] for count in counts.values())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--alluvium", required=True, help="URL of Alluvium")
    parser.add_argument("--pyroscope", required=True, help="URL of Pyroscope")
    parser.add_argument("--pushes", type=int, default=1000)
    parser.add_argument("--sets", type=int, default=50, help="number of argument sets for each call")
    parser.add_argument("--calls", default="", help="send only calls whose name contains this text")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--now", type=int, default=int(time.time() * 1000), help="time of the run as Unix time in milliseconds; the generated profiles are 2 to 40 minutes older. Defaults to the current time")
    parser.add_argument("--recording", type=pathlib.Path, help="recording of Java Flight Recorder to push as well")
    parser.add_argument("--only", choices=["alluvium", "pyroscope"], help="push only to this server, because the other server already has the data")
    parser.add_argument("--ask-only", action="store_true")
    parser.add_argument("--wait", type=int, default=100, help="maximum time in seconds to wait until both servers list the same profile types and services")
    parser.add_argument("--shown", type=int, default=2, help="maximum number of responses to show for each call that differ in an unknown way")
    parser.add_argument("--report", type=argparse.FileType("w"), help="file for all differing responses, one line of JSON each, with the compared values of both servers")
    given = parser.parse_args()
    print(f"--seed {given.seed} --now {given.now} --pushes {given.pushes}")
    urls = {"alluvium": given.alluvium, "pyroscope": given.pyroscope}
    recording = given.recording.read_bytes() if given.recording else b""
    world = pushes.World(random.Random(given.seed), given.now, recording)
    drawn = pushes.draw(world, given.pushes)
    if not given.ask_only:
        unequal = push_all({given.only: urls[given.only]} if given.only else urls, drawn, 16)
        print("\n".join(unequal[:20]))
    seen = settled(urls, world, given.wait)
    for name, pairs in seen.items():
        print("only", name, "has", sorted(set(pairs) - set.intersection(*map(set, seen.values()))))
    totals(urls, sorted(set().union(*seen.values())), world)
    asker = questions.Asker(random.Random(given.seed + 1), world, seen["pyroscope"])
    asked = [asker.ask(call) for call in questions.CALLS for _ in range(given.sets)]
    unequal = compare(urls, [one for one in asked if given.calls in one.call], world, given.shown, given.report)
    sys.exit(f"{unequal} responses differ in an unknown way" if unequal else 0)


if __name__ == "__main__":
    main()
