//! JSON files: speedscope, V8 profiles, Chrome traces with a profile or with calls, and the Firefox Profiler.

use serde_json::{Value, json};

use crate::files::synthetic::stacks::{Frame, Stacks, TICK_NANOS};

const TICK_MICROS: i64 = TICK_NANOS / 1_000;
const TICK_MILLIS: i64 = TICK_NANOS / 1_000_000;

/// Maximum number of nodes, and of samples, in one event `ProfileChunk` of a trace.
const CHUNK: usize = 100;

/// Id of the root. The ids of calls follow.
const ROOT: usize = 1;

pub(super) fn speedscope(stacks: &Stacks<'_>) -> String {
    let frames = stacks.frames.iter().map(|frame| {
        let Frame { name, file, line } = frame;
        json!({"name": name, "file": file, "line": line})
    });
    let samples = stacks.samples.iter().map(|(leaf, _)| {
        let mut path = stacks.path(*leaf);
        path.reverse();
        path
    });
    let weights = stacks.samples.iter().map(|(_, ticks)| ticks * TICK_MILLIS);
    json!({
        "$schema": "https://www.speedscope.app/file-format-schema.json",
        "shared": {"frames": frames.collect::<Vec<_>>()},
        "profiles": [{
            "type": "sampled", "name": "shop", "unit": "milliseconds",
            "startValue": 0, "endValue": stacks.total() * TICK_MILLIS,
            "samples": samples.collect::<Vec<_>>(), "weights": weights.collect::<Vec<_>>(),
        }],
    })
    .to_string()
}

/// Returns the root and a node for each call. A node refers to its parent if `with_parents` is set, otherwise to its
/// children.
fn nodes(stacks: &Stacks<'_>, with_parents: bool) -> Vec<Value> {
    let mut children = vec![Vec::new(); stacks.calls.len() + ROOT + 1];
    for (index, call) in stacks.calls.iter().enumerate() {
        let parent = call.caller.map_or(ROOT, |caller| caller + ROOT + 1);
        children[parent].push(index + ROOT + 1);
    }
    let root = json!({"functionName": "(root)", "scriptId": "0", "url": "", "lineNumber": -1, "columnNumber": -1});
    let frames = stacks.calls.iter().map(|call| {
        let Frame { name, file, line } = stacks.frames[call.frame];
        // Lines are counted from 0 in this format.
        let (url, line) = (format!("file://{file}"), line - 1);
        json!({"functionName": name, "scriptId": "7", "url": url, "lineNumber": line, "columnNumber": 3})
    });
    let parents = [None].into_iter().chain(stacks.calls.iter().map(|call| {
        let caller = call.caller.map_or(ROOT, |caller| caller + ROOT + 1);
        Some(caller)
    }));
    let nodes = [root].into_iter().chain(frames).zip(parents).enumerate();
    nodes
        .map(|(index, (frame, parent))| {
            let id = index + ROOT;
            match parent.filter(|_| with_parents) {
                Some(parent) => json!({"id": id, "parent": parent, "callFrame": frame}),
                None if with_parents => json!({"id": id, "callFrame": frame}),
                None => json!({"id": id, "callFrame": frame, "hitCount": 0, "children": children[id]}),
            }
        })
        .collect()
}

/// Returns the node id of each sample, and the time since the preceding sample in microseconds.
fn timed(stacks: &Stacks<'_>) -> (Vec<usize>, Vec<i64>) {
    let ids = stacks.samples.iter().map(|(leaf, _)| leaf + ROOT + 1).collect();
    let lengths = stacks.samples.iter().map(|(_, ticks)| ticks * TICK_MICROS);
    let deltas = [0].into_iter().chain(lengths).take(stacks.samples.len());
    (ids, deltas.collect())
}

pub(super) fn cpuprofile(stacks: &Stacks<'_>) -> String {
    let (samples, deltas) = timed(stacks);
    let end = stacks.total() * TICK_MICROS;
    json!({"nodes": nodes(stacks, false), "startTime": 0, "endTime": end, "samples": samples, "timeDeltas": deltas})
        .to_string()
}

/// Writes a Chrome trace. An unrelated event precedes each chunk of nodes and samples; readers must skip it.
pub(super) fn chrome_trace(stacks: &Stacks<'_>) -> String {
    let end = stacks.total() * TICK_MICROS;
    let nodes = nodes(stacks, true);
    let (samples, deltas) = timed(stacks);
    let named = |name: &str, data: Value| {
        let args = json!({"data": data});
        json!({"name": name, "ph": "P", "cat": "v8", "id": "0x1", "pid": 17, "tid": 18, "ts": 5, "args": args})
    };
    let mut events = vec![
        json!({"name": "thread_name", "ph": "M", "pid": 17, "tid": 18, "ts": 0, "args": {"name": "CrRendererMain"}}),
        named("Profile", json!({"startTime": 0})),
    ];
    for start in (0..nodes.len().max(samples.len())).step_by(CHUNK) {
        let other = json!({"functionName": "f", "data": [start, "x"], "frame": {"url": "https://shop/app.js"}});
        events.push(
            json!({"name": "FunctionCall", "ph": "X", "pid": 17, "tid": 18, "ts": start, "dur": 9, "args": other}),
        );
        let nodes = part(&nodes, start);
        let chunk = json!({"nodes": nodes, "samples": part(&samples, start)});
        events.push(named(
            "ProfileChunk",
            json!({"cpuProfile": chunk, "timeDeltas": part(&deltas, start)}),
        ));
    }
    events.push(named("ProfileChunk", json!({"endTime": end})));
    json!({"traceEvents": events, "metadata": {"source": "DevTools"}}).to_string()
}

fn part<T>(all: &[T], start: usize) -> &[T] {
    let end = all.len().min(start + CHUNK);
    all.get(start..end).unwrap_or_default()
}

/// Writes a trace as py-spy does: a list of events `B` and `E`, which begin and end a call.
pub(super) fn durations(stacks: &Stacks<'_>) -> String {
    let mut events = Vec::new();
    let event = |phase: &str, frame: usize, time: i64| {
        let Frame { name, file, line } = stacks.frames[frame];
        let args = json!({"filename": file, "line": line});
        json!({"name": name, "cat": "py-spy", "ph": phase, "pid": 17, "tid": 18, "ts": time, "args": args})
    };
    let mut time = 0;
    let mut open: Vec<usize> = Vec::new();
    for (leaf, ticks) in &stacks.samples {
        let mut path = stacks.path(*leaf);
        path.reverse();
        let common_depth = path.iter().zip(&open).take_while(|(new, old)| new == old).count();
        events.extend(open.drain(common_depth..).rev().map(|frame| event("E", frame, time)));
        events.extend(path[common_depth..].iter().map(|frame| event("B", *frame, time)));
        open = path;
        time += ticks * TICK_MICROS;
    }
    events.extend(open.into_iter().rev().map(|frame| event("E", frame, time)));
    Value::Array(events).to_string()
}

/// Writes a file of the Firefox Profiler as samply does, with tables in each thread.
pub(super) fn firefox(stacks: &Stacks<'_>) -> String {
    let (frames, calls, samples) = (&stacks.frames, &stacks.calls, &stacks.samples);
    let texts: Vec<&str> = frames.iter().flat_map(|frame| [frame.name, frame.file]).collect();
    let numbers: Vec<usize> = (0..frames.len()).collect();
    let thread = json!({
        "name": "shop", "isMainThread": true, "pid": "17", "tid": 18,
        "samples": {
            "stack": samples.iter().map(|(leaf, _)| *leaf).collect::<Vec<_>>(),
            "weight": samples.iter().map(|(_, ticks)| *ticks).collect::<Vec<_>>(),
            "weightType": "samples", "length": samples.len(),
        },
        "stackTable": {
            "frame": calls.iter().map(|call| call.frame).collect::<Vec<_>>(),
            "prefix": calls.iter().map(|call| call.caller).collect::<Vec<_>>(),
            "length": calls.len(),
        },
        "frameTable": {
            "func": numbers, "line": frames.iter().map(|frame| frame.line).collect::<Vec<_>>(), "length": frames.len(),
        },
        "funcTable": {
            "name": numbers.iter().map(|number| 2 * number).collect::<Vec<_>>(),
            "fileName": numbers.iter().map(|number| 2 * number + 1).collect::<Vec<_>>(),
            "length": frames.len(),
        },
        "stringArray": texts,
    });
    json!({"meta": {"interval": TICK_MILLIS, "startTime": 1000, "product": "shop"}, "libs": [], "threads": [thread]})
        .to_string()
}
