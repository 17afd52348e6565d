//! Segment files of checksummed records: the one on-disk log format, used by the server's write-ahead log and by the
//! durable queue of `pyroscope.write`.
//!
//! A record is `length u32 LE | crc32 (IEEE) of payload u32 LE | payload`. A file opens with the 8 bytes [`MAGIC`]. A
//! torn tail (a record that is shorter than it says) ends the file and is reported, never an error. A record of full
//! length with a wrong checksum is damage, at the end too, and so is everything before a valid record. The caller
//! decides when to sync, and whether the file may end in a torn tail at all.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

/// First bytes of every segment file; the last byte is the format version.
pub(crate) const MAGIC: [u8; 8] = *b"ALLUSEG\x01";

/// Bytes that precede each payload.
pub(crate) const RECORD_HEADER_BYTES: usize = 8;

/// Largest payload that a reader accepts (1 GiB): a length beyond it is damage, not data.
pub(crate) const MAX_RECORD_BYTES: usize = 1 << 30;

/// Appends the framing of `payload` and the payload itself to `out`; the caller writes and syncs `out`.
pub(crate) fn encode_record(payload: &[u8], out: &mut Vec<u8>) {
    encode_record_parts(&[payload], out);
}

/// As [`encode_record`] for a payload in several parts, which avoids a copy of a header and a shared body.
pub(crate) fn encode_record_parts(parts: &[&[u8]], out: &mut Vec<u8>) {
    let length: usize = parts.iter().map(|part| part.len()).sum();
    let mut hasher = crc32fast::Hasher::new();
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

/// Creates a new segment at `path` with its magic written, not yet synced. Fails when the file exists.
pub(crate) fn create(path: &Path) -> io::Result<File> {
    let mut file = File::options().create_new(true).append(true).read(true).open(path)?;
    file.write_all(&MAGIC)?;
    Ok(file)
}

/// The result of reading a whole segment.
#[derive(Debug, Default)]
pub(crate) struct SegmentContents {
    /// Payloads in the order in which they were written.
    pub records: Vec<bytes::Bytes>,
    /// Length of the valid part in bytes; the file may be truncated to it before it is appended to again.
    pub valid_bytes: u64,
    /// Bytes of an unfinished write after the valid part, 0 for a clean file.
    pub torn_bytes: u64,
    /// Damaged bytes. Valid records after them are in `records`; after the last one they are a record of full length.
    pub damaged_bytes: u64,
}

/// Reads all records of the segment at `path`. Errors are those of the file system, and `InvalidData` for a file that
/// is not a segment.
pub(crate) fn read(path: &Path) -> io::Result<SegmentContents> {
    let mut data = Vec::new();
    File::open(path)?.read_to_end(&mut data)?;
    parse(bytes::Bytes::from(data)).map_err(|reason| {
        io::Error::new(
            io::ErrorKind::InvalidData,
            format!("{} is not a segment file: {reason}", path.display()),
        )
    })
}

/// Splits the bytes of a segment file into records. An empty or shorter-than-magic file is a torn creation: no records.
pub(crate) fn parse(data: bytes::Bytes) -> Result<SegmentContents, String> {
    let mut contents = SegmentContents::default();
    if data.len() < MAGIC.len() {
        contents.torn_bytes = data.len() as u64;
        return Ok(contents);
    }
    if data[..MAGIC.len()] != MAGIC {
        return Err(format!("it starts with {:02x?}", &data[..MAGIC.len()]));
    }
    let mut position = MAGIC.len();
    contents.valid_bytes = position as u64;
    while position < data.len() {
        if let Some(end) = record_at(&data, position) {
            contents.records.push(data.slice(position + RECORD_HEADER_BYTES..end));
            position = end;
            contents.valid_bytes = end as u64;
            continue;
        }
        // No valid record here: a torn tail, or damage before later records. Search for the next valid record.
        match (position + 1..data.len()).find_map(|start| record_at(&data, start).map(|_| start)) {
            Some(next) => {
                contents.damaged_bytes += (next - position) as u64;
                position = next;
            }
            None => break,
        }
    }
    let tail = &data[contents.valid_bytes as usize..];
    if is_whole_record(tail) {
        contents.damaged_bytes += tail.len() as u64;
    } else {
        contents.torn_bytes = tail.len() as u64;
    }
    Ok(contents)
}

/// Whether bytes without a valid record hold all of the record that they begin with, so that it is damaged. Zeros are
/// a hole that the file system left of a write. Where the length alone is damaged, the checksum is that of what
/// follows.
fn is_whole_record(tail: &[u8]) -> bool {
    let Some(header) = tail.first_chunk::<RECORD_HEADER_BYTES>() else {
        return false;
    };
    let [a, b, c, d, e, f, g, h] = *header;
    let payload = &tail[RECORD_HEADER_BYTES..];
    match u32::from_le_bytes([a, b, c, d]) as usize {
        0 => tail.iter().any(|byte| *byte != 0),
        length if length > MAX_RECORD_BYTES || length <= payload.len() => true,
        _ => !payload.is_empty() && crc32fast::hash(payload) == u32::from_le_bytes([e, f, g, h]),
    }
}

/// End offset of the valid record that starts at `start`, if there is one. Zero-length records do not exist: a run of
/// zero bytes (a hole that the file system left) must not read as records.
fn record_at(data: &[u8], start: usize) -> Option<usize> {
    let header = data.get(start..start + RECORD_HEADER_BYTES)?;
    let length = u32::from_le_bytes(header[..4].try_into().ok()?) as usize;
    let checksum = u32::from_le_bytes(header[4..].try_into().ok()?);
    if length == 0 || length > MAX_RECORD_BYTES {
        return None;
    }
    let end = start.checked_add(RECORD_HEADER_BYTES)?.checked_add(length)?;
    let payload = data.get(start + RECORD_HEADER_BYTES..end)?;
    (crc32fast::hash(payload) == checksum).then_some(end)
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
        for cut in 0..data.len() {
            let contents = parse(data[..cut].to_vec().into()).unwrap();
            assert!(contents.records.len() < 3);
            assert_eq!(contents.valid_bytes + contents.torn_bytes, cut as u64);
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
        // Zeros in the place of a write that was never synced.
        let hole = [&clean[..last], &[0; 40]].concat();
        assert_eq!(parse(hole.into()).unwrap().torn_bytes, 40);
    }

    #[test]
    fn a_foreign_file_is_refused() {
        assert!(parse(bytes::Bytes::from_static(b"PAR1PAR1PAR1")).is_err());
    }
}
