//! What is promised for any input, one function a fuzz target. A broken promise panics.
//!
//! Used by the targets beside this file, and by `integration/fuzzing.rs`, which keeps them for the seeds, for what was
//! found once and for random changes of both. In: bytes or text. Out: nothing, or a panic. Reads and writes nothing.

use alluvium::components;
use alluvium::lang::eval::{NoScope, evaluate};
use alluvium::lang::translate::{to_alloy, to_hcl};
use alluvium::lang::{Diagnostics, Source, decode_text, fmt_named, parse, parse_expression, same};
use alluvium::pipeline::component::Stability;
use alluvium::pipeline::validate;
use alluvium::profile::flamegraph::Tree;
use alluvium::profile::jfr::{About, Recording};
use alluvium::profile::{legacy, pprof, selector};
use alluvium::wire::connect::Codec;
use alluvium::wire::{files, ingest, otlp};

/// Any bytes are a configuration or diagnostics that can be shown; what is formatted means the same, has the same
/// comments and is formatted for good; whatever parses is checked and, taken as an expression, evaluated. Of what does
/// not parse, one in eight is checked as well.
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
        shown(&validate(&sources, components::ALL, Stability::Experimental));
    }
}

/// One input in eight, the same every time: for what costs much and finds little.
fn sampled(data: &[u8]) -> bool {
    let hash = data.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    hash >> 61 == 0
}

/// Any text is HCL or refused; what is HCL is formatted for good and means the same; what either syntax converts into
/// the other means the same, and converts back.
pub(super) fn hcl(text: &str) {
    if formatted("x.hcl", text)
        && let Ok(alloy) = to_alloy("x.hcl", text)
    {
        let (file, _) = parse(&Source::new("x.hcl", text));
        assert!(same(&file, &parse(&Source::new("x.alloy", alloy.as_str())).0));
    }
    if let Ok(hcl) = to_hcl("x.alloy", text) {
        let alloy = to_alloy("x.hcl", &hcl).expect("what was converted converts back");
        let (there, _) = parse(&Source::new("x.alloy", text));
        let (back, _) = parse(&Source::new("x.alloy", alloy.as_str()));
        assert!(same(&there, &back), "conversion changed the meaning");
    }
}

/// Any text is a selector or an error; what is a selector is read back from what it is written as.
pub(super) fn selector(text: &str) {
    let _ = selector::parse_query(text);
    let Ok(matchers) = selector::parse(text) else {
        return;
    };
    assert_eq!(selector::parse(&selector::format(&matchers)), Ok(matchers));
}

/// Any bytes are a textual profile or an error; what is one survives encode and decode as pprof.
pub(super) fn legacy(data: &[u8]) {
    let Ok(profile) = legacy::read(data) else {
        return;
    };
    let encoded = pprof::encode(&profile);
    assert_eq!(pprof::decode(&encoded).as_ref(), Ok(&profile));
}

/// Any bytes are a profile or an error; what is a profile survives encode and decode, has stack ids, and gives a tree
/// that loses nothing.
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

/// Any diagnostic can be shown. Excerpts of all of them would take most of the time.
fn shown(diagnostics: &Diagnostics) {
    let _ = diagnostics.to_json();
    for diagnostic in diagnostics.iter().take(2) {
        let _ = diagnostic.render();
    }
}

/// True when the text parses.
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
            let comments = |file: &alluvium::lang::ast::File| file.comments.iter().map(Vec::len).sum::<usize>();
            assert_eq!(comments(&file), comments(&again), "formatting changed the comments");
            assert_eq!(
                fmt_named(path, &formatted).ok(),
                Some(formatted),
                "formatting is not done"
            );
        }
        Err(found) => assert!(found.has_errors() && diagnostics.has_errors()),
    }
    parses
}

/// Any bytes are a recording or an error; what is read becomes profiles that are valid. The first byte says how many
/// bytes behind it are labels.
pub(super) fn jfr(data: &[u8]) {
    let Some((count, rest)) = data.split_first() else {
        return;
    };
    let (labels, file) = rest.split_at(rest.len().min(usize::from(*count)));
    let Ok(recording) = Recording::read(file, labels) else {
        return;
    };
    let about = About {
        time_nanos: recording.start_nanos(),
        duration_nanos: recording.duration_nanos(),
        period_nanos: recording.interval_nanos().unwrap_or(1),
    };
    for profile in recording.profiles(&about) {
        let encoded = pprof::encode(profile.columns.get());
        assert_eq!(pprof::decode(&encoded).as_ref(), Ok(profile.columns.get()));
    }
}

/// Any bytes are an export request of OpenTelemetry or an error; its profiles are valid, and take no more memory than
/// they were weighed with. The first byte says whether the others are JSON.
pub(super) fn otlp(data: &[u8]) {
    let Some((first, body)) = data.split_first() else {
        return;
    };
    let codec = if first % 2 == 1 { Codec::Json } else { Codec::Proto };
    let Ok(weight) = otlp::weight(codec, body) else {
        return;
    };
    let Ok(profiles) = otlp::read(codec, body.to_vec().into(), 1) else {
        return;
    };
    let bytes: usize = profiles.iter().map(|profile| profile.columns.bytes()).sum();
    assert!(bytes <= weight, "{bytes} bytes of profiles, weighed with {weight}");
    for profile in profiles {
        let encoded = pprof::encode(profile.columns.get());
        assert_eq!(pprof::decode(&encoded).as_ref(), Ok(profile.columns.get()));
    }
}

/// Any bytes are a tree or trie of `/ingest`, or an error; what is read becomes a profile that is valid. The first byte
/// says which of the two the others are.
pub(super) fn trees(data: &[u8]) {
    let Some((first, rest)) = data.split_first() else {
        return;
    };
    let format = if first % 2 == 0 { "tree" } else { "trie" };
    uploaded(&format!("name=app&format={format}"), rest);
}

/// Any bytes are a file of speedscope or an error; what is read becomes profiles that are valid.
pub(super) fn speedscope(data: &[u8]) {
    uploaded("name=app&format=speedscope", data);
}

/// Any bytes are a file of a profiler or an error; its profiles have samples, are valid, and stay small.
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

/// Any bytes behind the first ones of a trace of .NET are one or an error; the same is promised as of other files.
pub(super) fn nettrace(data: &[u8]) {
    files(&[b"Nettrace\x14\0\0\0!FastSerialization.1", data].concat());
}

fn uploaded(query: &str, data: &[u8]) {
    let Ok(profiles) = ingest::read(query, "", data.to_vec().into(), 1 << 20) else {
        return;
    };
    for raw in profiles {
        let profile = pprof::decode(&raw.pprof).expect("what was read is a profile");
        assert!(profile.sample_count() > 0, "a profile has samples");
        assert_eq!(pprof::encode(&profile), raw.pprof);
    }
}
