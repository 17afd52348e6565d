//! Converts a profile in memory to a protobuf message for responses, without encoding it first.

use crate::proto::google;
use alluvium_profile::pprof::{Location, Profile, SampleLabel, Strings, ValueType};

/// Converts a profile to a message. Ids are indices plus one; the strings are the same as in `pprof::encode`.
pub fn message(profile: &Profile<'_>) -> google::Profile {
    let mut strings = Strings::default();
    let sample_type = profile
        .sample_types
        .iter()
        .map(|sample_type| value_type(sample_type, &mut strings))
        .collect();
    let sample = (0..profile.sample_count())
        .map(|index| google::Sample {
            location_id: profile.stack(index).iter().map(|location| id(*location)).collect(),
            value: profile.values_of(index).to_vec(),
            label: profile
                .labels_of(index)
                .iter()
                .map(|sample_label| label(sample_label, &mut strings))
                .collect(),
        })
        .collect();
    let mapping = (0..)
        .zip(&profile.mappings)
        .map(|(index, mapping)| google::Mapping {
            id: id(index),
            memory_start: mapping.start,
            memory_limit: mapping.limit,
            file_offset: mapping.offset,
            filename: strings.index(mapping.file),
            build_id: strings.index(mapping.build_id),
            has_functions: mapping.has[0],
            has_filenames: mapping.has[1],
            has_line_numbers: mapping.has[2],
            has_inline_frames: mapping.has[3],
        })
        .collect();
    let location = (0..)
        .zip(&profile.locations)
        .map(|(index, location)| google::Location {
            id: id(index),
            mapping_id: match location.mapping {
                Location::NO_MAPPING => 0,
                mapping => id(mapping),
            },
            address: location.address,
            line: profile
                .lines_of(location)
                .iter()
                .map(|line| google::Line {
                    function_id: id(line.function),
                    line: line.line,
                })
                .collect(),
            is_folded: location.is_folded,
        })
        .collect();
    let function = (0..)
        .zip(&profile.functions)
        .map(|(index, function)| google::Function {
            id: id(index),
            name: strings.index(function.name),
            system_name: strings.index(function.system_name),
            filename: strings.index(function.file),
            start_line: function.start_line,
        })
        .collect();
    google::Profile {
        sample_type,
        sample,
        mapping,
        location,
        function,
        drop_frames: strings.index(profile.drop_frames),
        keep_frames: strings.index(profile.keep_frames),
        time_nanos: profile.time_nanos,
        duration_nanos: profile.duration_nanos,
        default_sample_type: strings.index(profile.default_sample_type),
        comment: profile.comments.iter().map(|text| strings.index(text)).collect(),
        period_type: (profile.period_type != ValueType::default())
            .then(|| value_type(&profile.period_type, &mut strings)),
        period: profile.period,
        // The string table comes last, because the other fields add strings.
        string_table: strings.into_texts(),
    }
}

fn id(index: u32) -> u64 {
    u64::from(index) + 1
}

fn value_type<'a>(value_type: &ValueType<'a>, strings: &mut Strings<'a>) -> google::ValueType {
    google::ValueType {
        r#type: strings.index(value_type.kind),
        unit: strings.index(value_type.unit),
    }
}

fn label<'a>(sample_label: &SampleLabel<'a>, strings: &mut Strings<'a>) -> google::Label {
    match *sample_label {
        SampleLabel::Text(key, text) => google::Label {
            key: strings.index(key),
            str: strings.index(text),
            ..google::Label::default()
        },
        SampleLabel::Number(key, value, unit) => google::Label {
            key: strings.index(key),
            num: value,
            num_unit: strings.index(unit),
            ..google::Label::default()
        },
    }
}

#[cfg(test)]
mod tests {
    use prost::Message as _;

    use super::*;
    use alluvium_profile::pprof::encode;
    use alluvium_testing::synthetic::{Names, Shape, cpu_profile};

    #[test]
    fn the_message_is_that_of_the_bytes() {
        let names = Names::new(50);
        for seed in 0..8 {
            let shape = Shape {
                functions: 50,
                samples: 40,
                depth: 9,
                labelled_every: seed,
            };
            let mut profile = cpu_profile(&names, shape, seed as u64);
            profile.comments = vec!["one", "", "two"];
            profile.default_sample_type = "cpu";
            profile.drop_frames = "runtime.*";
            profile.locations[0].mapping = Location::NO_MAPPING;
            profile.locations[1].is_folded = true;
            if seed > 3 {
                profile.period_type = ValueType::default();
                profile.labels.push(SampleLabel::Number("bytes", 8, "B"));
                if let Some(end) = profile.label_starts.last_mut() {
                    *end += 1;
                }
            }
            let bytes = encode(&profile);
            assert_eq!(message(&profile), google::Profile::decode(bytes.as_slice()).unwrap());
        }
    }
}
