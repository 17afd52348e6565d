//! A .NET trace in the format that <https://github.com/microsoft/perfview> describes in `NetTraceFormat_v5.md`.
//!
//! All samples belong to one thread in managed code. A sample lasts until the next one, so the trace ends with an
//! additional sample, which has no stack.

use crate::files::synthetic::stacks::{Stacks, TICK_NANOS};

/// Length in bytes of each frame's code, and the address of the first frame's code.
const CODE: u64 = 0x100;
const START: u64 = 0x7f00_0000_1000;

/// Number of samples in a block of events.
const BLOCK: usize = 1000;

/// Provider and event number of each kind of event, in the order in which the file describes the kinds.
const KINDS: [(&str, u32); 3] = [
    ("Microsoft-DotNETCore-SampleProfiler", 0),
    ("Microsoft-Windows-DotNETRuntimeRundown", 144),
    ("Microsoft-Windows-DotNETRuntimeRundown", 154),
];
const SAMPLE: u64 = 1;
const METHOD: u64 = 2;
const MODULE: u64 = 3;

pub(super) fn file(stacks: &Stacks<'_>) -> Vec<u8> {
    let mut file = b"Nettrace\x14\0\0\0!FastSerialization.1".to_vec();
    // 2026-11-23, a Monday, 10:00:00 UTC.
    let date = [2026u16, 11, 1, 23, 10, 0, 0, 0].map(u16::to_le_bytes).concat();
    // The clock reads 0 at the start and has 10^9 ticks per second. Addresses have 8 bytes, the process has id 17, and
    // the machine has 2 processors.
    let clock = [0, 1_000_000_000u64].map(u64::to_le_bytes).concat();
    let rest = [8, 17, 2, 0u32].map(u32::to_le_bytes).concat();
    object(&mut file, "Trace", 4, &[date, clock, rest].concat());
    let descriptions = KINDS.iter().zip(1u32..).map(|((provider, event), id)| {
        let mut payload = [&id.to_le_bytes()[..], &text(provider), &event.to_le_bytes(), &text("")].concat();
        // Keywords, version, level and number of fields.
        payload.extend([0; 20]);
        blob(0, 0, 0, &payload)
    });
    block(&mut file, "MetadataBlock", &events(descriptions.collect()));
    let mut time = 0;
    for (part, samples) in stacks.samples.chunks(BLOCK).enumerate() {
        let mut content = [1u32, samples.len() as u32].map(u32::to_le_bytes).concat();
        for (leaf, _) in samples {
            let path = stacks.path(*leaf);
            content.extend((8 * path.len() as u32).to_le_bytes());
            let addresses = path.into_iter().map(|frame| START + frame as u64 * CODE + 0x10);
            content.extend(addresses.flat_map(u64::to_le_bytes));
        }
        block(&mut file, "StackBlock", &content);
        // The first event of a block states its time, each later event the time since the preceding event.
        let mut delta = time;
        let blobs = (1u64..).zip(samples).map(|(stack, (_, ticks))| {
            let duration = (ticks * TICK_NANOS) as u64;
            time += duration;
            blob(
                SAMPLE,
                stack,
                std::mem::replace(&mut delta, duration),
                &2u32.to_le_bytes(),
            )
        });
        let mut blobs: Vec<Vec<u8>> = blobs.collect();
        if (part + 1) * BLOCK >= stacks.samples.len() {
            blobs.push(blob(SAMPLE, 0, delta, &2u32.to_le_bytes()));
        }
        block(&mut file, "EventBlock", &events(blobs));
        let sequence_point = [&time.to_le_bytes()[..], &[0; 4]].concat();
        block(&mut file, "SPBlock", &sequence_point);
    }
    let methods = (0u64..).zip(&stacks.frames).map(|(index, frame)| {
        let start = START + index * CODE;
        let numbers = [index + 1, 1, start].map(u64::to_le_bytes).concat();
        let sizes = [CODE as u32, 0, 0].map(u32::to_le_bytes).concat();
        let texts = [text(""), text(frame.name), text("void  ()")].concat();
        blob(METHOD, 0, 0, &[numbers, sizes, texts, vec![0; 10]].concat())
    });
    let module = [
        &[1, 2, 0u64].map(u64::to_le_bytes).concat()[..],
        &text("/srv/shop.dll"),
        &text(""),
    ]
    .concat();
    let rundown = methods.chain([blob(MODULE, 0, 0, &module)]).collect();
    block(&mut file, "EventBlock", &events(rundown));
    file.push(1);
    file
}

/// Encodes a text as UTF-16 with a terminating zero.
pub(crate) fn text(text: &str) -> Vec<u8> {
    text.encode_utf16().chain([0]).flat_map(u16::to_le_bytes).collect()
}

fn number(mut number: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
    bytes
}

/// Returns an event of thread 18. Its compressed header contains the kind, thread, stack, time and length.
fn blob(kind: u64, stack: u64, delta: u64, payload: &[u8]) -> Vec<u8> {
    let mut blob = vec![1 | 4 | 8 | 128];
    for field in [kind, 18, stack, delta, payload.len() as u64] {
        blob.extend(number(field));
    }
    blob.extend(payload);
    blob
}

/// Returns the content of a block of events: a header of 20 bytes, and the events.
pub(crate) fn events(blobs: Vec<Vec<u8>>) -> Vec<u8> {
    let mut content = [20u16, 1].map(u16::to_le_bytes).concat();
    content.extend([0; 16]);
    content.extend(blobs.concat());
    content
}

pub(crate) fn block(file: &mut Vec<u8>, name: &str, content: &[u8]) {
    begin(file, name, 2);
    file.extend((content.len() as u32).to_le_bytes());
    file.resize(file.len().next_multiple_of(4), 0);
    file.extend(content);
    file.push(6);
}

pub(crate) fn object(file: &mut Vec<u8>, name: &str, version: u32, content: &[u8]) {
    begin(file, name, version);
    file.extend(content);
    file.push(6);
}

fn begin(file: &mut Vec<u8>, name: &str, version: u32) {
    file.extend([5, 5, 1]);
    for field in [version, version, name.len() as u32] {
        file.extend(field.to_le_bytes());
    }
    file.extend(name.bytes());
    file.push(6);
}
