//! Generated from `proto/querier/v1/querier.proto` by `UPDATE_EXPECT=1 cargo test --test integration protos`: do not edit.

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
    pub profile_types: ::prost::alloc::vec::Vec<crate::proto::types::ProfileType>,
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
    pub labels_set: ::prost::alloc::vec::Vec<crate::proto::types::Labels>,
}
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct AsyncQueryRequest {
    #[prost(string, tag = "1")]
    pub request_id: ::prost::alloc::string::String,
    #[prost(enumeration = "AsyncQueryType", tag = "2")]
    pub r#type: i32,
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
        crate::proto::types::StackTraceSelector,
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
    #[prost(bytes = "bytes", tag = "2")]
    pub tree: ::prost::bytes::Bytes,
    #[prost(string, tag = "3")]
    pub dot: ::prost::alloc::string::String,
    #[prost(message, optional, tag = "5")]
    pub pprof: ::core::option::Option<PprofProfile>,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct PprofProfile {
    #[prost(message, optional, tag = "1")]
    pub profile: ::core::option::Option<crate::proto::google::Profile>,
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
    #[prost(bytes = "bytes", tag = "2")]
    pub tree: ::prost::bytes::Bytes,
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
        crate::proto::types::StackTraceSelector,
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
        enumeration = "crate::proto::types::TimeSeriesAggregationType",
        optional,
        tag = "7"
    )]
    pub aggregation: ::core::option::Option<i32>,
    #[prost(message, optional, tag = "8")]
    pub stack_trace_selector: ::core::option::Option<
        crate::proto::types::StackTraceSelector,
    >,
    #[prost(int64, optional, tag = "9")]
    pub limit: ::core::option::Option<i64>,
    #[prost(enumeration = "crate::proto::types::ExemplarType", tag = "10")]
    pub exemplar_type: i32,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct SelectSeriesResponse {
    #[prost(message, repeated, tag = "1")]
    pub series: ::prost::alloc::vec::Vec<crate::proto::types::Series>,
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
    /// Seconds.
    #[prost(double, tag = "5")]
    pub step: f64,
    #[prost(string, repeated, tag = "6")]
    pub group_by: ::prost::alloc::vec::Vec<::prost::alloc::string::String>,
    /// Profiles or spans; must be given.
    #[prost(enumeration = "HeatmapQueryType", tag = "7")]
    pub query_type: i32,
    #[prost(enumeration = "crate::proto::types::ExemplarType", tag = "8")]
    pub exemplar_type: i32,
    #[prost(int64, optional, tag = "9")]
    pub limit: ::core::option::Option<i64>,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct SelectHeatmapResponse {
    #[prost(message, repeated, tag = "1")]
    pub series: ::prost::alloc::vec::Vec<crate::proto::types::HeatmapSeries>,
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
    /// Ours, only with frame_details: the line of each node, one value a node; -1 at a node that holds what was folded.
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
    /// A profile type with a selector in braces behind it.
    #[prost(string, tag = "4")]
    pub query: ::prost::alloc::string::String,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct AnalyzeQueryResponse {
    /// What the query would read, place by place.
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
/// The calls of `querier.v1.QuerierService`.
pub trait QuerierService: Clone + Send + Sync + 'static {
    fn profile_types(
        &self,
        call: crate::service::Call<ProfileTypesRequest>,
    ) -> impl Future<Output = crate::service::CallResult<ProfileTypesResponse>> + Send;
    fn label_values(
        &self,
        call: crate::service::Call<crate::proto::types::LabelValuesRequest>,
    ) -> impl Future<
        Output = crate::service::CallResult<crate::proto::types::LabelValuesResponse>,
    > + Send;
    fn label_names(
        &self,
        call: crate::service::Call<crate::proto::types::LabelNamesRequest>,
    ) -> impl Future<
        Output = crate::service::CallResult<crate::proto::types::LabelNamesResponse>,
    > + Send;
    fn series(
        &self,
        call: crate::service::Call<SeriesRequest>,
    ) -> impl Future<Output = crate::service::CallResult<SeriesResponse>> + Send;
    fn select_merge_stacktraces(
        &self,
        call: crate::service::Call<SelectMergeStacktracesRequest>,
    ) -> impl Future<
        Output = crate::service::CallResult<SelectMergeStacktracesResponse>,
    > + Send;
    fn select_merge_span_profile(
        &self,
        call: crate::service::Call<SelectMergeSpanProfileRequest>,
    ) -> impl Future<
        Output = crate::service::CallResult<SelectMergeSpanProfileResponse>,
    > + Send;
    fn select_merge_profile(
        &self,
        call: crate::service::Call<SelectMergeProfileRequest>,
    ) -> impl Future<
        Output = crate::service::CallResult<crate::proto::google::Profile>,
    > + Send;
    fn select_series(
        &self,
        call: crate::service::Call<SelectSeriesRequest>,
    ) -> impl Future<Output = crate::service::CallResult<SelectSeriesResponse>> + Send;
    fn diff(
        &self,
        call: crate::service::Call<DiffRequest>,
    ) -> impl Future<Output = crate::service::CallResult<DiffResponse>> + Send;
    fn select_heatmap(
        &self,
        call: crate::service::Call<SelectHeatmapRequest>,
    ) -> impl Future<Output = crate::service::CallResult<SelectHeatmapResponse>> + Send;
    fn get_profile_stats(
        &self,
        call: crate::service::Call<crate::proto::types::GetProfileStatsRequest>,
    ) -> impl Future<
        Output = crate::service::CallResult<crate::proto::types::GetProfileStatsResponse>,
    > + Send;
    fn analyze_query(
        &self,
        call: crate::service::Call<AnalyzeQueryRequest>,
    ) -> impl Future<Output = crate::service::CallResult<AnalyzeQueryResponse>> + Send;
    fn route(&self, routes: &mut impl crate::service::Routes) {
        let service = self.clone();
        routes
            .unary(
                "querier.v1.QuerierService/ProfileTypes",
                move |call| {
                    let service = service.clone();
                    async move { service.profile_types(call).await }
                },
            );
        let service = self.clone();
        routes
            .unary(
                "querier.v1.QuerierService/LabelValues",
                move |call| {
                    let service = service.clone();
                    async move { service.label_values(call).await }
                },
            );
        let service = self.clone();
        routes
            .unary(
                "querier.v1.QuerierService/LabelNames",
                move |call| {
                    let service = service.clone();
                    async move { service.label_names(call).await }
                },
            );
        let service = self.clone();
        routes
            .unary(
                "querier.v1.QuerierService/Series",
                move |call| {
                    let service = service.clone();
                    async move { service.series(call).await }
                },
            );
        let service = self.clone();
        routes
            .unary(
                "querier.v1.QuerierService/SelectMergeStacktraces",
                move |call| {
                    let service = service.clone();
                    async move { service.select_merge_stacktraces(call).await }
                },
            );
        let service = self.clone();
        routes
            .unary(
                "querier.v1.QuerierService/SelectMergeSpanProfile",
                move |call| {
                    let service = service.clone();
                    async move { service.select_merge_span_profile(call).await }
                },
            );
        let service = self.clone();
        routes
            .unary(
                "querier.v1.QuerierService/SelectMergeProfile",
                move |call| {
                    let service = service.clone();
                    async move { service.select_merge_profile(call).await }
                },
            );
        let service = self.clone();
        routes
            .unary(
                "querier.v1.QuerierService/SelectSeries",
                move |call| {
                    let service = service.clone();
                    async move { service.select_series(call).await }
                },
            );
        let service = self.clone();
        routes
            .unary(
                "querier.v1.QuerierService/Diff",
                move |call| {
                    let service = service.clone();
                    async move { service.diff(call).await }
                },
            );
        let service = self.clone();
        routes
            .unary(
                "querier.v1.QuerierService/SelectHeatmap",
                move |call| {
                    let service = service.clone();
                    async move { service.select_heatmap(call).await }
                },
            );
        let service = self.clone();
        routes
            .unary(
                "querier.v1.QuerierService/GetProfileStats",
                move |call| {
                    let service = service.clone();
                    async move { service.get_profile_stats(call).await }
                },
            );
        let service = self.clone();
        routes
            .unary(
                "querier.v1.QuerierService/AnalyzeQuery",
                move |call| {
                    let service = service.clone();
                    async move { service.analyze_query(call).await }
                },
            );
    }
}

impl crate::json::ToJson for ProfileTypesRequest {
    fn write(&self, out: &mut crate::json::Writer) {
        out.message(|out| {
            out.field("start", &self.start);
            out.field("end", &self.end);
        });
    }
}

impl crate::json::Fields for ProfileTypesRequest {
    const NAMES: &'static [[&'static str; 2]] = &[["start", "start"], ["end", "end"]];

    fn read_field<'de, A: serde::de::MapAccess<'de>>(&mut self, index: usize, map: &mut A) -> Result<(), A::Error> {
        match index {
            0 => map.next_value_seed(crate::json::Field(&mut self.start)),
            1 => map.next_value_seed(crate::json::Field(&mut self.end)),
            _ => Ok(()),
        }
    }
}

impl crate::json::ToJson for ProfileTypesResponse {
    fn write(&self, out: &mut crate::json::Writer) {
        out.message(|out| {
            out.field("profileTypes", &self.profile_types);
        });
    }
}

impl crate::json::ToJson for SeriesRequest {
    fn write(&self, out: &mut crate::json::Writer) {
        out.message(|out| {
            out.field("matchers", &self.matchers);
            out.field("labelNames", &self.label_names);
            out.field("start", &self.start);
            out.field("end", &self.end);
        });
    }
}

impl crate::json::Fields for SeriesRequest {
    const NAMES: &'static [[&'static str; 2]] = &[["matchers", "matchers"], ["labelNames", "label_names"], ["start", "start"], ["end", "end"]];

    fn read_field<'de, A: serde::de::MapAccess<'de>>(&mut self, index: usize, map: &mut A) -> Result<(), A::Error> {
        match index {
            0 => map.next_value_seed(crate::json::Field(&mut self.matchers)),
            1 => map.next_value_seed(crate::json::Field(&mut self.label_names)),
            2 => map.next_value_seed(crate::json::Field(&mut self.start)),
            3 => map.next_value_seed(crate::json::Field(&mut self.end)),
            _ => Ok(()),
        }
    }
}

impl crate::json::ToJson for SeriesResponse {
    fn write(&self, out: &mut crate::json::Writer) {
        out.message(|out| {
            out.field("labelsSet", &self.labels_set);
        });
    }
}

impl crate::json::ToJson for AsyncQueryRequest {
    fn write(&self, out: &mut crate::json::Writer) {
        out.message(|out| {
            out.field("requestId", &self.request_id);
            out.field("type", &Some(self.r#type).filter(|value| *value != 0).map(|value| crate::proto::querier::AsyncQueryType::try_from(value).map(|value| value.as_str_name()).map_err(|_| value)));
        });
    }
}

impl crate::json::Fields for AsyncQueryRequest {
    const NAMES: &'static [[&'static str; 2]] = &[["requestId", "request_id"], ["type", "type"]];

    fn read_field<'de, A: serde::de::MapAccess<'de>>(&mut self, index: usize, map: &mut A) -> Result<(), A::Error> {
        match index {
            0 => map.next_value_seed(crate::json::Field(&mut self.request_id)),
            1 => map.next_value_seed(crate::json::Enum(&mut self.r#type, |name| crate::proto::querier::AsyncQueryType::from_str_name(name).map(Into::into))),
            _ => Ok(()),
        }
    }
}

impl crate::json::ToJson for SelectMergeStacktracesRequest {
    fn write(&self, out: &mut crate::json::Writer) {
        out.message(|out| {
            out.field("profileTypeID", &self.profile_type_id);
            out.field("labelSelector", &self.label_selector);
            out.field("start", &self.start);
            out.field("end", &self.end);
            out.field("maxNodes", &self.max_nodes);
            out.field("format", &Some(self.format).filter(|value| *value != 0).map(|value| crate::proto::querier::ProfileFormat::try_from(value).map(|value| value.as_str_name()).map_err(|_| value)));
            out.field("stackTraceSelector", &self.stack_trace_selector);
            out.field("profileIdSelector", &self.profile_id_selector);
            out.field("async", &self.r#async);
            out.field("traceIdSelector", &self.trace_id_selector);
            out.field("spanSelector", &self.span_selector);
            out.field("frameDetails", &self.frame_details);
        });
    }
}

impl crate::json::Fields for SelectMergeStacktracesRequest {
    const NAMES: &'static [[&'static str; 2]] = &[["profileTypeID", "profile_typeID"], ["labelSelector", "label_selector"], ["start", "start"], ["end", "end"], ["maxNodes", "max_nodes"], ["format", "format"], ["stackTraceSelector", "stack_trace_selector"], ["profileIdSelector", "profile_id_selector"], ["async", "async"], ["traceIdSelector", "trace_id_selector"], ["spanSelector", "span_selector"], ["frameDetails", "frame_details"]];

    fn read_field<'de, A: serde::de::MapAccess<'de>>(&mut self, index: usize, map: &mut A) -> Result<(), A::Error> {
        match index {
            0 => map.next_value_seed(crate::json::Field(&mut self.profile_type_id)),
            1 => map.next_value_seed(crate::json::Field(&mut self.label_selector)),
            2 => map.next_value_seed(crate::json::Field(&mut self.start)),
            3 => map.next_value_seed(crate::json::Field(&mut self.end)),
            4 => map.next_value_seed(crate::json::Field(&mut self.max_nodes)),
            5 => map.next_value_seed(crate::json::Enum(&mut self.format, |name| crate::proto::querier::ProfileFormat::from_str_name(name).map(Into::into))),
            6 => map.next_value_seed(crate::json::Field(&mut self.stack_trace_selector)),
            7 => map.next_value_seed(crate::json::Field(&mut self.profile_id_selector)),
            8 => map.next_value_seed(crate::json::Field(&mut self.r#async)),
            9 => map.next_value_seed(crate::json::Field(&mut self.trace_id_selector)),
            10 => map.next_value_seed(crate::json::Field(&mut self.span_selector)),
            11 => map.next_value_seed(crate::json::Field(&mut self.frame_details)),
            _ => Ok(()),
        }
    }
}

impl crate::json::ToJson for SelectMergeStacktracesResponse {
    fn write(&self, out: &mut crate::json::Writer) {
        out.message(|out| {
            out.field("flamegraph", &self.flamegraph);
            out.field("tree", &self.tree);
            out.field("dot", &self.dot);
            out.field("pprof", &self.pprof);
        });
    }
}

impl crate::json::ToJson for PprofProfile {
    fn write(&self, out: &mut crate::json::Writer) {
        out.message(|out| {
            out.field("profile", &self.profile);
        });
    }
}

impl crate::json::ToJson for SelectMergeSpanProfileRequest {
    fn write(&self, out: &mut crate::json::Writer) {
        out.message(|out| {
            out.field("profileTypeID", &self.profile_type_id);
            out.field("labelSelector", &self.label_selector);
            out.field("spanSelector", &self.span_selector);
            out.field("start", &self.start);
            out.field("end", &self.end);
            out.field("maxNodes", &self.max_nodes);
            out.field("format", &Some(self.format).filter(|value| *value != 0).map(|value| crate::proto::querier::ProfileFormat::try_from(value).map(|value| value.as_str_name()).map_err(|_| value)));
        });
    }
}

impl crate::json::Fields for SelectMergeSpanProfileRequest {
    const NAMES: &'static [[&'static str; 2]] = &[["profileTypeID", "profile_typeID"], ["labelSelector", "label_selector"], ["spanSelector", "span_selector"], ["start", "start"], ["end", "end"], ["maxNodes", "max_nodes"], ["format", "format"]];

    fn read_field<'de, A: serde::de::MapAccess<'de>>(&mut self, index: usize, map: &mut A) -> Result<(), A::Error> {
        match index {
            0 => map.next_value_seed(crate::json::Field(&mut self.profile_type_id)),
            1 => map.next_value_seed(crate::json::Field(&mut self.label_selector)),
            2 => map.next_value_seed(crate::json::Field(&mut self.span_selector)),
            3 => map.next_value_seed(crate::json::Field(&mut self.start)),
            4 => map.next_value_seed(crate::json::Field(&mut self.end)),
            5 => map.next_value_seed(crate::json::Field(&mut self.max_nodes)),
            6 => map.next_value_seed(crate::json::Enum(&mut self.format, |name| crate::proto::querier::ProfileFormat::from_str_name(name).map(Into::into))),
            _ => Ok(()),
        }
    }
}

impl crate::json::ToJson for SelectMergeSpanProfileResponse {
    fn write(&self, out: &mut crate::json::Writer) {
        out.message(|out| {
            out.field("flamegraph", &self.flamegraph);
            out.field("tree", &self.tree);
        });
    }
}

impl crate::json::ToJson for SelectMergeProfileRequest {
    fn write(&self, out: &mut crate::json::Writer) {
        out.message(|out| {
            out.field("profileTypeID", &self.profile_type_id);
            out.field("labelSelector", &self.label_selector);
            out.field("start", &self.start);
            out.field("end", &self.end);
            out.field("maxNodes", &self.max_nodes);
            out.field("stackTraceSelector", &self.stack_trace_selector);
            out.field("profileIdSelector", &self.profile_id_selector);
            out.field("traceIdSelector", &self.trace_id_selector);
        });
    }
}

impl crate::json::Fields for SelectMergeProfileRequest {
    const NAMES: &'static [[&'static str; 2]] = &[["profileTypeID", "profile_typeID"], ["labelSelector", "label_selector"], ["start", "start"], ["end", "end"], ["maxNodes", "max_nodes"], ["stackTraceSelector", "stack_trace_selector"], ["profileIdSelector", "profile_id_selector"], ["traceIdSelector", "trace_id_selector"]];

    fn read_field<'de, A: serde::de::MapAccess<'de>>(&mut self, index: usize, map: &mut A) -> Result<(), A::Error> {
        match index {
            0 => map.next_value_seed(crate::json::Field(&mut self.profile_type_id)),
            1 => map.next_value_seed(crate::json::Field(&mut self.label_selector)),
            2 => map.next_value_seed(crate::json::Field(&mut self.start)),
            3 => map.next_value_seed(crate::json::Field(&mut self.end)),
            4 => map.next_value_seed(crate::json::Field(&mut self.max_nodes)),
            5 => map.next_value_seed(crate::json::Field(&mut self.stack_trace_selector)),
            6 => map.next_value_seed(crate::json::Field(&mut self.profile_id_selector)),
            7 => map.next_value_seed(crate::json::Field(&mut self.trace_id_selector)),
            _ => Ok(()),
        }
    }
}

impl crate::json::ToJson for SelectSeriesRequest {
    fn write(&self, out: &mut crate::json::Writer) {
        out.message(|out| {
            out.field("profileTypeID", &self.profile_type_id);
            out.field("labelSelector", &self.label_selector);
            out.field("start", &self.start);
            out.field("end", &self.end);
            out.field("groupBy", &self.group_by);
            out.field("step", &self.step);
            out.field("aggregation", &self.aggregation.map(|value| crate::proto::types::TimeSeriesAggregationType::try_from(value).map(|value| value.as_str_name()).map_err(|_| value)));
            out.field("stackTraceSelector", &self.stack_trace_selector);
            out.field("limit", &self.limit);
            out.field("exemplarType", &Some(self.exemplar_type).filter(|value| *value != 0).map(|value| crate::proto::types::ExemplarType::try_from(value).map(|value| value.as_str_name()).map_err(|_| value)));
        });
    }
}

impl crate::json::Fields for SelectSeriesRequest {
    const NAMES: &'static [[&'static str; 2]] = &[["profileTypeID", "profile_typeID"], ["labelSelector", "label_selector"], ["start", "start"], ["end", "end"], ["groupBy", "group_by"], ["step", "step"], ["aggregation", "aggregation"], ["stackTraceSelector", "stack_trace_selector"], ["limit", "limit"], ["exemplarType", "exemplar_type"]];

    fn read_field<'de, A: serde::de::MapAccess<'de>>(&mut self, index: usize, map: &mut A) -> Result<(), A::Error> {
        match index {
            0 => map.next_value_seed(crate::json::Field(&mut self.profile_type_id)),
            1 => map.next_value_seed(crate::json::Field(&mut self.label_selector)),
            2 => map.next_value_seed(crate::json::Field(&mut self.start)),
            3 => map.next_value_seed(crate::json::Field(&mut self.end)),
            4 => map.next_value_seed(crate::json::Field(&mut self.group_by)),
            5 => map.next_value_seed(crate::json::Field(&mut self.step)),
            6 => map.next_value_seed(crate::json::Enum(&mut self.aggregation, |name| crate::proto::types::TimeSeriesAggregationType::from_str_name(name).map(Into::into))),
            7 => map.next_value_seed(crate::json::Field(&mut self.stack_trace_selector)),
            8 => map.next_value_seed(crate::json::Field(&mut self.limit)),
            9 => map.next_value_seed(crate::json::Enum(&mut self.exemplar_type, |name| crate::proto::types::ExemplarType::from_str_name(name).map(Into::into))),
            _ => Ok(()),
        }
    }
}

impl crate::json::ToJson for SelectSeriesResponse {
    fn write(&self, out: &mut crate::json::Writer) {
        out.message(|out| {
            out.field("series", &self.series);
        });
    }
}

impl crate::json::ToJson for SelectHeatmapRequest {
    fn write(&self, out: &mut crate::json::Writer) {
        out.message(|out| {
            out.field("profileTypeID", &self.profile_type_id);
            out.field("labelSelector", &self.label_selector);
            out.field("start", &self.start);
            out.field("end", &self.end);
            out.field("step", &self.step);
            out.field("groupBy", &self.group_by);
            out.field("queryType", &Some(self.query_type).filter(|value| *value != 0).map(|value| crate::proto::querier::HeatmapQueryType::try_from(value).map(|value| value.as_str_name()).map_err(|_| value)));
            out.field("exemplarType", &Some(self.exemplar_type).filter(|value| *value != 0).map(|value| crate::proto::types::ExemplarType::try_from(value).map(|value| value.as_str_name()).map_err(|_| value)));
            out.field("limit", &self.limit);
        });
    }
}

impl crate::json::Fields for SelectHeatmapRequest {
    const NAMES: &'static [[&'static str; 2]] = &[["profileTypeID", "profile_typeID"], ["labelSelector", "label_selector"], ["start", "start"], ["end", "end"], ["step", "step"], ["groupBy", "group_by"], ["queryType", "query_type"], ["exemplarType", "exemplar_type"], ["limit", "limit"]];

    fn read_field<'de, A: serde::de::MapAccess<'de>>(&mut self, index: usize, map: &mut A) -> Result<(), A::Error> {
        match index {
            0 => map.next_value_seed(crate::json::Field(&mut self.profile_type_id)),
            1 => map.next_value_seed(crate::json::Field(&mut self.label_selector)),
            2 => map.next_value_seed(crate::json::Field(&mut self.start)),
            3 => map.next_value_seed(crate::json::Field(&mut self.end)),
            4 => map.next_value_seed(crate::json::Field(&mut self.step)),
            5 => map.next_value_seed(crate::json::Field(&mut self.group_by)),
            6 => map.next_value_seed(crate::json::Enum(&mut self.query_type, |name| crate::proto::querier::HeatmapQueryType::from_str_name(name).map(Into::into))),
            7 => map.next_value_seed(crate::json::Enum(&mut self.exemplar_type, |name| crate::proto::types::ExemplarType::from_str_name(name).map(Into::into))),
            8 => map.next_value_seed(crate::json::Field(&mut self.limit)),
            _ => Ok(()),
        }
    }
}

impl crate::json::ToJson for SelectHeatmapResponse {
    fn write(&self, out: &mut crate::json::Writer) {
        out.message(|out| {
            out.field("series", &self.series);
        });
    }
}

impl crate::json::ToJson for DiffRequest {
    fn write(&self, out: &mut crate::json::Writer) {
        out.message(|out| {
            out.field("left", &self.left);
            out.field("right", &self.right);
        });
    }
}

impl crate::json::Fields for DiffRequest {
    const NAMES: &'static [[&'static str; 2]] = &[["left", "left"], ["right", "right"]];

    fn read_field<'de, A: serde::de::MapAccess<'de>>(&mut self, index: usize, map: &mut A) -> Result<(), A::Error> {
        match index {
            0 => map.next_value_seed(crate::json::Field(&mut self.left)),
            1 => map.next_value_seed(crate::json::Field(&mut self.right)),
            _ => Ok(()),
        }
    }
}

impl crate::json::ToJson for DiffResponse {
    fn write(&self, out: &mut crate::json::Writer) {
        out.message(|out| {
            out.field("flamegraph", &self.flamegraph);
        });
    }
}

impl crate::json::ToJson for FlameGraph {
    fn write(&self, out: &mut crate::json::Writer) {
        out.message(|out| {
            out.field("names", &self.names);
            out.field("levels", &self.levels);
            out.field("total", &self.total);
            out.field("maxSelf", &self.max_self);
            out.field("files", &self.files);
            out.field("lines", &self.lines);
            out.field("mappings", &self.mappings);
        });
    }
}

impl crate::json::ToJson for Level {
    fn write(&self, out: &mut crate::json::Writer) {
        out.message(|out| {
            out.field("values", &self.values);
        });
    }
}

impl crate::json::ToJson for FlameGraphDiff {
    fn write(&self, out: &mut crate::json::Writer) {
        out.message(|out| {
            out.field("names", &self.names);
            out.field("levels", &self.levels);
            out.field("total", &self.total);
            out.field("maxSelf", &self.max_self);
            out.field("leftTicks", &self.left_ticks);
            out.field("rightTicks", &self.right_ticks);
        });
    }
}

impl crate::json::ToJson for AnalyzeQueryRequest {
    fn write(&self, out: &mut crate::json::Writer) {
        out.message(|out| {
            out.field("start", &self.start);
            out.field("end", &self.end);
            out.field("query", &self.query);
        });
    }
}

impl crate::json::Fields for AnalyzeQueryRequest {
    const NAMES: &'static [[&'static str; 2]] = &[["start", "start"], ["end", "end"], ["query", "query"]];

    fn read_field<'de, A: serde::de::MapAccess<'de>>(&mut self, index: usize, map: &mut A) -> Result<(), A::Error> {
        match index {
            0 => map.next_value_seed(crate::json::Field(&mut self.start)),
            1 => map.next_value_seed(crate::json::Field(&mut self.end)),
            2 => map.next_value_seed(crate::json::Field(&mut self.query)),
            _ => Ok(()),
        }
    }
}

impl crate::json::ToJson for AnalyzeQueryResponse {
    fn write(&self, out: &mut crate::json::Writer) {
        out.message(|out| {
            out.field("queryScopes", &self.query_scopes);
            out.field("queryImpact", &self.query_impact);
        });
    }
}

impl crate::json::ToJson for QueryScope {
    fn write(&self, out: &mut crate::json::Writer) {
        out.message(|out| {
            out.field("componentType", &self.component_type);
            out.field("componentCount", &self.component_count);
            out.field("blockCount", &self.block_count);
            out.field("seriesCount", &self.series_count);
            out.field("profileCount", &self.profile_count);
            out.field("sampleCount", &self.sample_count);
            out.field("indexBytes", &self.index_bytes);
            out.field("profileBytes", &self.profile_bytes);
            out.field("symbolBytes", &self.symbol_bytes);
        });
    }
}

impl crate::json::ToJson for QueryImpact {
    fn write(&self, out: &mut crate::json::Writer) {
        out.message(|out| {
            out.field("totalBytesInTimeRange", &self.total_bytes_in_time_range);
            out.field("totalQueriedSeries", &self.total_queried_series);
            out.field("deduplicationNeeded", &self.deduplication_needed);
        });
    }
}
