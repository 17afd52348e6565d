//! The output of `perf script`: a line for each sample, and below it the frames of its stack, the leaf first.
//!
//! In: text. Out: profiles. The text is brought into the form of folded stacks (`comm;main;work 1`), whose limits hold.
//! Each sample counts once, whatever its period. The name of the program is the outermost frame.

use crate::profile::DecodedProfile;
use crate::wire::connect::ConnectError;
use crate::wire::ingest::format::{Format, Opening, Payload, ReadError, too_large};
use crate::wire::ingest::query::IngestQuery;
use crate::wire::ingest::text;
use crate::wire::perf_script::{Frame, Sample};

/// Samples of `perf script`, known by their first line.
pub(crate) static PERF_SCRIPT: Format = Format {
    names: &["perf_script"],
    content_type: "",
    field: "",
    is_like,
    memory,
    read,
};

/// Part of a body in which the first sample must begin, after comments, for the format to be detected.
const LOOKED_AT_BYTES: usize = 64 << 10;

fn is_like(body: &[u8]) -> bool {
    let start = body.get(..LOOKED_AT_BYTES).unwrap_or(body);
    let lines = start.split(|byte| *byte == b'\n');
    let mut lines = lines.filter_map(|line| std::str::from_utf8(line).ok());
    let first = lines.find(|line| !line.trim().is_empty() && !line.starts_with('#'));
    first.is_some_and(|line| program(line).is_some())
}

fn memory(payload: &Payload, opening: Opening) -> Result<usize, ConnectError> {
    let text = &payload.content;
    if text.len() > opening.limit() {
        return Err(too_large(opening.limit()));
    }
    let (mut stacks, mut all) = (0, 0);
    for line in text.split(|byte| *byte == b'\n') {
        all += 1;
        stacks += usize::from(std::str::from_utf8(line).is_ok_and(|line| program(line).is_some()));
    }
    text::folded_memory(text.len(), stacks, all)
}

fn read(payload: &Payload, query: &IngestQuery, opening: Opening) -> Result<Vec<DecodedProfile>, ReadError> {
    if payload.content.len() > opening.limit() {
        return Err(too_large(opening.limit()).into());
    }
    let text = std::str::from_utf8(&payload.content).map_err(|error| {
        ConnectError::invalid(format!("cannot read the profile as the output of perf script: {error}"))
    })?;
    let folded = folded(text).map_err(|reason| {
        ConnectError::invalid(format!(
            "cannot read the profile as the output of perf script: {reason}"
        ))
    })?;
    text::read_folded(folded, query)
}

/// A line that is neither a sample nor a frame.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {number} is neither a sample nor a frame")]
struct Neither {
    number: usize,
}

/// The samples as folded stacks, a line each. Not longer than `text`.
fn folded(text: &str) -> Result<String, Neither> {
    let mut out = String::with_capacity(text.len());
    // The sample whose frames are read: its program, and its frames from the leaf on.
    let mut sample: Option<(&str, Vec<&str>)> = None;
    let mut end = |sample: &mut Option<(&str, Vec<&str>)>| {
        let Some((program, frames)) = sample.take() else { return };
        push(&mut out, program);
        for frame in frames.iter().rev() {
            out.push(';');
            push(&mut out, frame);
        }
        out.push_str(" 1\n");
    };
    for (index, line) in text.lines().enumerate() {
        if line.trim().is_empty() {
            end(&mut sample);
        } else if let Some(program) = program(line) {
            end(&mut sample);
            sample = Some((program, Vec::new()));
        } else if let (Some((_, frames)), Some(frame)) = (&mut sample, frame(line)) {
            frames.push(frame);
        } else if !line.starts_with('#') {
            return Err(Neither { number: index + 1 });
        }
    }
    end(&mut sample);
    Ok(out)
}

/// A name as a frame: without the character that separates frames.
fn push(out: &mut String, name: &str) {
    out.extend(name.chars().map(|letter| if letter == ';' { ':' } else { letter }));
}

/// The program of the line that begins a sample; `None` for other lines.
fn program(line: &str) -> Option<&str> {
    let command = Sample::of(line)?.command;
    (!command.is_empty()).then_some(command)
}

/// The function of the line of a frame, or the binary where the function is unknown.
fn frame(line: &str) -> Option<&str> {
    let frame = Frame::of(line)?;
    Some(match frame.binary_name() {
        _ if frame.has_function() => frame.function,
        "" => "[unknown]",
        binary => binary,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
# captured on : Sun Jan  4 10:00:00 2026
my program  1234/1240 [001] 12345.678901:     250000 cpu-clock:pppH: \n\
\tffffffff81234567 native_safe_halt+0x7 ([kernel.kallsyms])
\t          401136 work(int; char)+0x16 (/opt/a b/server)
\t          401200 main+0x10 (/opt/a b/server)
\t    7f2000001000 [unknown] (/usr/lib/libc.so.6)

java  77 12345.688901: cycles: \n\
\t          402000 Lcom/shop/Cart;::total+0x4 (/tmp/perf-77.map)

";

    #[test]
    fn samples_are_stacks_with_the_program_outermost() {
        assert!(is_like(TEXT.as_bytes()));
        assert_eq!(
            folded(TEXT).unwrap(),
            "my program;libc.so.6;main;work(int: char);native_safe_halt 1\njava;Lcom/shop/Cart:::total 1\n"
        );
        assert!(folded(TEXT).unwrap().len() <= TEXT.len());
    }

    #[test]
    fn samples_without_stacks_follow_each_other() {
        let text = "a 1 1.5: cycles: \na 1 [000] 2.5: cycles: \n  b 2/3 3.5: 10 sched:sched_switch: x=1\n";
        assert_eq!(folded(text).unwrap(), "a 1\na 1\nb 1\n");
    }

    #[test]
    fn other_texts_are_not_taken_for_it() {
        for text in [
            "main;work 12\n",
            "main 12 1.5: 3\n",
            "{\"a\": 1}",
            "",
            "a b 1.5: cycles:\n",
            "10:15:00.5: 4 warning: disk\n",
        ] {
            assert!(!is_like(text.as_bytes()), "{text}");
        }
    }

    #[test]
    fn what_is_neither_a_sample_nor_a_frame_is_named_by_its_line() {
        assert_eq!(
            folded("a 1 1.5: cycles:\n\t10 work (b)\nwhat is this\n"),
            Err(Neither { number: 3 })
        );
        assert_eq!(folded("\t10 work (b)\n"), Err(Neither { number: 1 }));
    }
}
