//! Lines of folded stacks such as `main;work 3`: a stack and a count.
//!
//! In: text. Out: the parts of a line, and whether a text has this format. Files and `/ingest` share the detection.

use memchr::memrchr2;

/// Maximum number of lines to read for the detection of the format. Blank lines do not count.
const LOOKED_AT: usize = 20;

/// Returns true when each of the first lines is a stack with a count, and at least one of these stacks is not empty.
pub(crate) fn is_like(text: &str) -> bool {
    let mut lines = text
        .lines()
        .filter(|line| !line.trim().is_empty())
        .take(LOOKED_AT)
        .peekable();
    let mut has_frames = false;
    lines.peek().is_some()
        && lines.all(|line| {
            let parts = parts(line);
            has_frames |= parts.is_some_and(|(stack, _)| !stack.trim().is_empty());
            parts.is_some()
        })
        && has_frames
}

/// Returns the stack and the count of a line, or `None` if it has no count. The stack may be empty.
pub(crate) fn parts(line: &str) -> Option<(&str, i64)> {
    let line = line.trim_end();
    let (stack, count) = line.split_at_checked(memrchr2(b' ', b'\t', line.as_bytes())?)?;
    let count = count.get(1..)?.parse().ok().filter(|count| *count >= 0)?;
    Some((stack, count))
}
