//! Replaces all texts of a profile, for example with equal texts in another buffer.

use crate::pprof::model::{Function, Mapping, Profile, SampleLabel, ValueType};

impl<'a> Profile<'a> {
    /// Returns the profile with each of its texts replaced by the result of `map`.
    pub(crate) fn map_texts<'b>(self, mut map: impl FnMut(&'a str) -> &'b str) -> Profile<'b> {
        let mut value_type = |original: ValueType<'a>| ValueType {
            kind: map(original.kind),
            unit: map(original.unit),
        };
        let sample_types = self.sample_types.into_iter().map(&mut value_type).collect();
        let period_type = value_type(self.period_type);
        let mappings = self.mappings.into_iter().map(|mapping| Mapping {
            start: mapping.start,
            limit: mapping.limit,
            offset: mapping.offset,
            file: map(mapping.file),
            build_id: map(mapping.build_id),
            has: mapping.has,
        });
        let mappings = mappings.collect();
        let functions = self.functions.into_iter().map(|function| Function {
            name: map(function.name),
            system_name: map(function.system_name),
            file: map(function.file),
            start_line: function.start_line,
        });
        let functions = functions.collect();
        let labels = self.labels.into_iter().map(|label| match label {
            SampleLabel::Text(key, text) => SampleLabel::Text(map(key), map(text)),
            SampleLabel::Number(key, value, unit) => SampleLabel::Number(map(key), value, map(unit)),
        });
        let labels = labels.collect();
        Profile {
            sample_types,
            period_type,
            period: self.period,
            time_nanos: self.time_nanos,
            duration_nanos: self.duration_nanos,
            default_sample_type: map(self.default_sample_type),
            comments: self.comments.into_iter().map(&mut map).collect(),
            drop_frames: map(self.drop_frames),
            keep_frames: map(self.keep_frames),
            mappings,
            functions,
            locations: self.locations,
            lines: self.lines,
            sample_locations: self.sample_locations,
            sample_starts: self.sample_starts,
            values: self.values,
            labels,
            label_starts: self.label_starts,
        }
    }
}
