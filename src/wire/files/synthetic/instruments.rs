//! A table of Apple's profiler Instruments, in the format of `xctrace export`. Instead of repeating an element, the
//! table refers to its first occurrence.

use std::fmt::Write;

use hashbrown::HashSet;
use quick_xml::escape::escape;

use crate::files::synthetic::stacks::{Frame, Stacks, TICK_NANOS};

/// Values of `id` of the first frame's element and of the first stack's element. All ids of a table are distinct.
const FRAMES: usize = 1_000_000;
const STACKS: usize = 2_000_000;

/// Returns the table `time-profile` of a trace of one process.
pub(super) fn table(stacks: &Stacks<'_>) -> String {
    let mut text = String::from(
        "<?xml version=\"1.0\"?>\n<trace-query-result>\n\
         <node xpath='//trace-toc[1]/run[1]/data[1]/table[11]'><schema name=\"time-profile\">\
         <col><mnemonic>weight</mnemonic><name>Weight</name><engineering-type>weight</engineering-type></col>\
         </schema>\n",
    );
    let (mut frames, mut known) = (HashSet::new(), HashSet::new());
    let mut time = 0;
    for (number, (leaf, ticks)) in stacks.samples.iter().enumerate() {
        let (id, nanos) = (10 + 2 * number, ticks * TICK_NANOS);
        time += nanos;
        let _ = write!(
            text,
            "<row><sample-time id=\"{id}\" fmt=\"00:01.000.000\">{time}</sample-time>{}<thread-state ref=\"7\"/>\
             <weight id=\"{}\" fmt=\"1.00 ms\">{nanos}</weight>",
            thread(number == 0),
            id + 1
        );
        if known.insert(*leaf) {
            let _ = write!(text, "<backtrace id=\"{}\">", STACKS + leaf);
            for frame in stacks.path(*leaf) {
                text.push_str(&self::frame(stacks, frame, frames.insert(frame)));
            }
            text.push_str("</backtrace></row>\n");
        } else {
            let _ = writeln!(text, "<backtrace ref=\"{}\"/></row>", STACKS + leaf);
        }
    }
    text.push_str("</node></trace-query-result>\n");
    text
}

fn thread(is_new: bool) -> &'static str {
    if is_new {
        "<thread id=\"1\" fmt=\"Main Thread 0x12aa (shop, pid: 17)\"><tid id=\"2\" fmt=\"0x12aa\">4778</tid>\
         <process id=\"3\" fmt=\"shop (17)\"><pid id=\"4\" fmt=\"17\">17</pid></process></thread>\
         <process ref=\"3\"/>"
    } else {
        "<thread ref=\"1\"/><process ref=\"3\"/>"
    }
}

fn frame(stacks: &Stacks<'_>, frame: usize, is_new: bool) -> String {
    let id = FRAMES + 2 * frame;
    if !is_new {
        return format!("<frame ref=\"{id}\"/>");
    }
    let Frame { name, file, line } = stacks.frames[frame];
    let (name, file, address) = (escape(name), escape(file), 0x1_0000_1000 + frame * 0x100);
    format!(
        "<frame id=\"{id}\" name=\"{name}\" addr=\"{address:#x}\">\
         <source line=\"{line}\"><path id=\"{}\">{file}</path></source></frame>",
        id + 1
    )
}
