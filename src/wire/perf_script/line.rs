//! Lines in the output of `perf script`: the first line of a sample, and the lines of its frames.
//!
//! In: a line. Out: its parts, without modifiers of the event and offsets in functions. The callers decide which
//! quantity a sample counts, and how to name a frame without a function.

/// First line of a sample: `command pid/tid [cpu] time: period event: frame`.
pub(crate) struct Sample<'a> {
    /// Name of the command. It may contain blanks, and may be empty.
    pub(crate) command: &'a str,
    pub(crate) period: Option<i64>,
    pub(crate) event: &'a str,
    /// The only frame, if no stacks were recorded.
    pub(crate) frame: Option<Frame<'a>>,
}

impl<'a> Sample<'a> {
    /// Parses a line. Returns `None` when it does not begin a sample.
    pub(crate) fn of(line: &'a str) -> Option<Self> {
        // Most lines are frames, which have no time.
        if !may_have_time(line.as_bytes()) {
            return None;
        }
        let words = || words(line);
        let is_time = |word: &str| {
            let number = word.strip_suffix(':').and_then(|word| word.split_once('.'));
            number.is_some_and(|(integer, fraction)| is_number(integer) && is_number(fraction))
        };
        let (time_offset, time) = words().find(|(_, word)| is_time(word))?;
        let mut preceding_words = words()
            .take_while(|(offset, _)| *offset < time_offset)
            .collect::<Vec<_>>();
        preceding_words.pop_if(|(_, word)| word.starts_with('[') && word.ends_with(']'));
        let (process_offset, process) = preceding_words.pop()?;
        if !process
            .split('/')
            .all(|number| is_number(number.trim_start_matches('-')))
        {
            return None;
        }
        let command = line.get(..process_offset)?.trim();
        let mut following_words = words().skip_while(|(offset, _)| *offset < time_offset + time.len());
        let (mut event_offset, mut event) = following_words.next()?;
        let period = event.parse().ok().filter(|period| *period >= 0);
        if period.is_some() {
            (event_offset, event) = following_words.next()?;
        }
        let rest = line.get(event_offset + event.len()..)?;
        Some(Self {
            command,
            period,
            event: without_modifiers(event.strip_suffix(':')?)?,
            frame: Frame::of(rest),
        })
    }
}

/// Returns true when a word ends with a digit and a colon, as a time does.
fn may_have_time(line: &[u8]) -> bool {
    let byte_at = |index: usize| line.get(index).copied();
    memchr::memchr_iter(b':', line).any(|colon| {
        let preceding_byte = colon.checked_sub(1).and_then(byte_at);
        preceding_byte.is_some_and(|byte| byte.is_ascii_digit())
            && byte_at(colon + 1).is_none_or(|byte| byte.is_ascii_whitespace())
    })
}

/// Removes the modifiers of an event's name, as in `cycles:ppp` and `cpu-clock:u:`. A tracepoint keeps its name.
fn without_modifiers(event: &str) -> Option<&str> {
    let event = event.trim_end_matches(':');
    let is_modifier = |text: &str| text.chars().all(|letter| "ukhHGIpPSDWe".contains(letter));
    let name = match event.rsplit_once(':') {
        Some((name, modifiers)) if is_modifier(modifiers) => name,
        _ => event,
    };
    (!name.is_empty()).then_some(name)
}

/// Returns the words of a line with their offsets.
fn words(line: &str) -> impl Iterator<Item = (usize, &str)> {
    let start = line.as_ptr() as usize;
    line.split_ascii_whitespace()
        .map(move |word| (word.as_ptr() as usize - start, word))
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Splits `function+0x1f (binary)` into function and binary. Both may contain brackets. The text is split after the
/// offset. If there is no offset, it is split before the bracket that matches the last bracket.
fn split_binary(text: &str) -> Option<(&str, &str)> {
    let inner = text.strip_suffix(')')?;
    let bytes = inner.as_bytes();
    let opens = || memchr::memchr_iter(b'(', bytes).filter(|open| *open > 0 && bytes.get(open - 1) == Some(&b' '));
    let split = |open: usize| Some((inner.get(..open - 1)?, inner.get(open + 1..)?));
    let is_behind_offset = |open: &usize| {
        let function = inner.get(..open - 1).unwrap_or_default();
        function == "[unknown]"
            || function
                .rfind('+')
                .is_some_and(|plus| is_offset(function.get(plus..).unwrap_or_default()))
    };
    if let Some(open) = opens().find(is_behind_offset) {
        return split(open);
    }
    let mut depth = 0;
    let closing = bytes.iter().rposition(|byte| {
        match byte {
            b')' => depth += 1,
            b'(' => depth -= 1,
            _ => {}
        }
        depth < 0
    });
    let matching = closing.filter(|open| opens().any(|behind_blank| behind_blank == *open));
    split(matching.or_else(|| opens().next_back())?)
}

/// Returns true for an offset such as `+0x1f`.
fn is_offset(text: &str) -> bool {
    let digits = text.strip_prefix("+0x");
    digits.is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

/// A frame: `address function+offset (binary)`, and its source position if the next line has one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Frame<'a> {
    pub(crate) function: &'a str,
    /// Binary, which names the frame if the function is unknown.
    pub(crate) binary: &'a str,
    pub(crate) file: &'a str,
    pub(crate) line: i64,
}

impl<'a> Frame<'a> {
    /// Parses a line. Returns `None` when it is not a frame.
    pub(crate) fn of(line: &'a str) -> Option<Self> {
        let (address, rest) = line.trim().split_once(' ')?;
        let is_hexadecimal = address.bytes().all(|byte| byte.is_ascii_hexdigit());
        if !is_hexadecimal || address.is_empty() {
            return None;
        }
        let rest = rest.trim();
        let (function, binary) = split_binary(rest).unwrap_or((rest, ""));
        let offset = memchr::memrchr(b'+', function.as_bytes()).and_then(|plus| function.split_at_checked(plus));
        let function = match offset {
            Some((name, offset)) if is_offset(offset) => name,
            _ => function,
        };
        Some(Self {
            function: function.trim(),
            binary,
            file: "",
            line: 0,
        })
    }

    /// Sets the source position from a text `file:line`. Ignores any other text.
    pub(crate) fn set_location(&mut self, text: &'a str) {
        if let Some((file, line)) = text.rsplit_once(':')
            && let Some(line) = line.parse().ok().filter(|line| *line > 0)
            && !file.is_empty()
        {
            (self.file, self.line) = (file, line);
        }
    }

    /// Returns true when the function is known.
    pub(crate) fn has_function(&self) -> bool {
        !matches!(self.function, "" | "[unknown]")
    }

    /// Returns the last part of the binary's path, which may be empty.
    pub(crate) fn binary_name(&self) -> &'a str {
        self.binary.rsplit('/').next().unwrap_or_default()
    }

    /// Returns the binary, or an empty text for the markers that `perf` writes for inlined frames and unknown binaries.
    pub(crate) fn real_binary(&self) -> &'a str {
        match self.binary {
            "inlined" | "[unknown]" => "",
            binary => binary,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_of_a_sample_is_read_in_its_forms() {
        for (line, expected) in [
            (
                "node 11/12 [001] 5.123456:     250000 cpu-clock:uhppH: ",
                ("node", Some(250_000), "cpu-clock"),
            ),
            ("my app  7 5.1: cycles: ", ("my app", None, "cycles")),
            (
                ":-1 -1 [000] 5.1:  1 sched:sched_switch: prev=x",
                (":-1", Some(1), "sched:sched_switch"),
            ),
            ("a 1 5.1: 9 cpu_core/cycles/P:", ("a", Some(9), "cpu_core/cycles/P")),
        ] {
            let sample = Sample::of(line).unwrap();
            assert_eq!((sample.command, sample.period, sample.event), expected, "{line}");
        }
        for line in [
            "",
            "main;work 5",
            "a b 5.1: 9 cycles:",
            "a 1 5: 9 cycles:",
            "a 1 5.1: 9",
        ] {
            assert!(Sample::of(line).is_none(), "{line}");
        }
    }

    #[test]
    fn a_frame_is_a_function_in_a_binary() {
        let read = |line: &'static str| Frame::of(line).map(|frame| (frame.function, frame.binary));
        for (line, expected) in [
            ("\t    7f12 main+0x1f (/usr/bin/a b)", Some(("main", "/usr/bin/a b"))),
            (
                "ffff8 operator()(int) const (/x)",
                Some(("operator()(int) const", "/x")),
            ),
            ("  10 [unknown] ([vdso])", Some(("[unknown]", "[vdso]"))),
            ("  10 inner (inlined)", Some(("inner", "inlined"))),
            (
                "  10 f+0x4 (/lib/libc.so.6 (deleted))",
                Some(("f", "/lib/libc.so.6 (deleted)")),
            ),
            (
                "  10 [unknown] (/memfd:doublemapper (deleted))",
                Some(("[unknown]", "/memfd:doublemapper (deleted)")),
            ),
            (
                "  10 Foo::bar(int)+0x4 (/w/Program Files (x86)/App/app.exe)",
                Some(("Foo::bar(int)", "/w/Program Files (x86)/App/app.exe")),
            ),
            (
                "  10 operator() (int)+0x4 (/w/a (b/app)",
                Some(("operator() (int)", "/w/a (b/app")),
            ),
            (
                "  10 work (int) (/w/Program Files (x86)/a)",
                Some(("work (int)", "/w/Program Files (x86)/a")),
            ),
            ("  10 work+0x (/a)", Some(("work+0x", "/a"))),
            ("  main.c:12", None),
            ("  main.c: 12", None),
        ] {
            assert_eq!(read(line), expected, "{line}");
        }
    }
}
