//! Tests which bytes the decoder accepts and rejects (and at which offset), and that encoding is the inverse of
//! decoding.

use proptest::prelude::*;

use super::*;
use crate::synthetic::{Names, Shape, cpu_profile};

/// Protobuf bytes, written by hand.
#[derive(Default, Clone)]
struct Bytes(Vec<u8>);

impl Bytes {
    fn varint(mut self, mut value: u64) -> Self {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
        self
    }

    fn number(self, field: u64, value: u64) -> Self {
        self.varint(field << 3).varint(value)
    }

    fn bytes(self, field: u64, bytes: &[u8]) -> Self {
        let mut out = self.varint(field << 3 | 2).varint(bytes.len() as u64);
        out.0.extend_from_slice(bytes);
        out
    }

    fn message(self, field: u64, inner: Self) -> Self {
        self.bytes(field, &inner.0)
    }
}

fn new() -> Bytes {
    Bytes::default()
}

/// Creates the string table `"", cpu, nanoseconds, main, main.go, key, value` and one sample type.
fn base() -> Bytes {
    let strings: [&[u8]; 7] = [b"", b"cpu", b"nanoseconds", b"main", b"main.go", b"key", b"value"];
    strings
        .into_iter()
        .fold(new().message(1, new().number(1, 1).number(2, 2)), |out, text| {
            out.bytes(6, text)
        })
}

/// Returns `base` with function 1, location 1 and mapping 1.
fn symbols() -> Bytes {
    base()
        .message(5, new().number(1, 1).number(2, 3).number(4, 4).number(5, 10))
        .message(3, new().number(1, 1).number(5, 3))
        .message(
            4,
            new()
                .number(1, 1)
                .number(2, 1)
                .number(3, 0x1234)
                .message(4, new().number(1, 1).number(2, 12)),
        )
}

fn kind(bytes: Bytes) -> DecodeErrorKind {
    decode(&bytes.0).unwrap_err().kind
}

#[test]
fn packed_and_unpacked_numbers_are_the_same() {
    let packed = symbols().message(2, new().bytes(1, &[1, 1, 1]).bytes(2, &[5]));
    let unpacked = symbols().message(2, new().number(1, 1).number(1, 1).number(2, 5).number(1, 1));
    let profile = decode(&packed.0).unwrap();
    assert_eq!(profile, decode(&unpacked.0).unwrap());
    assert_eq!(profile.stack(0), [0, 0, 0]);
    assert_eq!(profile.values_of(0), [5]);
    let location = &profile.locations[0];
    assert_eq!((location.mapping, location.address), (0, 0x1234));
    let line = profile.lines_of(location)[0];
    assert_eq!(
        (profile.functions[line.function as usize].name, line.line),
        ("main", 12)
    );
}

#[test]
fn messages_may_come_in_any_order_and_ids_may_be_any() {
    let bytes = new()
        .message(2, new().bytes(1, &[0xe7, 0x07, 7]).bytes(2, &[1]))
        .message(4, new().number(1, 7).message(4, new().number(1, u64::MAX).number(2, 1)))
        .message(4, new().number(1, 999))
        .message(5, new().number(1, u64::MAX).number(2, 3));
    let bytes = Bytes([bytes.0, base().0].concat());
    let profile = decode(&bytes.0).unwrap();
    assert_eq!(profile.stack(0), [1, 0]);
    assert_eq!(profile.locations[0].mapping, Location::NO_MAPPING);
    assert_eq!(profile.lines[0].function, 0);
}

#[test]
fn labels_are_text_or_numbers() {
    let sample = new()
        .bytes(2, &[1])
        .message(3, new().number(1, 5).number(2, 6))
        .message(3, new().number(1, 5).number(3, -3i64 as u64).number(4, 2))
        .message(3, new().number(1, 5));
    let bytes = base().message(2, sample).message(2, new().bytes(2, &[1]));
    let profile = decode(&bytes.0).unwrap();
    assert_eq!(
        profile.labels_of(0),
        [
            SampleLabel::Text("key", "value"),
            SampleLabel::Number("key", -3, "nanoseconds"),
            SampleLabel::Number("key", 0, "")
        ]
    );
    assert_eq!(profile.labels_of(1), []);
}

#[test]
fn scalars_comments_and_unknown_fields_are_read() {
    let bytes = base()
        .number(9, 1_700)
        .number(10, 15)
        .message(11, new().number(1, 1).number(2, 2))
        .number(12, 100)
        .number(13, 3)
        .bytes(13, &[4, 5])
        .number(14, 1)
        .number(15, 4)
        .varint(100 << 3 | 1)
        .varint(0)
        .varint(0);
    let mut bytes = bytes.0;
    bytes.extend([0; 6]);
    let profile = decode(&bytes).unwrap();
    assert_eq!(
        (profile.time_nanos, profile.duration_nanos, profile.period),
        (1_700, 15, 100)
    );
    assert_eq!(profile.period_type.unit, "nanoseconds");
    assert_eq!(profile.comments, ["main", "main.go", "key"]);
    assert_eq!(profile.default_sample_type, "cpu");
    assert_eq!(profile.sample_starts, [0]);
}

#[test]
fn every_malformed_thing_is_refused_with_its_kind() {
    use DecodeErrorKind as Kind;
    let location = "location";
    let function = "function";
    assert_eq!(kind(new()), Kind::Empty);
    assert_eq!(kind(base().varint(1 << 3).varint(1 << 63)), {
        Kind::WrongWireType {
            message: "profile",
            field: 1,
            wire: 0,
        }
    });
    assert_eq!(kind(base().varint(2 << 3 | 3)), Kind::UnknownWireType(3));
    assert_eq!(kind(base().varint(100 << 3 | 7)), Kind::UnknownWireType(7));
    assert_eq!(kind(base().varint(2)), Kind::FieldNumber(0));
    assert_eq!(
        kind(Bytes([base().0, vec![0x48, 0x80]].concat())),
        Kind::TruncatedVarint
    );
    let overlong = [base().0, vec![0x48], vec![0xff; 10]].concat();
    assert_eq!(kind(Bytes(overlong)), Kind::OverlongVarint);
    assert_eq!(
        kind(Bytes([base().0, vec![0x12, 9, 1]].concat())),
        Kind::TruncatedField { length: 9, left: 1 }
    );
    assert_eq!(kind(base().bytes(6, b"a\xff")), Kind::Utf8 { index: 7 });
    assert_eq!(kind(new().bytes(6, b"x")), Kind::FirstString);
    assert_eq!(kind(new().bytes(6, b"")), Kind::NoSampleTypes);
    assert_eq!(
        kind(base().message(1, new().number(1, 7))),
        Kind::StringIndex { index: 7, count: 7 }
    );
    assert_eq!(
        kind(base().number(7, u64::MAX)),
        Kind::StringIndex { index: -1, count: 7 }
    );
    assert_eq!(kind(base().message(4, new())), Kind::ZeroId { what: location });
    assert_eq!(kind(base().message(5, new())), Kind::ZeroId { what: function });
    assert_eq!(kind(base().message(3, new())), Kind::ZeroId { what: "mapping" });
    for twice in [new().number(1, 1), new().number(1, 9)] {
        let duplicate = base().message(4, twice.clone()).message(4, twice);
        assert!(matches!(kind(duplicate), Kind::DuplicateId { what: "location", .. }));
    }
    assert_eq!(
        kind(base().message(4, new().number(1, 1).number(2, 1))),
        Kind::DanglingId { what: "mapping", id: 1 }
    );
    assert_eq!(
        kind(base().message(4, new().number(1, 1).message(4, new().number(1, 5)))),
        Kind::DanglingId { what: function, id: 5 }
    );
    assert_eq!(
        kind(base().message(4, new().number(1, 1).message(4, new()))),
        Kind::ZeroId { what: function }
    );
    assert_eq!(
        kind(base().message(2, new().bytes(1, &[3]).bytes(2, &[1]))),
        Kind::DanglingId { what: location, id: 3 }
    );
    for values in [&[][..], &[1, 2]] {
        assert_eq!(
            kind(base().message(2, new().bytes(2, values))),
            Kind::ValueCount {
                count: values.len(),
                expected: 1
            }
        );
    }
}

#[test]
fn an_error_says_the_byte_at_which_it_is() {
    let start = symbols().0.len();
    let bytes = symbols().message(2, new().bytes(1, &[1, 1, 9]).bytes(2, &[1]));
    let error = decode(&bytes.0).unwrap_err();
    assert_eq!(error.offset, start + 6);
    assert_eq!(
        error.to_string(),
        format!("malformed profile at byte {}: location id 9 does not exist", start + 6)
    );
    let bytes = base().bytes(6, b"ab\xff");
    assert_eq!(decode(&bytes.0).unwrap_err().offset, bytes.0.len() - 1);
}

#[test]
fn a_profile_cut_at_any_byte_is_refused_or_shorter_but_never_a_panic() {
    let names = Names::new(40);
    let shape = Shape {
        functions: 40,
        samples: 30,
        depth: 12,
        labelled_every: 3,
    };
    let bytes = encode(&cpu_profile(&names, shape, 1));
    for length in 0..bytes.len() {
        if let Ok(profile) = decode(&bytes[..length]) {
            stack_ids(&profile);
        }
    }
}

#[test]
fn a_synthetic_profile_survives_encode_and_decode() {
    let names = Names::new(2_000);
    let profile = cpu_profile(&names, Shape::default(), 7);
    let bytes = encode(&profile);
    assert_eq!(decode(&bytes).unwrap(), profile);
    assert_eq!(encode(&decode(&bytes).unwrap()), bytes);
}

#[test]
fn the_identity_of_a_stack_depends_on_its_frames_only() {
    let names = Names::new(100);
    let shape = Shape {
        functions: 100,
        samples: 200,
        depth: 20,
        labelled_every: 0,
    };
    let profile = cpu_profile(&names, shape, 3);
    let ids = stack_ids(&profile);
    // The same locations in another order and at other addresses.
    let mut moved = profile.clone();
    let last = moved.locations.len() as u32 - 1;
    moved.locations.reverse();
    for location in &mut moved.locations {
        location.address += 0x5000;
    }
    for index in &mut moved.sample_locations {
        *index = last - *index;
    }
    assert_eq!(stack_ids(&moved), ids);
    // Two samples have the same id exactly if they have the same stack.
    for left in 0..profile.sample_count() {
        for right in 0..left {
            assert_eq!(ids[left] == ids[right], profile.stack(left) == profile.stack(right));
        }
    }
}

#[test]
fn every_part_of_a_frame_is_part_of_the_identity() {
    let profile = |change: &dyn Fn(&mut Profile<'static>)| {
        let mut profile = Profile {
            sample_types: vec![ValueType::default()],
            mappings: vec![Mapping {
                file: "bin",
                build_id: "b1",
                ..Mapping::default()
            }],
            functions: vec![Function {
                name: "main",
                file: "main.go",
                ..Function::default()
            }],
            locations: vec![Location {
                address: 64,
                lines_end: 2,
                ..Location::default()
            }],
            lines: vec![Line { function: 0, line: 3 }; 2],
            sample_locations: vec![0],
            sample_starts: vec![0, 1],
            label_starts: vec![0, 0],
            values: vec![1],
            ..Profile::default()
        };
        change(&mut profile);
        stack_ids(&profile)[0]
    };
    let base_id = profile(&|_| {});
    assert_eq!(base_id, profile(&|profile| profile.locations[0].address = 65));
    assert_eq!(base_id, profile(&|profile| profile.functions[0].start_line = 65));
    let changes: [&dyn Fn(&mut Profile<'static>); 8] = [
        &|profile| profile.functions[0].name = "main2",
        &|profile| profile.functions[0].file = "main2.go",
        &|profile| profile.lines[0].line = 4,
        &|profile| profile.mappings[0].file = "bin2",
        &|profile| profile.mappings[0].build_id = "b2",
        &|profile| profile.locations[0].mapping = Location::NO_MAPPING,
        &|profile| profile.locations[0].lines_end = 0,
        &|profile| {
            // Two frames, neither of which is inlined into the other.
            let (mut leaf, mut root) = (profile.locations[0], profile.locations[0]);
            (leaf.lines_end, root.lines_start) = (1, 1);
            profile.locations = vec![leaf, root];
            profile.sample_locations = vec![0, 1];
            profile.sample_starts = vec![0, 2];
        },
    ];
    let ids: std::collections::HashSet<u64> = changes.iter().map(|change| profile(*change)).chain([base_id]).collect();
    assert_eq!(ids.len(), changes.len() + 1);
}

proptest! {
    #[test]
    fn any_bytes_are_decoded_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let _ = decode(&bytes);
        let _ = decode(&[base().0, bytes].concat());
    }

    #[test]
    fn a_flipped_byte_never_panics_and_what_decodes_survives_the_round_trip(
        seed in 0u64..1000, flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4)
    ) {
        let names = Names::new(30);
        let shape = Shape { functions: 30, samples: 20, depth: 10, labelled_every: 2 };
        let mut bytes = encode(&cpu_profile(&names, shape, seed));
        for (position, byte) in flips {
            let index = position.index(bytes.len());
            bytes[index] = byte;
        }
        if let Ok(profile) = decode(&bytes) {
            stack_ids(&profile);
            let encoded = encode(&profile);
            prop_assert_eq!(&decode(&encoded).unwrap(), &profile);
        }
    }
}

#[test]
fn functions_and_labels_that_share_a_long_text_are_refused() {
    let base = base().bytes(6, "n".repeat(100_000).as_bytes());
    let functions = |count: u64| {
        let function = |out: Bytes, id| out.message(5, new().number(1, id).number(2, 7));
        decode(&(1..=count).fold(base.clone(), function).0).map(|profile| profile.functions.len())
    };
    let labels = |count: u64| {
        let sample = new().bytes(2, &[1]);
        let label = |out: Bytes, _| out.message(3, new().number(1, 5).number(2, 7));
        let profile = base.clone().message(2, (0..count).fold(sample, label));
        decode(&profile.0).map(|profile| profile.labels.len())
    };
    assert_eq!((functions(100), labels(100)), (Ok(100), Ok(100)));
    for error in [functions(1000).unwrap_err(), labels(1000).unwrap_err()] {
        assert!(matches!(error.kind, DecodeErrorKind::Texts { .. }), "{error}");
    }
}
