//! A speedscope file as JSON, read into a few flat columns.
//!
//! In: JSON. Out: [`File`], or an error with line and column. Unknown keys are ignored. [`Samples`] keeps the frames
//! of all stacks in one list, and the index at which each stack ends in a second list. A separate list for each stack
//! would take ten times as much memory as the JSON text.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error, SeqAccess, Unexpected, Visitor};

/// A file with its frames and profiles.
#[derive(Deserialize)]
pub(super) struct File<'a> {
    #[serde(rename = "$schema", borrow, default)]
    pub schema: Cow<'a, str>,
    #[serde(borrow)]
    pub shared: Shared<'a>,
    #[serde(borrow)]
    pub profiles: Vec<OneProfile<'a>>,
}

/// Data that all profiles refer to.
#[derive(Deserialize)]
pub(super) struct Shared<'a> {
    #[serde(borrow)]
    pub frames: Vec<Frame<'a>>,
}

/// A function, and its source file and line if the JSON contains them.
#[derive(Deserialize)]
pub(super) struct Frame<'a> {
    #[serde(borrow)]
    pub name: Cow<'a, str>,
    #[serde(borrow, default)]
    pub file: Option<Cow<'a, str>>,
    #[serde(default)]
    pub line: Option<Amount>,
}

/// One profile of a file. It consists of either events or samples.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct OneProfile<'a> {
    #[serde(rename = "type", borrow)]
    pub kind: Cow<'a, str>,
    #[serde(borrow, default)]
    pub name: Cow<'a, str>,
    #[serde(borrow)]
    pub unit: Cow<'a, str>,
    #[serde(default)]
    pub start_value: Amount,
    #[serde(default)]
    pub end_value: Option<Amount>,
    #[serde(default)]
    pub events: Vec<Event>,
    #[serde(default)]
    pub samples: Samples,
    #[serde(default)]
    pub weights: Vec<Amount>,
}

/// A call that begins or ends.
#[derive(Deserialize)]
pub(super) struct Event {
    #[serde(rename = "type")]
    pub kind: EventKind,
    pub frame: u32,
    pub at: Amount,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
pub(super) enum EventKind {
    #[serde(rename = "O")]
    Open,
    #[serde(rename = "C")]
    Close,
}

/// A number as the file states it: whole numbers keep all of their digits. A text with a number is also accepted,
/// because dotnet-trace wrote some numbers as text until 2021.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Amount {
    Integer(i64),
    Real(f64),
}

impl Default for Amount {
    fn default() -> Self {
        Self::Integer(0)
    }
}

impl Amount {
    /// Returns the difference between this number and `start`, multiplied by `scale` and rounded to a whole number.
    /// Returns `None` if the result does not fit into 64 bits.
    pub(super) fn scaled_difference(self, start: Self, scale: i64) -> Option<i64> {
        match (self, start) {
            (Self::Integer(end), Self::Integer(start)) => {
                let difference = i128::from(end) - i128::from(start);
                i64::try_from(difference * i128::from(scale)).ok()
            }
            (end, start) => {
                let product = ((end.real() - start.real()) * scale as f64).round();
                // 2^63 does not fit into a signed 64-bit number.
                (product.abs() < i64::MAX as f64).then_some(product as i64)
            }
        }
    }

    /// Returns the number as a line number, or 0 if it is not a valid line number.
    pub(super) fn line(self) -> i64 {
        match self {
            Self::Integer(line) => line.max(0),
            Self::Real(_) => 0,
        }
    }

    fn real(self) -> f64 {
        match self {
            Self::Integer(number) => number as f64,
            Self::Real(number) => number,
        }
    }
}

impl<'de> Deserialize<'de> for Amount {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Number;

        impl Visitor<'_> for Number {
            type Value = Amount;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("a number")
            }

            fn visit_i64<E: Error>(self, number: i64) -> Result<Amount, E> {
                Ok(Amount::Integer(number))
            }

            fn visit_u64<E: Error>(self, number: u64) -> Result<Amount, E> {
                Ok(i64::try_from(number).map_or(Amount::Real(number as f64), Amount::Integer))
            }

            fn visit_f64<E: Error>(self, number: f64) -> Result<Amount, E> {
                Ok(Amount::Real(number))
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Amount, E> {
                let real = || text.parse().ok().filter(|number: &f64| number.is_finite());
                let number = text
                    .parse()
                    .map(Amount::Integer)
                    .ok()
                    .or_else(|| real().map(Amount::Real));
                let shown = || text.chars().take(40).collect::<String>();
                number.ok_or_else(|| E::invalid_value(Unexpected::Str(&shown()), &self))
            }
        }

        deserializer.deserialize_any(Number)
    }
}

/// Stacks of samples, the root first.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Samples {
    /// Frames of all stacks, one stack after the other.
    frames: Vec<u32>,
    /// Index at which each stack's frames end.
    ends: Vec<u32>,
}

impl Samples {
    /// Returns the number of stacks in the list.
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns the frames of each stack.
    pub(super) fn stacks(&self) -> impl Iterator<Item = &[u32]> {
        let mut start = 0;
        self.ends.iter().map(move |end| {
            let range = start as usize..*end as usize;
            start = *end;
            self.frames.get(range).unwrap_or_default()
        })
    }
}

impl<'de> Deserialize<'de> for Samples {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Stacks;

        impl<'de> Visitor<'de> for Stacks {
            type Value = Samples;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("a list of stacks")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Samples, A::Error> {
                let mut samples = Samples::default();
                while list.next_element_seed(OneStack(&mut samples.frames))?.is_some() {
                    samples.ends.push(samples.frames.len() as u32);
                }
                Ok(samples)
            }
        }

        deserializer.deserialize_seq(Stacks)
    }
}

/// Appends the frames of a stack.
struct OneStack<'a>(&'a mut Vec<u32>);

impl<'de> DeserializeSeed<'de> for OneStack<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for OneStack<'_> {
    type Value = ();

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a list of frames")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while let Some(frame) = list.next_element()? {
            self.0.push(frame);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_their_digits_and_differences_are_rounded() {
        let read = |text: &str| serde_json::from_str::<Amount>(text).unwrap();
        assert_eq!(read("1700000000000000001"), Amount::Integer(1_700_000_000_000_000_001));
        assert_eq!(read("18446744073709551615"), Amount::Real(18_446_744_073_709_551_615.0));
        assert_eq!(read("\"7\""), Amount::Integer(7));
        assert_eq!(read("\"0.25\""), Amount::Real(0.25));
        for text in ["\"\"", "\"x\"", "\"inf\"", "true", "null"] {
            assert!(serde_json::from_str::<Amount>(text).is_err(), "{text}");
        }
        for (end, start, scale, expected) in [
            ("1700000000000000001", "1700000000000000000", 1, Some(1)),
            ("0.3", "0.1", 1_000_000_000, Some(200_000_000)),
            ("2", "0.5", 1, Some(2)),
            ("-1", "1", 10, Some(-20)),
            ("9223372036854775807", "0", 1, Some(i64::MAX)),
            ("9223372036854775807", "-1", 1, None),
            ("9223372036854775807", "0", 1000, None),
            ("1e300", "0", 1, None),
            ("9223372036854775808", "0", 1, None),
        ] {
            assert_eq!(
                read(end).scaled_difference(read(start), scale),
                expected,
                "{end} {start} {scale}"
            );
        }
        assert_eq!([read("7"), read("-7"), read("7.5")].map(Amount::line), [7, 0, 0]);
    }

    #[test]
    fn stacks_are_one_list_with_their_ends() {
        let read: Samples = serde_json::from_str("[[1, 2], [], [3]]").unwrap();
        assert_eq!(read.len(), 3);
        assert_eq!(read.stacks().collect::<Vec<_>>(), [&[1, 2][..], &[], &[3]]);
        for text in ["[1]", "[[-1]]", "[[4294967296]]", "[[1.5]]", "{}"] {
            assert!(serde_json::from_str::<Samples>(text).is_err(), "{text}");
        }
    }
}
