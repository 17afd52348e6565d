//! Repairs pprof files from agents that deviate from the format. The repairs are the same as Pyroscope's.
//!
//! In: the name of the agent and its profile. Out: the profile with repaired names and function ids. For agents of
//! scripting languages, this module puts the file before the name of a function. .NET's agent used `-` in the names of
//! sample types and sent functions without ids; this module writes `_` and assigns ids.

use std::borrow::Cow;
use std::ops::Range;

use bytes::Bytes;

use crate::connect::ConnectError;
use alluvium_profile::decoded::Columns;
use alluvium_profile::pprof::{self, BYTES, DecodeError, DecodeErrorKind, Profile, Reader, VARINT};

/// Field numbers of a profile, and the field number of the lines in a location.
const LOCATION: u32 = 4;
const FUNCTION: u32 = 5;
const LINES_OF_LOCATION: u32 = 4;

/// An agent that deviates from the format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Spy {
    /// pyspy. A relative file path becomes part of the function's name; an absolute path does not.
    Python,
    /// rbspy and other agents of scripting languages.
    Script,
    /// dotnetspy, even if it does not send its name.
    Dotnet,
}

impl Spy {
    /// Returns the agent with this name. `has_dotnet_types` returns true if the sample type configuration of the
    /// request lists a sample type of .NET's agent. The request is then from this agent, even if it names no agent.
    pub(super) fn of(name: &str, has_dotnet_types: impl FnOnce() -> bool) -> Option<Self> {
        match name {
            "pyspy" => Some(Self::Python),
            "rbspy" | "scripting" => Some(Self::Script),
            "dotnetspy" => Some(Self::Dotnet),
            "unknown" if has_dotnet_types() => Some(Self::Dotnet),
            _ => None,
        }
    }

    /// Returns the repaired name of a sample type.
    pub(super) fn kind(self, kind: &str) -> Cow<'_, str> {
        if self == Self::Dotnet && kind.contains('-') {
            return kind.replace('-', "_").into();
        }
        kind.into()
    }

    /// Assigns function ids if the bytes cannot be decoded without them. Otherwise returns the bytes unchanged.
    pub(super) fn decodable(self, plain: &Bytes) -> Bytes {
        let is_broken = |error: &DecodeError| matches!(error.kind, DecodeErrorKind::ZeroId { what: "function" });
        if self != Self::Dotnet || !pprof::decode(plain).is_err_and(|error| is_broken(&error)) {
            return plain.clone();
        }
        // If the bytes cannot be repaired, the original bytes are returned, and the caller refuses them.
        numbered(plain)
            .ok()
            .flatten()
            .map_or_else(|| plain.clone(), Bytes::from)
    }

    /// Renames functions and sample types. Too many names are an error with status 413.
    pub(super) fn renamed(self, columns: Columns) -> Result<Columns, ConnectError> {
        let plain = columns.buffer().clone();
        let room = pprof::max_column_bytes(plain.len())
            .saturating_sub(columns.get().column_bytes())
            .saturating_sub(plain.len());
        // The names exist twice for a moment.
        let Some(names) = self.names(columns.get(), room / 2)? else {
            return Ok(columns);
        };
        drop(columns);
        let renamed = Columns::read([&plain, names.text.as_bytes()].concat().into(), |buffer| {
            let (plain, text) = buffer.split_at(plain.len());
            let mut profile = pprof::decode(plain)?;
            let part = |range: &Range<usize>| text.get(range.clone()).and_then(|part| std::str::from_utf8(part).ok());
            for (function, name) in profile.functions.iter_mut().zip(&names.functions) {
                function.name = name.as_ref().and_then(part).unwrap_or(function.name);
            }
            for (sample_type, name) in profile.sample_types.iter_mut().zip(&names.types) {
                sample_type.kind = name.as_ref().and_then(part).unwrap_or(sample_type.kind);
            }
            Ok::<_, DecodeError>(profile)
        });
        renamed
            .map_err(|error: DecodeError| ConnectError::invalid(format!("cannot read the profile as pprof: {error}")))
    }

    /// Returns the replacement names, or `None` if no name changes.
    fn names(self, profile: &Profile<'_>, room: usize) -> Result<Option<Names>, ConnectError> {
        let mut names = Names::default();
        for function in &profile.functions {
            let (file, name) = (function.file, function.name);
            let is_renamed = match self {
                Self::Python => !file.is_empty() && !file.starts_with('/'),
                Self::Script => !file.is_empty(),
                Self::Dotnet => false,
            };
            let range = is_renamed.then(|| names.push(&[file, " ", name]));
            names.functions.push(range);
            if names.text.len() > room {
                let message = format!("the names of functions with their files have more than {room} bytes");
                return Err(ConnectError::too_large(message));
            }
        }
        for sample_type in &profile.sample_types {
            let kind = self.kind(sample_type.kind);
            let range = (kind != sample_type.kind).then(|| names.push(&[&kind]));
            names.types.push(range);
        }
        Ok((!names.text.is_empty()).then_some(names))
    }
}

/// Replacement names of functions and of sample types, in one text.
#[derive(Default)]
struct Names {
    text: String,
    functions: Vec<Option<Range<usize>>>,
    types: Vec<Option<Range<usize>>>,
}

impl Names {
    fn push(&mut self, parts: &[&str]) -> Range<usize> {
        let start = self.text.len();
        parts.iter().for_each(|part| self.text.push_str(part));
        start..self.text.len()
    }
}

/// Gives each function of a profile the id of the location at the same position. Returns `None` if a location does not
/// have exactly one line, if the numbers of locations and functions differ, or if the profile grows too much.
fn numbered(plain: &[u8]) -> Result<Option<Vec<u8>>, DecodeError> {
    let mut ids = Vec::new();
    let mut functions = 0;
    let mut profile = Reader::new(plain, 0);
    while let Some(tag) = profile.tag()? {
        match (tag.field, tag.wire) {
            (LOCATION, BYTES) => match location_id(profile.message()?)? {
                Some(id) => ids.push(id),
                None => return Ok(None),
            },
            (FUNCTION, BYTES) => {
                functions += 1;
                profile.skip(tag)?;
            }
            _ => profile.skip(tag)?,
        }
    }
    // Each function and each line needs a few more bytes. A profile that grows more is not from .NET's agent.
    let max_bytes = plain.len() + plain.len() / 4 + 64;
    if functions != ids.len() {
        return Ok(None);
    }
    let mut out = Vec::with_capacity(max_bytes);
    let (mut function_ids, mut location_ids) = (ids.iter(), ids.iter());
    let mut profile = Reader::new(plain, 0);
    loop {
        let start = profile.position();
        let Some(tag) = profile.tag()? else { break };
        match (tag.field, tag.wire) {
            (LOCATION, BYTES) => put_field(&mut out, LOCATION, &location(profile.message()?, location_ids.next())?),
            (FUNCTION, BYTES) => put_field(&mut out, FUNCTION, &with_id(profile.message()?, function_ids.next())?),
            _ => {
                profile.skip(tag)?;
                out.extend(plain.get(start..profile.position()).unwrap_or_default());
            }
        }
        if out.len() > max_bytes {
            return Ok(None);
        }
    }
    Ok(Some(out))
}

/// Returns the id of a location with exactly one line, otherwise `None`.
fn location_id(mut location: Reader<'_>) -> Result<Option<u64>, DecodeError> {
    let (mut id, mut lines) = (None, 0);
    while let Some(tag) = location.tag()? {
        if (tag.field, tag.wire) == (1, VARINT) {
            id = Some(location.varint()?);
        } else {
            lines += usize::from(tag.field == LINES_OF_LOCATION);
            location.skip(tag)?;
        }
    }
    Ok(id.filter(|_| lines == 1))
}

/// Encodes a location whose line refers to the function `id`.
fn location(mut location: Reader<'_>, id: Option<&u64>) -> Result<Vec<u8>, DecodeError> {
    let mut out = Vec::new();
    loop {
        let before = location;
        let Some(tag) = location.tag()? else { return Ok(out) };
        if (tag.field, tag.wire) == (LINES_OF_LOCATION, BYTES) {
            put_field(&mut out, LINES_OF_LOCATION, &with_id(location.message()?, id)?);
        } else {
            location.skip(tag)?;
            copy(&mut out, before, location);
        }
    }
}

/// Encodes a message with `id` in its first field.
fn with_id(mut message: Reader<'_>, id: Option<&u64>) -> Result<Vec<u8>, DecodeError> {
    let mut out = vec![8];
    put_varint(&mut out, id.copied().unwrap_or_default());
    loop {
        let before = message;
        let Some(tag) = message.tag()? else { return Ok(out) };
        message.skip(tag)?;
        if tag.field != 1 {
            copy(&mut out, before, message);
        }
    }
}

/// Appends the bytes between two positions in a message.
fn copy(out: &mut Vec<u8>, before: Reader<'_>, after: Reader<'_>) {
    let length = after.position() - before.position();
    out.extend(before.rest().get(..length).unwrap_or_default());
}

/// Appends a length-delimited field.
fn put_field(out: &mut Vec<u8>, field: u32, content: &[u8]) {
    put_varint(out, u64::from(field << 3 | u32::from(BYTES)));
    put_varint(out, content.len() as u64);
    out.extend_from_slice(content);
}

fn put_varint(out: &mut Vec<u8>, number: u64) {
    prost::encoding::encode_varint(number, out);
}

#[cfg(test)]
mod tests {
    use prost::Message as _;

    use super::*;
    use crate::ingest::testing;
    use alluvium_profile::pprof::{Builder, Function, Line, Location, ValueType, encode};

    fn profile(kind: &'static str, functions: &[(&'static str, &'static str)]) -> Vec<u8> {
        let mut builder = Builder::new(Profile {
            sample_types: vec![ValueType { kind, unit: "count" }],
            time_nanos: 1_700_000_000_000_000_000,
            ..Profile::default()
        });
        let stack: Vec<u32> = functions
            .iter()
            .map(|(file, name)| {
                let function = builder.function(Function {
                    name,
                    file,
                    ..Function::default()
                });
                builder.location(Location::NO_MAPPING, 0, &[Line { function, line: 7 }])
            })
            .collect();
        builder.sample(stack, [], &[10]);
        encode(&builder.finish())
    }

    fn read(spy: &str, body: Vec<u8>) -> Result<testing::Stacks, ConnectError> {
        let query = format!("name=app&format=pprof&spyName={spy}");
        crate::ingest::read(&query, "", body.into(), 1 << 20).map(|profiles| testing::sums(&profiles))
    }

    #[test]
    fn functions_of_scripts_have_their_file_before_their_name() {
        let body = profile(
            "samples",
            &[
                ("qwe.py", "func1"),
                ("/usr/lib/x.py", "lib"),
                ("", "native"),
                ("qwe.py", "main"),
            ],
        );
        for (spy, stack) in [
            ("pyspy", "qwe.py main;native;lib;qwe.py func1"),
            ("rbspy", "qwe.py main;native;/usr/lib/x.py lib;qwe.py func1"),
            ("scripting", "qwe.py main;native;/usr/lib/x.py lib;qwe.py func1"),
            ("gospy", "main;native;lib;func1"),
            ("dotnetspy", "main;native;lib;func1"),
        ] {
            assert_eq!(
                read(spy, body.clone()).unwrap(),
                [(stack.to_owned(), 10)].into(),
                "{spy}"
            );
        }
    }

    #[test]
    fn files_that_many_functions_have_are_bounded() {
        let file: &'static str = Box::leak("f".repeat(100_000).into_boxed_str());
        let names: Vec<&'static str> = (0..50)
            .map(|name| &*Box::leak(name.to_string().into_boxed_str()))
            .collect();
        let functions: Vec<_> = names.into_iter().map(|name| (file, name)).collect();
        let error = read("rbspy", profile("samples", &functions)).unwrap_err();
        assert_eq!(error.status, 413);
        assert!(error.message.contains("names of functions with their files"), "{error}");
    }

    #[test]
    fn sample_types_of_dotnet_have_underscores() {
        let body = profile("inuse-space", &[("", "main")]);
        let config = br#"{"inuse-space":{"display-name":"inuse_space"}}"#;
        let form = |config: &[u8]| {
            let mut form = Vec::new();
            for (name, content) in [("profile", body.as_slice()), ("sample_type_config", config)] {
                form.extend(format!("--B\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n").bytes());
                form.extend(content);
                form.extend(b"\r\n");
            }
            form.extend(b"--B--\r\n");
            form
        };
        let read = |spy: &str, config: &[u8]| {
            let query = format!("name=app{spy}");
            let profiles = crate::ingest::read(&query, "multipart/form-data; boundary=B", form(config).into(), 1 << 20);
            let profile = profiles.unwrap().remove(0);
            let kind = pprof::decode(&profile.pprof).unwrap().sample_types[0].kind.to_owned();
            (profile.labels.get("__name__").unwrap().to_owned(), kind)
        };
        let mended = ("memory".to_owned(), "inuse_space".to_owned());
        assert_eq!(read("&spyName=dotnetspy", config), mended);
        assert_eq!(read("", config), mended);
        assert_eq!(read("&spyName=dotnetspy", b"{}"), mended);
        assert_eq!(read("", b"{}"), ("inuse-space".to_owned(), "inuse-space".to_owned()));
    }

    #[test]
    fn functions_without_ids_get_those_of_their_locations() {
        let encoded = profile("samples", &[("", "leaf"), ("", "middle"), ("", "main")]);
        let mut message = crate::proto::google::Profile::decode(encoded.as_slice()).unwrap();
        for function in &mut message.function {
            function.id = 0;
        }
        for line in message.location.iter_mut().flat_map(|location| &mut location.line) {
            line.function_id = 0;
        }
        let broken = message.encode_to_vec();
        assert_eq!(
            read("dotnetspy", broken.clone()).unwrap(),
            [("main;middle;leaf".to_owned(), 10)].into()
        );
        let error = read("gospy", broken).unwrap_err();
        assert!(error.message.contains("function id is 0"), "{error}");
        // One function is missing, so the ids cannot be assigned.
        message.function.pop();
        assert!(read("dotnetspy", message.encode_to_vec()).is_err());
    }
}
