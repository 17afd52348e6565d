//! Reads a file by offset through a small cache of pages. A reader of a file's tables needs at most two megabytes,
//! however large the tables are or claim to be. All numbers are little-endian.

use std::cell::{Cell, RefCell};
use std::fs::File;
use std::os::unix::fs::FileExt;

const PAGE: usize = 16 << 10;
/// Number of cached pages. A page's number determines its slot.
const PAGES: usize = 128;
/// Maximum number of bytes that are read of a text.
const MAX_TEXT_BYTES: usize = 16 << 10;
/// Maximum count of variable-length numbers plus bytes of text that are read. The tables of the largest programs
/// contain thirty million of them. The limit is needed because an untrusted table may contain a million numbers for
/// each address, and a long text for each function.
const MAX_NUMBERS: usize = 1 << 27;
/// Maximum number of page reads, unless the caller sets a lower limit. Repeated reads of a page count, too. The limit
/// is high enough for many thousand searches that read a few pages in each step.
const MAX_READS: u64 = 1 << 22;

/// A source of bytes at offsets, such as a file or a part of memory.
pub trait Source {
    /// Reads as many bytes from `offset` as exist and fit. Returns 0 at the end and on errors.
    fn read_at(&self, offset: u64, into: &mut [u8]) -> usize;

    /// Returns the number of bytes of memory that the source holds.
    fn held_bytes(&self) -> usize {
        0
    }
}

impl Source for File {
    fn read_at(&self, offset: u64, into: &mut [u8]) -> usize {
        let mut done = 0;
        while let Some(rest) = into.get_mut(done..).filter(|rest| !rest.is_empty()) {
            match FileExt::read_at(self, rest, offset.saturating_add(done as u64)) {
                Ok(0) | Err(_) => break,
                Ok(read) => done += read,
            }
        }
        done
    }
}

impl Source for &[u8] {
    fn read_at(&self, offset: u64, into: &mut [u8]) -> usize {
        let rest = usize::try_from(offset)
            .ok()
            .and_then(|start| self.get(start..))
            .unwrap_or_default();
        let length = rest.len().min(into.len());
        into[..length].copy_from_slice(&rest[..length]);
        length
    }
}

/// A source and a cache of its pages.
pub struct Bytes<'a> {
    source: &'a dyn Source,
    pages: RefCell<Vec<Page>>,
    /// Number of variable-length numbers and bytes of texts that may still be read.
    numbers: Cell<usize>,
    /// Number of pages that may still be read.
    reads: Cell<u64>,
}

#[derive(Clone, Default)]
struct Page {
    /// Number of the page plus 1; 0 for none.
    number: u64,
    bytes: Vec<u8>,
}

impl<'a> Bytes<'a> {
    pub fn new(source: &'a dyn Source) -> Self {
        Self::with_max_reads(source, MAX_READS)
    }

    /// Creates a reader that reads at most `bytes` bytes from the source in total, rounded up to whole pages.
    pub fn of_at_most(source: &'a dyn Source, bytes: u64) -> Self {
        Self::with_max_reads(source, bytes.div_ceil(PAGE as u64))
    }

    fn with_max_reads(source: &'a dyn Source, reads: u64) -> Self {
        Self {
            source,
            pages: RefCell::new(vec![Page::default(); PAGES]),
            numbers: Cell::new(MAX_NUMBERS),
            reads: Cell::new(reads),
        }
    }

    /// Fills `into`. Returns `None` if there are too few bytes, or if too many pages were read.
    pub fn read(&self, offset: u64, into: &mut [u8]) -> Option<()> {
        let mut filled_bytes = 0;
        while filled_bytes < into.len() {
            let position = offset.checked_add(filled_bytes as u64)?;
            let number = position / PAGE as u64;
            let page_offset = (position % PAGE as u64) as usize;
            let mut pages = self.pages.borrow_mut();
            let page = pages.get_mut((number % PAGES as u64) as usize)?;
            if page.number != number + 1 {
                self.reads.set(self.reads.get().checked_sub(1)?);
                page.bytes.resize(PAGE, 0);
                let read = self.source.read_at(number * PAGE as u64, &mut page.bytes);
                page.bytes.truncate(read);
                page.number = number + 1;
            }
            let rest = page.bytes.get(page_offset..).filter(|rest| !rest.is_empty())?;
            let length = rest.len().min(into.len() - filled_bytes);
            into[filled_bytes..filled_bytes + length].copy_from_slice(&rest[..length]);
            filled_bytes += length;
        }
        Some(())
    }

    pub fn u8(&self, offset: u64) -> Option<u8> {
        let mut bytes = [0; 1];
        self.read(offset, &mut bytes)?;
        Some(bytes[0])
    }

    /// Reads four bytes at an offset as a number.
    pub fn u32(&self, offset: u64) -> Option<u32> {
        let mut bytes = [0; 4];
        self.read(offset, &mut bytes)?;
        Some(u32::from_le_bytes(bytes))
    }

    /// Reads eight bytes at an offset as a number.
    pub fn u64(&self, offset: u64) -> Option<u64> {
        let mut bytes = [0; 8];
        self.read(offset, &mut bytes)?;
        Some(u64::from_le_bytes(bytes))
    }

    /// Reads the text up to the next zero byte, cut at 16 KiB. Returns `None` if there is no byte at the offset, or if
    /// too much was read.
    pub fn text(&self, offset: u64) -> Option<String> {
        let mut text = Vec::new();
        while text.len() < MAX_TEXT_BYTES {
            match self.u8(offset.checked_add(text.len() as u64)?) {
                Some(0) => break,
                Some(byte) => text.push(byte),
                None if text.is_empty() => return None,
                None => break,
            }
        }
        self.numbers.set(self.numbers.get().checked_sub(text.len())?);
        Some(String::from_utf8_lossy(&text).into_owned())
    }

    /// Reads an unsigned LEB128 number. Returns it and the offset after it, or `None` if too many numbers were read.
    pub(crate) fn uleb128(&self, mut offset: u64) -> Option<(u64, u64)> {
        self.numbers.set(self.numbers.get().checked_sub(1)?);
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.u8(offset)?;
            offset = offset.checked_add(1)?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some((value, offset));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_text_across_pages_are_read_and_the_end_is_none() {
        let mut bytes = vec![7_u8; PAGE * 3];
        bytes[PAGE - 2..PAGE + 2].copy_from_slice(&0x0403_0201_u32.to_le_bytes());
        bytes[2 * PAGE - 3..2 * PAGE + 3].copy_from_slice(b"name\0x");
        bytes.extend_from_slice(&[0xe5, 0x8e, 0x26]);
        let source: &[u8] = &bytes;
        let read = Bytes::new(&source);
        assert_eq!(read.u32(PAGE as u64 - 2), Some(0x0403_0201));
        assert_eq!(read.text(2 * PAGE as u64 - 3).as_deref(), Some("name"));
        assert_eq!(read.uleb128(3 * PAGE as u64), Some((624_485, 3 * PAGE as u64 + 3)));
        assert_eq!(read.u32(3 * PAGE as u64), None);
        assert_eq!(read.u64(u64::MAX - 3), None);
        let two = Bytes::of_at_most(&source, PAGE as u64 + 1);
        let first = |page: usize| two.u8((page * PAGE) as u64);
        assert_eq!(
            [first(0), first(1), first(2), first(1)],
            [Some(7), Some(3), None, Some(3)]
        );
        read.numbers.set(4);
        assert!(read.text(2 * PAGE as u64 - 3).is_some());
        assert_eq!(read.text(2 * PAGE as u64 - 3), None);
        read.numbers.set(1);
        assert!(read.uleb128(3 * PAGE as u64).is_some());
        assert_eq!(read.uleb128(3 * PAGE as u64), None);
    }
}
