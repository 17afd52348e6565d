//! Textual profiles of Go's `net/http/pprof` (`debug=1`): profiles of the kinds heap, block and mutex, and profiles
//! that count stacks, such as goroutine and threadcreate.
//!
//! In: the text. Out: a profile that borrows from it. The frames of a stack come from the lines with names (`#`) that
//! Go prints, or from the addresses if a stack has no such lines. Values are scaled as `go tool pprof` scales them.
//! Everything after the stacks, such as memory statistics, is ignored. The binary form of CPU profiles is not
//! supported.

mod error;
mod lines;

use crate::legacy::lines::{Lines, Stack};
use crate::pprof::{Builder, Profile, ValueType};

pub use error::LegacyError;

/// Limits on the stacks and frames of a text. They keep the result below 200 MiB.
const MAX_STACKS: usize = 1 << 18;
const MAX_FRAMES: usize = 1 << 20;
/// Maximum length of the first line in bytes. It contains a name and some numbers.
const MAX_HEADER: usize = 256;
const SECOND_NANOS: f64 = 1e9;

/// Kind of a textual profile, from its first line.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind<'a> {
    /// Objects and bytes, in use and allocated, sampled once per `rate` bytes.
    Heap { rate: i64 },
    /// Number of occurrences of each stack; the text is the name of the counted items.
    Count(&'a str),
    /// Waits, and their duration in cycles.
    Contention,
    /// Waits for mutexes. Go has already scaled the numbers by the sampling period.
    Mutex,
}

/// Returns true for bytes that begin like a textual profile.
pub fn is_like(data: &[u8]) -> bool {
    let line = data.split(|byte| *byte == b'\n').next().unwrap_or_default();
    line.len() <= MAX_HEADER && std::str::from_utf8(line).is_ok_and(|line| Kind::parse(line).is_some())
}

/// Reads a profile from the text of one response.
pub fn read(data: &[u8]) -> Result<Profile<'_>, LegacyError> {
    let text = std::str::from_utf8(data).map_err(|_| LegacyError::NotText)?;
    let mut lines = Lines::new(text);
    let kind = lines.next_line().and_then(Kind::parse).ok_or(LegacyError::Header)?;
    let scale = match kind {
        Kind::Contention | Kind::Mutex => Scale::read(&mut lines, kind)?,
        Kind::Heap { .. } | Kind::Count(_) => Scale::default(),
    };
    let mut builder = Builder::new(kind.profile());
    let (mut stacks, mut frames) = (0, 0);
    while let Some(stack) = lines.stack(kind.form())? {
        stacks += 1;
        frames += stack.frames();
        for (count, limit, item) in [(stacks, MAX_STACKS, "stacks"), (frames, MAX_FRAMES, "frames")] {
            if count > limit {
                return Err(LegacyError::TooMany(limit, item));
            }
        }
        let values = kind.values(&stack, &scale);
        let locations = stack.locations(&mut builder);
        builder.sample(locations, stack.labels(), &values);
    }
    Ok(builder.finish())
}

impl<'a> Kind<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        if line.len() > MAX_HEADER {
            return None;
        }
        match line.trim_end() {
            "--- contention:" => return Some(Self::Contention),
            "--- mutex:" => return Some(Self::Mutex),
            _ => {}
        }
        let (name, rest) = line.split_once(" profile: ")?;
        if name == "heap" {
            let (_, rate) = rest.split_once("@ heap/")?;
            // For historical reasons, Go writes twice the rate.
            return Some(Self::Heap {
                rate: rate.trim().parse::<i64>().ok()? / 2,
            });
        }
        let count = rest.trim_end().strip_prefix("total ")?;
        let is_name = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        (is_name && count.parse::<u64>().is_ok()).then_some(Self::Count(name))
    }

    /// Returns the form of the stacks of this kind.
    fn form(self) -> lines::Form {
        match self {
            Self::Heap { .. } => lines::Form::Heap,
            Self::Count(_) => lines::Form::Count,
            Self::Contention | Self::Mutex => lines::Form::Contention,
        }
    }

    /// Creates an empty profile with the types of this kind.
    fn profile(self) -> Profile<'a> {
        let kind = |kind, unit| ValueType { kind, unit };
        let (sample_types, period_type, period) = match self {
            Self::Heap { rate } => (
                vec![
                    kind("alloc_objects", "count"),
                    kind("alloc_space", "bytes"),
                    kind("inuse_objects", "count"),
                    kind("inuse_space", "bytes"),
                ],
                kind("space", "bytes"),
                rate,
            ),
            Self::Count(name) => (vec![kind(name, "count")], kind(name, "count"), 1),
            Self::Contention | Self::Mutex => (
                vec![kind("contentions", "count"), kind("delay", "nanoseconds")],
                kind("contentions", "count"),
                1,
            ),
        };
        Profile {
            sample_types,
            period_type,
            period,
            ..Profile::default()
        }
    }

    /// Returns the values of a stack, one for each sample type.
    fn values(self, stack: &Stack<'_>, scale: &Scale) -> Vec<i64> {
        match (self, stack.numbers) {
            (Self::Heap { rate }, [in_use, bytes_in_use, allocated, bytes_allocated]) => {
                let total = unsampled(allocated, bytes_allocated, rate);
                let live = unsampled(in_use, bytes_in_use, rate);
                vec![total.0, total.1, live.0, live.1]
            }
            (Self::Count(_), [count, ..]) => vec![count],
            (Self::Contention | Self::Mutex, [cycles, count, ..]) => {
                let delay = cycles as f64 * scale.period as f64 * SECOND_NANOS / scale.cycles_per_second;
                vec![count.saturating_mul(scale.period), delay as i64]
            }
        }
    }
}

/// Factors that convert the numbers of a contention profile to waits and nanoseconds.
struct Scale {
    cycles_per_second: f64,
    period: i64,
}

/// By default, cycles are nanoseconds and every wait is counted.
impl Default for Scale {
    fn default() -> Self {
        Self {
            cycles_per_second: SECOND_NANOS,
            period: 1,
        }
    }
}

impl Scale {
    /// Reads the lines `name=value` before the stacks.
    fn read(lines: &mut Lines<'_>, kind: Kind<'_>) -> Result<Self, LegacyError> {
        let mut scale = Self::default();
        while let Some((name, value)) = lines.setting() {
            let value = value.parse::<i64>().ok().filter(|value| *value > 0);
            match (name, value) {
                ("cycles/second", Some(value)) => scale.cycles_per_second = value as f64,
                ("sampling period", Some(value)) if kind == Kind::Contention => scale.period = value,
                ("cycles/second", None) => return Err(LegacyError::Line(lines.number(), "number of cycles")),
                _ => {}
            }
        }
        Ok(scale)
    }
}

/// Estimates the numbers of all objects and bytes from the numbers of sampled objects and bytes. Larger objects are
/// more likely to be sampled.
fn unsampled(objects: i64, bytes: i64, rate: i64) -> (i64, i64) {
    if objects == 0 || bytes == 0 || rate <= 1 {
        return (objects, bytes);
    }
    let size = bytes as f64 / objects as f64;
    let scale = 1.0 / (1.0 - (-size / rate as f64).exp());
    ((objects as f64 * scale) as i64, (bytes as f64 * scale) as i64)
}

#[cfg(test)]
mod tests;
