//! Tests of a trace with two threads and complete event headers, and of broken traces.

use crate::files::nettrace::read;
use crate::files::synthetic::nettrace::{block, object, text};

const SAMPLER: &str = "Microsoft-DotNETCore-SampleProfiler";
const RUNTIME: &str = "Microsoft-Windows-DotNETRuntime";

fn event(kind: u32, thread: u64, stack: u32, time: u64, payload: &[u8]) -> Vec<u8> {
    let mut event = Vec::new();
    for field in [kind | 1 << 31, 5] {
        event.extend(field.to_le_bytes());
    }
    for field in [thread, 99] {
        event.extend(field.to_le_bytes());
    }
    for field in [1, stack] {
        event.extend(field.to_le_bytes());
    }
    event.extend(time.to_le_bytes());
    event.extend([7; 32]);
    event.extend((payload.len() as u32).to_le_bytes());
    event.extend(payload);
    let mut sized = (event.len() as u32).to_le_bytes().to_vec();
    sized.append(&mut event);
    sized.resize(sized.len().next_multiple_of(4), 0);
    sized
}

/// Appends a block of events with a header that is longer than necessary.
fn events(file: &mut Vec<u8>, name: &str, events: &[Vec<u8>]) {
    let mut content = [24u16, 0].map(u16::to_le_bytes).concat();
    content.extend([0; 20]);
    content.extend(events.concat());
    block(file, name, &content);
}

fn description(id: u32, provider: &str, event_id: u32) -> Vec<u8> {
    let parts = [
        &id.to_le_bytes()[..],
        &text(provider),
        &event_id.to_le_bytes(),
        &text("Name"),
        &[0; 20],
    ];
    event(0, 0, 0, 0, &parts.concat())
}

fn method(module: u64, start: u64, size: u32, [namespace, name, signature]: [&str; 3]) -> Vec<u8> {
    let numbers = [1, module, start].map(u64::to_le_bytes).concat();
    let sizes = [size, 0, 0].map(u32::to_le_bytes).concat();
    let texts = [namespace, name, signature].map(text).concat();
    event(2, 1, 0, 0, &[numbers, sizes, texts].concat())
}

/// Returns the beginning of a file: 1,000 ticks per second, addresses of four bytes, a sample every 10 ms.
fn beginning(version: u32) -> Vec<u8> {
    let mut file = b"Nettrace\x14\0\0\0!FastSerialization.1".to_vec();
    let date = [2026u16, 11, 1, 23, 10, 0, 0, 250].map(u16::to_le_bytes).concat();
    let clock = [4000, 1000u64].map(u64::to_le_bytes).concat();
    let rest = [4, 17, 2, 10_000_000u32].map(u32::to_le_bytes).concat();
    object(&mut file, "Trace", version, &[date, clock, rest].concat());
    file
}

fn stacks(file: &mut Vec<u8>, first: u32, stacks: &[&[u32]]) {
    let mut content = [first, stacks.len() as u32].map(u32::to_le_bytes).concat();
    for stack in stacks {
        content.extend((4 * stack.len() as u32).to_le_bytes());
        content.extend(stack.iter().flat_map(|address| address.to_le_bytes()));
    }
    block(file, "StackBlock", &content);
}

fn descriptions(file: &mut Vec<u8>) {
    let kinds = [
        description(1, SAMPLER, 0),
        description(2, RUNTIME, 143),
        description(3, RUNTIME, 152),
        description(4, RUNTIME, 10),
    ];
    events(file, "MetadataBlock", &kinds);
}

/// Appends samples of two threads: `main`, which calls `work`, and a waiting thread.
fn samples(file: &mut Vec<u8>) {
    // The return address of the call to `work` is directly after the end of `Main`.
    stacks(file, 7, &[&[0x2004, 0x1010], &[0x1008], &[0x9000, 0x1010]]);
    let sample = |thread, stack, time, code_type: u32| event(1, thread, stack, time, &code_type.to_le_bytes());
    let first = [
        sample(1, 7, 4010, 2),
        sample(2, 9, 4010, 1),
        sample(1, 7, 4020, 2),
        event(4, 1, 7, 4021, b"what a collector says"),
    ];
    events(file, "EventBlock", &first);
    block(file, "SPBlock", &[0; 12]);
    block(file, "NewBlock", b"of a later version");
    // From here on, number 7 refers to another stack. Number 8 refers to no stack, as if the stack were lost.
    stacks(file, 7, &[&[0x1008]]);
    events(file, "EventBlock", &[sample(1, 7, 4030, 2), sample(2, 8, 4050, 1)]);
}

fn names(file: &mut Vec<u8>) {
    let module = [
        &[5, 0, 0u64].map(u64::to_le_bytes).concat()[..],
        &text("C:\\srv\\Shop.dll"),
        &text(""),
    ];
    let code = [
        method(
            5,
            0x1000,
            0x10,
            ["Shop.Program", "Main", "void  (class System.String[])"],
        ),
        method(6, 0x2000, 0x20, ["", "w\u{f6}rk", ""]),
        event(3, 1, 0, 0, &module.concat()),
    ];
    events(file, "EventBlock", &code);
}

#[test]
fn time_in_managed_code_and_all_time_are_told_apart() {
    let mut file = beginning(4);
    descriptions(&mut file);
    samples(&mut file);
    names(&mut file);
    file.push(1);
    let profiles = read(&file).unwrap();
    let summaries: Vec<_> = profiles
        .iter()
        .map(|imported| {
            let profile = imported.columns.get();
            let mut stacks: Vec<(String, i64)> = (0..profile.sample_count())
                .map(|sample| {
                    let names = profile.stack(sample).iter().rev().map(|location| {
                        let line = profile.lines_of(&profile.locations[*location as usize])[0];
                        profile.functions[line.function as usize].name
                    });
                    (names.collect::<Vec<_>>().join(";"), profile.values[sample] / 1_000_000)
                })
                .collect();
            stacks.sort();
            (imported.name.as_str(), profile.sample_types[0].kind, stacks)
        })
        .collect();
    let main = "Shop!Shop.Program.Main(class System.String[])";
    let stack = |text: &str, millis: i64| (text.replace("main", main), millis);
    let cpu = vec![stack("main", 10), stack("main;w\u{f6}rk", 20)];
    // The last sample of a thread lasts for one interval. The waiting thread has another sample 40 ms before its last.
    let wall = vec![
        stack("main", 10),
        stack("main;[unknown]", 40),
        stack("main;w\u{f6}rk", 20),
        stack("[unknown]", 10),
    ];
    assert_eq!(summaries[0], ("process_cpu", "cpu", cpu));
    let mut wall = wall;
    wall.sort();
    assert_eq!(summaries[1], ("wall", "wall", wall));
    let profile = profiles[1].columns.get();
    assert_eq!(profile.mappings[0].file, "C:\\srv\\Shop.dll");
    assert_eq!(profile.period, 10_000_000);
    assert_eq!(profile.time_nanos, 1_795_428_000_250_000_000);
    assert_eq!(profile.duration_nanos, 50_000_000);
}

#[test]
fn a_long_text_in_the_names_of_many_methods_is_refused() {
    let mut file = beginning(4);
    descriptions(&mut file);
    stacks(&mut file, 7, &[&[0, 2, 3, 4, 5]]);
    events(&mut file, "EventBlock", &[event(1, 1, 7, 4010, &2u32.to_le_bytes())]);
    let module = [
        &[5, 0, 0u64].map(u64::to_le_bytes).concat()[..],
        &text(&"x/".repeat(5 << 20)),
    ];
    // The long file name of the module counts for each method. One method is below the limit, all together exceed it.
    let mut code: Vec<Vec<u8>> = (0..5).map(|start| method(5, start, 1, ["", "f", ""])).collect();
    code.push(event(3, 1, 0, 0, &module.concat()));
    events(&mut file, "EventBlock", &code);
    file.push(1);
    let error = read(&file).unwrap_err().to_string();
    assert!(
        error.ends_with("its method names have more than 67108864 bytes"),
        "{error}"
    );
}

#[test]
fn what_is_wrong_is_said_with_its_place() {
    let error = |file: &[u8]| read(file).unwrap_err().to_string();
    let build = |parts: &[fn(&mut Vec<u8>)]| {
        let mut file = beginning(5);
        parts.iter().for_each(|part| part(&mut file));
        file.push(1);
        file
    };
    assert!(read(&build(&[descriptions, samples, names])).is_ok());
    assert!(error(&build(&[descriptions, names])).contains("it has no thread samples"));
    assert!(error(&build(&[descriptions, samples])).contains("it has no method names"));
    let mut newer = beginning(6);
    newer.push(1);
    assert!(error(&newer).contains("its version is 6"));
    let mut truncated = build(&[descriptions, samples, names]);
    truncated.truncate(300);
    assert!(
        error(&truncated).ends_with(" bytes are missing"),
        "{}",
        error(&truncated)
    );
    let mut other = build(&[]);
    let end = other.len() - 1;
    other[end] = 9;
    let text = error(&other);
    assert_eq!(
        text,
        format!(
            "cannot read the file as nettrace: byte {}: no object begins here",
            end + 1
        )
    );
    let mut without = b"Nettrace\x14\0\0\0!FastSerialization.1".to_vec();
    descriptions(&mut without);
    samples(&mut without);
    without.push(1);
    assert!(error(&without).contains("the object `Trace` is missing"));
}
