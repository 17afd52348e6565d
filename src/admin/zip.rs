//! Writes zip archives.
//!
//! Files are compressed with deflate and have UTF-8 names. There is no zip64: an archive or file of 4 GiB is refused.
//! The output uses only features that every unpacker supports (APPNOTE 6.3: local headers with sizes, one central
//! directory). The module does not read archives.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::DeflateEncoder;

/// An archive that is being written.
#[derive(Default)]
pub struct ZipWriter {
    bytes: Vec<u8>,
    directory: Vec<u8>,
    files: u16,
}

/// Reason why an archive could not be written.
#[derive(Debug, thiserror::Error)]
pub enum ZipError {
    /// The archive exceeds the limits of the format without zip64.
    #[error("the archive is too large: at most 4 GiB and 65535 files")]
    TooLarge,
    #[error("cannot compress `{0}`: {1}")]
    Compress(String, std::io::Error),
}

/// 1980-01-01, the earliest date of the format. It is constant, so that equal contents give equal bytes.
const DATE: u16 = 0x21;
// Version 2.0: deflate.
const VERSION: u16 = 20;
// Names are UTF-8.
const UTF8: u16 = 1 << 11;
const DEFLATED: u16 = 8;

impl ZipWriter {
    /// Adds a file. `name` uses slashes between folders.
    pub fn add(&mut self, name: &str, content: &[u8]) -> Result<(), ZipError> {
        let failed = |error| ZipError::Compress(name.to_owned(), error);
        let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(content).map_err(failed)?;
        let packed = encoder.finish().map_err(failed)?;
        let offset = small(self.bytes.len())?;
        let length = u16::try_from(name.len()).map_err(|_| ZipError::TooLarge)?;
        let mut common = Vec::with_capacity(26);
        for field in [VERSION, UTF8, DEFLATED, 0, DATE] {
            common.extend(field.to_le_bytes());
        }
        for field in [crc32fast::hash(content), small(packed.len())?, small(content.len())?] {
            common.extend(field.to_le_bytes());
        }
        common.extend(length.to_le_bytes());
        common.extend([0; 2]);

        self.bytes.extend(b"PK\x03\x04");
        self.bytes.extend(&common);
        self.bytes.extend(name.as_bytes());
        self.bytes.extend(&packed);

        self.directory.extend(b"PK\x01\x02");
        self.directory.extend(VERSION.to_le_bytes());
        self.directory.extend(&common);
        // No comment, first disk, no attributes.
        self.directory.extend([0; 10]);
        self.directory.extend(offset.to_le_bytes());
        self.directory.extend(name.as_bytes());
        self.files = self.files.checked_add(1).ok_or(ZipError::TooLarge)?;
        Ok(())
    }

    pub fn finish(mut self) -> Result<Vec<u8>, ZipError> {
        let offset = small(self.bytes.len())?;
        let size = small(self.directory.len())?;
        self.bytes.append(&mut self.directory);
        self.bytes.extend(b"PK\x05\x06\0\0\0\0");
        self.bytes.extend(self.files.to_le_bytes());
        self.bytes.extend(self.files.to_le_bytes());
        self.bytes.extend(size.to_le_bytes());
        self.bytes.extend(offset.to_le_bytes());
        self.bytes.extend([0; 2]);
        Ok(self.bytes)
    }
}

fn small(length: usize) -> Result<u32, ZipError> {
    u32::try_from(length).map_err(|_| ZipError::TooLarge)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_archive_is_read_by_pythons_zipfile() {
        let mut zip = ZipWriter::default();
        zip.add("a/one.txt", b"one one one one one one one one").unwrap();
        zip.add("a/empty", b"").unwrap();
        zip.add("a/gr\u{fc}n.txt", "\u{fc}".as_bytes()).unwrap();
        let bytes = zip.finish().unwrap();
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), bytes).unwrap();
        let script = "import sys, zipfile\nz = zipfile.ZipFile(sys.argv[1])\nassert z.testzip() is None\n\
                      print([(n, z.read(n).decode()) for n in z.namelist()])";
        let run = std::process::Command::new("python3")
            .args(["-c", script])
            .arg(file.path())
            .env("PYTHONIOENCODING", "utf-8")
            .output();
        let output = match run {
            Ok(output) => output,
            Err(error) if std::env::var_os("CI").is_some() => panic!("python3 is missing: {error}"),
            Err(_) => return,
        };
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(
            String::from_utf8_lossy(&output.stdout).trim(),
            "[('a/one.txt', 'one one one one one one one one'), ('a/empty', ''), ('a/gr\u{fc}n.txt', '\u{fc}')]"
        );
    }
}
