//! Tests of `/ingest` bodies: how they are read, and how invalid bodies are refused.

use super::*;
use alluvium_profile::pprof::{self, Profile, ValueType};

const NOW: i64 = 1_700_000_000_000_000_000;

fn query(text: &str) -> IngestQuery {
    IngestQuery::parse(text, NOW).unwrap()
}

fn read(query: &IngestQuery, content_type: &str, body: Bytes, limit: usize) -> Result<DecodedProfile, ConnectError> {
    read_all(query, content_type, body, limit).map(|mut profiles| {
        assert_eq!(profiles.len(), 1);
        profiles.remove(0)
    })
}

fn read_all(
    query: &IngestQuery,
    content_type: &str,
    body: Bytes,
    limit: usize,
) -> Result<Vec<DecodedProfile>, ConnectError> {
    let upload = Upload::new(query, content_type, body)?;
    let open = |opening: Opening| {
        upload.memory(opening)?;
        upload.read(query, opening)
    };
    let read = open(Opening::Announced(limit)).or_else(|error| match error {
        ReadError::LargerThanAnnounced => open(Opening::AtMost(limit)),
        refused @ ReadError::Refused(_) => Err(refused),
    });
    match read {
        Ok(profiles) => Ok(profiles),
        Err(ReadError::Refused(error)) => Err(error),
        Err(ReadError::LargerThanAnnounced) => panic!("an upload opened with `AtMost` is larger than announced"),
    }
}

fn with_types<'a>(kinds: &[&'a str]) -> Profile<'a> {
    Profile {
        sample_types: kinds.iter().map(|kind| ValueType { kind, unit: "count" }).collect(),
        time_nanos: NOW,
        sample_starts: vec![0],
        label_starts: vec![0],
        ..Profile::default()
    }
}

fn form(parts: &[(&str, &[u8])]) -> Bytes {
    let mut body = Vec::new();
    for (name, content) in parts {
        body.extend_from_slice(format!("--B\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n").as_bytes());
        body.extend_from_slice(content);
        body.extend_from_slice(b"\r\n");
    }
    body.extend_from_slice(b"--B--\r\n");
    body.into()
}

const FORM: &str = "multipart/form-data; boundary=B";

#[test]
fn bytes_go_on_as_they_came() {
    let body = Bytes::from(pprof::gzip(&pprof::encode(&with_types(&["samples", "cpu"]))));
    for format in ["", "&format=pprof"] {
        let read = read(
            &query(&format!("name=app{format}")),
            "application/octet-stream",
            body.clone(),
            1 << 20,
        )
        .unwrap();
        assert_eq!(read.pprof.unwrap().as_ptr(), body.as_ptr());
        assert_eq!(
            read.labels.to_string(),
            r#"{__delta__="false", __name__="process_cpu", pyroscope_spy="unknown", service_name="app"}"#
        );
    }
}

#[test]
fn a_form_has_the_profile_and_its_settings() {
    let plain = pprof::encode(&with_types(&["contentions", "delay"]));
    let config = br#"{
        "contentions":{"units":"lock_samples","display-name":"block_count"},
        "delay":{"display-name":"block_duration"}
    }"#;
    let body = form(&[("profile", &plain), ("sample_type_config", config)]);
    let parameters = query("name=app%7Bservice_name%3Dshop%2C__secret%3Dx%2C__session_id__%3D1%7D&spyName=gospy");
    let read = read(&parameters, FORM, body, 1 << 20).unwrap();
    assert_eq!(
        read.labels.to_string(),
        "{__delta__=\"false\", __name__=\"block\", __session_id__=\"1\", app_name=\"app\", \
         pyroscope_spy=\"gospy\", service_name=\"shop\"}"
    );
    assert_eq!(read.pprof.unwrap(), plain);
}

#[test]
fn a_profile_without_time_gets_that_of_the_query() {
    let mut profile = with_types(&["cpu"]);
    profile.time_nanos = 0;
    let body = pprof::encode(&profile).into();
    let read = read(
        &query("name=a&format=pprof&from=1699999990&until=1700000000"),
        "",
        body,
        1 << 20,
    )
    .unwrap();
    let (raw, columns) = read.into_parts();
    assert_eq!(pprof::decode(&raw.pprof).as_ref(), Ok(columns.get()));
    assert_eq!(columns.get().time_nanos, 1_699_999_990_000_000_000);
    assert_eq!(columns.get().duration_nanos, 10_000_000_000);
}

#[test]
fn wrong_bodies_are_refused_with_their_reason() {
    let plain = pprof::encode(&with_types(&["cpu"]));
    let bomb = pprof::gzip(&vec![0u8; 2 << 20]);
    let packed = pprof::gzip(&plain);
    for (text, kind, body, status, reason) in [
        ("format=pprof", "", Bytes::from_static(b"garbage"), 400, "pprof"),
        ("format=pprof", "", Bytes::new(), 400, "empty"),
        (
            "format=pprof",
            "",
            packed[..packed.len() - 9].to_vec().into(),
            400,
            "gzip",
        ),
        ("format=pprof", "", bomb.into(), 413, "1048576"),
        ("", "", Bytes::from_static(b"a;b;c five\n"), 400, "line 1: `five`"),
        ("", "", Bytes::from_static(b"nothing\n"), 400, "no line"),
        ("", "", Bytes::from_static(b"a;\xff 5\n"), 400, "utf-8"),
        ("format=lines", "", vec![b'a'; 70_000].into(), 400, "line 1 is longer"),
        ("format=lines", "", vec![b'a'; 2 << 20].into(), 413, "1048576"),
        ("format=jfr", "", Bytes::new(), 422, "empty recording"),
        ("format=jfr", "", Bytes::from_static(b"FLR"), 422, "3 are left"),
        ("format=jfr", FORM, form(&[("labels", b"x")]), 400, "no field `jfr`"),
        ("format=speedscope", "", Bytes::new(), 422, "line 1 column 0"),
        ("format=lines", "", Bytes::new(), 400, "no line"),
        ("", "binary/octet-stream+tree", Bytes::new(), 400, "as a tree: byte 0"),
        ("format=trie", "", Bytes::new(), 400, "as a trie: byte 0"),
        ("format=xml", "", Bytes::new(), 422, "xml"),
        ("", FORM, form(&[("other", b"x")]), 400, "no field `profile`"),
        ("", FORM, form(&[("", b"x")]), 400, "no field `profile`"),
        (
            "",
            FORM,
            form(&[("profile", &plain), ("prev_profile", &plain)]),
            422,
            "upgrade",
        ),
        (
            "",
            FORM,
            form(&[("profile", &plain), ("sample_type_config", b"{")]),
            400,
            "sample_type_config",
        ),
        (
            "",
            FORM,
            form(&[("profile", &plain), ("sample_type_config", &[b' '; 70_000])]),
            413,
            "70000 bytes",
        ),
        ("format=groups", "", vec![b'\n'; 1 << 19].into(), 413, "lines"),
        ("", FORM, form(&[("jfr", b"x")]), 422, "JFR"),
        ("", "multipart/form-data", Bytes::new(), 400, "boundary"),
    ] {
        let error = read(&query(&format!("name=a&{text}")), kind, body, 1 << 20).unwrap_err();
        assert_eq!(error.status, status, "{text} {kind}: {error}");
        assert!(error.message.contains(reason), "{text} {kind}: {error}");
    }
}

#[test]
fn an_upload_tells_what_it_will_take_before_it_is_opened() {
    let memory = |body: Vec<u8>, limit| {
        let upload = Upload::new(&query("name=a&format=pprof"), "", body.into()).unwrap();
        let columns = pprof::max_column_bytes(0);
        [Opening::Announced(limit), Opening::AtMost(limit)].map(|opening| Some(upload.memory(opening).ok()? - columns))
    };
    let zeros = || pprof::gzip(&vec![0u8; 1 << 20]);
    assert_eq!(memory(zeros(), 2 << 20), [Some(17 << 20), Some(34 << 20)]);
    // The last of the two gzip members announces only its own length.
    assert_eq!(
        memory([zeros(), zeros()].concat(), 2 << 20),
        [Some(17 << 20), Some(34 << 20)]
    );
    assert_eq!(memory(zeros(), 1 << 10), [Some(17 << 10); 2]);
    assert_eq!(memory(vec![10; 100], 100)[0], Some(1700));
    assert_eq!(memory(vec![10; 101], 100), [None; 2]);
    assert_eq!(
        [(10, 1 << 20), (10_000, 1 << 20), (2 << 20, 1 << 20)].map(|(body, max)| work_bytes(body, max)),
        [10_320, 1 << 20, 2 << 20]
    );
}

#[test]
fn what_announces_fewer_bytes_than_it_has_is_opened_with_room_for_all_or_not_at_all() {
    let plain = pprof::encode(&with_types(&["cpu"]));
    let members = Bytes::from([pprof::gzip(&plain), pprof::gzip(b"")].concat());
    let query = query("name=a&format=pprof");
    let upload = Upload::new(&query, "", members.clone()).unwrap();
    let announced = upload.read(&query, Opening::Announced(1 << 20));
    assert!(matches!(announced, Err(ReadError::LargerThanAnnounced)));
    assert_eq!(
        read(&query, "", members.clone(), 1 << 20).unwrap().pprof,
        Some(members.clone())
    );
    assert_eq!(read(&query, "", members, plain.len() - 1).unwrap_err().status, 413);
}

#[test]
fn folded_stacks_become_a_profile_of_the_type_that_the_name_says() {
    let text = Bytes::from_static(b"main;work;parse 2\nmain;work 1\n\nno count\n");
    let error = read(&query("name=shop.api"), "", text.clone(), 1 << 20).unwrap_err();
    assert_eq!(
        (error.status, error.message.as_str()),
        (422, "unknown profile type: api")
    );
    for (app, format, kind, name, values, total) in [
        ("shop", "groups", "cpu", "process_cpu", 2, 30_000_000),
        ("shop.cpu&sampleRate=0", "", "samples", "process_cpu", 2, 3),
        ("shop.alloc_space", "", "alloc_space", "memory", 2, 3),
        ("shop.inuse_objects", "lines", "inuse_objects", "memory", 3, 3),
    ] {
        let text = match format {
            "lines" => Bytes::from_static(b"main;work;parse\nmain;work\nmain\n"),
            _ => text.slice(..text.len() - "\nno count\n".len()),
        };
        let read = read(&query(&format!("name={app}&format={format}")), "", text, 1 << 20).unwrap();
        assert_eq!(read.labels.get("service_name"), Some("shop"), "{app}");
        assert_eq!(read.labels.get("__name__"), Some(name), "{app}");
        let (raw, columns) = read.into_parts();
        let profile = columns.get();
        assert_eq!(pprof::decode(&raw.pprof).as_ref(), Ok(profile));
        assert_eq!(profile.sample_types[0].kind, kind);
        assert_eq!(
            (profile.sample_count(), profile.values.iter().sum::<i64>()),
            (values, total),
            "{app}"
        );
        let leaf = profile.locations[profile.stack(0)[0] as usize];
        assert_eq!(
            profile.functions[profile.lines_of(&leaf)[0].function as usize].name,
            "parse"
        );
        assert_eq!(profile.time_nanos, NOW);
    }
}

/// Returns for each profile: name, `jfr_event`, first type, period, start and duration in seconds, number of samples,
/// and sum of the first values.
fn recorded(query_text: &str, content_type: &str, body: Bytes) -> Vec<String> {
    let profiles = read_all(&query(query_text), content_type, body, 1 << 20).unwrap();
    let describe = |profile: DecodedProfile| {
        let (raw, columns) = profile.into_parts();
        let columns = columns.get();
        assert_eq!(pprof::decode(&raw.pprof).as_ref(), Ok(columns));
        assert_eq!(raw.labels.get("service_name"), Some("shop.api"));
        let first: i64 = (0..columns.sample_count())
            .map(|sample| columns.values_of(sample)[0])
            .sum();
        format!(
            "{} {} {} {} {} {} {} {first}",
            raw.labels.get("__name__").unwrap(),
            raw.labels.get("jfr_event").unwrap(),
            columns.sample_types[0].kind,
            columns.period,
            columns.time_nanos / 1_000_000_000,
            columns.duration_nanos / 1_000_000_000,
            columns.sample_count(),
        )
    };
    profiles.into_iter().map(describe).collect()
}

#[test]
fn a_recording_becomes_a_profile_for_each_kind_of_event() {
    let plain = include_bytes!("../../../integration/fixtures/jfr/small.jfr").to_vec();
    let packed = pprof::gzip(&plain);
    let of_query = [
        "process_cpu itimer cpu 10000000 1699999990 10 3 30000000",
        "wall itimer wall 10000000 1699999990 10 1 30000000",
        "memory itimer alloc_in_new_tlab_objects 0 1699999990 10 1 1",
        "mutex itimer contentions 0 1699999990 10 1 1",
    ];
    let timed = "name=shop.api&format=jfr&from=1699999990&until=1700000000&sampleRate=100";
    for body in [plain.clone(), packed.clone()] {
        assert_eq!(recorded(timed, "", body.into()), of_query);
    }
    // If the query has no rate and no times, the values come from the recording.
    let own = [
        "process_cpu itimer cpu 20000000 1700000000 10 3 60000000",
        "wall itimer wall 20000000 1700000000 10 1 60000000",
        "memory itimer alloc_in_new_tlab_objects 0 1700000000 10 1 1",
        "mutex itimer contentions 0 1700000000 10 1 1",
    ];
    assert_eq!(recorded("name=shop.api", "", plain.clone().into()), own);
    assert_eq!(recorded("name=shop.api", FORM, form(&[("jfr", &packed)])), own);
}

#[test]
fn labels_of_a_recording_come_in_a_part_of_their_own() {
    let labels = [
        0x0a, 10, 8, 5, 0x12, 6, 0x0a, 4, 8, 1, 16, 2, 0x12, 5, 8, 1, 0x12, 1, b'k', 0x12, 5, 8, 2, 0x12, 1, b'v',
    ];
    let body = form(&[
        (
            "jfr",
            include_bytes!("../../../integration/fixtures/jfr/small.jfr").as_slice(),
        ),
        ("labels", &pprof::gzip(&labels)),
    ]);
    let profiles = read_all(&query("name=a&format=jfr"), FORM, body, 1 << 20).unwrap();
    let columns = profiles[0].columns.get();
    let sample_labels: Vec<_> = (0..3).map(|sample| columns.labels_of(sample).to_vec()).collect();
    assert_eq!(
        sample_labels,
        [
            vec![pprof::SampleLabel::Text("k", "v")],
            vec![pprof::SampleLabel::Text("profile_id", "0000000000000abc")],
            vec![],
        ]
    );
}

const PERF_SCRIPT: &str = "\
node 11/12 [001] 5.1: 250000 cpu-clock:uhppH: \n\
\t 7f12 work+0x1f (/opt/a (deleted))\n\
\t 7f00 [unknown] (/usr/bin/node)\n\
\n\
sh 13 6.1: 7 cycles: \n\
\t 8 idle+0x1 ([kernel.kallsyms])\n";

/// Returns type and sum of the values of each profile.
fn types_and_totals(profiles: &[DecodedProfile]) -> Vec<(String, i64)> {
    let types = profiles.iter().map(|profile| {
        let (columns, name) = (
            profile.columns.get(),
            profile.labels.get("__name__").unwrap_or_default(),
        );
        let kind = columns.sample_types[0];
        (
            format!("{name}:{}:{}", kind.kind, kind.unit),
            columns.values.iter().sum(),
        )
    });
    types.collect()
}

#[test]
fn perf_script_says_itself_what_it_counts_unless_the_sender_does() {
    let read = |name: &str| read_all(&query(name), "", PERF_SCRIPT.into(), 1 << 20).unwrap();
    let own = types_and_totals(&read("name=shop"));
    let of_file = [
        ("process_cpu:cpu:nanoseconds", 250_000),
        ("process_cpu:cycles:count", 7),
    ];
    assert_eq!(own, of_file.map(|(kind, total)| (kind.to_owned(), total)));
    // An imported file is read in the same way.
    let imported = crate::files::read(&PERF_SCRIPT.into(), 1 << 20).unwrap();
    let imported: Vec<(String, i64)> = imported
        .profiles
        .iter()
        .map(|profile| {
            let columns = profile.columns.get();
            let kind = columns.sample_types[0];
            (
                format!("{}:{}:{}", profile.name, kind.kind, kind.unit),
                columns.values.iter().sum(),
            )
        })
        .collect();
    assert_eq!(imported, own);
    assert_eq!(
        types_and_totals(&read("name=shop&format=perf_script&sampleRate=0")),
        own
    );
    for (name, kind, total) in [
        ("name=shop&sampleRate=100", "process_cpu:cpu:nanoseconds", 20_000_000),
        ("name=shop.wall", "wall:wall:nanoseconds", 20_000_000),
        ("name=shop.alloc_objects", "memory:alloc_objects:count", 2),
    ] {
        assert_eq!(types_and_totals(&read(name)), [(kind.to_owned(), total)], "{name}");
    }
    assert_eq!(read("name=shop.cpu")[0].labels.get("service_name"), Some("shop"));
}

#[test]
fn a_text_with_a_byte_order_mark_is_read_without_it() {
    let utf16: Vec<u8> = "\u{feff}main;work 3\n"
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    for body in [Bytes::from("\u{feff}main;work 3\n"), utf16.into()] {
        let profile = read(&query("name=shop&sampleRate=0"), "", body, 1 << 20).unwrap();
        let names: Vec<&str> = profile
            .columns
            .get()
            .functions
            .iter()
            .map(|function| function.name)
            .collect();
        assert_eq!((names, profile.columns.get().values[0]), (vec!["work", "main"], 3));
    }
}

#[test]
fn gzip_without_a_header_is_opened_unless_the_format_opens_it() {
    let text = pprof::gzip(b"main;work 1\n");
    let profile = pprof::gzip(&pprof::encode(&with_types(&["samples"])));
    // A profile that begins with its table of texts, as some encoders write it.
    let unusual = pprof::gzip(&[&b"\x32\x00\x32\x07samples"[..], &pprof::encode(&with_types(&["cpu"]))].concat());
    let recording = pprof::gzip(b"FLR\0\0\x02");
    let utf16 = pprof::gzip(b"\xff\xfem\0 \x001\0");
    let damaged = text[..5].to_vec();
    let form = "multipart/form-data; boundary=B";
    for (parameters, content_type, body, expected) in [
        ("", "", &text, true),
        ("", "", &recording, true),
        ("", "", &utf16, true),
        ("", "", &profile, false),
        ("", "", &unusual, false),
        ("", "", &damaged, false),
        ("", form, &profile, true),
        ("&format=pprof", form, &profile, true),
        ("&format=pprof", "", &text, false),
        ("&format=jfr", "", &recording, false),
        ("&format=groups", "", &text, true),
        ("&format=lines", "", &text, true),
        ("&format=tree", "", &text, true),
        ("&format=trie", "", &text, true),
        ("&format=speedscope", "", &text, true),
        ("&format=perf_script", "", &text, true),
        ("", "binary/octet-stream+trie", &text, true),
        ("&format=none", "", &text, false),
        ("", "", &b"main;work 1\n".to_vec(), false),
    ] {
        let query = query(&format!("name=shop{parameters}"));
        assert_eq!(
            is_packed(&query, content_type, body),
            expected,
            "`{parameters}` `{content_type}` {body:?}"
        );
    }
}
