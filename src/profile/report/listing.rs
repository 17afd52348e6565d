//! Source lines of functions with their values, as `go tool pprof -list` prints them.
//!
//! In: a profile, the wanted names, and a reader of source files. Out: text with the source lines, which are copied
//! from the file byte by byte.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::io::Write;

use alluvium_base::re2::Expression;
use hashbrown::HashMap;

use crate::pprof::Profile;
use crate::report::filter::{self, Focus};
use crate::report::graph::{Graph, Node, Samples};
use crate::report::head;
use crate::report::paths::SourcePaths;
use crate::report::printed::ReportError;
use crate::report::row_source::{RowSource, RowSources};
use crate::report::units::{self, percentage};

/// Number of lines that are shown before and after the lines with values.
const CONTEXT_LINES: i64 = 5;

/// A line with this many bytes or more, and all lines after it, are not shown, as in pprof.
const MAX_LINE_BYTES: usize = 1 << 16;

/// The values of a profile by source line.
pub struct Listing<'a> {
    samples: Samples<'a>,
    total: i64,
    unit: &'a str,
    /// Unit in which values are formatted.
    written: String,
    unmatched: Vec<&'static str>,
}

impl<'a> Listing<'a> {
    /// Creates a listing of the sample type with the index `value`. The profile must have this type. Values are
    /// formatted in `unit`, or in a unit that suits each value if `unit` is `None`. `paths` are the source paths that
    /// the user gave.
    pub fn new(mut profile: Profile<'a>, value: usize, focus: &Focus, unit: Option<&str>, paths: &SourcePaths) -> Self {
        filter::drop_frames(&mut profile);
        // Shares refer to all samples, including samples that are not shown.
        let total = head::total(&profile, value);
        let unmatched = focus.apply(&mut profile);
        let sources = RowSources::of_source(&profile, paths);
        Self {
            total,
            unit: profile.sample_types.get(value).map_or("", |kind| kind.unit),
            written: unit.unwrap_or(units::MINIMUM).to_owned(),
            unmatched,
            samples: Samples {
                profile,
                value,
                sources,
            },
        }
    }

    /// Returns the names of the flags (`focus`, `ignore`) whose expression matches no frame.
    pub fn unmatched(&self) -> &[&'static str] {
        &self.unmatched
    }

    /// Lists the functions whose name matches `pattern`, sorted by name and then by file. Calls `read` once for
    /// each file. If `read` fails, the error replaces the lines of the file.
    pub fn text<E: Display>(
        &self,
        pattern: &Expression,
        mut read: impl FnMut(&str) -> Result<Vec<u8>, E>,
    ) -> Result<Vec<u8>, ReportError> {
        let graph = Graph::new(&self.samples, None);
        let mut functions: BTreeMap<&str, BTreeMap<&str, Vec<u32>>> = BTreeMap::new();
        for &index in &graph.order {
            let source = &self.samples.sources.all[index as usize];
            if pattern.is_match(source.name) {
                let files = functions.entry(source.name).or_default();
                if !source.file.is_empty() {
                    files.entry(&source.file).or_default().push(index);
                }
            }
        }
        if functions.is_empty() {
            return Err(ReportError::NoMatch(pattern.as_str().to_owned()));
        }
        let mut contents: HashMap<&str, Result<Vec<u8>, E>> = HashMap::new();
        // Writing into a vector cannot fail.
        let mut out = Vec::new();
        let _ = writeln!(out, "Total: {}", self.label(self.total));
        for (name, files) in functions {
            if files.is_empty() {
                let _ = writeln!(out, "No source information for {name}");
            }
            for (file, source_ids) in files {
                let lines = Lines::new(&source_ids, &self.samples.sources.all, &graph.nodes);
                let _ = writeln!(
                    out,
                    "ROUTINE ======================== {name} in {file}\n{:>10} {:>10} (flat, cum) {} of Total",
                    self.label(lines.all.flat),
                    self.label(lines.all.cum),
                    percentage(lines.all.cum, self.total),
                );
                match contents.entry(file).or_insert_with(|| read(file)) {
                    Ok(content) => self.lines(&mut out, &lines, content),
                    Err(error) => {
                        let _ = writeln!(out, " Error: {error}");
                    }
                }
            }
        }
        Ok(out)
    }

    fn lines(&self, out: &mut Vec<u8>, lines: &Lines, content: &[u8]) {
        let before = usize::try_from(lines.first - 1).unwrap_or(usize::MAX);
        for (number, text) in (lines.first..=lines.last).zip(split(content).skip(before)) {
            let node = lines.nodes.get(&number).copied().unwrap_or_default();
            let _ = write!(
                out,
                "{:>10} {:>10} {number:>6}:",
                self.label_or_dot(node.flat),
                self.label_or_dot(node.cum)
            );
            out.extend_from_slice(text);
            out.push(b'\n');
        }
    }

    fn label(&self, value: i64) -> String {
        units::label(value, self.unit, &self.written)
    }

    fn label_or_dot(&self, value: i64) -> String {
        match value {
            0 => ".".to_owned(),
            value => self.label(value),
        }
    }
}

/// The values of a function in a file, and the range of lines to show.
struct Lines {
    first: i64,
    last: i64,
    all: Node,
    nodes: HashMap<i64, Node>,
}

impl Lines {
    /// Covers the lines from the start of the function to a few lines after the last line with a value. If the start is
    /// unknown, begins a few lines before the first line with a value.
    fn new(indices: &[u32], sources: &[RowSource<'_>], nodes: &[Node]) -> Self {
        let (mut first, mut last) = (i64::MAX, 1);
        let mut lines = Self {
            first: 1,
            last: 1,
            all: Node::default(),
            nodes: HashMap::new(),
        };
        for &index in indices {
            let (source, node) = (&sources[index as usize], &nodes[index as usize]);
            let start = match source.start_line {
                0 => source.line.saturating_sub(CONTEXT_LINES),
                start => start,
            };
            first = first.min(start);
            last = last.max(source.line.saturating_add(CONTEXT_LINES));
            for sum in [&mut lines.all, lines.nodes.entry(source.line).or_default()] {
                sum.flat = sum.flat.saturating_add(node.flat);
                sum.cum = sum.cum.saturating_add(node.cum);
            }
        }
        Self {
            first: first.max(1),
            last,
            ..lines
        }
    }
}

/// Splits a file into lines without their ends.
fn split(content: &[u8]) -> impl Iterator<Item = &[u8]> {
    let content = content.strip_suffix(b"\n").unwrap_or(content);
    let lines = content.split(|byte| *byte == b'\n').filter(|_| !content.is_empty());
    lines
        .take_while(|line| line.len() < MAX_LINE_BYTES)
        .map(|line| line.strip_suffix(b"\r").unwrap_or(line))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pprof::{Builder, Function, Line, Location, ValueType};

    /// Creates a profile in which `work` calls `leaf`, at line 7 of the given file. The file name may be empty.
    fn profile(file: &'static str, start_line: i64) -> Profile<'static> {
        let mut builder = Builder::new(Profile {
            sample_types: vec![ValueType {
                kind: "cpu",
                unit: "nanoseconds",
            }],
            ..Profile::default()
        });
        let [leaf, work] = ["leaf", "work"].map(|name| {
            let function = builder.function(Function {
                name,
                file,
                start_line,
                ..Function::default()
            });
            builder.location(Location::NO_MAPPING, 0, &[Line { function, line: 7 }])
        });
        builder.sample([leaf, work], [], &[30_000_000]);
        builder.sample([work], [], &[10_000_000]);
        builder.finish()
    }

    fn listed(profile: Profile<'_>, pattern: &str, content: Result<&str, &str>) -> Result<String, ReportError> {
        let listing = Listing::new(profile, 0, &Focus::default(), None, &SourcePaths::default());
        let read = |_: &str| content.map(|text| text.as_bytes().to_vec()).map_err(str::to_owned);
        let text = listing.text(&Expression::search(pattern).unwrap(), read)?;
        Ok(String::from_utf8(text).unwrap())
    }

    #[test]
    fn lines_stand_beside_their_values() {
        let text = "1\n2\n3\n4\n5\r\n6\n\tleaf()\n8\n";
        let expected = "\
Total: 40ms
ROUTINE ======================== work in shop/a.go
      10ms       40ms (flat, cum)   100% of Total
         .          .      5:5
         .          .      6:6
      10ms       40ms      7:\tleaf()
         .          .      8:8
";
        assert_eq!(listed(profile("shop/a.go", 5), "wor", Ok(text)).unwrap(), expected);
        let without_start = listed(profile("shop/a.go", 0), "wor", Ok(text)).unwrap();
        assert!(
            without_start.contains("(flat, cum)   100% of Total\n         .          .      2:2\n"),
            "{without_start}"
        );
    }

    #[test]
    fn what_has_no_source_is_said() {
        let text = listed(profile("a.go", 0), "l", Err("open a.go: permission denied")).unwrap();
        assert!(
            text.ends_with("of Total\n Error: open a.go: permission denied\n"),
            "{text}"
        );
        let text = listed(profile("", 0), "leaf|work", Ok("")).unwrap();
        let expected = "Total: 40ms\nNo source information for leaf\nNo source information for work\n";
        assert_eq!(text, expected);
        let error = listed(profile("a.go", 0), "nobody", Ok("")).unwrap_err();
        assert_eq!(error, ReportError::NoMatch("nobody".to_owned()));
        let text = listed(profile("a.go", 0), "leaf", Ok("")).unwrap();
        assert!(text.ends_with("of Total\n"), "{text}");
    }

    #[test]
    fn a_line_without_an_end_to_it_is_the_last() {
        let long_line = "x".repeat(MAX_LINE_BYTES);
        assert_eq!(split(format!("a\n{long_line}\nb").as_bytes()).count(), 1);
        assert_eq!(split(b"a\n\n").collect::<Vec<_>>(), [&b"a"[..], b""]);
    }
}
