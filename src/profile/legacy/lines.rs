//! Lines of a textual profile: numbers and addresses of a stack, its labels, and its frames by name.

use crate::legacy::error::LegacyError;
use crate::pprof::{Builder, Function, Line, Location, SampleLabel};

/// Meaning of the numbers of a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// `1: 2 [3: 4] @`: objects and bytes in use, then objects and bytes allocated.
    Heap,
    /// `1 @`: number of occurrences of the stack.
    Count,
    /// `1 2 @`: cycles, and number of waits.
    Contention,
}

impl Form {
    /// Returns the name of the form in error messages.
    fn name(self) -> &'static str {
        match self {
            Self::Heap => "stack with objects and bytes",
            Self::Count => "stack with a count",
            Self::Contention => "stack with cycles and a count",
        }
    }

    /// Parses the numbers before the `@`. Returns `None` if their count is not the count that the form requires. Unused
    /// elements are 0.
    fn numbers(self, text: &str) -> Option<[i64; 4]> {
        let expected = match self {
            Self::Heap => 4,
            Self::Count => 1,
            Self::Contention => 2,
        };
        let mut numbers = [0; 4];
        let is_between = |letter: char| letter.is_ascii_whitespace() || (self == Self::Heap && ":[]".contains(letter));
        let mut count = 0;
        for number in text.split(is_between).filter(|text| !text.is_empty()) {
            *numbers.get_mut(count)? = number.parse().ok()?;
            count += 1;
        }
        (count == expected).then_some(numbers)
    }
}

/// A stack with its counts.
pub(super) struct Stack<'a> {
    pub(super) numbers: [i64; 4],
    /// Addresses as text, leaf first.
    addresses: &'a str,
    labels: &'a str,
    /// Comment lines (`#`) with the names of frames, leaf first.
    named: Vec<&'a str>,
}

/// A line-by-line reader of a text.
pub(super) struct Lines<'a> {
    rest: &'a str,
    /// Number of lines read so far.
    number: usize,
}

impl<'a> Lines<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { rest: text, number: 0 }
    }

    /// Returns the number of the last line read, starting at 1.
    pub(super) fn number(&self) -> usize {
        self.number
    }

    pub(super) fn next_line(&mut self) -> Option<&'a str> {
        let line = self.peek()?;
        self.skip();
        Some(line)
    }

    /// Reads the next line if it has the form `name=value`.
    pub(super) fn setting(&mut self) -> Option<(&'a str, &'a str)> {
        let line = self.peek()?;
        let (name, value) = line
            .split_once('=')
            .filter(|_| !line.starts_with('#') && !line.contains('@'))?;
        self.skip();
        Some((name.trim(), value.trim()))
    }

    /// Reads the next stack. Returns `None` after the last one.
    pub(super) fn stack(&mut self, form: Form) -> Result<Option<Stack<'a>>, LegacyError> {
        // Skip comments. Memory statistics are comments, too.
        while self.peek().is_some_and(|line| line.is_empty() || line.starts_with('#')) {
            self.skip();
        }
        let Some(line) = self
            .next_line()
            .filter(|line| !line.starts_with("---") && !line.ends_with(':'))
        else {
            return Ok(None);
        };
        let line_error = || LegacyError::Line(self.number, form.name());
        let (numbers, addresses) = line.split_once('@').ok_or_else(line_error)?;
        let mut stack = Stack {
            numbers: form.numbers(numbers).ok_or_else(line_error)?,
            addresses,
            labels: "",
            named: Vec::new(),
        };
        if stack
            .addresses
            .split_ascii_whitespace()
            .any(|address| number(address).is_none())
        {
            return Err(line_error());
        }
        while let Some(comment) = self.peek().and_then(|line| line.strip_prefix('#')) {
            self.skip();
            match comment.trim_start().strip_prefix("labels:") {
                Some(labels) => stack.labels = labels,
                None => stack.named.push(comment),
            }
        }
        Ok(Some(stack))
    }

    fn peek(&self) -> Option<&'a str> {
        let line = self.rest.split('\n').next()?;
        (!self.rest.is_empty()).then(|| line.trim_end())
    }

    fn skip(&mut self) {
        self.number += 1;
        self.rest = self.rest.split_once('\n').map_or("", |(_, rest)| rest);
    }
}

impl<'a> Stack<'a> {
    /// Returns an upper bound for the number of frames of the stack.
    pub(super) fn frames(&self) -> usize {
        self.named.len().max(self.addresses.split_ascii_whitespace().count())
    }

    /// Returns the locations of the stack, leaf first.
    pub(super) fn locations(&self, builder: &mut Builder<'a>) -> Vec<u32> {
        let named: Vec<u32> = self.named.iter().filter_map(|line| location(line, builder)).collect();
        if !named.is_empty() {
            return named;
        }
        let addresses = self.addresses.split_ascii_whitespace().filter_map(number).enumerate();
        let unnamed = addresses.map(|(index, address)| {
            // The address of a caller is the return address. The byte before it belongs to the call instruction.
            let address = if index > 0 { address.saturating_sub(1) } else { address };
            builder.location(Location::NO_MAPPING, address, &[])
        });
        unnamed.collect()
    }

    /// Parses the labels of the stack, `{"name":"value", ...}`. Escapes in quoted texts are kept unchanged. A label
    /// without a value is omitted, because pprof cannot represent it.
    pub(super) fn labels(&self) -> impl Iterator<Item = SampleLabel<'a>> {
        let mut rest = self.labels;
        let pairs = std::iter::from_fn(move || {
            let (name, tail) = quoted(rest)?;
            let (value, tail) = quoted(tail.trim_start().strip_prefix(':')?)?;
            rest = tail;
            Some((name, value))
        });
        pairs
            .filter(|(_, value)| !value.is_empty())
            .map(|(name, value)| SampleLabel::Text(name, value))
    }
}

/// Adds the location of a line with a name: `0x4a1b2b  main.work+0x2b  /src/main.go:12`. Returns `None` for a line
/// without a name.
fn location<'a>(line: &'a str, builder: &mut Builder<'a>) -> Option<u32> {
    let mut cells = line.split('\t').map(str::trim).filter(|cell| !cell.is_empty());
    let address = number(cells.next()?)?;
    let name = cells.next()?;
    let name = name.rsplit_once("+0x").map_or(name, |(name, _)| name);
    let position = cells.next().unwrap_or_default();
    let (file, line) = match position.rsplit_once(':') {
        Some((file, line)) => (file, line.parse().unwrap_or(0)),
        None => (position, 0),
    };
    let function = builder.function(Function {
        name,
        system_name: name,
        file,
        start_line: 0,
    });
    Some(builder.location(Location::NO_MAPPING, address, &[Line { function, line }]))
}

/// Returns the text between the first two quotes, and the text after them. A quote after a backslash does not end the
/// text.
fn quoted(text: &str) -> Option<(&str, &str)> {
    let (_, text) = text.split_once('"')?;
    let mut is_escaped = false;
    let end = text.find(|letter| {
        let is_end = letter == '"' && !is_escaped;
        is_escaped = letter == '\\' && !is_escaped;
        is_end
    })?;
    Some((&text[..end], &text[end + 1..]))
}

fn number(text: &str) -> Option<u64> {
    u64::from_str_radix(text.strip_prefix("0x")?, 16).ok()
}
