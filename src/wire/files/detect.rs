//! Tells the format of a file by its bytes.

use memchr::memmem;

use crate::profile::{legacy, pprof};
use crate::wire::files::error::FileError;
use crate::wire::files::imported::FileFormat;
use crate::wire::files::{instruments, nettrace};
use crate::wire::{folded, perf_script};

/// Characters of an unknown file that its error shows.
const SHOWN: usize = 40;

/// First bytes of formats that are known and not read, their names, and what to do instead.
const NOT_READ: [(&[u8], &str, &str); 9] = [
    (
        b"PERFILE2",
        "a file of `perf record`",
        "import the output of `perf script -i FILE`",
    ),
    (
        b"JAVA PROFILE",
        "a heap dump of Java",
        "it has no stacks of running code",
    ),
    (b"go 1.", "an execution trace of Go", "take a CPU profile instead"),
    (
        b"rbspy0",
        "a raw file of rbspy",
        "import what `rbspy report --input FILE --format pprof --output PROFILE` writes",
    ),
    (
        b"# callgrind format",
        "a file of callgrind",
        "it has calls, and no stacks",
    ),
    (
        b"version: 1\ncreator: ",
        "a file of callgrind",
        "it has calls, and no stacks",
    ),
    (
        b"<?xml",
        "XML",
        "of Instruments, `xctrace export` writes what is read, of other programs their folded stacks are",
    ),
    (b"<!", "HTML", "save the profile itself and not its page"),
    (b"<html", "HTML", "save the profile itself and not its page"),
];

/// The format of a file that is not compressed.
pub(super) fn format(plain: &[u8]) -> Result<FileFormat, FileError> {
    if plain.is_empty() {
        return Err(FileError::Empty);
    }
    if plain.starts_with(b"FLR\0") {
        return Ok(FileFormat::Jfr);
    }
    if plain.starts_with(nettrace::MAGIC) {
        return Ok(FileFormat::Nettrace);
    }
    // A sample type of two small numbers; text does not begin with a line end and a control character.
    if matches!(plain, [0x0a, 0..=8 | 11..=22, ..]) {
        return Ok(FileFormat::Pprof);
    }
    if instruments::is_like(plain) {
        return Ok(FileFormat::Instruments);
    }
    // Frames may begin like another format: `<module> (app.py:1)`, `[main tid=1]`, `{main}`.
    let text = std::str::from_utf8(plain);
    let is_stacks = |text: &str| folded::is_like(text) && !perf_script::is_like(plain) && !legacy::is_like(plain);
    if text.is_ok_and(is_stacks) {
        return Ok(FileFormat::Collapsed);
    }
    if let Some(&(_, what, instead)) = NOT_READ.iter().find(|(start, ..)| plain.starts_with(start)) {
        return Err(FileError::NotRead { what, instead });
    }
    if legacy::is_like(plain) {
        return Ok(FileFormat::GoText);
    }
    match plain.trim_ascii_start().first() {
        Some(b'{' | b'[') => json(plain),
        _ => match text {
            Ok(_) if perf_script::is_like(plain) => Ok(FileFormat::PerfScript),
            Ok(_) => Err(unknown(plain)),
            // Fields of protobuf may be in any order.
            Err(_) if pprof::decode(plain).is_ok() => Ok(FileFormat::Pprof),
            Err(_) => Err(unknown(plain)),
        },
    }
}

fn json(plain: &[u8]) -> Result<FileFormat, FileError> {
    let has = |key: &str| memmem::find(plain, key.as_bytes()).is_some();
    if has("https://www.speedscope.app/file-format-schema.json") {
        Ok(FileFormat::Speedscope)
    } else if has("\"stackTable\"") && has("\"threads\"") {
        Ok(FileFormat::Firefox)
    } else if has("\"traceEvents\"") || has("\"ProfileChunk\"") {
        Ok(FileFormat::ChromeTrace)
    } else if has("\"callFrame\"") && has("\"nodes\"") {
        Ok(FileFormat::CpuProfile)
    } else if plain.trim_ascii_start().starts_with(b"[") && has("\"ph\"") {
        // A list of events alone.
        Ok(FileFormat::ChromeTrace)
    } else {
        Err(unknown(plain))
    }
}

fn unknown(plain: &[u8]) -> FileError {
    let start = String::from_utf8_lossy(plain.get(..4 * SHOWN).unwrap_or(plain));
    let line = start.trim_start().lines().next().unwrap_or_default();
    let shown = line.chars().filter(|letter| !letter.is_control()).take(SHOWN);
    FileError::Unknown { start: shown.collect() }
}
