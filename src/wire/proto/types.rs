//! Generated from `proto/types/v1/types.proto` by `UPDATE_EXPECT=1 cargo test --test integration protos`: do not edit.
//!
//! The messages of one package, as prost makes them.

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
    #[prost(message, repeated, tag = "3")]
    pub annotations: ::prost::alloc::vec::Vec<ProfileAnnotation>,
    #[prost(message, repeated, tag = "4")]
    pub exemplars: ::prost::alloc::vec::Vec<Exemplar>,
}
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct ProfileAnnotation {
    #[prost(string, tag = "1")]
    pub key: ::prost::alloc::string::String,
    #[prost(string, tag = "2")]
    pub value: ::prost::alloc::string::String,
}
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
    #[prost(message, repeated, tag = "5")]
    pub labels: ::prost::alloc::vec::Vec<LabelPair>,
    #[prost(string, tag = "6")]
    pub trace_id: ::prost::alloc::string::String,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct HeatmapSeries {
    #[prost(message, repeated, tag = "1")]
    pub labels: ::prost::alloc::vec::Vec<LabelPair>,
    #[prost(message, repeated, tag = "2")]
    pub slots: ::prost::alloc::vec::Vec<HeatmapSlot>,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct HeatmapSlot {
    #[prost(int64, tag = "1")]
    pub timestamp: i64,
    #[prost(double, repeated, tag = "2")]
    pub y_min: ::prost::alloc::vec::Vec<f64>,
    #[prost(int32, repeated, tag = "3")]
    pub counts: ::prost::alloc::vec::Vec<i32>,
    #[prost(message, repeated, tag = "4")]
    pub exemplars: ::prost::alloc::vec::Vec<Exemplar>,
}
/// Keeps only the stacks that start, at the root, with these functions.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct StackTraceSelector {
    #[prost(message, repeated, tag = "1")]
    pub call_site: ::prost::alloc::vec::Vec<Location>,
    #[prost(message, optional, tag = "2")]
    pub go_pgo: ::core::option::Option<GoPgo>,
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
#[derive(Clone, Copy, PartialEq, Eq, Hash, ::prost::Message)]
pub struct GetProfileStatsRequest {}
#[derive(Clone, Copy, PartialEq, Eq, Hash, ::prost::Message)]
pub struct GetProfileStatsResponse {
    #[prost(bool, tag = "1")]
    pub data_ingested: bool,
    #[prost(int64, tag = "2")]
    pub oldest_profile_time: i64,
    #[prost(int64, tag = "3")]
    pub newest_profile_time: i64,
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

include!("types_json.rs");
