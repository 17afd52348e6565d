//! Detects the format of a file from its bytes.

use memchr::memmem;

use crate::files::error::FileError;
use crate::files::imported::FileFormat;
use crate::files::{instruments, nettrace};
use crate::{folded, perf_script};
use alluvium_profile::{legacy, pprof};

/// Maximum number of characters of an unknown file that the error shows.
const SHOWN: usize = 40;

/// Formats that are known but not supported: first bytes of a file, name of the format, and advice on what to do
/// instead.
const UNSUPPORTED: [(&[u8], &str, &str); 9] = [
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
        "run `rbspy report --input FILE --format pprof --output PROFILE` and import PROFILE",
    ),
    (
        b"# callgrind format",
        "a file of callgrind",
        "it has calls but no stacks",
    ),
    (
        b"version: 1\ncreator: ",
        "a file of callgrind",
        "it has calls but no stacks",
    ),
    (
        b"<?xml",
        "XML",
        "export a table of Instruments with `xctrace export`; from other programs, import folded stacks",
    ),
    (b"<!", "HTML", "save the profile itself, not the page that shows it"),
    (b"<html", "HTML", "save the profile itself, not the page that shows it"),
];

/// Returns the format of a file that is not compressed.
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
    // A pprof begins with the tag 0x0a and the length of a sample type, which consists of two small numbers. Text does
    // not begin with a line end and a control character.
    if matches!(plain, [0x0a, 0..=8 | 11..=22, ..]) {
        return Ok(FileFormat::Pprof);
    }
    if instruments::is_like(plain) {
        return Ok(FileFormat::Instruments);
    }
    // Folded stacks are detected before the formats below, because a frame may look like the beginning of such a
    // format: `<module> (app.py:1)`, `[main tid=1]`, `{main}`.
    let text = std::str::from_utf8(plain);
    let is_stacks = |text: &str| folded::is_like(text) && !perf_script::is_like(plain) && !legacy::is_like(plain);
    if text.is_ok_and(is_stacks) {
        return Ok(FileFormat::Collapsed);
    }
    if let Some(&(_, format_name, advice)) = UNSUPPORTED.iter().find(|(start, ..)| plain.starts_with(start)) {
        return Err(FileError::Unsupported { format_name, advice });
    }
    if legacy::is_like(plain) {
        return Ok(FileFormat::GoText);
    }
    match plain.trim_ascii_start().first() {
        Some(b'{' | b'[') => json(plain),
        _ => match text {
            Ok(_) if perf_script::is_like(plain) => Ok(FileFormat::PerfScript),
            Ok(_) => Err(unknown(plain)),
            // Protobuf fields may come in any order.
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
        // A bare list of events.
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
