//! Reads names of compiled code that a runtime writes to `/tmp/perf-PID.map`. Each line is `start size name`, with
//! numbers in hexadecimal. This is the format that `perf` reads (Node's `--perf-basic-prof`, Java's
//! `Compiler.perfmap`, Python's `-X perf`).

use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};

use crate::latest::Latest;

/// Maximum number of bytes of a map that are read. Runtimes append forever.
pub const MAX_BYTES: u64 = 256 << 20;
/// Maximum number of bytes of a line that are kept. The rest of a longer line is skipped.
const MAX_LINE: u64 = 64 << 10;

/// Offers every line to a search.
pub fn offer(map: impl Read, search: &mut Latest<'_>) -> io::Result<()> {
    offer_lines(map, search, false)
}

/// Offers every line that begins at or after an offset.
pub fn offer_from(mut map: impl Read + Seek, from: u64, search: &mut Latest<'_>) -> io::Result<()> {
    // The read starts one byte earlier. If that byte ends a line, only the byte is skipped, and the line at `from` is
    // offered.
    map.seek(SeekFrom::Start(from.saturating_sub(1)))?;
    offer_lines(map, search, from > 0)
}

/// Offers lines. If `continues` is true, skips the first one, which may be the rest of a line.
fn offer_lines(map: impl Read, search: &mut Latest<'_>, mut continues: bool) -> io::Result<()> {
    let mut lines = BufReader::with_capacity(1 << 16, map.take(MAX_BYTES + 1));
    let mut line = Vec::new();
    loop {
        line.clear();
        if (&mut lines).take(MAX_LINE).read_until(b'\n', &mut line)? == 0 {
            return Ok(());
        }
        if let Some((start, size, name)) = parse(&line).filter(|_| !continues) {
            search.offer(start, size, name);
        }
        continues = line.last() != Some(&b'\n');
    }
}

fn parse(line: &[u8]) -> Option<(u64, u64, &[u8])> {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let mut parts = line.splitn(3, |byte| *byte == b' ');
    let mut number = || u64::from_str_radix(std::str::from_utf8(parts.next()?).ok()?.trim_start_matches("0x"), 16).ok();
    let (start, size) = (number()?, number()?);
    let name = parts.next()?;
    (size > 0 && !name.is_empty()).then_some((start, size, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(map: &[u8]) -> Vec<(u64, u64, String)> {
        let addresses = [0x1005];
        let mut search = Latest::new(&addresses);
        offer(map, &mut search).unwrap();
        let mut names = Vec::new();
        search.finish(|_, start, end, name| names.push((start, end, name.to_string())));
        names
    }

    #[test]
    fn lines_with_spaces_in_the_name_are_read_and_others_passed_over() {
        assert_eq!(
            names(b"1000 10 LazyCompile:~work /app/a b.js:3\nrubbish\n\n5 0 empty\n"),
            [(0x1000, 0x1010, "LazyCompile:~work /app/a b.js:3".to_owned())]
        );
        assert_eq!(
            names(b"0x1000 0x10 void A.b(int)\n"),
            [(0x1000, 0x1010, "void A.b(int)".to_owned())]
        );
    }

    #[test]
    fn from_the_middle_of_a_line_the_next_one_is_the_first() {
        let map = b"1000 10 first\n41000 10 second\n1000 10 third\n";
        let from = |from: u64| {
            let addresses = [0x1005, 0x41005];
            let mut search = Latest::new(&addresses);
            offer_from(io::Cursor::new(map), from, &mut search).unwrap();
            let mut names = Vec::new();
            search.finish(|_, _, _, name| names.push(name.to_string()));
            names
        };
        assert_eq!(from(0), ["third", "second"]);
        assert_eq!(from(14), ["third", "second"], "it begins there");
        assert_eq!(from(15), ["third"], "the rest of a number is no number");
        assert_eq!(from(31), [""; 0]);
        assert_eq!(from(1 << 40), [""; 0]);
    }

    #[test]
    fn a_line_without_an_end_takes_no_memory() {
        let mut map = b"1000 10 before\n1000 10 ".to_vec();
        map.extend(std::iter::repeat_n(b'x', 3 << 20));
        let entries = names(&map);
        assert_eq!(entries[0].2.len(), MAX_LINE as usize - 8);
    }
}
