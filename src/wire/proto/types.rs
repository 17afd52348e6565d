//! Generated from `proto/types/v1/types.proto` by `UPDATE_EXPECT=1 cargo test --test integration protos`: do not edit.

#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct LabelPair {
    #[prost(string, tag = "1")]
    pub name: ::prost::alloc::string::String,
    #[prost(string, tag = "2")]
    pub value: ::prost::alloc::string::String,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct Labels {
    #[prost(message, repeated, tag = "1")]
    pub labels: ::prost::alloc::vec::Vec<LabelPair>,
}
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct ProfileType {
    /// The five parts below joined by `:`.
    #[prost(string, tag = "1")]
    pub id: ::prost::alloc::string::String,
    #[prost(string, tag = "2")]
    pub name: ::prost::alloc::string::String,
    #[prost(string, tag = "4")]
    pub sample_type: ::prost::alloc::string::String,
    #[prost(string, tag = "5")]
    pub sample_unit: ::prost::alloc::string::String,
    #[prost(string, tag = "6")]
    pub period_type: ::prost::alloc::string::String,
    #[prost(string, tag = "7")]
    pub period_unit: ::prost::alloc::string::String,
}
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct LabelNamesRequest {
    /// Selectors in braces; a series must match all of them.
    #[prost(string, repeated, tag = "1")]
    pub matchers: ::prost::alloc::vec::Vec<::prost::alloc::string::String>,
    /// Unix time in milliseconds, as all times here.
    #[prost(int64, tag = "2")]
    pub start: i64,
    #[prost(int64, tag = "3")]
    pub end: i64,
}
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct LabelNamesResponse {
    #[prost(string, repeated, tag = "1")]
    pub names: ::prost::alloc::vec::Vec<::prost::alloc::string::String>,
}
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct LabelValuesRequest {
    #[prost(string, tag = "1")]
    pub name: ::prost::alloc::string::String,
    #[prost(string, repeated, tag = "2")]
    pub matchers: ::prost::alloc::vec::Vec<::prost::alloc::string::String>,
    #[prost(int64, tag = "3")]
    pub start: i64,
    #[prost(int64, tag = "4")]
    pub end: i64,
}
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct LabelValuesResponse {
    #[prost(string, repeated, tag = "1")]
    pub names: ::prost::alloc::vec::Vec<::prost::alloc::string::String>,
}
#[derive(Clone, Copy, PartialEq, Eq, Hash, ::prost::Message)]
pub struct GetProfileStatsRequest {}
#[derive(Clone, Copy, PartialEq, Eq, Hash, ::prost::Message)]
pub struct GetProfileStatsResponse {
    #[prost(bool, tag = "1")]
    pub data_ingested: bool,
    /// Unix time in milliseconds of the first and of the last profile; 0 without any.
    #[prost(int64, tag = "2")]
    pub oldest_profile_time: i64,
    #[prost(int64, tag = "3")]
    pub newest_profile_time: i64,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct Series {
    #[prost(message, repeated, tag = "1")]
    pub labels: ::prost::alloc::vec::Vec<LabelPair>,
    #[prost(message, repeated, tag = "2")]
    pub points: ::prost::alloc::vec::Vec<Point>,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct Point {
    #[prost(double, tag = "1")]
    pub value: f64,
    /// The right edge of the step, in milliseconds.
    #[prost(int64, tag = "2")]
    pub timestamp: i64,
    /// What stands for the point, at most one.
    #[prost(message, repeated, tag = "4")]
    pub exemplars: ::prost::alloc::vec::Vec<Exemplar>,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct HeatmapSeries {
    #[prost(message, repeated, tag = "1")]
    pub labels: ::prost::alloc::vec::Vec<LabelPair>,
    #[prost(message, repeated, tag = "2")]
    pub slots: ::prost::alloc::vec::Vec<HeatmapSlot>,
}
/// The values of one step: how many lie in which range of values.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct HeatmapSlot {
    /// The right edge of the step, in milliseconds.
    #[prost(int64, tag = "1")]
    pub timestamp: i64,
    /// The smallest value of each range that counts something.
    #[prost(double, repeated, tag = "2")]
    pub y_min: ::prost::alloc::vec::Vec<f64>,
    /// One number for each of them.
    #[prost(int32, repeated, tag = "3")]
    pub counts: ::prost::alloc::vec::Vec<i32>,
    #[prost(message, repeated, tag = "4")]
    pub exemplars: ::prost::alloc::vec::Vec<Exemplar>,
}
/// A profile, or a span in it.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct Exemplar {
    #[prost(int64, tag = "1")]
    pub timestamp: i64,
    #[prost(string, tag = "2")]
    pub profile_id: ::prost::alloc::string::String,
    #[prost(string, tag = "3")]
    pub span_id: ::prost::alloc::string::String,
    #[prost(int64, tag = "4")]
    pub value: i64,
    /// Of the profile's series.
    #[prost(message, repeated, tag = "5")]
    pub labels: ::prost::alloc::vec::Vec<LabelPair>,
    #[prost(string, tag = "6")]
    pub trace_id: ::prost::alloc::string::String,
}
/// Keeps only the stacks that start, at the root, with these functions.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct StackTraceSelector {
    #[prost(message, repeated, tag = "1")]
    pub call_site: ::prost::alloc::vec::Vec<Location>,
    #[prost(message, optional, tag = "2")]
    pub go_pgo: ::core::option::Option<GoPgo>,
    #[prost(message, optional, tag = "3")]
    pub frame_filter: ::core::option::Option<StackFrameFilter>,
}
/// Keeps only the stacks with all included functions and without any excluded function.
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct StackFrameFilter {
    #[prost(string, repeated, tag = "1")]
    pub include_function_names: ::prost::alloc::vec::Vec<::prost::alloc::string::String>,
    #[prost(string, repeated, tag = "2")]
    pub exclude_function_names: ::prost::alloc::vec::Vec<::prost::alloc::string::String>,
    /// Each expression may match any part of a name.
    #[prost(string, repeated, tag = "3")]
    pub include_function_name_regexes: ::prost::alloc::vec::Vec<
        ::prost::alloc::string::String,
    >,
    #[prost(string, repeated, tag = "4")]
    pub exclude_function_name_regexes: ::prost::alloc::vec::Vec<
        ::prost::alloc::string::String,
    >,
}
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct Location {
    #[prost(string, tag = "1")]
    pub name: ::prost::alloc::string::String,
}
#[derive(Clone, Copy, PartialEq, Eq, Hash, ::prost::Message)]
pub struct GoPgo {
    #[prost(uint32, tag = "1")]
    pub keep_locations: u32,
    #[prost(bool, tag = "2")]
    pub aggregate_callees: bool,
}
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, ::prost::Enumeration)]
#[repr(i32)]
pub enum TimeSeriesAggregationType {
    Sum = 0,
    Average = 1,
}
impl TimeSeriesAggregationType {
    /// String value of the enum field names used in the ProtoBuf definition.
    ///
    /// The values are not transformed in any way and thus are considered stable
    /// (if the ProtoBuf definition does not change) and safe for programmatic use.
    pub fn as_str_name(&self) -> &'static str {
        match self {
            Self::Sum => "TIME_SERIES_AGGREGATION_TYPE_SUM",
            Self::Average => "TIME_SERIES_AGGREGATION_TYPE_AVERAGE",
        }
    }
    /// Creates an enum from field names used in the ProtoBuf definition.
    pub fn from_str_name(value: &str) -> ::core::option::Option<Self> {
        match value {
            "TIME_SERIES_AGGREGATION_TYPE_SUM" => Some(Self::Sum),
            "TIME_SERIES_AGGREGATION_TYPE_AVERAGE" => Some(Self::Average),
            _ => None,
        }
    }
}
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, ::prost::Enumeration)]
#[repr(i32)]
pub enum ExemplarType {
    Unspecified = 0,
    None = 1,
    Individual = 2,
    Span = 3,
}
impl ExemplarType {
    /// String value of the enum field names used in the ProtoBuf definition.
    ///
    /// The values are not transformed in any way and thus are considered stable
    /// (if the ProtoBuf definition does not change) and safe for programmatic use.
    pub fn as_str_name(&self) -> &'static str {
        match self {
            Self::Unspecified => "EXEMPLAR_TYPE_UNSPECIFIED",
            Self::None => "EXEMPLAR_TYPE_NONE",
            Self::Individual => "EXEMPLAR_TYPE_INDIVIDUAL",
            Self::Span => "EXEMPLAR_TYPE_SPAN",
        }
    }
    /// Creates an enum from field names used in the ProtoBuf definition.
    pub fn from_str_name(value: &str) -> ::core::option::Option<Self> {
        match value {
            "EXEMPLAR_TYPE_UNSPECIFIED" => Some(Self::Unspecified),
            "EXEMPLAR_TYPE_NONE" => Some(Self::None),
            "EXEMPLAR_TYPE_INDIVIDUAL" => Some(Self::Individual),
            "EXEMPLAR_TYPE_SPAN" => Some(Self::Span),
            _ => None,
        }
    }
}

impl crate::json::ToJson for LabelPair {
    fn write(&self, out: &mut crate::json::Writer) {
        out.message(|out| {
            out.field("name", &self.name);
            out.field("value", &self.value);
        });
    }
}

impl crate::json::Fields for LabelPair {
    const NAMES: &'static [[&'static str; 2]] = &[["name", "name"], ["value", "value"]];

    fn read_field<'de, A: serde::de::MapAccess<'de>>(&mut self, index: usize, map: &mut A) -> Result<(), A::Error> {
        match index {
            0 => map.next_value_seed(crate::json::Field(&mut self.name)),
            1 => map.next_value_seed(crate::json::Field(&mut self.value)),
            _ => Ok(()),
        }
    }
}

impl crate::json::ToJson for Labels {
    fn write(&self, out: &mut crate::json::Writer) {
        out.message(|out| {
            out.field("labels", &self.labels);
        });
    }
}

impl crate::json::ToJson for ProfileType {
    fn write(&self, out: &mut crate::json::Writer) {
        out.message(|out| {
            out.field("ID", &self.id);
            out.field("name", &self.name);
            out.field("sampleType", &self.sample_type);
            out.field("sampleUnit", &self.sample_unit);
            out.field("periodType", &self.period_type);
            out.field("periodUnit", &self.period_unit);
        });
    }
}

impl crate::json::ToJson for LabelNamesRequest {
    fn write(&self, out: &mut crate::json::Writer) {
        out.message(|out| {
            out.field("matchers", &self.matchers);
            out.field("start", &self.start);
            out.field("end", &self.end);
        });
    }
}

impl crate::json::Fields for LabelNamesRequest {
    const NAMES: &'static [[&'static str; 2]] = &[["matchers", "matchers"], ["start", "start"], ["end", "end"]];

    fn read_field<'de, A: serde::de::MapAccess<'de>>(&mut self, index: usize, map: &mut A) -> Result<(), A::Error> {
        match index {
            0 => map.next_value_seed(crate::json::Field(&mut self.matchers)),
            1 => map.next_value_seed(crate::json::Field(&mut self.start)),
            2 => map.next_value_seed(crate::json::Field(&mut self.end)),
            _ => Ok(()),
        }
    }
}

impl crate::json::ToJson for LabelNamesResponse {
    fn write(&self, out: &mut crate::json::Writer) {
        out.message(|out| {
            out.field("names", &self.names);
        });
    }
}

impl crate::json::ToJson for LabelValuesRequest {
    fn write(&self, out: &mut crate::json::Writer) {
        out.message(|out| {
            out.field("name", &self.name);
            out.field("matchers", &self.matchers);
            out.field("start", &self.start);
            out.field("end", &self.end);
        });
    }
}

impl crate::json::Fields for LabelValuesRequest {
    const NAMES: &'static [[&'static str; 2]] = &[["name", "name"], ["matchers", "matchers"], ["start", "start"], ["end", "end"]];

    fn read_field<'de, A: serde::de::MapAccess<'de>>(&mut self, index: usize, map: &mut A) -> Result<(), A::Error> {
        match index {
            0 => map.next_value_seed(crate::json::Field(&mut self.name)),
            1 => map.next_value_seed(crate::json::Field(&mut self.matchers)),
            2 => map.next_value_seed(crate::json::Field(&mut self.start)),
            3 => map.next_value_seed(crate::json::Field(&mut self.end)),
            _ => Ok(()),
        }
    }
}

impl crate::json::ToJson for LabelValuesResponse {
    fn write(&self, out: &mut crate::json::Writer) {
        out.message(|out| {
            out.field("names", &self.names);
        });
    }
}

impl crate::json::ToJson for GetProfileStatsRequest {
    fn write(&self, out: &mut crate::json::Writer) {
        out.message(|_| {});
    }
}

impl crate::json::Fields for GetProfileStatsRequest {
    const NAMES: &'static [[&'static str; 2]] = &[];

    fn read_field<'de, A: serde::de::MapAccess<'de>>(&mut self, index: usize, _: &mut A) -> Result<(), A::Error> {
        match index {
            _ => Ok(()),
        }
    }
}

impl crate::json::ToJson for GetProfileStatsResponse {
    fn write(&self, out: &mut crate::json::Writer) {
        out.message(|out| {
            out.field("dataIngested", &self.data_ingested);
            out.field("oldestProfileTime", &self.oldest_profile_time);
            out.field("newestProfileTime", &self.newest_profile_time);
        });
    }
}

impl crate::json::ToJson for Series {
    fn write(&self, out: &mut crate::json::Writer) {
        out.message(|out| {
            out.field("labels", &self.labels);
            out.field("points", &self.points);
        });
    }
}

impl crate::json::ToJson for Point {
    fn write(&self, out: &mut crate::json::Writer) {
        out.message(|out| {
            out.field("value", &self.value);
            out.field("timestamp", &self.timestamp);
            out.field("exemplars", &self.exemplars);
        });
    }
}

impl crate::json::ToJson for HeatmapSeries {
    fn write(&self, out: &mut crate::json::Writer) {
        out.message(|out| {
            out.field("labels", &self.labels);
            out.field("slots", &self.slots);
        });
    }
}

impl crate::json::ToJson for HeatmapSlot {
    fn write(&self, out: &mut crate::json::Writer) {
        out.message(|out| {
            out.field("timestamp", &self.timestamp);
            out.field("yMin", &self.y_min);
            out.field("counts", &self.counts);
            out.field("exemplars", &self.exemplars);
        });
    }
}

impl crate::json::ToJson for Exemplar {
    fn write(&self, out: &mut crate::json::Writer) {
        out.message(|out| {
            out.field("timestamp", &self.timestamp);
            out.field("profileId", &self.profile_id);
            out.field("spanId", &self.span_id);
            out.field("value", &self.value);
            out.field("labels", &self.labels);
            out.field("traceId", &self.trace_id);
        });
    }
}

impl crate::json::ToJson for StackTraceSelector {
    fn write(&self, out: &mut crate::json::Writer) {
        out.message(|out| {
            out.field("callSite", &self.call_site);
            out.field("goPgo", &self.go_pgo);
            out.field("frameFilter", &self.frame_filter);
        });
    }
}

impl crate::json::Fields for StackTraceSelector {
    const NAMES: &'static [[&'static str; 2]] = &[["callSite", "call_site"], ["goPgo", "go_pgo"], ["frameFilter", "frame_filter"]];

    fn read_field<'de, A: serde::de::MapAccess<'de>>(&mut self, index: usize, map: &mut A) -> Result<(), A::Error> {
        match index {
            0 => map.next_value_seed(crate::json::Field(&mut self.call_site)),
            1 => map.next_value_seed(crate::json::Field(&mut self.go_pgo)),
            2 => map.next_value_seed(crate::json::Field(&mut self.frame_filter)),
            _ => Ok(()),
        }
    }
}

impl crate::json::ToJson for StackFrameFilter {
    fn write(&self, out: &mut crate::json::Writer) {
        out.message(|out| {
            out.field("includeFunctionNames", &self.include_function_names);
            out.field("excludeFunctionNames", &self.exclude_function_names);
            out.field("includeFunctionNameRegexes", &self.include_function_name_regexes);
            out.field("excludeFunctionNameRegexes", &self.exclude_function_name_regexes);
        });
    }
}

impl crate::json::Fields for StackFrameFilter {
    const NAMES: &'static [[&'static str; 2]] = &[["includeFunctionNames", "include_function_names"], ["excludeFunctionNames", "exclude_function_names"], ["includeFunctionNameRegexes", "include_function_name_regexes"], ["excludeFunctionNameRegexes", "exclude_function_name_regexes"]];

    fn read_field<'de, A: serde::de::MapAccess<'de>>(&mut self, index: usize, map: &mut A) -> Result<(), A::Error> {
        match index {
            0 => map.next_value_seed(crate::json::Field(&mut self.include_function_names)),
            1 => map.next_value_seed(crate::json::Field(&mut self.exclude_function_names)),
            2 => map.next_value_seed(crate::json::Field(&mut self.include_function_name_regexes)),
            3 => map.next_value_seed(crate::json::Field(&mut self.exclude_function_name_regexes)),
            _ => Ok(()),
        }
    }
}

impl crate::json::ToJson for Location {
    fn write(&self, out: &mut crate::json::Writer) {
        out.message(|out| {
            out.field("name", &self.name);
        });
    }
}

impl crate::json::Fields for Location {
    const NAMES: &'static [[&'static str; 2]] = &[["name", "name"]];

    fn read_field<'de, A: serde::de::MapAccess<'de>>(&mut self, index: usize, map: &mut A) -> Result<(), A::Error> {
        match index {
            0 => map.next_value_seed(crate::json::Field(&mut self.name)),
            _ => Ok(()),
        }
    }
}

impl crate::json::ToJson for GoPgo {
    fn write(&self, out: &mut crate::json::Writer) {
        out.message(|out| {
            out.field("keepLocations", &self.keep_locations);
            out.field("aggregateCallees", &self.aggregate_callees);
        });
    }
}

impl crate::json::Fields for GoPgo {
    const NAMES: &'static [[&'static str; 2]] = &[["keepLocations", "keep_locations"], ["aggregateCallees", "aggregate_callees"]];

    fn read_field<'de, A: serde::de::MapAccess<'de>>(&mut self, index: usize, map: &mut A) -> Result<(), A::Error> {
        match index {
            0 => map.next_value_seed(crate::json::Field(&mut self.keep_locations)),
            1 => map.next_value_seed(crate::json::Field(&mut self.aggregate_callees)),
            _ => Ok(()),
        }
    }
}
