//! Checksums of a table's log on a local disk: a file `.NAME.crc` beside each entry and checkpoint. The file has the
//! format of Hadoop's local file system, which Spark reads and other readers ignore.
//!
//! Delta has no checksum for an entry, and an entry with a flipped bit may still be valid JSON. Such an entry could
//! repeat profiles, or hide them through wrong statistics. A missing or torn checksum proves nothing, because checksums
//! are written after the entry and not synced. A checksum that differs means damage.

use std::fs::{self, File};
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use crate::store::common::error::StoreError;
use crate::store::tables::delta::log_files::version_of_hint;
use alluvium_base::file::replace;

/// First bytes of a file of checksums.
const MAGIC: [u8; 4] = *b"crc\0";
/// Number of bytes that one checksum covers, as in Hadoop.
const CHUNK_BYTES: usize = 512;

/// Returns the path of the checksum file of `path`.
pub(crate) fn sums_path(path: &Path) -> PathBuf {
    let name = path.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    path.with_file_name(format!(".{name}.crc"))
}

/// Returns the checksums of `bytes`, in the format of the file.
pub(crate) fn sums(bytes: &[u8]) -> Vec<u8> {
    let mut sums = MAGIC.to_vec();
    sums.extend((CHUNK_BYTES as u32).to_be_bytes());
    sums.extend(
        bytes
            .chunks(CHUNK_BYTES)
            .flat_map(|chunk| crc32fast::hash(chunk).to_be_bytes()),
    );
    sums
}

/// Writes the checksum file of a complete file.
pub(crate) fn write(path: &Path) -> io::Result<()> {
    fs::write(sums_path(path), sums(&fs::read(path)?))
}

/// Returns the chunks of `bytes` that do not match `sums`, or `None` if `sums` is torn or is for another length.
fn differing(bytes: &[u8], sums: &[u8]) -> Option<Vec<usize>> {
    let chunk_sums = sums_of_chunks(sums, bytes.len().div_ceil(CHUNK_BYTES))?;
    let pairs = bytes.chunks(CHUNK_BYTES).zip(chunk_sums.chunks(4)).enumerate();
    let mismatches = pairs.filter(|(_, (chunk, sum))| crc32fast::hash(chunk).to_be_bytes() != **sum);
    Some(mismatches.map(|(index, _)| index).collect())
}

/// Reads a range of a log file. Fails if a chunk that the range touches differs from the written bytes.
pub(crate) fn read_range(path: &Path, range: Range<u64>) -> io::Result<Vec<u8>> {
    let damaged = |reason: String| {
        let reason = format!(
            "{}: {reason}; `alluvium store repair` may repair it, otherwise restore it from a backup",
            path.display()
        );
        io::Error::new(io::ErrorKind::InvalidData, reason)
    };
    let file = File::open(path)?;
    let length = file.metadata()?.len();
    let sums = match fs::read(sums_path(path)) {
        Ok(sums) => sums,
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        Err(error) => return Err(error),
    };
    let chunk = CHUNK_BYTES as u64;
    let chunks = length.div_ceil(chunk) as usize;
    if is_cut(&sums, chunks) {
        return Err(damaged(format!("it is too short: only {length} bytes are left")));
    }
    let range = range.start.min(length)..range.end.min(length);
    let first = range.start / chunk;
    let start = first * chunk;
    let mut bytes = vec![0; (range.end.next_multiple_of(chunk).min(length).max(start) - start) as usize];
    file.read_exact_at(&mut bytes, start)?;
    if let Some(chunk_sums) = sums_of_chunks(&sums, chunks) {
        let expected = chunk_sums.chunks(4).skip(first as usize);
        for ((part, expected), number) in bytes.chunks(CHUNK_BYTES).zip(expected).zip(first..) {
            if crc32fast::hash(part).to_be_bytes() != *expected {
                let offset = number * chunk;
                return Err(damaged(format!(
                    "its {CHUNK_BYTES} bytes from byte {offset} on differ from the written ones"
                )));
            }
        }
    }
    bytes.truncate((range.end.max(start) - start) as usize);
    bytes.drain(..(range.start - start) as usize);
    Ok(bytes)
}

/// Returns the checksums of `chunks` chunks, or `None` if `sums` is torn or is for another length.
fn sums_of_chunks(sums: &[u8], chunks: usize) -> Option<&[u8]> {
    let chunk_sums = sums
        .strip_prefix(&MAGIC)?
        .strip_prefix(&(CHUNK_BYTES as u32).to_be_bytes())?;
    (chunk_sums.len() == chunks * 4).then_some(chunk_sums)
}

/// Returns true if the checksums cover more than the `chunks` chunks of a file, which means that the file was cut.
fn is_cut(sums: &[u8], chunks: usize) -> bool {
    sums.starts_with(&MAGIC) && (sums.len().saturating_sub(8)) / 4 > chunks
}

/// Returns the damage of a log file, or `None` if its checksums match or prove nothing.
pub(crate) fn fault(path: &Path) -> io::Result<Option<String>> {
    let bytes = fs::read(path)?;
    let sums = match fs::read(sums_path(path)) {
        Ok(sums) => sums,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    Ok(match differing(&bytes, &sums) {
        None if is_cut(&sums, bytes.len().div_ceil(CHUNK_BYTES)) => {
            Some(format!("it is too short: only {} bytes are left", bytes.len()))
        }
        Some(mismatches) if !mismatches.is_empty() => {
            let first = mismatches[0] * CHUNK_BYTES;
            Some(format!(
                "{} of its chunks of {CHUNK_BYTES} bytes differ from the written ones, the first at byte {first}",
                mismatches.len()
            ))
        }
        _ => None,
    })
}

/// Repairs a file in which each damaged chunk has one flipped bit. Returns false if there is more damage, or no damage.
/// Within 512 bytes, each single flipped bit changes the checksum in a different way, and no two flipped bits change it
/// like a single one. So neither case leads to a wrong repair.
pub(crate) fn repair_bits(path: &Path) -> io::Result<bool> {
    let mut bytes = fs::read(path)?;
    let Ok(sums) = fs::read(sums_path(path)) else {
        return Ok(false);
    };
    let mismatches = match differing(&bytes, &sums) {
        Some(mismatches) if !mismatches.is_empty() => mismatches,
        _ => return Ok(false),
    };
    for index in mismatches {
        let end = ((index + 1) * CHUNK_BYTES).min(bytes.len());
        let chunk = &mut bytes[index * CHUNK_BYTES..end];
        let expected = &sums[8 + index * 4..12 + index * 4];
        let bits = chunk.len() * 8;
        let flip = (0..bits).find(|bit| {
            chunk[bit / 8] ^= 1 << (bit % 8);
            let is_match = crc32fast::hash(chunk).to_be_bytes() == *expected;
            chunk[bit / 8] ^= 1 << (bit % 8);
            is_match
        });
        let Some(bit) = flip else { return Ok(false) };
        chunk[bit / 8] ^= 1 << (bit % 8);
    }
    let permissions = fs::metadata(path)?.permissions();
    replace(path, &bytes)?;
    // The permissions stay, so that the same programs can read the new file.
    fs::set_permissions(path, permissions)?;
    Ok(true)
}

/// Files of a table's log with their damage. Depending on [`Extent`], these are the last checkpoint and the entries
/// from its version on, or all files.
pub(crate) struct LogFiles {
    /// The entries in the order of their versions, then the checkpoints.
    pub(crate) files: Vec<PathBuf>,
    pub(crate) faults: Vec<Fault>,
}

/// The damage of one file of a table's log.
pub(crate) struct Fault {
    /// Path of the file, which may be missing.
    pub(crate) path: PathBuf,
    pub(crate) reason: String,
    /// True if reading the table needs the file.
    pub(crate) is_needed: bool,
}

/// The files of a log to check.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    /// The files that are read to open the table.
    Needed,
    /// The files that are read to open the table, and the files that a checkpoint covers.
    Whole,
}

/// Checks the log of a table.
pub(crate) fn check_log_files(log: &Path, extent: Extent) -> Result<LogFiles, StoreError> {
    let mut entries: Vec<(u64, PathBuf)> = Vec::new();
    let mut checkpoints: Vec<(u64, PathBuf)> = Vec::new();
    for entry in fs::read_dir(log).map_err(StoreError::io("list", log))? {
        let path = entry.map_err(StoreError::io("list", log))?.path();
        let name = path
            .file_name()
            .map(|name| name.to_string_lossy().into_owned())
            .unwrap_or_default();
        let Some(version) = name.get(..20).and_then(|digits| digits.parse().ok()) else {
            continue;
        };
        match name.get(20..) {
            Some(".json") => entries.push((version, path)),
            Some(".checkpoint.parquet") => checkpoints.push((version, path)),
            _ => {}
        }
    }
    entries.sort();
    checkpoints.sort();
    let mut log_files = LogFiles {
        files: Vec::new(),
        faults: Vec::new(),
    };
    let fault_of = |path: PathBuf, reason: &str, matters| Fault {
        path,
        reason: reason.to_owned(),
        is_needed: matters,
    };
    let hint = log.join("_last_checkpoint");
    let named = fs::read(&hint).ok().and_then(|text| version_of_hint(&text));
    match named {
        Some(version) if !log.join(format!("{version:020}.checkpoint.parquet")).exists() => {
            log_files.faults.push(fault_of(
                hint,
                &format!("it names checkpoint {version}, which does not exist"),
                true,
            ));
        }
        // The hint is optional. Without it, readers list the folder.
        None if hint.exists() => log_files.faults.push(fault_of(hint, "it names no checkpoint", false)),
        _ => {}
    }
    let start = checkpoints.last().map(|(version, _)| *version);
    let from = start.map_or(0, |version| version + 1);
    // The first needed entry is the one after the last checkpoint, or 0 without a checkpoint. No later entry may be
    // missing. The listing may lack an entry that was written meanwhile, so the check also looks for the file.
    let last = entries.last().map_or(from, |(version, _)| version + 1);
    for version in from..last {
        let path = log.join(format!("{version:020}.json"));
        if entries.binary_search_by_key(&version, |(version, _)| *version).is_err() && !path.exists() {
            log_files
                .faults
                .push(fault_of(path, "it is missing, but later entries exist", true));
            break;
        }
    }
    let needed = |version: u64| extent == Extent::Whole || start.is_none_or(|start| version >= start);
    let files = entries.into_iter().chain(checkpoints);
    log_files.files = files
        .filter(|(version, _)| needed(*version))
        .map(|(_, path)| path)
        .collect();
    for path in &log_files.files {
        match fault(path) {
            Ok(Some(reason)) => log_files.faults.push(fault_of(path.clone(), &reason, true)),
            Ok(None) => {}
            // A running server has removed old files from its log.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(StoreError::io("read", path)(error)),
        }
    }
    Ok(log_files)
}

/// Fails if a log file that is read to open the table is damaged. The error names the first such file.
pub(crate) fn check(log: &Path) -> Result<(), StoreError> {
    match check_log_files(log, Extent::Needed)?
        .faults
        .into_iter()
        .find(|fault| fault.is_needed)
    {
        None => Ok(()),
        Some(fault) => Err(StoreError::Damaged {
            path: fault.path,
            reason: format!(
                "{}; `alluvium store repair` may repair it, otherwise restore it from a backup",
                fault.reason
            ),
        }),
    }
}

/// Repairs a table's log where a repair loses nothing. Returns the repaired files, each with the kind of repair.
pub(crate) fn repair(log: &Path) -> Result<Vec<(PathBuf, String)>, StoreError> {
    let mut repairs = Vec::new();
    for Fault { path, .. } in check_log_files(log, Extent::Whole)?.faults {
        if path.ends_with("_last_checkpoint") {
            fs::remove_file(&path).map_err(StoreError::io("remove", &path))?;
            repairs.push((
                path,
                "removed because it names no existing checkpoint; readers list the log instead".to_owned(),
            ));
        } else if path.exists() && repair_bits(&path).map_err(StoreError::io("repair", &path))? {
            repairs.push((path, "repaired flipped bits".to_owned()));
        } else if path.extension().is_some_and(|end| end == "parquet") && has_entries_before(log, &path) {
            let damaged = path.with_extension("damaged");
            fs::rename(&path, &damaged).map_err(StoreError::io("set aside", &path))?;
            let hint = log.join("_last_checkpoint");
            if hint.exists() {
                fs::remove_file(&hint).map_err(StoreError::io("remove", &hint))?;
            }
            repairs.push((path, "set aside; the log has all entries up to its version".to_owned()));
        }
    }
    Ok(repairs)
}

/// Returns true if every entry up to the version of a checkpoint exists and is intact.
fn has_entries_before(log: &Path, checkpoint: &Path) -> bool {
    let name = checkpoint.file_name().map(|name| name.to_string_lossy().into_owned());
    let Some(version) = name.and_then(|name| name.get(..20)?.parse::<u64>().ok()) else {
        return false;
    };
    (0..=version).all(|version| {
        let path = log.join(format!("{version:020}.json"));
        matches!(fault(&path), Ok(None))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_flipped_bit_is_seen_and_mended_and_two_in_a_part_are_not() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.json");
        let clean: Vec<u8> = (0..1300u32).map(|byte| (byte % 251) as u8).collect();
        fs::write(&path, &clean).unwrap();
        assert_eq!(fault(&path).unwrap(), None);
        write(&path).unwrap();
        assert_eq!(fs::read(sums_path(&path)).unwrap().len(), 8 + 3 * 4);
        assert_eq!(fault(&path).unwrap(), None);
        for bits in [vec![0], vec![1299 * 8 + 7], vec![4095, 4096], vec![100, 5000, 9000]] {
            let mut bytes = clean.clone();
            for bit in &bits {
                bytes[bit / 8] ^= 1 << (bit % 8);
            }
            fs::write(&path, &bytes).unwrap();
            assert!(fault(&path).unwrap().is_some(), "{bits:?}");
            assert!(repair_bits(&path).unwrap(), "{bits:?}");
            assert_eq!(fs::read(&path).unwrap(), clean, "{bits:?}");
        }
        let mut bytes = clean.clone();
        bytes[3] ^= 0x11;
        fs::write(&path, &bytes).unwrap();
        assert!(fault(&path).unwrap().is_some() && !repair_bits(&path).unwrap());
        fs::write(&path, &clean[..700]).unwrap();
        assert!(fault(&path).unwrap().unwrap().contains("too short"));
        // A torn checksum proves nothing.
        fs::write(&path, &clean).unwrap();
        fs::write(sums_path(&path), b"crc\0\0").unwrap();
        assert_eq!(fault(&path).unwrap(), None);
    }

    #[test]
    fn checksums_are_those_of_hadoop() {
        // The CRC-32 of `123456789` is a published check value.
        assert_eq!(
            sums(b"123456789"),
            [b"crc\0".as_slice(), &[0, 0, 2, 0], &0xcbf4_3926_u32.to_be_bytes()].concat()
        );
    }
}
