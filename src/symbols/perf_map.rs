//! Names of compiled code that a runtime writes to `/tmp/perf-PID.map`: `start size name` a line, numbers in hexadecimal
//! (the format that `perf` reads; Node's `--perf-basic-prof`, Java's `Compiler.perfmap`, Python's `-X perf`).

use std::io::{self, BufRead, BufReader, Read};

use crate::symbols::ranges::Search;

/// Bytes of a map that are read at most: runtimes append for ever.
const MAX_BYTES: u64 = 256 << 20;

/// Offers every line to a search. Later lines win, for addresses are used again.
pub fn offer(map: impl Read, search: &mut Search<'_>) -> io::Result<()> {
    let mut lines = BufReader::with_capacity(1 << 16, map.take(MAX_BYTES));
    let mut line = Vec::new();
    loop {
        line.clear();
        if lines.read_until(b'\n', &mut line)? == 0 {
            return Ok(());
        }
        if let Some((start, size, name)) = parse(&line) {
            search.offer(start, size, start, true, name);
        }
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

    #[test]
    fn lines_with_spaces_in_the_name_are_read_and_others_passed_over() {
        let addresses = [0x1005];
        let mut search = Search::new(&addresses);
        offer(
            "1000 10 LazyCompile:~work /app/a b.js:3\nrubbish\n\n5 0 empty\n".as_bytes(),
            &mut search,
        )
        .unwrap();
        let mut names = Vec::new();
        search.finish(|_, start, end, name| names.push((start, end, name.to_owned())));
        assert_eq!(names, [(0x1000, 0x1010, "LazyCompile:~work /app/a b.js:3".to_owned())]);
    }
}
