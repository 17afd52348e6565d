//! A merged pprof as JSON, written straight into one buffer: the same text as that of the generated code.

use crate::wire::json_writer::Writer;
use crate::wire::proto::google::{Profile, ValueType};

/// The JSON form of a profile.
pub fn profile(profile: &Profile) -> Option<Vec<u8>> {
    let numbers: usize = profile
        .sample
        .iter()
        .map(|sample| sample.location_id.len() + sample.value.len() + 8)
        .sum();
    let texts: usize = profile.string_table.iter().map(|text| text.len() + 3).sum();
    let rest = profile.location.len() * 100 + profile.function.len() * 80;
    let mut out = Writer::with_capacity(256 + numbers * 8 + texts + rest);
    out.begin();
    out.messages("sampleType", &profile.sample_type, value_type);
    out.messages("sample", &profile.sample, |out, sample| {
        out.unsigneds("locationId", &sample.location_id);
        out.numbers("value", &sample.value);
        out.messages("label", &sample.label, |out, label| {
            out.number("key", label.key);
            out.number("str", label.str);
            out.number("num", label.num);
            out.number("numUnit", label.num_unit);
        });
    });
    out.messages("mapping", &profile.mapping, |out, mapping| {
        out.unsigned("id", mapping.id);
        out.unsigned("memoryStart", mapping.memory_start);
        out.unsigned("memoryLimit", mapping.memory_limit);
        out.unsigned("fileOffset", mapping.file_offset);
        out.number("filename", mapping.filename);
        out.number("buildId", mapping.build_id);
        out.flag("hasFunctions", mapping.has_functions);
        out.flag("hasFilenames", mapping.has_filenames);
        out.flag("hasLineNumbers", mapping.has_line_numbers);
        out.flag("hasInlineFrames", mapping.has_inline_frames);
    });
    out.messages("location", &profile.location, |out, location| {
        out.unsigned("id", location.id);
        out.unsigned("mappingId", location.mapping_id);
        out.unsigned("address", location.address);
        out.messages("line", &location.line, |out, line| {
            out.unsigned("functionId", line.function_id);
            out.number("line", line.line);
        });
        out.flag("isFolded", location.is_folded);
    });
    out.messages("function", &profile.function, |out, function| {
        out.unsigned("id", function.id);
        out.number("name", function.name);
        out.number("systemName", function.system_name);
        out.number("filename", function.filename);
        out.number("startLine", function.start_line);
    });
    out.texts("stringTable", &profile.string_table);
    out.number("dropFrames", profile.drop_frames);
    out.number("keepFrames", profile.keep_frames);
    out.number("timeNanos", profile.time_nanos);
    out.number("durationNanos", profile.duration_nanos);
    if let Some(period_type) = &profile.period_type {
        out.message("periodType", |out| value_type(out, period_type));
    }
    out.number("period", profile.period);
    out.numbers("comment", &profile.comment);
    out.number("defaultSampleType", profile.default_sample_type);
    out.end();
    Some(out.into_bytes())
}

fn value_type(out: &mut Writer, value: &ValueType) {
    out.number("type", value.r#type);
    out.number("unit", value.unit);
}

#[cfg(test)]
mod tests {
    use prost::Message as _;

    use super::*;
    use crate::profile::pprof::encode;
    use crate::profile::synthetic::{Names, Shape, cpu_profile};

    #[test]
    fn the_text_is_that_of_the_generated_code() {
        let names = Names::new(50);
        for seed in 0..20 {
            let shape = Shape {
                functions: 50,
                samples: 40,
                depth: 9,
                labelled_every: seed,
            };
            let bytes = encode(&cpu_profile(&names, shape, seed as u64));
            let mut message = Profile::decode(bytes.as_slice()).unwrap();
            message.comment = (0..seed as i64).map(|index| index - 3).collect();
            message.period = i64::MIN * (seed as i64 % 2);
            message.drop_frames = seed as i64;
            message.keep_frames = -(seed as i64);
            message.default_sample_type = 1;
            if let Some(location) = message.location.first_mut() {
                location.is_folded = seed % 3 == 0;
                location.address = u64::MAX;
            }
            assert_eq!(profile(&message), serde_json::to_vec(&message).ok());
        }
        let empty = Profile::default();
        assert_eq!(profile(&empty), serde_json::to_vec(&empty).ok());
    }
}
