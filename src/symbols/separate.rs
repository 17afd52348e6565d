//! Function names of stripped programs. The names are in a separate debug file, found by build id or `.gnu_debuglink`,
//! or packed in the program itself (`.gnu_debugdata`, which distributions call MiniDebugInfo).
//!
//! In: an ELF file and its path. Out: the possible paths of its debug file and how to recognise the file, or the
//! unpacked symbols. This module opens no files.

use std::io::Read;
use std::path::Path;

use liblzma::stream::Stream;
use object::{Object, ObjectSection, ReadRef};

use crate::bytes::Source;

/// The `.gnu_debuglink` of a stripped program, which identifies its debug file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// File name of the debug file, without a folder.
    pub name: String,
    /// CRC-32 of the whole debug file.
    pub checksum: u32,
}

/// Maximum number of bytes of packed and of unpacked symbols: ten times as many as the largest programs of
/// distributions have.
const MAX_PACKED: u64 = 16 << 20;
const MAX_UNPACKED_BYTES: u64 = 64 << 20;
/// Maximum number of bytes of a file name in Linux.
const MAX_NAME: usize = 255;
/// Maximum number of bytes of memory for unpacking.
const MAX_MEMORY: u64 = 80 << 20;
/// Maximum number of bytes of a file whose checksum is computed.
const MAX_CHECKSUM_BYTES: u64 = 1 << 30;

/// Returns the link of a file to its debug file, if it has a valid one.
pub fn link<'data, R: ReadRef<'data>>(file: &object::File<'data, R>) -> Option<Link> {
    let (name, checksum) = file.gnu_debuglink().ok()??;
    let name = std::str::from_utf8(name).ok()?;
    let is_name = !matches!(name, "" | "." | "..") && name.len() <= MAX_NAME && !name.contains('/');
    is_name.then(|| Link {
        name: name.to_owned(),
        checksum,
    })
}

/// Returns the paths at which the debug file of a program may be, most likely first. The folders are those of `gdb`.
pub fn debug_file_paths(build_id: &str, link: Option<&Link>, program: &str) -> Vec<String> {
    let by_id = build_id
        .split_at_checked(2)
        .filter(|(_, rest)| !rest.is_empty())
        .map(|(first, rest)| format!("/usr/lib/debug/.build-id/{first}/{rest}.debug"));
    let folder = Path::new(program).parent().and_then(Path::to_str);
    let by_name = link.zip(folder).map(|(link, folder)| {
        let folder = folder.trim_end_matches('/');
        let name = &link.name;
        [
            format!("{folder}/{name}"),
            format!("{folder}/.debug/{name}"),
            format!("/usr/lib/debug{folder}/{name}"),
        ]
    });
    by_id.into_iter().chain(by_name.into_iter().flatten()).collect()
}

/// Returns the CRC-32 of all bytes of a file, as `.gnu_debuglink` contains it, or `None` if there are too many bytes.
/// Adds the number of bytes to `read_bytes`.
pub fn checksum(source: &dyn Source, read_bytes: &mut u64) -> Option<u32> {
    let mut hasher = crc32fast::Hasher::new();
    let mut piece = vec![0; 64 << 10];
    let mut offset = 0;
    while offset < MAX_CHECKSUM_BYTES {
        let read = source.read_at(offset, &mut piece);
        if read == 0 {
            return Some(hasher.finalize());
        }
        hasher.update(piece.get(..read)?);
        offset += read as u64;
        *read_bytes += read as u64;
    }
    None
}

/// Returns the packed symbols of a file.
pub fn packed<'data, R: ReadRef<'data>>(file: &object::File<'data, R>) -> Option<Vec<u8>> {
    let section = file.section_by_name(".gnu_debugdata")?;
    (section.size() <= MAX_PACKED).then(|| section.data().ok().map(<[u8]>::to_vec))?
}

/// Unpacks symbols to the bytes of an ELF file. Returns `None` if they are damaged or too large.
pub fn unpack(packed: &[u8]) -> Option<Vec<u8>> {
    let stream = Stream::new_stream_decoder(MAX_MEMORY, 0).ok()?;
    let mut unpacked = Vec::new();
    let mut reader = liblzma::read::XzDecoder::new_stream(packed, stream).take(MAX_UNPACKED_BYTES + 1);
    reader.read_to_end(&mut unpacked).ok()?;
    (unpacked.len() as u64 <= MAX_UNPACKED_BYTES).then_some(unpacked)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_debug_file_is_looked_for_by_build_id_and_beside_the_program() {
        let link = Link {
            name: "program.debug".to_owned(),
            checksum: 1,
        };
        assert_eq!(
            debug_file_paths("abcdef", Some(&link), "/opt/bin/program"),
            [
                "/usr/lib/debug/.build-id/ab/cdef.debug",
                "/opt/bin/program.debug",
                "/opt/bin/.debug/program.debug",
                "/usr/lib/debug/opt/bin/program.debug",
            ]
        );
        assert_eq!(debug_file_paths("", Some(&link), "/program")[0], "/program.debug");
        assert!(debug_file_paths("ab", None, "").is_empty());
    }

    #[test]
    fn a_link_that_is_longer_than_any_name_of_a_file_is_none() {
        use alluvium_testing::elf::{Section, made};

        let named = |length: usize| {
            let mut bytes = vec![b'x'; length];
            bytes.resize((length + 1).next_multiple_of(4) + 4, 0);
            made(&[Section {
                name: ".gnu_debuglink",
                kind: 1,
                bytes,
                ..Section::default()
            }])
        };
        let is_link = |bytes: Vec<u8>| link(&object::File::parse(bytes.as_slice()).unwrap()).is_some();
        assert_eq!(
            [255, 256, 1 << 20].map(|length| is_link(named(length))),
            [true, false, false]
        );
    }

    #[test]
    fn packed_symbols_are_unpacked_and_damaged_ones_are_none() {
        let content = b"\x7fELF and more".repeat(1000);
        let mut packed = Vec::new();
        liblzma::read::XzEncoder::new(content.as_slice(), 6)
            .read_to_end(&mut packed)
            .unwrap();
        assert_eq!(unpack(&packed), Some(content));
        for position in 0..packed.len() {
            assert_eq!(unpack(&packed[..position]), None, "cut at {position}");
            let mut damaged = packed.clone();
            damaged[position] ^= 0x55;
            let _ = unpack(&damaged);
        }
        assert_eq!(unpack(b""), None);
    }

    #[test]
    fn what_unpacks_to_too_much_is_refused() {
        let mut packed = Vec::new();
        let zeros = std::io::repeat(0).take(MAX_UNPACKED_BYTES + 1);
        liblzma::read::XzEncoder::new(zeros, 0)
            .read_to_end(&mut packed)
            .unwrap();
        assert!(packed.len() < 1 << 20);
        assert_eq!(unpack(&packed), None);
    }

    #[test]
    fn the_checksum_is_that_of_zip_and_gdb() {
        let mut read = 1;
        assert_eq!(checksum(&b"123456789".as_slice(), &mut read), Some(0xcbf4_3926));
        assert_eq!(read, 10);
    }
}
