//! Generated from `proto/querier/v1/querier.proto` by `UPDATE_EXPECT=1 cargo test --test integration protos`: do not edit.
//!
//! The messages of one package, as prost makes them.

#[derive(Clone, Copy, PartialEq, Eq, Hash, ::prost::Message)]
pub struct ProfileTypesRequest {
    /// Unix time in milliseconds, as all times here.
    #[prost(int64, tag = "1")]
    pub start: i64,
    #[prost(int64, tag = "2")]
    pub end: i64,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct ProfileTypesResponse {
    #[prost(message, repeated, tag = "1")]
    pub profile_types: ::prost::alloc::vec::Vec<crate::wire::proto::types::ProfileType>,
}
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct SeriesRequest {
    #[prost(string, repeated, tag = "1")]
    pub matchers: ::prost::alloc::vec::Vec<::prost::alloc::string::String>,
    #[prost(string, repeated, tag = "2")]
    pub label_names: ::prost::alloc::vec::Vec<::prost::alloc::string::String>,
    #[prost(int64, tag = "3")]
    pub start: i64,
    #[prost(int64, tag = "4")]
    pub end: i64,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct SeriesResponse {
    #[prost(message, repeated, tag = "2")]
    pub labels_set: ::prost::alloc::vec::Vec<crate::wire::proto::types::Labels>,
}
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct AsyncQueryRequest {
    #[prost(string, tag = "1")]
    pub request_id: ::prost::alloc::string::String,
    #[prost(enumeration = "AsyncQueryType", tag = "2")]
    pub r#type: i32,
}
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct AsyncQueryResponse {
    #[prost(string, tag = "1")]
    pub request_id: ::prost::alloc::string::String,
    #[prost(enumeration = "AsyncQueryStatus", tag = "2")]
    pub status: i32,
    #[prost(string, tag = "3")]
    pub error_message: ::prost::alloc::string::String,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct SelectMergeStacktracesRequest {
    #[prost(string, tag = "1")]
    pub profile_type_id: ::prost::alloc::string::String,
    #[prost(string, tag = "2")]
    pub label_selector: ::prost::alloc::string::String,
    #[prost(int64, tag = "3")]
    pub start: i64,
    #[prost(int64, tag = "4")]
    pub end: i64,
    #[prost(int64, optional, tag = "5")]
    pub max_nodes: ::core::option::Option<i64>,
    #[prost(enumeration = "ProfileFormat", tag = "6")]
    pub format: i32,
    #[prost(message, optional, tag = "7")]
    pub stack_trace_selector: ::core::option::Option<
        crate::wire::proto::types::StackTraceSelector,
    >,
    #[prost(string, repeated, tag = "8")]
    pub profile_id_selector: ::prost::alloc::vec::Vec<::prost::alloc::string::String>,
    #[prost(message, optional, tag = "9")]
    pub r#async: ::core::option::Option<AsyncQueryRequest>,
    #[prost(string, repeated, tag = "10")]
    pub trace_id_selector: ::prost::alloc::vec::Vec<::prost::alloc::string::String>,
    #[prost(string, repeated, tag = "11")]
    pub span_selector: ::prost::alloc::vec::Vec<::prost::alloc::string::String>,
    /// Ours: the flame graph tells files, lines and mappings too.
    #[prost(bool, tag = "1001")]
    pub frame_details: bool,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct SelectMergeStacktracesResponse {
    #[prost(message, optional, tag = "1")]
    pub flamegraph: ::core::option::Option<FlameGraph>,
    #[prost(bytes = "vec", tag = "2")]
    pub tree: ::prost::alloc::vec::Vec<u8>,
    #[prost(string, tag = "3")]
    pub dot: ::prost::alloc::string::String,
    #[prost(message, optional, tag = "4")]
    pub r#async: ::core::option::Option<AsyncQueryResponse>,
    #[prost(message, optional, tag = "5")]
    pub pprof: ::core::option::Option<PprofProfile>,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct PprofProfile {
    #[prost(message, optional, tag = "1")]
    pub profile: ::core::option::Option<crate::wire::proto::google::Profile>,
}
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct SelectMergeSpanProfileRequest {
    #[prost(string, tag = "1")]
    pub profile_type_id: ::prost::alloc::string::String,
    #[prost(string, tag = "2")]
    pub label_selector: ::prost::alloc::string::String,
    #[prost(string, repeated, tag = "3")]
    pub span_selector: ::prost::alloc::vec::Vec<::prost::alloc::string::String>,
    #[prost(int64, tag = "4")]
    pub start: i64,
    #[prost(int64, tag = "5")]
    pub end: i64,
    #[prost(int64, optional, tag = "6")]
    pub max_nodes: ::core::option::Option<i64>,
    #[prost(enumeration = "ProfileFormat", tag = "7")]
    pub format: i32,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct SelectMergeSpanProfileResponse {
    #[prost(message, optional, tag = "1")]
    pub flamegraph: ::core::option::Option<FlameGraph>,
    #[prost(bytes = "vec", tag = "2")]
    pub tree: ::prost::alloc::vec::Vec<u8>,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct SelectMergeProfileRequest {
    #[prost(string, tag = "1")]
    pub profile_type_id: ::prost::alloc::string::String,
    #[prost(string, tag = "2")]
    pub label_selector: ::prost::alloc::string::String,
    #[prost(int64, tag = "3")]
    pub start: i64,
    #[prost(int64, tag = "4")]
    pub end: i64,
    #[prost(int64, optional, tag = "5")]
    pub max_nodes: ::core::option::Option<i64>,
    #[prost(message, optional, tag = "6")]
    pub stack_trace_selector: ::core::option::Option<
        crate::wire::proto::types::StackTraceSelector,
    >,
    #[prost(string, repeated, tag = "7")]
    pub profile_id_selector: ::prost::alloc::vec::Vec<::prost::alloc::string::String>,
    #[prost(string, repeated, tag = "8")]
    pub trace_id_selector: ::prost::alloc::vec::Vec<::prost::alloc::string::String>,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct SelectSeriesRequest {
    #[prost(string, tag = "1")]
    pub profile_type_id: ::prost::alloc::string::String,
    #[prost(string, tag = "2")]
    pub label_selector: ::prost::alloc::string::String,
    #[prost(int64, tag = "3")]
    pub start: i64,
    #[prost(int64, tag = "4")]
    pub end: i64,
    #[prost(string, repeated, tag = "5")]
    pub group_by: ::prost::alloc::vec::Vec<::prost::alloc::string::String>,
    /// Seconds.
    #[prost(double, tag = "6")]
    pub step: f64,
    #[prost(
        enumeration = "crate::wire::proto::types::TimeSeriesAggregationType",
        optional,
        tag = "7"
    )]
    pub aggregation: ::core::option::Option<i32>,
    #[prost(message, optional, tag = "8")]
    pub stack_trace_selector: ::core::option::Option<
        crate::wire::proto::types::StackTraceSelector,
    >,
    #[prost(int64, optional, tag = "9")]
    pub limit: ::core::option::Option<i64>,
    #[prost(enumeration = "crate::wire::proto::types::ExemplarType", tag = "10")]
    pub exemplar_type: i32,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct SelectSeriesResponse {
    #[prost(message, repeated, tag = "1")]
    pub series: ::prost::alloc::vec::Vec<crate::wire::proto::types::Series>,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct SelectHeatmapRequest {
    #[prost(string, tag = "1")]
    pub profile_type_id: ::prost::alloc::string::String,
    #[prost(string, tag = "2")]
    pub label_selector: ::prost::alloc::string::String,
    #[prost(int64, tag = "3")]
    pub start: i64,
    #[prost(int64, tag = "4")]
    pub end: i64,
    #[prost(double, tag = "5")]
    pub step: f64,
    #[prost(string, repeated, tag = "6")]
    pub group_by: ::prost::alloc::vec::Vec<::prost::alloc::string::String>,
    #[prost(enumeration = "HeatmapQueryType", tag = "7")]
    pub query_type: i32,
    #[prost(enumeration = "crate::wire::proto::types::ExemplarType", tag = "8")]
    pub exemplar_type: i32,
    #[prost(int64, optional, tag = "9")]
    pub limit: ::core::option::Option<i64>,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct SelectHeatmapResponse {
    #[prost(message, repeated, tag = "1")]
    pub series: ::prost::alloc::vec::Vec<crate::wire::proto::types::HeatmapSeries>,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct DiffRequest {
    #[prost(message, optional, tag = "1")]
    pub left: ::core::option::Option<SelectMergeStacktracesRequest>,
    #[prost(message, optional, tag = "2")]
    pub right: ::core::option::Option<SelectMergeStacktracesRequest>,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct DiffResponse {
    #[prost(message, optional, tag = "1")]
    pub flamegraph: ::core::option::Option<FlameGraphDiff>,
}
/// A node is four values of its level: x as the distance from the end of the node before, total, self, index of the name.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct FlameGraph {
    #[prost(string, repeated, tag = "1")]
    pub names: ::prost::alloc::vec::Vec<::prost::alloc::string::String>,
    #[prost(message, repeated, tag = "2")]
    pub levels: ::prost::alloc::vec::Vec<Level>,
    #[prost(int64, tag = "3")]
    pub total: i64,
    #[prost(int64, tag = "4")]
    pub max_self: i64,
    /// Ours, only with frame_details: source file of each name.
    #[prost(string, repeated, tag = "1001")]
    pub files: ::prost::alloc::vec::Vec<::prost::alloc::string::String>,
    /// Ours, only with frame_details: the line of each node, one value a node.
    #[prost(message, repeated, tag = "1002")]
    pub lines: ::prost::alloc::vec::Vec<Level>,
    /// Ours, only with frame_details: binary of each name.
    #[prost(string, repeated, tag = "1003")]
    pub mappings: ::prost::alloc::vec::Vec<::prost::alloc::string::String>,
}
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct Level {
    #[prost(int64, repeated, tag = "1")]
    pub values: ::prost::alloc::vec::Vec<i64>,
}
/// A node is seven values: x, total, self on the left, the same on the right, index of the name.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct FlameGraphDiff {
    #[prost(string, repeated, tag = "1")]
    pub names: ::prost::alloc::vec::Vec<::prost::alloc::string::String>,
    #[prost(message, repeated, tag = "2")]
    pub levels: ::prost::alloc::vec::Vec<Level>,
    #[prost(int64, tag = "3")]
    pub total: i64,
    #[prost(int64, tag = "4")]
    pub max_self: i64,
    #[prost(int64, tag = "5")]
    pub left_ticks: i64,
    #[prost(int64, tag = "6")]
    pub right_ticks: i64,
}
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct AnalyzeQueryRequest {
    #[prost(int64, tag = "2")]
    pub start: i64,
    #[prost(int64, tag = "3")]
    pub end: i64,
    #[prost(string, tag = "4")]
    pub query: ::prost::alloc::string::String,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct AnalyzeQueryResponse {
    #[prost(message, repeated, tag = "1")]
    pub query_scopes: ::prost::alloc::vec::Vec<QueryScope>,
    #[prost(message, optional, tag = "2")]
    pub query_impact: ::core::option::Option<QueryImpact>,
}
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct QueryScope {
    #[prost(string, tag = "1")]
    pub component_type: ::prost::alloc::string::String,
    #[prost(uint64, tag = "2")]
    pub component_count: u64,
    #[prost(uint64, tag = "3")]
    pub block_count: u64,
    #[prost(uint64, tag = "4")]
    pub series_count: u64,
    #[prost(uint64, tag = "5")]
    pub profile_count: u64,
    #[prost(uint64, tag = "6")]
    pub sample_count: u64,
    #[prost(uint64, tag = "7")]
    pub index_bytes: u64,
    #[prost(uint64, tag = "8")]
    pub profile_bytes: u64,
    #[prost(uint64, tag = "9")]
    pub symbol_bytes: u64,
}
#[derive(Clone, Copy, PartialEq, Eq, Hash, ::prost::Message)]
pub struct QueryImpact {
    #[prost(uint64, tag = "2")]
    pub total_bytes_in_time_range: u64,
    #[prost(uint64, tag = "3")]
    pub total_queried_series: u64,
    #[prost(bool, tag = "4")]
    pub deduplication_needed: bool,
}
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, ::prost::Enumeration)]
#[repr(i32)]
pub enum ProfileFormat {
    Unspecified = 0,
    Flamegraph = 1,
    Tree = 2,
    Dot = 3,
    Pprof = 4,
}
impl ProfileFormat {
    /// String value of the enum field names used in the ProtoBuf definition.
    ///
    /// The values are not transformed in any way and thus are considered stable
    /// (if the ProtoBuf definition does not change) and safe for programmatic use.
    pub fn as_str_name(&self) -> &'static str {
        match self {
            Self::Unspecified => "PROFILE_FORMAT_UNSPECIFIED",
            Self::Flamegraph => "PROFILE_FORMAT_FLAMEGRAPH",
            Self::Tree => "PROFILE_FORMAT_TREE",
            Self::Dot => "PROFILE_FORMAT_DOT",
            Self::Pprof => "PROFILE_FORMAT_PPROF",
        }
    }
    /// Creates an enum from field names used in the ProtoBuf definition.
    pub fn from_str_name(value: &str) -> ::core::option::Option<Self> {
        match value {
            "PROFILE_FORMAT_UNSPECIFIED" => Some(Self::Unspecified),
            "PROFILE_FORMAT_FLAMEGRAPH" => Some(Self::Flamegraph),
            "PROFILE_FORMAT_TREE" => Some(Self::Tree),
            "PROFILE_FORMAT_DOT" => Some(Self::Dot),
            "PROFILE_FORMAT_PPROF" => Some(Self::Pprof),
            _ => None,
        }
    }
}
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, ::prost::Enumeration)]
#[repr(i32)]
pub enum AsyncQueryType {
    Disabled = 0,
    Force = 1,
}
impl AsyncQueryType {
    /// String value of the enum field names used in the ProtoBuf definition.
    ///
    /// The values are not transformed in any way and thus are considered stable
    /// (if the ProtoBuf definition does not change) and safe for programmatic use.
    pub fn as_str_name(&self) -> &'static str {
        match self {
            Self::Disabled => "ASYNC_QUERY_TYPE_DISABLED",
            Self::Force => "ASYNC_QUERY_TYPE_FORCE",
        }
    }
    /// Creates an enum from field names used in the ProtoBuf definition.
    pub fn from_str_name(value: &str) -> ::core::option::Option<Self> {
        match value {
            "ASYNC_QUERY_TYPE_DISABLED" => Some(Self::Disabled),
            "ASYNC_QUERY_TYPE_FORCE" => Some(Self::Force),
            _ => None,
        }
    }
}
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, ::prost::Enumeration)]
#[repr(i32)]
pub enum AsyncQueryStatus {
    Unknown = 0,
    InProgress = 1,
    Success = 2,
    Failure = 3,
}
impl AsyncQueryStatus {
    /// String value of the enum field names used in the ProtoBuf definition.
    ///
    /// The values are not transformed in any way and thus are considered stable
    /// (if the ProtoBuf definition does not change) and safe for programmatic use.
    pub fn as_str_name(&self) -> &'static str {
        match self {
            Self::Unknown => "ASYNC_QUERY_STATUS_UNKNOWN",
            Self::InProgress => "ASYNC_QUERY_STATUS_IN_PROGRESS",
            Self::Success => "ASYNC_QUERY_STATUS_SUCCESS",
            Self::Failure => "ASYNC_QUERY_STATUS_FAILURE",
        }
    }
    /// Creates an enum from field names used in the ProtoBuf definition.
    pub fn from_str_name(value: &str) -> ::core::option::Option<Self> {
        match value {
            "ASYNC_QUERY_STATUS_UNKNOWN" => Some(Self::Unknown),
            "ASYNC_QUERY_STATUS_IN_PROGRESS" => Some(Self::InProgress),
            "ASYNC_QUERY_STATUS_SUCCESS" => Some(Self::Success),
            "ASYNC_QUERY_STATUS_FAILURE" => Some(Self::Failure),
            _ => None,
        }
    }
}
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, ::prost::Enumeration)]
#[repr(i32)]
pub enum HeatmapQueryType {
    Unspecified = 0,
    Individual = 1,
    Span = 2,
}
impl HeatmapQueryType {
    /// String value of the enum field names used in the ProtoBuf definition.
    ///
    /// The values are not transformed in any way and thus are considered stable
    /// (if the ProtoBuf definition does not change) and safe for programmatic use.
    pub fn as_str_name(&self) -> &'static str {
        match self {
            Self::Unspecified => "HEATMAP_QUERY_TYPE_UNSPECIFIED",
            Self::Individual => "HEATMAP_QUERY_TYPE_INDIVIDUAL",
            Self::Span => "HEATMAP_QUERY_TYPE_SPAN",
        }
    }
    /// Creates an enum from field names used in the ProtoBuf definition.
    pub fn from_str_name(value: &str) -> ::core::option::Option<Self> {
        match value {
            "HEATMAP_QUERY_TYPE_UNSPECIFIED" => Some(Self::Unspecified),
            "HEATMAP_QUERY_TYPE_INDIVIDUAL" => Some(Self::Individual),
            "HEATMAP_QUERY_TYPE_SPAN" => Some(Self::Span),
            _ => None,
        }
    }
}

include!("querier_json.rs");
