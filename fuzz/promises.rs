//! Promises that hold for any input, one function per fuzz target. A broken promise panics.
//!
//! The fuzz targets call these functions. `integration/fuzzing.rs` also calls them with the seeds, with inputs that
//! once broke a promise, and with random changes of both. In: bytes or text. Out: nothing, or a panic. The functions
//! read and write no files.

use alluvium_lang::eval::{NoScope, evaluate};
use alluvium_lang::translate::{to_alloy, to_hcl};
use alluvium_lang::{Diagnostics, Source, decode_text, fmt_named, parse, parse_expression, same};
use alluvium_pipeline::component::Stability;
use alluvium_pipeline::validate;
use alluvium_profile::flamegraph::Tree;
use alluvium_profile::jfr::{Recording, RecordingFacts};
use alluvium_profile::{legacy, pprof, selector};
use alluvium_wire::connect::Codec;
use alluvium_wire::{files, ingest, otlp};

/// Any bytes are a configuration or cause diagnostics that can be rendered. Formatting keeps the meaning and the
/// comments, and a second pass changes nothing. If a text is an expression, it is also evaluated. A text
/// that parses is validated as a configuration. Of the texts that do not parse, one in eight is validated as well.
pub(super) fn language(data: &[u8]) {
    let text = match decode_text("x.alloy", data.to_vec()) {
        Ok(text) => text,
        Err(diagnostic) => {
            let _ = diagnostic.render_coloured();
            return;
        }
    };
    let parses = formatted("x.alloy", &text);
    let source = Source::new("x.alloy", text.as_str());
    let (expression, found) = parse_expression(&source);
    if !found.has_errors() {
        let _ = evaluate(&source, &expression, &NoScope);
    }
    if parses || sampled(data) {
        let sources = [("x.alloy".to_owned(), text)];
        shown(&validate(&sources, alluvium_components::ALL, Stability::Experimental));
    }
}

/// Selects one input in eight, always the same inputs, for checks that are expensive and rarely find an error.
fn sampled(data: &[u8]) -> bool {
    let hash = data.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    hash >> 61 == 0
}

/// Any text is HCL or is refused. Formatting HCL keeps the meaning, and a second pass changes nothing. Conversion to
/// the other syntax and back keeps the meaning.
pub(super) fn hcl(text: &str) {
    if formatted("x.hcl", text)
        && let Ok(alloy) = to_alloy("x.hcl", text)
    {
        let (file, _) = parse(&Source::new("x.hcl", text));
        assert!(same(&file, &parse(&Source::new("x.alloy", alloy.as_str())).0));
    }
    if let Ok(hcl) = to_hcl("x.alloy", text) {
        let alloy = to_alloy("x.hcl", &hcl).expect("converted text converts back");
        let (there, _) = parse(&Source::new("x.alloy", text));
        let (back, _) = parse(&Source::new("x.alloy", alloy.as_str()));
        assert!(same(&there, &back), "conversion changed the meaning");
    }
}

/// Any text is a selector or an error. If a selector is formatted and parsed again, the result is the same selector.
pub(super) fn selector(text: &str) {
    let _ = selector::parse_query(text);
    let Ok(matchers) = selector::parse(text) else {
        return;
    };
    assert_eq!(selector::parse(&selector::format(&matchers)), Ok(matchers));
}

/// Any bytes are a textual profile or an error. A profile survives encoding and decoding as pprof.
pub(super) fn legacy(data: &[u8]) {
    let Ok(profile) = legacy::read(data) else {
        return;
    };
    let encoded = pprof::encode(&profile);
    assert_eq!(pprof::decode(&encoded).as_ref(), Ok(&profile));
}

/// Any bytes are a profile or an error. A profile survives encoding and decoding, has stack ids, and can become a tree.
/// If some of its samples are removed, the profile is still valid.
pub(super) fn pprof_decode(data: &[u8]) {
    let Ok(profile) = pprof::decode(data) else {
        return;
    };
    assert_eq!(pprof::stack_ids(&profile).len(), profile.sample_count());
    let encoded = pprof::encode(&profile);
    assert_eq!(pprof::decode(&encoded).as_ref(), Ok(&profile));
    let mut tree = Tree::by_file();
    tree.insert_profile(&profile, 0);
    tree.to_flamegraph(64);
    let mut smaller = profile.clone();
    smaller.retain_samples(|sample| sample % 2 == 0);
    smaller.drop_unused();
    assert!(pprof::decode(&pprof::encode(&smaller)).is_ok());
}

/// Any diagnostic can be rendered. The function renders only the first two, because their excerpts take most of the
/// time.
fn shown(diagnostics: &Diagnostics) {
    let _ = diagnostics.to_json();
    for diagnostic in diagnostics.iter().take(2) {
        let _ = diagnostic.render();
    }
}

/// Returns true if the text parses. Checks the promises about formatting.
fn formatted(path: &str, text: &str) -> bool {
    let (file, diagnostics) = parse(&Source::new(path, text));
    shown(&diagnostics);
    let parses = !diagnostics.has_errors();
    if !parses && !sampled(text.as_bytes()) {
        return false;
    }
    match fmt_named(path, text) {
        Ok(formatted) => {
            let (again, found) = parse(&Source::new(path, formatted.as_str()));
            assert!(!found.has_errors(), "the formatted text does not parse");
            assert!(file == again, "formatting changed the meaning");
            let comments = |file: &alluvium_lang::ast::File| file.comments.iter().map(Vec::len).sum::<usize>();
            assert_eq!(comments(&file), comments(&again), "formatting changed the comments");
            assert_eq!(
                fmt_named(path, &formatted).ok(),
                Some(formatted),
                "formatting is not stable"
            );
        }
        Err(found) => assert!(found.has_errors() && diagnostics.has_errors()),
    }
    parses
}

/// Any bytes are a recording or an error. A recording becomes valid profiles. The first byte is the number of bytes of
/// labels, which follow it.
pub(super) fn jfr(data: &[u8]) {
    let Some((count, rest)) = data.split_first() else {
        return;
    };
    let (labels, file) = rest.split_at(rest.len().min(usize::from(*count)));
    let Ok(recording) = Recording::read(file, labels) else {
        return;
    };
    let about = RecordingFacts {
        time_nanos: recording.start_nanos(),
        duration_nanos: recording.duration_nanos(),
        period_nanos: recording.interval_nanos().unwrap_or(1),
    };
    for profile in recording.profiles(&about) {
        let encoded = pprof::encode(profile.columns.get());
        assert_eq!(pprof::decode(&encoded).as_ref(), Ok(profile.columns.get()));
    }
}

/// Any bytes are an OpenTelemetry export request or an error. The profiles of a request are valid and use no more
/// memory than the weight of the request. The first byte determines whether the other bytes are JSON.
pub(super) fn otlp(data: &[u8]) {
    let Some((first, body)) = data.split_first() else {
        return;
    };
    let codec = if first % 2 == 1 { Codec::Json } else { Codec::Proto };
    let Ok(body) = otlp::upgrade(codec, body.to_vec().into()) else {
        return;
    };
    let Ok(weight) = otlp::weight(codec, &body) else {
        return;
    };
    let Ok(profiles) = otlp::read(codec, body, 1) else {
        return;
    };
    let bytes: usize = profiles.iter().map(|profile| profile.columns.bytes()).sum();
    assert!(bytes <= weight, "{bytes} bytes of profiles, weighed with {weight}");
    for profile in profiles {
        let encoded = pprof::encode(profile.columns.get());
        assert_eq!(pprof::decode(&encoded).as_ref(), Ok(profile.columns.get()));
    }
}

/// Any bytes are a tree or trie of `/ingest`, or an error. A tree or trie becomes a valid profile. The first byte
/// selects the format.
pub(super) fn trees(data: &[u8]) {
    let Some((first, rest)) = data.split_first() else {
        return;
    };
    let format = if first % 2 == 0 { "tree" } else { "trie" };
    uploaded(&format!("name=app&format={format}"), rest);
}

/// Any bytes are a speedscope file or an error. A file becomes valid profiles.
pub(super) fn speedscope(data: &[u8]) {
    uploaded("name=app&format=speedscope", data);
}

/// Any bytes are a profiler's file or an error. The profiles of a file have samples, are valid, and use
/// less than 256 MiB of memory each.
pub(super) fn files(data: &[u8]) {
    let Ok(imported) = files::read(&data.to_vec().into(), 1 << 20) else {
        return;
    };
    assert!(!imported.profiles.is_empty(), "a file has profiles");
    for profile in imported.profiles {
        let columns = profile.columns.get();
        assert!(columns.sample_count() > 0, "a profile has samples");
        assert!(profile.columns.bytes() < 256 << 20, "{} bytes", profile.columns.bytes());
        let encoded = pprof::encode(columns);
        assert_eq!(pprof::decode(&encoded).as_ref(), Ok(columns));
    }
}

/// Any bytes after the beginning of a .NET trace are a trace or an error. A trace must keep the promises of [`files`].
pub(super) fn nettrace(data: &[u8]) {
    files(&[b"Nettrace\x14\0\0\0!FastSerialization.1", data].concat());
}

fn uploaded(query: &str, data: &[u8]) {
    let Ok(profiles) = ingest::read(query, "", data.to_vec().into(), 1 << 20) else {
        return;
    };
    for raw in profiles {
        let profile = pprof::decode(&raw.pprof).expect("an accepted upload is a profile");
        assert!(profile.sample_count() > 0, "a profile has samples");
        assert_eq!(pprof::encode(&profile), raw.pprof);
    }
}
