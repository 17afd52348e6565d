//! The meaning of a row of a report: a function, a line, a file, an address or a package.
//!
//! In: the locations of a profile and how they are grouped. Out: for each location its places, innermost first. Names
//! are the same as in `go tool pprof`.

use std::borrow::Cow;

use hashbrown::HashMap;

use crate::package::package;
use crate::pprof::{Line, Location, Profile};
use crate::report::paths::{SourcePaths, base_name, clean};

/// The unit of source that a row represents. All but the last two are the granularities of `go tool pprof`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Grouping {
    /// A function by its name.
    Functions,
    /// A function by its name and file.
    FileFunctions,
    /// A file. As in `go tool pprof`, functions that start at different lines of the file are different rows.
    Files,
    /// A line in the source of a function.
    Lines,
    /// An address in the code of a binary.
    Addresses,
    /// A source file, as a single row.
    WholeFiles,
    /// The package that a function belongs to.
    Packages,
}

impl Grouping {
    fn has_functions(self) -> bool {
        matches!(
            self,
            Self::Functions | Self::FileFunctions | Self::Lines | Self::Addresses
        )
    }

    fn has_files(self) -> bool {
        !matches!(self, Self::Functions | Self::Packages)
    }

    fn has_lines(self) -> bool {
        matches!(self, Self::Lines | Self::Addresses)
    }
}

/// A place: the source that a row represents. Equal places form one row.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(super) struct RowSource<'a> {
    pub name: &'a str,
    pub address: u64,
    pub file: Cow<'a, str>,
    pub start_line: i64,
    pub line: i64,
    /// The binary. [`RowSources::new`] sets it only if nothing else is known.
    pub object: &'a str,
}

impl RowSource<'_> {
    /// Returns the name of the place in a report.
    pub(super) fn printed(&self) -> String {
        let mut parts = Vec::new();
        if self.address != 0 {
            parts.push(format!("{:016x}", self.address));
        }
        if !self.name.is_empty() {
            parts.push(self.name.to_owned());
        }
        if self.line != 0 {
            parts.push(format!("{}:{}", self.file, self.line));
        } else if !self.file.is_empty() {
            parts.push(self.file.clone().into_owned());
        } else if self.name.is_empty() && !self.object.is_empty() {
            parts.push(format!("[{}]", base_name(self.object)));
        } else if self.name.is_empty() {
            parts.push("<unknown>".to_owned());
        }
        parts.join(" ")
    }

    /// Returns all parts as one text, which determines the order of places with the same name.
    pub(super) fn all(&self) -> String {
        format!(
            "{{{}  {} {} {} {} 0 {}}}",
            self.name, self.address, self.file, self.start_line, self.line, self.object
        )
    }
}

/// The places of all locations of a profile.
pub(super) struct RowSources<'a> {
    /// Each place of the profile, once.
    pub all: Vec<RowSource<'a>>,
    /// Indices of the places of all locations, one location after the other.
    indices: Vec<u32>,
    /// For each location, the end of its places in `indices`.
    ends: Vec<u32>,
}

impl<'a> RowSources<'a> {
    pub(super) fn new(profile: &Profile<'a>, grouping: Grouping) -> Self {
        Self::from_locations(profile, |location, line| row_source(profile, grouping, location, line))
    }

    /// Creates the places of source lines: like [`Grouping::Lines`], but also distinguished by binary and start of
    /// the function.
    pub(super) fn of_source(profile: &Profile<'a>, paths: &SourcePaths) -> Self {
        Self::from_locations(profile, |location, line| source_line(profile, paths, location, line))
    }

    /// Creates the places that `create` returns for the locations and their lines.
    fn from_locations(profile: &Profile<'a>, create: impl Fn(&Location, Option<Line>) -> RowSource<'a>) -> Self {
        let mut sources = Self {
            all: Vec::new(),
            indices: Vec::new(),
            ends: Vec::with_capacity(profile.locations.len()),
        };
        let mut known: HashMap<RowSource<'a>, u32> = HashMap::new();
        for location in &profile.locations {
            let lines = profile.lines_of(location);
            let unnamed_source = lines.is_empty().then(|| create(location, None));
            let line_sources = lines.iter().map(|line| create(location, Some(*line)));
            for source in unnamed_source.into_iter().chain(line_sources) {
                let index = *known.entry(source).or_insert_with_key(|source| {
                    sources.all.push(source.clone());
                    sources.all.len() as u32 - 1
                });
                sources.indices.push(index);
            }
            sources.ends.push(sources.indices.len() as u32);
        }
        sources
    }

    /// Returns the indices of the places of a location, innermost first.
    pub(super) fn of_location(&self, location: u32) -> &[u32] {
        let location = location as usize;
        let start = location.checked_sub(1).and_then(|before| self.ends.get(before));
        let end = self.ends.get(location).copied().unwrap_or_default();
        let range = start.copied().unwrap_or_default() as usize..end as usize;
        self.indices.get(range).unwrap_or_default()
    }
}

fn source_line<'a>(
    profile: &Profile<'a>,
    paths: &SourcePaths,
    location: &Location,
    line: Option<Line>,
) -> RowSource<'a> {
    let object = profile.mappings.get(location.mapping as usize);
    let object = object.map_or("", |mapping| mapping.file);
    let resolved = line.and_then(|line| Some((line, *profile.functions.get(line.function as usize)?)));
    let Some((line, function)) = resolved else {
        return RowSource {
            object,
            ..RowSource::default()
        };
    };
    RowSource {
        name: function.name,
        address: 0,
        file: match paths.trimmed(function.file) {
            "" => Cow::Borrowed(""),
            file => clean(file),
        },
        start_line: function.start_line,
        line: line.line,
        object,
    }
}

fn row_source<'a>(profile: &Profile<'a>, grouping: Grouping, location: &Location, line: Option<Line>) -> RowSource<'a> {
    let object = profile.mappings.get(location.mapping as usize);
    let object = object.map_or("", |mapping| mapping.file);
    let address = match grouping {
        Grouping::Addresses => location.address,
        _ => 0,
    };
    let resolved = line.and_then(|line| Some((line, profile.functions.get(line.function as usize)?)));
    let Some((line, function)) = resolved else {
        return RowSource {
            address,
            object,
            name: match grouping {
                Grouping::Packages => package("", "", object),
                _ => "",
            },
            ..RowSource::default()
        };
    };
    let name = match grouping {
        Grouping::Packages => package(function.name, function.file, object),
        grouping if grouping.has_functions() => function.name,
        _ => "",
    };
    let file = match function.file {
        file if !file.is_empty() && grouping.has_files() => clean(SourcePaths::default().trimmed(file)),
        _ => Cow::Borrowed(""),
    };
    let is_whole_file = grouping == Grouping::WholeFiles && !file.is_empty();
    let is_unnamed = name.is_empty() && !is_whole_file;
    RowSource {
        name,
        address,
        start_line: if is_unnamed && grouping != Grouping::WholeFiles {
            function.start_line
        } else {
            0
        },
        line: if grouping.has_lines() { line.line } else { 0 },
        object: if is_unnamed { object } else { "" },
        file,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_printed_by_what_is_known_of_it() {
        let text_of = |name, address, file: &'static str, line, object| {
            let file = Cow::Borrowed(file);
            RowSource {
                name,
                address,
                file,
                line,
                object,
                start_line: 0,
            }
            .printed()
        };
        assert_eq!(text_of("f", 0, "", 0, ""), "f");
        assert_eq!(text_of("f", 0x10, "f.go", 7, ""), "0000000000000010 f f.go:7");
        assert_eq!(text_of("f", 0, "f.go", 0, ""), "f f.go");
        assert_eq!(text_of("", 0, "", 0, "/lib/libc.so"), "[libc.so]");
        assert_eq!(text_of("", 0, "", 0, ""), "<unknown>");
    }
}
