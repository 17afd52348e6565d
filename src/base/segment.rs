//! Segment files of checksummed records: the one on-disk log format, used by the server's write-ahead log and by the
//! durable queue of `pyroscope.write`.
//!
//! A record is `length u32 LE | crc32 (IEEE) of payload u32 LE | payload`. A file begins with the 8 bytes [`MAGIC`], or
//! with [`KEYED_MAGIC`] and three copies of a [`Key`]. The key is the initial value of each CRC. After damage, the
//! reader searches for the next valid record, also inside payloads, which hold untrusted bytes. The client that
//! sent a payload does not know the key, so it cannot forge a record inside the payload.
//!
//! A torn tail is an unfinished write: the last record is shorter than its header states. The reader reports it without
//! an error. Invalid bytes before a valid record are damage. A record of full length with a wrong checksum is damage
//! too, even at the end of the file. The caller decides when to sync, and whether it tolerates a torn tail.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

/// First bytes of a segment file without a key.
pub const MAGIC: [u8; 8] = *b"ALLUSEG\x01";
/// First bytes of a segment file with a key. No single flipped bit turns one magic into the other.
const KEYED_MAGIC: [u8; 8] = *b"ALLUSEG\xfe";
/// Number of bytes of the magic and of the three copies of the key.
pub const KEYED_HEADER_BYTES: usize = 20;

/// Number of bytes that precede each payload: its length and its checksum.
pub const RECORD_HEADER_BYTES: usize = 8;

/// Maximum total size of the payloads whose checksums are computed while one segment is searched for valid records.
/// The checksums of so many bytes take some seconds.
const SEARCH_BYTES: u64 = 4 << 30;

/// Largest payload that a reader accepts (1 GiB). A larger length is damage, not data.
pub const MAX_RECORD_BYTES: usize = 1 << 30;

/// Appends the framing of `payload` and the payload itself to `out`. The caller writes and syncs `out`.
pub fn encode_record(payload: &[u8], out: &mut Vec<u8>) {
    encode_record_parts(&[payload], out);
}

/// Like [`encode_record`], for a payload in several parts. The caller need not copy a header and a shared body into one
/// buffer.
pub fn encode_record_parts(parts: &[&[u8]], out: &mut Vec<u8>) {
    Key::NONE.encode(parts, out);
}

/// The initial value of the checksums of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key(u32);

impl Key {
    /// The initial value in a segment without a key.
    const NONE: Self = Self(0);

    /// Creates a key that nobody can predict.
    pub fn random() -> Self {
        Self(rand::random())
    }

    /// Returns the first bytes of a segment with this key.
    pub(crate) fn header(self) -> [u8; KEYED_HEADER_BYTES] {
        let mut header = [0; KEYED_HEADER_BYTES];
        let (magic, copies) = header.split_at_mut(KEYED_MAGIC.len());
        magic.copy_from_slice(&KEYED_MAGIC);
        copies
            .chunks_exact_mut(4)
            .for_each(|copy| copy.copy_from_slice(&self.0.to_le_bytes()));
        header
    }

    /// Appends a payload in several parts, with its framing.
    pub fn encode(self, parts: &[&[u8]], out: &mut Vec<u8>) {
        let length: usize = parts.iter().map(|part| part.len()).sum();
        let mut hasher = crc32fast::Hasher::new_with_initial(self.0);
        for part in parts {
            hasher.update(part);
        }
        out.reserve(RECORD_HEADER_BYTES + length);
        out.extend_from_slice(&(length as u32).to_le_bytes());
        out.extend_from_slice(&hasher.finalize().to_le_bytes());
        for part in parts {
            out.extend_from_slice(part);
        }
    }

    /// Returns the checksum of a record with this payload.
    pub fn checksum(self, payload: &[u8]) -> u32 {
        let mut hasher = crc32fast::Hasher::new_with_initial(self.0);
        hasher.update(payload);
        hasher.finalize()
    }

    /// Creates a new segment at `path` and writes its header, without syncing it. Fails if the file exists.
    pub fn create(self, path: &Path) -> io::Result<File> {
        create_with(path, &self.header())
    }
}

/// The first bytes of a segment file: the magic, and the key if the file has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opening {
    pub key: Key,
    /// Offset of the first record.
    pub bytes: usize,
    /// Number of bytes of a damaged magic, 0 if the magic is intact.
    pub damaged_bytes: u64,
}

impl Opening {
    /// Reads the opening of a file. The magic and one of the three copies of the key may be damaged. Returns `None`
    /// if `data` is too short.
    pub fn of(data: &[u8]) -> Option<Self> {
        let magic = data.first_chunk::<8>()?;
        let distance = |other: [u8; 8]| -> u32 {
            let pairs = magic.iter().zip(other);
            pairs.map(|(left, right)| (left ^ right).count_ones()).sum()
        };
        let (plain, keyed) = (distance(MAGIC), distance(KEYED_MAGIC));
        let damaged_bytes = if plain.min(keyed) > 0 { magic.len() as u64 } else { 0 };
        if plain <= keyed {
            return Some(Self {
                key: Key::NONE,
                bytes: magic.len(),
                damaged_bytes,
            });
        }
        let header = data.first_chunk::<KEYED_HEADER_BYTES>()?;
        let copy = |offset: usize| {
            u32::from_le_bytes([
                header[offset],
                header[offset + 1],
                header[offset + 2],
                header[offset + 3],
            ])
        };
        let (one, two, three) = (copy(8), copy(12), copy(16));
        Some(Self {
            key: Key((one & two) | (two & three) | (one & three)),
            bytes: header.len(),
            damaged_bytes,
        })
    }
}

/// Creates a new segment without a key at `path` and writes its magic, without syncing it. Fails if the file exists.
pub fn create(path: &Path) -> io::Result<File> {
    create_with(path, &MAGIC)
}

fn create_with(path: &Path, header: &[u8]) -> io::Result<File> {
    let mut file = File::options().create_new(true).append(true).read(true).open(path)?;
    file.write_all(header)?;
    Ok(file)
}

/// The result of reading a whole segment.
#[derive(Debug, Default)]
pub struct SegmentContents {
    /// Payloads in the order in which they were written.
    pub records: Vec<bytes::Bytes>,
    /// Offset at which the last valid record ends. The caller may truncate the file there before it appends again.
    pub valid_bytes: u64,
    /// Number of bytes of the torn tail, 0 if there is none.
    pub torn_bytes: u64,
    /// Number of damaged bytes. Bytes after the last valid record count here if they are a damaged record of full
    /// length, and otherwise in `torn_bytes`.
    pub damaged_bytes: u64,
}

/// Reads all records of the segment at `path`. Fails with the error of the file system, or with `InvalidData` if the
/// file is not a segment.
pub fn read(path: &Path) -> io::Result<SegmentContents> {
    let mut data = Vec::new();
    File::open(path)?.read_to_end(&mut data)?;
    parse(bytes::Bytes::from(data)).map_err(|error| {
        io::Error::new(
            io::ErrorKind::InvalidData,
            format!("{} is not a segment file: {error}", path.display()),
        )
    })
}

/// The error of a file that is not a segment. It shows the first bytes of the file.
#[derive(Debug, thiserror::Error)]
#[error("it starts with {0:02x?}")]
pub struct NotASegment([u8; MAGIC.len()]);

/// Splits the bytes of a segment file into records. A file that is shorter than its opening has no records: the process
/// was stopped while it created the file.
pub fn parse(data: bytes::Bytes) -> Result<SegmentContents, NotASegment> {
    match (Opening::of(&data), data.first_chunk().copied()) {
        (Some(opening), _) if opening.damaged_bytes == 0 => Ok(records(data, opening.bytes, opening.key)),
        (Some(_), Some(start)) => Err(NotASegment(start)),
        _ => Ok(SegmentContents {
            torn_bytes: data.len() as u64,
            ..SegmentContents::default()
        }),
    }
}

/// Splits the bytes of a segment file into records, from `position` on, where a valid or damaged record begins.
pub fn records(data: bytes::Bytes, mut position: usize, key: Key) -> SegmentContents {
    let mut contents = SegmentContents {
        valid_bytes: position as u64,
        ..SegmentContents::default()
    };
    let (mut left, mut unbounded) = (SEARCH_BYTES, u64::MAX);
    while position < data.len() {
        if let Some(end) = record_at(&data, position, key, &mut unbounded) {
            contents.records.push(data.slice(position + RECORD_HEADER_BYTES..end));
            position = end;
            contents.valid_bytes = end as u64;
            continue;
        }
        // No valid record starts here. If a later one exists, the bytes up to it are damaged.
        let mut starts = position + 1..data.len();
        match starts.find(|start| record_at(&data, *start, key, &mut left).is_some()) {
            Some(next) => {
                contents.damaged_bytes += (next - position) as u64;
                position = next;
            }
            None => break,
        }
    }
    let tail = &data[contents.valid_bytes as usize..];
    if is_whole_record(tail, key) {
        contents.damaged_bytes += tail.len() as u64;
    } else {
        contents.torn_bytes = tail.len() as u64;
    }
    contents
}

/// Returns true if `tail`, the bytes after the last valid record, is damaged, and false if it is a torn tail. The tail
/// is damaged if the record at its start is complete, or if the length of this record is impossible. The tail is also
/// damaged if the record's checksum matches all remaining bytes, because then only the length is wrong. Zeros
/// alone are a torn tail: the file system may leave them in place of a write that was never synced.
fn is_whole_record(tail: &[u8], key: Key) -> bool {
    let Some(header) = tail.first_chunk::<RECORD_HEADER_BYTES>() else {
        return false;
    };
    let [a, b, c, d, e, f, g, h] = *header;
    let payload = &tail[RECORD_HEADER_BYTES..];
    match u32::from_le_bytes([a, b, c, d]) as usize {
        0 => tail.iter().any(|byte| *byte != 0),
        length if length > MAX_RECORD_BYTES || length <= payload.len() => true,
        _ => !payload.is_empty() && key.checksum(payload) == u32::from_le_bytes([e, f, g, h]),
    }
}

/// Returns the end offset of the valid record at `start`, if there is one. A length of zero is invalid; otherwise the
/// zeros that a file system may leave in place of a write could look like valid records. The function subtracts the
/// payload's length from `left`. If `left` is too small, the function computes no checksum and returns `None`.
fn record_at(data: &[u8], start: usize, key: Key, left: &mut u64) -> Option<usize> {
    let header = data.get(start..start + RECORD_HEADER_BYTES)?;
    let length = u32::from_le_bytes(header[..4].try_into().ok()?) as usize;
    let checksum = u32::from_le_bytes(header[4..].try_into().ok()?);
    if length == 0 || length > MAX_RECORD_BYTES {
        return None;
    }
    let end = start.checked_add(RECORD_HEADER_BYTES)?.checked_add(length)?;
    let payload = data.get(start + RECORD_HEADER_BYTES..end)?;
    *left = left.checked_sub(length as u64)?;
    (key.checksum(payload) == checksum).then_some(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment(payloads: &[&[u8]]) -> Vec<u8> {
        let mut data = MAGIC.to_vec();
        for payload in payloads {
            encode_record(payload, &mut data);
        }
        data
    }

    #[test]
    fn records_come_back_in_order() {
        let contents = parse(segment(&[b"one", b"two", b"three"]).into()).unwrap();
        assert_eq!(contents.records, ["one", "two", "three"]);
        assert_eq!((contents.torn_bytes, contents.damaged_bytes), (0, 0));
    }

    #[test]
    fn a_cut_at_any_byte_keeps_every_whole_record_before_it() {
        let data = segment(&[b"one", b"two", b"three"]);
        for length in 0..data.len() {
            let contents = parse(data[..length].to_vec().into()).unwrap();
            assert!(contents.records.len() < 3);
            assert_eq!(contents.valid_bytes + contents.torn_bytes, length as u64);
        }
    }

    #[test]
    fn a_flipped_byte_loses_only_its_own_record() {
        let clean = segment(&[b"one", b"two", b"three"]);
        for index in MAGIC.len()..clean.len() {
            let mut data = clean.clone();
            data[index] ^= 0x40;
            let contents = parse(data.into()).unwrap();
            assert_eq!(contents.records.len(), 2, "byte {index}");
        }
    }

    #[test]
    fn a_damaged_last_record_is_no_unfinished_write() {
        let clean = segment(&[b"one", b"two", b"three"]);
        let last = clean.len() - b"three".len() - RECORD_HEADER_BYTES;
        for index in last..clean.len() {
            let mut data = clean.clone();
            data[index] ^= 0x40;
            let contents = parse(data.into()).unwrap();
            assert_eq!(
                (contents.torn_bytes, contents.damaged_bytes),
                (0, (clean.len() - last) as u64),
                "byte {index}"
            );
        }
        // Zeros in place of a write that was never synced.
        let hole = [&clean[..last], &[0; 40]].concat();
        assert_eq!(parse(hole.into()).unwrap().torn_bytes, 40);
    }

    #[test]
    fn a_record_inside_of_a_payload_is_never_found() {
        let key = Key(0x1234_5678);
        let mut inner = Vec::new();
        encode_record(b"forged", &mut inner);
        Key(0x1234_5679).encode(&[b"forged"], &mut inner);
        let mut data = key.header().to_vec();
        key.encode(&[b"one"], &mut data);
        let before = data.len();
        key.encode(&[b"payload with ", &inner, b" in it"], &mut data);
        for length in before..data.len() {
            assert_eq!(parse(data[..length].to_vec().into()).unwrap().records, ["one"]);
        }
        for index in before..data.len() {
            let mut data = data.clone();
            data[index] ^= 0x40;
            key.encode(&[b"three"], &mut data);
            assert_eq!(parse(data.into()).unwrap().records, ["one", "three"], "byte {index}");
        }
    }

    #[test]
    fn a_flipped_bit_in_the_opening_hides_no_record() {
        for key in [Key::NONE, Key(u32::MAX), Key(0x0f1e_2d3c)] {
            for bit in 0..KEYED_HEADER_BYTES * 8 {
                let mut header = key.header();
                header[bit / 8] ^= 1 << (bit % 8);
                let opening = Opening::of(&header).unwrap();
                assert_eq!((opening.key, opening.bytes), (key, KEYED_HEADER_BYTES), "bit {bit}");
                assert_eq!(opening.damaged_bytes > 0, bit < 64);
            }
        }
        for bit in 0..64 {
            let mut header = MAGIC;
            header[bit / 8] ^= 1 << (bit % 8);
            let opening = Opening::of(&header).unwrap();
            assert_eq!((opening.key, opening.bytes, opening.damaged_bytes), (Key::NONE, 8, 8));
        }
    }

    #[test]
    fn a_search_among_many_plausible_lengths_ends() {
        // At each offset, the bytes are a possible length of a record: 64 KiB, 256 bytes, 1 byte or 16 MiB.
        let payload = [0, 0, 1, 0].repeat(1 << 18);
        let mut data = segment(&[b"one", &payload]);
        data.pop();
        let contents = parse(data.into()).unwrap();
        assert_eq!(contents.records, ["one"]);
    }

    #[test]
    fn a_foreign_file_is_refused() {
        assert!(parse(bytes::Bytes::from_static(b"PAR1PAR1PAR1")).is_err());
    }
}
