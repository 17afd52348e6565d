//! Names of compiled code in the files that just-in-time compilers write for `perf inject` (`jit-PID.dump`). The
//! layout is that of the kernel's `tools/perf/Documentation/jitdump-specification.txt`.

use std::collections::HashMap;

use crate::bytes::Bytes;
use crate::latest::Latest;

/// `JiTD`, written by a machine with the same byte order.
const MAGIC: u32 = 0x4a69_5444;
const CODE_LOAD: u32 = 0;
const CODE_MOVE: u32 = 1;
const CLOSE: u32 = 3;
/// Maximum number of records that are read.
const MAX_RECORDS: usize = 4_000_000;
/// Maximum number of pieces of code that are remembered in case they are moved.
const MAX_CODE: usize = 1 << 20;

/// Offers all loaded and moved code to a search. Returns false if the file is not a jitdump.
pub fn offer(bytes: &Bytes<'_>, search: &mut Latest<'_>) -> bool {
    if bytes.u32(0) != Some(MAGIC) {
        return false;
    }
    let Some(mut position) = bytes.u32(8).map(u64::from).filter(|length| *length >= 40) else {
        return false;
    };
    // File offset of the name of each piece of code.
    let mut names: HashMap<u64, u64> = HashMap::new();
    for _ in 0..MAX_RECORDS {
        let Some((kind, next)) = record(bytes, position, &mut names, search) else {
            break;
        };
        if kind == CLOSE {
            break;
        }
        position = next;
    }
    true
}

/// Reads a record. Returns its kind and the offset of the next record, or `None` at the end and at damage.
fn record(
    bytes: &Bytes<'_>,
    position: u64,
    names: &mut HashMap<u64, u64>,
    search: &mut Latest<'_>,
) -> Option<(u32, u64)> {
    let (kind, length) = (bytes.u32(position)?, bytes.u32(position.checked_add(4)?)?);
    if length < 16 {
        return None;
    }
    let word = |offset: u64| bytes.u64(position.checked_add(offset)?);
    match kind {
        CODE_LOAD if length >= 56 => {
            let (start, size, index) = (word(32)?, word(40)?, word(48)?);
            let name = position.checked_add(56)?;
            if names.len() < MAX_CODE {
                names.insert(index, name);
            }
            offer_code(bytes, search, start, size, name);
        }
        CODE_MOVE if length >= 64 => {
            let (start, size, index) = (word(40)?, word(48)?, word(56)?);
            if let Some(name) = names.get(&index) {
                offer_code(bytes, search, start, size, *name);
            }
        }
        _ => {}
    }
    Some((kind, position.checked_add(u64::from(length))?))
}

fn offer_code(bytes: &Bytes<'_>, search: &mut Latest<'_>, start: u64, size: u64, name: u64) {
    if search.is_unneeded(start, size) {
        return;
    }
    if let Some(name) = bytes.text(name).filter(|name| !name.is_empty()) {
        search.offer(start, size, name.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file() -> Vec<u8> {
        let mut file = Vec::new();
        for number in [MAGIC, 1, 40, 62, 0, 7] {
            file.extend_from_slice(&number.to_le_bytes());
        }
        file.extend_from_slice(&[0; 16]);
        let mut add = |kind: u32, words: &[u64], text: &[u8]| {
            let length = 16 + 8 + words.len() * 8 + text.len();
            file.extend_from_slice(&kind.to_le_bytes());
            file.extend_from_slice(&(length as u32).to_le_bytes());
            file.extend_from_slice(&[0; 16]);
            for word in words {
                file.extend_from_slice(&word.to_le_bytes());
            }
            file.extend_from_slice(text);
        };
        add(CODE_LOAD, &[0x1000, 0x1000, 0x40, 1], b"first\0\xc3\xc3");
        add(2, &[0, 0], b"lines");
        add(CODE_LOAD, &[0x2000, 0x2000, 0x40, 2], b"second\0\xc3");
        add(CODE_MOVE, &[0x3000, 0x1000, 0x3000, 0x40, 1], b"");
        add(CODE_LOAD, &[0x2000, 0x2000, 0x10, 3], b"third\0");
        file
    }

    fn names(file: &[u8]) -> Vec<(u64, String)> {
        let addresses = [0x1000, 0x2008, 0x2020, 0x3030, 0x4000];
        let mut search = Latest::new(&addresses);
        offer(&Bytes::new(&file), &mut search);
        let mut names = Vec::new();
        search.finish(|address, _, _, name| names.push((address, name.to_string())));
        names
    }

    #[test]
    fn code_that_is_made_again_and_moved_has_its_latest_name() {
        let expected = [
            (0x1000, "first"),
            (0x2008, "third"),
            (0x2020, "second"),
            (0x3030, "first"),
        ];
        let latest_names = names(&file());
        let pairs: Vec<_> = latest_names
            .iter()
            .map(|(address, name)| (*address, name.as_str()))
            .collect();
        assert_eq!(pairs, expected);
    }

    #[test]
    fn a_file_that_is_cut_or_changed_is_read_as_far_as_it_goes() {
        let dump = file();
        for length in 0..dump.len() {
            names(&dump[..length]);
        }
        for position in 0..dump.len() {
            let mut damaged = dump.clone();
            damaged[position] ^= 0xff;
            names(&damaged);
        }
    }
}
