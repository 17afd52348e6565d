//! Iterates over the samples of a text.

use crate::perf_script::Sample;
use alluvium_profile::call_tree::LimitExceeded;

/// Maximum number of lines below a sample: frames and their source positions.
const MAX_LINES: usize = 8192;
/// The format is recognised only if the first sample begins within this number of bytes, which include comments.
const SCANNED_BYTES: usize = 64 << 10;

/// Reason why a text cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {problem}")]
pub(crate) struct PerfError {
    pub(super) line: usize,
    #[source]
    pub(super) problem: Problem,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum Problem {
    #[error("it is not the first line of a sample")]
    NotASample,
    #[error("a stack has more than {limit} frames")]
    TooDeep { limit: usize },
    #[error("there are more than {limit} events")]
    TooManyEvents { limit: usize },
    #[error(transparent)]
    TooMany(#[from] LimitExceeded),
}

/// Returns true when the first line that is not a comment begins a sample.
pub(crate) fn is_like(text: &[u8]) -> bool {
    let start = text.get(..SCANNED_BYTES).unwrap_or(text);
    let lines = start.split(|byte| *byte == b'\n');
    let mut lines = lines.filter_map(|line| std::str::from_utf8(line).ok());
    let first = lines.find(|line| !line.trim().is_empty() && !line.starts_with('#'));
    first.and_then(Sample::of).is_some()
}

/// Calls `take` with every sample and the lines of its frames.
pub(super) fn walk<'a>(
    text: &'a str,
    mut take: impl FnMut(&Sample<'a>, &[&'a str]) -> Result<(), Problem>,
) -> Result<(), PerfError> {
    let mut open: Option<Sample<'a>> = None;
    let mut below: Vec<&'a str> = Vec::new();
    let mut close = |open: &mut Option<Sample<'a>>, below: &mut Vec<&'a str>| {
        let result = open.take().map_or(Ok(()), |sample| take(&sample, below));
        below.clear();
        result
    };
    let mut number = 0;
    for line in text.lines() {
        number += 1;
        let line_error = |problem| PerfError { line: number, problem };
        if line.trim().is_empty() {
            close(&mut open, &mut below).map_err(line_error)?;
        } else if line.starts_with('#') {
            // Comments may occur between samples.
        } else if open.is_some() && line.starts_with([' ', '\t']) && Sample::of(line).is_none() {
            if below.len() >= MAX_LINES {
                return Err(line_error(Problem::TooDeep { limit: MAX_LINES }));
            }
            below.push(line);
        } else {
            close(&mut open, &mut below).map_err(line_error)?;
            open = Some(Sample::of(line).ok_or_else(|| line_error(Problem::NotASample))?);
        }
    }
    close(&mut open, &mut below).map_err(|problem| PerfError { line: number, problem })
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert!(is_like(
            b"# captured on : Sun\n\nmy program 1/2 [001] 1.5: 250 cpu-clock:pppH: \n"
        ));
    }

    #[test]
    fn what_is_neither_a_sample_nor_a_frame_is_named_by_its_line() {
        let error = |text| walk(text, |_, _| Ok(())).unwrap_err().to_string();
        let text = "a 1 1.5: cycles:\n\t10 work (b)\nwhat is this\n";
        assert_eq!(error(text), "line 3: it is not the first line of a sample");
        assert_eq!(error("\t10 work (b)\n"), "line 1: it is not the first line of a sample");
        let deep = format!("a 1 1.5: cycles:\n{}", "\t10 work (b)\n".repeat(MAX_LINES + 1));
        assert_eq!(error(&deep), "line 8194: a stack has more than 8192 frames");
    }

    #[test]
    fn samples_without_stacks_follow_each_other() {
        let text = "a 1 1.5: cycles: \na 1 [000] 2.5: cycles: \n  b 2/3 3.5: 10 sched:sched_switch: x=1\n";
        let mut samples = Vec::new();
        let take = |sample: &Sample<'_>, below: &[&str]| {
            samples.push((sample.command.to_owned(), below.len()));
            Ok(())
        };
        walk(text, take).unwrap();
        assert_eq!(samples, ["a", "a", "b"].map(|command| (command.to_owned(), 0)));
    }
}
