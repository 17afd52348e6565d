//! Generated from `proto/otlp/v1development/profiles.proto` by `UPDATE_EXPECT=1 cargo test --test integration protos`: do not edit.

#[derive(Clone, PartialEq, ::prost::Message)]
pub struct ExportProfilesServiceRequest {
    #[prost(message, repeated, tag = "1")]
    pub resource_profiles: ::prost::alloc::vec::Vec<ResourceProfiles>,
    /// What all profiles of the request refer to.
    #[prost(message, optional, tag = "2")]
    pub dictionary: ::core::option::Option<ProfilesDictionary>,
}
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct ExportProfilesServiceResponse {
    #[prost(message, optional, tag = "1")]
    pub partial_success: ::core::option::Option<ExportProfilesPartialSuccess>,
}
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct ExportProfilesPartialSuccess {
    #[prost(int64, tag = "1")]
    pub rejected_profiles: i64,
    #[prost(string, tag = "2")]
    pub error_message: ::prost::alloc::string::String,
}
/// Tables. Their entries are referred to by index; the first entry of each is the empty one.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct ProfilesDictionary {
    #[prost(message, repeated, tag = "1")]
    pub mapping_table: ::prost::alloc::vec::Vec<Mapping>,
    #[prost(message, repeated, tag = "2")]
    pub location_table: ::prost::alloc::vec::Vec<Location>,
    #[prost(message, repeated, tag = "3")]
    pub function_table: ::prost::alloc::vec::Vec<Function>,
    #[prost(message, repeated, tag = "4")]
    pub link_table: ::prost::alloc::vec::Vec<Link>,
    #[prost(string, repeated, tag = "5")]
    pub string_table: ::prost::alloc::vec::Vec<::prost::alloc::string::String>,
    #[prost(message, repeated, tag = "6")]
    pub attribute_table: ::prost::alloc::vec::Vec<KeyValueAndUnit>,
    #[prost(message, repeated, tag = "7")]
    pub stack_table: ::prost::alloc::vec::Vec<Stack>,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct ResourceProfiles {
    #[prost(message, optional, tag = "1")]
    pub resource: ::core::option::Option<Resource>,
    #[prost(message, repeated, tag = "2")]
    pub scope_profiles: ::prost::alloc::vec::Vec<ScopeProfiles>,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct Resource {
    #[prost(message, repeated, tag = "1")]
    pub attributes: ::prost::alloc::vec::Vec<KeyValue>,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct ScopeProfiles {
    #[prost(message, optional, tag = "1")]
    pub scope: ::core::option::Option<InstrumentationScope>,
    #[prost(message, repeated, tag = "2")]
    pub profiles: ::prost::alloc::vec::Vec<Profile>,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct InstrumentationScope {
    #[prost(string, tag = "1")]
    pub name: ::prost::alloc::string::String,
    #[prost(string, tag = "2")]
    pub version: ::prost::alloc::string::String,
    #[prost(message, repeated, tag = "3")]
    pub attributes: ::prost::alloc::vec::Vec<KeyValue>,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct Profile {
    /// What the values of all samples are.
    #[prost(message, optional, tag = "1")]
    pub sample_type: ::core::option::Option<ValueType>,
    #[prost(message, repeated, tag = "2")]
    pub samples: ::prost::alloc::vec::Vec<Sample>,
    /// 0 when it is not known.
    #[prost(fixed64, tag = "3")]
    pub time_unix_nano: u64,
    #[prost(uint64, tag = "4")]
    pub duration_nano: u64,
    #[prost(message, optional, tag = "5")]
    pub period_type: ::core::option::Option<ValueType>,
    #[prost(int64, tag = "6")]
    pub period: i64,
    /// 16 bytes, or none.
    #[prost(bytes = "bytes", tag = "7")]
    pub profile_id: ::prost::bytes::Bytes,
    #[prost(int32, repeated, tag = "11")]
    pub attribute_indices: ::prost::alloc::vec::Vec<i32>,
}
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct Sample {
    #[prost(int32, tag = "1")]
    pub stack_index: i32,
    #[prost(int32, repeated, tag = "2")]
    pub attribute_indices: ::prost::alloc::vec::Vec<i32>,
    #[prost(int32, tag = "3")]
    pub link_index: i32,
    /// One value of all events, or one for each time. Without values, each time counts one.
    #[prost(int64, repeated, tag = "4")]
    pub values: ::prost::alloc::vec::Vec<i64>,
    #[prost(fixed64, repeated, tag = "5")]
    pub timestamps_unix_nano: ::prost::alloc::vec::Vec<u64>,
}
#[derive(Clone, Copy, PartialEq, Eq, Hash, ::prost::Message)]
pub struct ValueType {
    #[prost(int32, tag = "1")]
    pub type_strindex: i32,
    #[prost(int32, tag = "2")]
    pub unit_strindex: i32,
}
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct Mapping {
    #[prost(uint64, tag = "1")]
    pub memory_start: u64,
    #[prost(uint64, tag = "2")]
    pub memory_limit: u64,
    #[prost(uint64, tag = "3")]
    pub file_offset: u64,
    #[prost(int32, tag = "4")]
    pub filename_strindex: i32,
    #[prost(int32, repeated, tag = "5")]
    pub attribute_indices: ::prost::alloc::vec::Vec<i32>,
}
/// Leaf first.
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct Stack {
    #[prost(int32, repeated, tag = "1")]
    pub location_indices: ::prost::alloc::vec::Vec<i32>,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct Location {
    #[prost(int32, tag = "1")]
    pub mapping_index: i32,
    #[prost(uint64, tag = "2")]
    pub address: u64,
    /// Inlined functions first.
    #[prost(message, repeated, tag = "3")]
    pub lines: ::prost::alloc::vec::Vec<Line>,
    #[prost(int32, repeated, tag = "4")]
    pub attribute_indices: ::prost::alloc::vec::Vec<i32>,
}
#[derive(Clone, Copy, PartialEq, Eq, Hash, ::prost::Message)]
pub struct Line {
    #[prost(int32, tag = "1")]
    pub function_index: i32,
    #[prost(int64, tag = "2")]
    pub line: i64,
}
#[derive(Clone, Copy, PartialEq, Eq, Hash, ::prost::Message)]
pub struct Function {
    #[prost(int32, tag = "1")]
    pub name_strindex: i32,
    #[prost(int32, tag = "2")]
    pub system_name_strindex: i32,
    #[prost(int32, tag = "3")]
    pub filename_strindex: i32,
    #[prost(int64, tag = "4")]
    pub start_line: i64,
}
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct Link {
    /// 16 bytes and 8 bytes; hexadecimal in JSON.
    #[prost(bytes = "bytes", tag = "1")]
    pub trace_id: ::prost::bytes::Bytes,
    #[prost(bytes = "bytes", tag = "2")]
    pub span_id: ::prost::bytes::Bytes,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct KeyValueAndUnit {
    #[prost(int32, tag = "1")]
    pub key_strindex: i32,
    #[prost(message, optional, tag = "2")]
    pub value: ::core::option::Option<AnyValue>,
    #[prost(int32, tag = "3")]
    pub unit_strindex: i32,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct KeyValue {
    #[prost(string, tag = "1")]
    pub key: ::prost::alloc::string::String,
    #[prost(message, optional, tag = "2")]
    pub value: ::core::option::Option<AnyValue>,
    /// In place of `key`.
    #[prost(int32, tag = "3")]
    pub key_strindex: i32,
}
/// One of these. OTLP has them in a oneof, which is the same on the wire.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct AnyValue {
    #[prost(string, optional, tag = "1")]
    pub string_value: ::core::option::Option<::prost::alloc::string::String>,
    #[prost(int64, optional, tag = "3")]
    pub int_value: ::core::option::Option<i64>,
    #[prost(message, optional, tag = "5")]
    pub array_value: ::core::option::Option<ArrayValue>,
    /// In place of `string_value`.
    #[prost(int32, optional, tag = "8")]
    pub string_value_strindex: ::core::option::Option<i32>,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct ArrayValue {
    #[prost(message, repeated, tag = "1")]
    pub values: ::prost::alloc::vec::Vec<AnyValue>,
}
/// The calls of `opentelemetry.proto.collector.profiles.v1development.ProfilesService`.
pub trait ProfilesService: Clone + Send + Sync + 'static {
    fn export(
        &self,
        call: crate::service::Call<ExportProfilesServiceRequest>,
    ) -> impl Future<
        Output = crate::service::CallResult<ExportProfilesServiceResponse>,
    > + Send;
    fn route(&self, routes: &mut impl crate::service::Routes) {
        let service = self.clone();
        routes
            .unary(
                "opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export",
                move |call| {
                    let service = service.clone();
                    async move { service.export(call).await }
                },
            );
    }
}

impl crate::json::ToJson for ExportProfilesServiceRequest {
    fn write(&self, out: &mut crate::json::Writer) {
        out.message(|out| {
            out.field("resourceProfiles", &self.resource_profiles);
            out.field("dictionary", &self.dictionary);
        });
    }
}

impl crate::json::Fields for ExportProfilesServiceRequest {
    const NAMES: &'static [[&'static str; 2]] = &[["resourceProfiles", "resource_profiles"], ["dictionary", "dictionary"]];

    fn read_field<'de, A: serde::de::MapAccess<'de>>(&mut self, index: usize, map: &mut A) -> Result<(), A::Error> {
        match index {
            0 => map.next_value_seed(crate::json::Field(&mut self.resource_profiles)),
            1 => map.next_value_seed(crate::json::Field(&mut self.dictionary)),
            _ => Ok(()),
        }
    }
}

impl crate::json::ToJson for ExportProfilesServiceResponse {
    fn write(&self, out: &mut crate::json::Writer) {
        out.message(|out| {
            out.field("partialSuccess", &self.partial_success);
        });
    }
}

impl crate::json::ToJson for ExportProfilesPartialSuccess {
    fn write(&self, out: &mut crate::json::Writer) {
        out.message(|out| {
            out.field("rejectedProfiles", &self.rejected_profiles);
            out.field("errorMessage", &self.error_message);
        });
    }
}

impl crate::json::ToJson for ProfilesDictionary {
    fn write(&self, out: &mut crate::json::Writer) {
        out.message(|out| {
            out.field("mappingTable", &self.mapping_table);
            out.field("locationTable", &self.location_table);
            out.field("functionTable", &self.function_table);
            out.field("linkTable", &self.link_table);
            out.field("stringTable", &self.string_table);
            out.field("attributeTable", &self.attribute_table);
            out.field("stackTable", &self.stack_table);
        });
    }
}

impl crate::json::Fields for ProfilesDictionary {
    const NAMES: &'static [[&'static str; 2]] = &[["mappingTable", "mapping_table"], ["locationTable", "location_table"], ["functionTable", "function_table"], ["linkTable", "link_table"], ["stringTable", "string_table"], ["attributeTable", "attribute_table"], ["stackTable", "stack_table"]];

    fn read_field<'de, A: serde::de::MapAccess<'de>>(&mut self, index: usize, map: &mut A) -> Result<(), A::Error> {
        match index {
            0 => map.next_value_seed(crate::json::Field(&mut self.mapping_table)),
            1 => map.next_value_seed(crate::json::Field(&mut self.location_table)),
            2 => map.next_value_seed(crate::json::Field(&mut self.function_table)),
            3 => map.next_value_seed(crate::json::Field(&mut self.link_table)),
            4 => map.next_value_seed(crate::json::Field(&mut self.string_table)),
            5 => map.next_value_seed(crate::json::Field(&mut self.attribute_table)),
            6 => map.next_value_seed(crate::json::Field(&mut self.stack_table)),
            _ => Ok(()),
        }
    }
}

impl crate::json::ToJson for ResourceProfiles {
    fn write(&self, out: &mut crate::json::Writer) {
        out.message(|out| {
            out.field("resource", &self.resource);
            out.field("scopeProfiles", &self.scope_profiles);
        });
    }
}

impl crate::json::Fields for ResourceProfiles {
    const NAMES: &'static [[&'static str; 2]] = &[["resource", "resource"], ["scopeProfiles", "scope_profiles"]];

    fn read_field<'de, A: serde::de::MapAccess<'de>>(&mut self, index: usize, map: &mut A) -> Result<(), A::Error> {
        match index {
            0 => map.next_value_seed(crate::json::Field(&mut self.resource)),
            1 => map.next_value_seed(crate::json::Field(&mut self.scope_profiles)),
            _ => Ok(()),
        }
    }
}

impl crate::json::ToJson for Resource {
    fn write(&self, out: &mut crate::json::Writer) {
        out.message(|out| {
            out.field("attributes", &self.attributes);
        });
    }
}

impl crate::json::Fields for Resource {
    const NAMES: &'static [[&'static str; 2]] = &[["attributes", "attributes"]];

    fn read_field<'de, A: serde::de::MapAccess<'de>>(&mut self, index: usize, map: &mut A) -> Result<(), A::Error> {
        match index {
            0 => map.next_value_seed(crate::json::Field(&mut self.attributes)),
            _ => Ok(()),
        }
    }
}

impl crate::json::ToJson for ScopeProfiles {
    fn write(&self, out: &mut crate::json::Writer) {
        out.message(|out| {
            out.field("scope", &self.scope);
            out.field("profiles", &self.profiles);
        });
    }
}

impl crate::json::Fields for ScopeProfiles {
    const NAMES: &'static [[&'static str; 2]] = &[["scope", "scope"], ["profiles", "profiles"]];

    fn read_field<'de, A: serde::de::MapAccess<'de>>(&mut self, index: usize, map: &mut A) -> Result<(), A::Error> {
        match index {
            0 => map.next_value_seed(crate::json::Field(&mut self.scope)),
            1 => map.next_value_seed(crate::json::Field(&mut self.profiles)),
            _ => Ok(()),
        }
    }
}

impl crate::json::ToJson for InstrumentationScope {
    fn write(&self, out: &mut crate::json::Writer) {
        out.message(|out| {
            out.field("name", &self.name);
            out.field("version", &self.version);
            out.field("attributes", &self.attributes);
        });
    }
}

impl crate::json::Fields for InstrumentationScope {
    const NAMES: &'static [[&'static str; 2]] = &[["name", "name"], ["version", "version"], ["attributes", "attributes"]];

    fn read_field<'de, A: serde::de::MapAccess<'de>>(&mut self, index: usize, map: &mut A) -> Result<(), A::Error> {
        match index {
            0 => map.next_value_seed(crate::json::Field(&mut self.name)),
            1 => map.next_value_seed(crate::json::Field(&mut self.version)),
            2 => map.next_value_seed(crate::json::Field(&mut self.attributes)),
            _ => Ok(()),
        }
    }
}

impl crate::json::ToJson for Profile {
    fn write(&self, out: &mut crate::json::Writer) {
        out.message(|out| {
            out.field("sampleType", &self.sample_type);
            out.field("samples", &self.samples);
            out.field("timeUnixNano", &self.time_unix_nano);
            out.field("durationNano", &self.duration_nano);
            out.field("periodType", &self.period_type);
            out.field("period", &self.period);
            out.field("profileId", &crate::json::HexText(&self.profile_id));
            out.field("attributeIndices", &self.attribute_indices);
        });
    }
}

impl crate::json::Fields for Profile {
    const NAMES: &'static [[&'static str; 2]] = &[["sampleType", "sample_type"], ["samples", "samples"], ["timeUnixNano", "time_unix_nano"], ["durationNano", "duration_nano"], ["periodType", "period_type"], ["period", "period"], ["profileId", "profile_id"], ["attributeIndices", "attribute_indices"]];

    fn read_field<'de, A: serde::de::MapAccess<'de>>(&mut self, index: usize, map: &mut A) -> Result<(), A::Error> {
        match index {
            0 => map.next_value_seed(crate::json::Field(&mut self.sample_type)),
            1 => map.next_value_seed(crate::json::Field(&mut self.samples)),
            2 => map.next_value_seed(crate::json::Field(&mut self.time_unix_nano)),
            3 => map.next_value_seed(crate::json::Field(&mut self.duration_nano)),
            4 => map.next_value_seed(crate::json::Field(&mut self.period_type)),
            5 => map.next_value_seed(crate::json::Field(&mut self.period)),
            6 => map.next_value_seed(crate::json::Hex(&mut self.profile_id)),
            7 => map.next_value_seed(crate::json::Field(&mut self.attribute_indices)),
            _ => Ok(()),
        }
    }
}

impl crate::json::ToJson for Sample {
    fn write(&self, out: &mut crate::json::Writer) {
        out.message(|out| {
            out.field("stackIndex", &self.stack_index);
            out.field("attributeIndices", &self.attribute_indices);
            out.field("linkIndex", &self.link_index);
            out.field("values", &self.values);
            out.field("timestampsUnixNano", &self.timestamps_unix_nano);
        });
    }
}

impl crate::json::Fields for Sample {
    const NAMES: &'static [[&'static str; 2]] = &[["stackIndex", "stack_index"], ["attributeIndices", "attribute_indices"], ["linkIndex", "link_index"], ["values", "values"], ["timestampsUnixNano", "timestamps_unix_nano"]];

    fn read_field<'de, A: serde::de::MapAccess<'de>>(&mut self, index: usize, map: &mut A) -> Result<(), A::Error> {
        match index {
            0 => map.next_value_seed(crate::json::Field(&mut self.stack_index)),
            1 => map.next_value_seed(crate::json::Field(&mut self.attribute_indices)),
            2 => map.next_value_seed(crate::json::Field(&mut self.link_index)),
            3 => map.next_value_seed(crate::json::Field(&mut self.values)),
            4 => map.next_value_seed(crate::json::Field(&mut self.timestamps_unix_nano)),
            _ => Ok(()),
        }
    }
}

impl crate::json::ToJson for ValueType {
    fn write(&self, out: &mut crate::json::Writer) {
        out.message(|out| {
            out.field("typeStrindex", &self.type_strindex);
            out.field("unitStrindex", &self.unit_strindex);
        });
    }
}

impl crate::json::Fields for ValueType {
    const NAMES: &'static [[&'static str; 2]] = &[["typeStrindex", "type_strindex"], ["unitStrindex", "unit_strindex"]];

    fn read_field<'de, A: serde::de::MapAccess<'de>>(&mut self, index: usize, map: &mut A) -> Result<(), A::Error> {
        match index {
            0 => map.next_value_seed(crate::json::Field(&mut self.type_strindex)),
            1 => map.next_value_seed(crate::json::Field(&mut self.unit_strindex)),
            _ => Ok(()),
        }
    }
}

impl crate::json::ToJson for Mapping {
    fn write(&self, out: &mut crate::json::Writer) {
        out.message(|out| {
            out.field("memoryStart", &self.memory_start);
            out.field("memoryLimit", &self.memory_limit);
            out.field("fileOffset", &self.file_offset);
            out.field("filenameStrindex", &self.filename_strindex);
            out.field("attributeIndices", &self.attribute_indices);
        });
    }
}

impl crate::json::Fields for Mapping {
    const NAMES: &'static [[&'static str; 2]] = &[["memoryStart", "memory_start"], ["memoryLimit", "memory_limit"], ["fileOffset", "file_offset"], ["filenameStrindex", "filename_strindex"], ["attributeIndices", "attribute_indices"]];

    fn read_field<'de, A: serde::de::MapAccess<'de>>(&mut self, index: usize, map: &mut A) -> Result<(), A::Error> {
        match index {
            0 => map.next_value_seed(crate::json::Field(&mut self.memory_start)),
            1 => map.next_value_seed(crate::json::Field(&mut self.memory_limit)),
            2 => map.next_value_seed(crate::json::Field(&mut self.file_offset)),
            3 => map.next_value_seed(crate::json::Field(&mut self.filename_strindex)),
            4 => map.next_value_seed(crate::json::Field(&mut self.attribute_indices)),
            _ => Ok(()),
        }
    }
}

impl crate::json::ToJson for Stack {
    fn write(&self, out: &mut crate::json::Writer) {
        out.message(|out| {
            out.field("locationIndices", &self.location_indices);
        });
    }
}

impl crate::json::Fields for Stack {
    const NAMES: &'static [[&'static str; 2]] = &[["locationIndices", "location_indices"]];

    fn read_field<'de, A: serde::de::MapAccess<'de>>(&mut self, index: usize, map: &mut A) -> Result<(), A::Error> {
        match index {
            0 => map.next_value_seed(crate::json::Field(&mut self.location_indices)),
            _ => Ok(()),
        }
    }
}

impl crate::json::ToJson for Location {
    fn write(&self, out: &mut crate::json::Writer) {
        out.message(|out| {
            out.field("mappingIndex", &self.mapping_index);
            out.field("address", &self.address);
            out.field("lines", &self.lines);
            out.field("attributeIndices", &self.attribute_indices);
        });
    }
}

impl crate::json::Fields for Location {
    const NAMES: &'static [[&'static str; 2]] = &[["mappingIndex", "mapping_index"], ["address", "address"], ["lines", "lines"], ["attributeIndices", "attribute_indices"]];

    fn read_field<'de, A: serde::de::MapAccess<'de>>(&mut self, index: usize, map: &mut A) -> Result<(), A::Error> {
        match index {
            0 => map.next_value_seed(crate::json::Field(&mut self.mapping_index)),
            1 => map.next_value_seed(crate::json::Field(&mut self.address)),
            2 => map.next_value_seed(crate::json::Field(&mut self.lines)),
            3 => map.next_value_seed(crate::json::Field(&mut self.attribute_indices)),
            _ => Ok(()),
        }
    }
}

impl crate::json::ToJson for Line {
    fn write(&self, out: &mut crate::json::Writer) {
        out.message(|out| {
            out.field("functionIndex", &self.function_index);
            out.field("line", &self.line);
        });
    }
}

impl crate::json::Fields for Line {
    const NAMES: &'static [[&'static str; 2]] = &[["functionIndex", "function_index"], ["line", "line"]];

    fn read_field<'de, A: serde::de::MapAccess<'de>>(&mut self, index: usize, map: &mut A) -> Result<(), A::Error> {
        match index {
            0 => map.next_value_seed(crate::json::Field(&mut self.function_index)),
            1 => map.next_value_seed(crate::json::Field(&mut self.line)),
            _ => Ok(()),
        }
    }
}

impl crate::json::ToJson for Function {
    fn write(&self, out: &mut crate::json::Writer) {
        out.message(|out| {
            out.field("nameStrindex", &self.name_strindex);
            out.field("systemNameStrindex", &self.system_name_strindex);
            out.field("filenameStrindex", &self.filename_strindex);
            out.field("startLine", &self.start_line);
        });
    }
}

impl crate::json::Fields for Function {
    const NAMES: &'static [[&'static str; 2]] = &[["nameStrindex", "name_strindex"], ["systemNameStrindex", "system_name_strindex"], ["filenameStrindex", "filename_strindex"], ["startLine", "start_line"]];

    fn read_field<'de, A: serde::de::MapAccess<'de>>(&mut self, index: usize, map: &mut A) -> Result<(), A::Error> {
        match index {
            0 => map.next_value_seed(crate::json::Field(&mut self.name_strindex)),
            1 => map.next_value_seed(crate::json::Field(&mut self.system_name_strindex)),
            2 => map.next_value_seed(crate::json::Field(&mut self.filename_strindex)),
            3 => map.next_value_seed(crate::json::Field(&mut self.start_line)),
            _ => Ok(()),
        }
    }
}

impl crate::json::ToJson for Link {
    fn write(&self, out: &mut crate::json::Writer) {
        out.message(|out| {
            out.field("traceId", &crate::json::HexText(&self.trace_id));
            out.field("spanId", &crate::json::HexText(&self.span_id));
        });
    }
}

impl crate::json::Fields for Link {
    const NAMES: &'static [[&'static str; 2]] = &[["traceId", "trace_id"], ["spanId", "span_id"]];

    fn read_field<'de, A: serde::de::MapAccess<'de>>(&mut self, index: usize, map: &mut A) -> Result<(), A::Error> {
        match index {
            0 => map.next_value_seed(crate::json::Hex(&mut self.trace_id)),
            1 => map.next_value_seed(crate::json::Hex(&mut self.span_id)),
            _ => Ok(()),
        }
    }
}

impl crate::json::ToJson for KeyValueAndUnit {
    fn write(&self, out: &mut crate::json::Writer) {
        out.message(|out| {
            out.field("keyStrindex", &self.key_strindex);
            out.field("value", &self.value);
            out.field("unitStrindex", &self.unit_strindex);
        });
    }
}

impl crate::json::Fields for KeyValueAndUnit {
    const NAMES: &'static [[&'static str; 2]] = &[["keyStrindex", "key_strindex"], ["value", "value"], ["unitStrindex", "unit_strindex"]];

    fn read_field<'de, A: serde::de::MapAccess<'de>>(&mut self, index: usize, map: &mut A) -> Result<(), A::Error> {
        match index {
            0 => map.next_value_seed(crate::json::Field(&mut self.key_strindex)),
            1 => map.next_value_seed(crate::json::Field(&mut self.value)),
            2 => map.next_value_seed(crate::json::Field(&mut self.unit_strindex)),
            _ => Ok(()),
        }
    }
}

impl crate::json::ToJson for KeyValue {
    fn write(&self, out: &mut crate::json::Writer) {
        out.message(|out| {
            out.field("key", &self.key);
            out.field("value", &self.value);
            out.field("keyStrindex", &self.key_strindex);
        });
    }
}

impl crate::json::Fields for KeyValue {
    const NAMES: &'static [[&'static str; 2]] = &[["key", "key"], ["value", "value"], ["keyStrindex", "key_strindex"]];

    fn read_field<'de, A: serde::de::MapAccess<'de>>(&mut self, index: usize, map: &mut A) -> Result<(), A::Error> {
        match index {
            0 => map.next_value_seed(crate::json::Field(&mut self.key)),
            1 => map.next_value_seed(crate::json::Field(&mut self.value)),
            2 => map.next_value_seed(crate::json::Field(&mut self.key_strindex)),
            _ => Ok(()),
        }
    }
}

impl crate::json::ToJson for AnyValue {
    fn write(&self, out: &mut crate::json::Writer) {
        out.message(|out| {
            out.field("stringValue", &self.string_value);
            out.field("intValue", &self.int_value);
            out.field("arrayValue", &self.array_value);
            out.field("stringValueStrindex", &self.string_value_strindex);
        });
    }
}

impl crate::json::Fields for AnyValue {
    const NAMES: &'static [[&'static str; 2]] = &[["stringValue", "string_value"], ["intValue", "int_value"], ["arrayValue", "array_value"], ["stringValueStrindex", "string_value_strindex"]];

    fn read_field<'de, A: serde::de::MapAccess<'de>>(&mut self, index: usize, map: &mut A) -> Result<(), A::Error> {
        match index {
            0 => map.next_value_seed(crate::json::Field(&mut self.string_value)),
            1 => map.next_value_seed(crate::json::Field(&mut self.int_value)),
            2 => map.next_value_seed(crate::json::Field(&mut self.array_value)),
            3 => map.next_value_seed(crate::json::Field(&mut self.string_value_strindex)),
            _ => Ok(()),
        }
    }
}

impl crate::json::ToJson for ArrayValue {
    fn write(&self, out: &mut crate::json::Writer) {
        out.message(|out| {
            out.field("values", &self.values);
        });
    }
}

impl crate::json::Fields for ArrayValue {
    const NAMES: &'static [[&'static str; 2]] = &[["values", "values"]];

    fn read_field<'de, A: serde::de::MapAccess<'de>>(&mut self, index: usize, map: &mut A) -> Result<(), A::Error> {
        match index {
            0 => map.next_value_seed(crate::json::Field(&mut self.values)),
            _ => Ok(()),
        }
    }
}
