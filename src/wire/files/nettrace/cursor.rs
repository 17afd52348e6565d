//! Reads numbers and texts of a .NET trace one after the other, and keeps the position for errors.

use alluvium_profile::call_tree::LimitExceeded;

/// An error in a file, with its offset in bytes if it has one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Problem {
    #[error("byte {position}: {needed} bytes are missing")]
    Short { position: usize, needed: usize },
    #[error("byte {position}: {reason}")]
    Malformed { position: usize, reason: &'static str },
    #[error("byte {position}: there are more than {limit} {parts}")]
    TooManyParts {
        position: usize,
        limit: usize,
        parts: &'static str,
    },
    #[error(
        "its version is {0}, but only versions 4 and 5 are supported: collect with `dotnet-trace collect`, or \
            convert the file with `dotnet-trace convert --format Speedscope`"
    )]
    Version(u32),
    #[error("it does not describe the trace: the object `Trace` is missing")]
    NoHeader,
    #[error(
        "it has no thread samples: collect with the provider `Microsoft-DotNETCore-SampleProfiler`, as the \
            default profile of `dotnet-trace collect` does"
    )]
    NoSamples,
    #[error("it has no method names: the trace ended before the program had written them")]
    NoNames,
    #[error("its method names have more than {0} bytes")]
    Names(usize),
    #[error(transparent)]
    TooMany(#[from] LimitExceeded),
}

/// A part of a file. All numbers are little-endian.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cursor<'a> {
    /// The file up to the end of the part.
    data: &'a [u8],
    position: usize,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(data: &'a [u8]) -> Self {
        Self { data, position: 0 }
    }

    /// Returns the offset from the beginning of the file.
    pub(super) fn position(&self) -> usize {
        self.position
    }

    pub(super) fn is_at_end(&self) -> bool {
        self.position >= self.data.len()
    }

    pub(super) fn malformed(&self, reason: &'static str) -> Problem {
        Problem::Malformed {
            position: self.position,
            reason,
        }
    }

    pub(super) fn bytes(&mut self, length: usize) -> Result<&'a [u8], Problem> {
        let end = self.position.saturating_add(length);
        let bytes = self.data.get(self.position..end).ok_or(Problem::Short {
            position: self.position,
            needed: end.saturating_sub(self.data.len()),
        })?;
        self.position = end;
        Ok(bytes)
    }

    fn fixed<const N: usize>(&mut self) -> Result<[u8; N], Problem> {
        let mut fixed = [0; N];
        fixed.copy_from_slice(self.bytes(N)?);
        Ok(fixed)
    }

    pub(super) fn u8(&mut self) -> Result<u8, Problem> {
        Ok(u8::from_le_bytes(self.fixed()?))
    }

    pub(super) fn u16(&mut self) -> Result<u16, Problem> {
        Ok(u16::from_le_bytes(self.fixed()?))
    }

    pub(super) fn u32(&mut self) -> Result<u32, Problem> {
        Ok(u32::from_le_bytes(self.fixed()?))
    }

    pub(super) fn u64(&mut self) -> Result<u64, Problem> {
        Ok(u64::from_le_bytes(self.fixed()?))
    }

    /// Reads a number of variable length, with seven bits in each byte.
    pub(super) fn number(&mut self) -> Result<u64, Problem> {
        let mut number = 0;
        for shift in (0..70).step_by(7) {
            let byte = self.u8()?;
            // Of the tenth byte, only one bit fits into the result.
            number |= u64::from(byte & 0x7f).unbounded_shl(shift);
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(self.malformed("a number does not end"))
    }

    /// Reads a number of variable length that has at most 32 bits.
    pub(super) fn small_number(&mut self) -> Result<u32, Problem> {
        let number = self.number()?;
        u32::try_from(number).map_err(|_| self.malformed("a number has more than 32 bits"))
    }

    /// Reads the bytes of a UTF-16 text, without the terminating zero.
    pub(super) fn text(&mut self) -> Result<Text<'a>, Problem> {
        let rest = self.data.get(self.position..).unwrap_or_default();
        let units = rest.as_chunks::<2>().0;
        let Some(length) = units.iter().position(|unit| *unit == [0; 2]) else {
            return Err(self.malformed("a text does not end"));
        };
        let bytes = self.bytes(2 * length)?;
        self.bytes(2)?;
        Ok(Text(bytes))
    }

    /// Returns the next `length` bytes as a part and continues after them.
    pub(super) fn part(&mut self, length: usize) -> Result<Self, Problem> {
        let position = self.position;
        self.bytes(length)?;
        let data = self.data.get(..self.position).unwrap_or_default();
        Ok(Self { data, position })
    }

    /// Skips to a multiple of four bytes.
    pub(super) fn align(&mut self) -> Result<(), Problem> {
        let remainder = self.position % 4;
        self.bytes((4 - remainder) % 4).map(|_| ())
    }
}

/// A UTF-16 text as it is in the file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Text<'a>(&'a [u8]);

impl Text<'_> {
    /// Returns true when the text is equal to `ascii`.
    pub(super) fn equals(self, ascii: &str) -> bool {
        let units = self.0.as_chunks::<2>().0;
        units.len() == ascii.len() && units.iter().zip(ascii.bytes()).all(|(unit, byte)| *unit == [byte, 0])
    }

    /// Returns the length in the file in bytes.
    pub(super) fn len(self) -> usize {
        self.0.len()
    }

    /// Appends the text to `out` and replaces invalid characters.
    pub(super) fn push_to(self, out: &mut String) {
        let units = self.0.as_chunks::<2>().0.iter().map(|unit| u16::from_le_bytes(*unit));
        let letters = char::decode_utf16(units);
        out.extend(letters.map(|letter| letter.unwrap_or(char::REPLACEMENT_CHARACTER)));
    }
}
