//! Generated from `proto/google/v1/profile.proto` by `UPDATE_EXPECT=1 cargo test --test integration protos`: do not edit.

#[derive(Clone, PartialEq, ::prost::Message)]
pub struct Profile {
    #[prost(message, repeated, tag = "1")]
    pub sample_type: ::prost::alloc::vec::Vec<ValueType>,
    #[prost(message, repeated, tag = "2")]
    pub sample: ::prost::alloc::vec::Vec<Sample>,
    #[prost(message, repeated, tag = "3")]
    pub mapping: ::prost::alloc::vec::Vec<Mapping>,
    #[prost(message, repeated, tag = "4")]
    pub location: ::prost::alloc::vec::Vec<Location>,
    #[prost(message, repeated, tag = "5")]
    pub function: ::prost::alloc::vec::Vec<Function>,
    #[prost(string, repeated, tag = "6")]
    pub string_table: ::prost::alloc::vec::Vec<::prost::alloc::string::String>,
    #[prost(int64, tag = "7")]
    pub drop_frames: i64,
    #[prost(int64, tag = "8")]
    pub keep_frames: i64,
    #[prost(int64, tag = "9")]
    pub time_nanos: i64,
    #[prost(int64, tag = "10")]
    pub duration_nanos: i64,
    #[prost(message, optional, tag = "11")]
    pub period_type: ::core::option::Option<ValueType>,
    #[prost(int64, tag = "12")]
    pub period: i64,
    #[prost(int64, repeated, tag = "13")]
    pub comment: ::prost::alloc::vec::Vec<i64>,
    #[prost(int64, tag = "14")]
    pub default_sample_type: i64,
}
#[derive(Clone, Copy, PartialEq, Eq, Hash, ::prost::Message)]
pub struct ValueType {
    #[prost(int64, tag = "1")]
    pub r#type: i64,
    #[prost(int64, tag = "2")]
    pub unit: i64,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct Sample {
    #[prost(uint64, repeated, tag = "1")]
    pub location_id: ::prost::alloc::vec::Vec<u64>,
    #[prost(int64, repeated, tag = "2")]
    pub value: ::prost::alloc::vec::Vec<i64>,
    #[prost(message, repeated, tag = "3")]
    pub label: ::prost::alloc::vec::Vec<Label>,
}
#[derive(Clone, Copy, PartialEq, Eq, Hash, ::prost::Message)]
pub struct Label {
    #[prost(int64, tag = "1")]
    pub key: i64,
    #[prost(int64, tag = "2")]
    pub str: i64,
    #[prost(int64, tag = "3")]
    pub num: i64,
    #[prost(int64, tag = "4")]
    pub num_unit: i64,
}
#[derive(Clone, Copy, PartialEq, Eq, Hash, ::prost::Message)]
pub struct Mapping {
    #[prost(uint64, tag = "1")]
    pub id: u64,
    #[prost(uint64, tag = "2")]
    pub memory_start: u64,
    #[prost(uint64, tag = "3")]
    pub memory_limit: u64,
    #[prost(uint64, tag = "4")]
    pub file_offset: u64,
    #[prost(int64, tag = "5")]
    pub filename: i64,
    #[prost(int64, tag = "6")]
    pub build_id: i64,
    #[prost(bool, tag = "7")]
    pub has_functions: bool,
    #[prost(bool, tag = "8")]
    pub has_filenames: bool,
    #[prost(bool, tag = "9")]
    pub has_line_numbers: bool,
    #[prost(bool, tag = "10")]
    pub has_inline_frames: bool,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct Location {
    #[prost(uint64, tag = "1")]
    pub id: u64,
    #[prost(uint64, tag = "2")]
    pub mapping_id: u64,
    #[prost(uint64, tag = "3")]
    pub address: u64,
    #[prost(message, repeated, tag = "4")]
    pub line: ::prost::alloc::vec::Vec<Line>,
    #[prost(bool, tag = "5")]
    pub is_folded: bool,
}
#[derive(Clone, Copy, PartialEq, Eq, Hash, ::prost::Message)]
pub struct Line {
    #[prost(uint64, tag = "1")]
    pub function_id: u64,
    #[prost(int64, tag = "2")]
    pub line: i64,
}
#[derive(Clone, Copy, PartialEq, Eq, Hash, ::prost::Message)]
pub struct Function {
    #[prost(uint64, tag = "1")]
    pub id: u64,
    #[prost(int64, tag = "2")]
    pub name: i64,
    #[prost(int64, tag = "3")]
    pub system_name: i64,
    #[prost(int64, tag = "4")]
    pub filename: i64,
    #[prost(int64, tag = "5")]
    pub start_line: i64,
}

impl crate::json::ToJson for Profile {
    fn write(&self, out: &mut crate::json::Writer) {
        out.message(|out| {
            out.field("sampleType", &self.sample_type);
            out.field("sample", &self.sample);
            out.field("mapping", &self.mapping);
            out.field("location", &self.location);
            out.field("function", &self.function);
            out.field("stringTable", &self.string_table);
            out.field("dropFrames", &self.drop_frames);
            out.field("keepFrames", &self.keep_frames);
            out.field("timeNanos", &self.time_nanos);
            out.field("durationNanos", &self.duration_nanos);
            out.field("periodType", &self.period_type);
            out.field("period", &self.period);
            out.field("comment", &self.comment);
            out.field("defaultSampleType", &self.default_sample_type);
        });
    }
}

impl crate::json::ToJson for ValueType {
    fn write(&self, out: &mut crate::json::Writer) {
        out.message(|out| {
            out.field("type", &self.r#type);
            out.field("unit", &self.unit);
        });
    }
}

impl crate::json::ToJson for Sample {
    fn write(&self, out: &mut crate::json::Writer) {
        out.message(|out| {
            out.field("locationId", &self.location_id);
            out.field("value", &self.value);
            out.field("label", &self.label);
        });
    }
}

impl crate::json::ToJson for Label {
    fn write(&self, out: &mut crate::json::Writer) {
        out.message(|out| {
            out.field("key", &self.key);
            out.field("str", &self.str);
            out.field("num", &self.num);
            out.field("numUnit", &self.num_unit);
        });
    }
}

impl crate::json::ToJson for Mapping {
    fn write(&self, out: &mut crate::json::Writer) {
        out.message(|out| {
            out.field("id", &self.id);
            out.field("memoryStart", &self.memory_start);
            out.field("memoryLimit", &self.memory_limit);
            out.field("fileOffset", &self.file_offset);
            out.field("filename", &self.filename);
            out.field("buildId", &self.build_id);
            out.field("hasFunctions", &self.has_functions);
            out.field("hasFilenames", &self.has_filenames);
            out.field("hasLineNumbers", &self.has_line_numbers);
            out.field("hasInlineFrames", &self.has_inline_frames);
        });
    }
}

impl crate::json::ToJson for Location {
    fn write(&self, out: &mut crate::json::Writer) {
        out.message(|out| {
            out.field("id", &self.id);
            out.field("mappingId", &self.mapping_id);
            out.field("address", &self.address);
            out.field("line", &self.line);
            out.field("isFolded", &self.is_folded);
        });
    }
}

impl crate::json::ToJson for Line {
    fn write(&self, out: &mut crate::json::Writer) {
        out.message(|out| {
            out.field("functionId", &self.function_id);
            out.field("line", &self.line);
        });
    }
}

impl crate::json::ToJson for Function {
    fn write(&self, out: &mut crate::json::Writer) {
        out.message(|out| {
            out.field("id", &self.id);
            out.field("name", &self.name);
            out.field("systemName", &self.system_name);
            out.field("filename", &self.filename);
            out.field("startLine", &self.start_line);
        });
    }
}
