//! Generated from `proto/settings/v1/setting.proto` by `UPDATE_EXPECT=1 cargo test --test integration protos`: do not edit.

#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct Setting {
    #[prost(string, tag = "1")]
    pub name: ::prost::alloc::string::String,
    #[prost(string, tag = "2")]
    pub value: ::prost::alloc::string::String,
    /// Unix time in milliseconds; an older one does not replace a newer one.
    #[prost(int64, tag = "3")]
    pub modified_at: i64,
}
#[derive(Clone, Copy, PartialEq, Eq, Hash, ::prost::Message)]
pub struct GetSettingsRequest {}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct GetSettingsResponse {
    #[prost(message, repeated, tag = "1")]
    pub settings: ::prost::alloc::vec::Vec<Setting>,
}
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct SetSettingsRequest {
    #[prost(message, optional, tag = "1")]
    pub setting: ::core::option::Option<Setting>,
}
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct SetSettingsResponse {
    #[prost(message, optional, tag = "1")]
    pub setting: ::core::option::Option<Setting>,
}
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct DeleteSettingsRequest {
    #[prost(string, tag = "1")]
    pub name: ::prost::alloc::string::String,
}
#[derive(Clone, Copy, PartialEq, Eq, Hash, ::prost::Message)]
pub struct DeleteSettingsResponse {}
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct GetRecordingRuleRequest {
    #[prost(string, tag = "1")]
    pub id: ::prost::alloc::string::String,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct GetRecordingRuleResponse {
    #[prost(message, optional, tag = "1")]
    pub rule: ::core::option::Option<RecordingRule>,
}
#[derive(Clone, Copy, PartialEq, Eq, Hash, ::prost::Message)]
pub struct ListRecordingRulesRequest {}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct ListRecordingRulesResponse {
    #[prost(message, repeated, tag = "1")]
    pub rules: ::prost::alloc::vec::Vec<RecordingRule>,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct UpsertRecordingRuleRequest {
    /// Empty for a new rule.
    #[prost(string, tag = "1")]
    pub id: ::prost::alloc::string::String,
    #[prost(string, tag = "2")]
    pub metric_name: ::prost::alloc::string::String,
    /// Selectors in braces; one of them names the profile type.
    #[prost(string, repeated, tag = "3")]
    pub matchers: ::prost::alloc::vec::Vec<::prost::alloc::string::String>,
    #[prost(string, repeated, tag = "4")]
    pub group_by: ::prost::alloc::vec::Vec<::prost::alloc::string::String>,
    #[prost(message, repeated, tag = "5")]
    pub external_labels: ::prost::alloc::vec::Vec<crate::proto::types::LabelPair>,
    /// That of the rule which this one replaces.
    #[prost(int64, tag = "6")]
    pub generation: i64,
    #[prost(message, optional, tag = "7")]
    pub stacktrace_filter: ::core::option::Option<StacktraceFilter>,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct UpsertRecordingRuleResponse {
    #[prost(message, optional, tag = "1")]
    pub rule: ::core::option::Option<RecordingRule>,
}
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct DeleteRecordingRuleRequest {
    #[prost(string, tag = "1")]
    pub id: ::prost::alloc::string::String,
}
#[derive(Clone, Copy, PartialEq, Eq, Hash, ::prost::Message)]
pub struct DeleteRecordingRuleResponse {}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct RecordingRule {
    #[prost(string, tag = "1")]
    pub id: ::prost::alloc::string::String,
    #[prost(string, tag = "2")]
    pub metric_name: ::prost::alloc::string::String,
    #[prost(string, tag = "3")]
    pub profile_type: ::prost::alloc::string::String,
    #[prost(string, repeated, tag = "4")]
    pub matchers: ::prost::alloc::vec::Vec<::prost::alloc::string::String>,
    #[prost(string, repeated, tag = "5")]
    pub group_by: ::prost::alloc::vec::Vec<::prost::alloc::string::String>,
    #[prost(message, repeated, tag = "6")]
    pub external_labels: ::prost::alloc::vec::Vec<crate::proto::types::LabelPair>,
    /// Counts changes of the rule.
    #[prost(int64, tag = "7")]
    pub generation: i64,
    #[prost(message, optional, tag = "8")]
    pub stacktrace_filter: ::core::option::Option<StacktraceFilter>,
    /// The rule stands in the configuration and cannot be changed by calls.
    #[prost(bool, tag = "9")]
    pub provisioned: bool,
}
/// Of all stacks only those count that have something.
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct StacktraceFilter {
    #[prost(message, optional, tag = "1")]
    pub function_name: ::core::option::Option<StacktraceFilterFunctionName>,
}
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct StacktraceFilterFunctionName {
    #[prost(string, tag = "1")]
    pub function_name: ::prost::alloc::string::String,
    #[prost(enumeration = "MetricType", tag = "2")]
    pub metric_type: i32,
}
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, ::prost::Enumeration)]
#[repr(i32)]
pub enum MetricType {
    Total = 0,
}
impl MetricType {
    /// String value of the enum field names used in the ProtoBuf definition.
    ///
    /// The values are not transformed in any way and thus are considered stable
    /// (if the ProtoBuf definition does not change) and safe for programmatic use.
    pub fn as_str_name(&self) -> &'static str {
        match self {
            Self::Total => "TOTAL",
        }
    }
    /// Creates an enum from field names used in the ProtoBuf definition.
    pub fn from_str_name(value: &str) -> ::core::option::Option<Self> {
        match value {
            "TOTAL" => Some(Self::Total),
            _ => None,
        }
    }
}
/// The calls of `settings.v1.SettingsService`.
pub trait SettingsService: Clone + Send + Sync + 'static {
    fn get(
        &self,
        call: crate::service::Call<GetSettingsRequest>,
    ) -> impl Future<Output = crate::service::CallResult<GetSettingsResponse>> + Send;
    fn set(
        &self,
        call: crate::service::Call<SetSettingsRequest>,
    ) -> impl Future<Output = crate::service::CallResult<SetSettingsResponse>> + Send;
    fn delete(
        &self,
        call: crate::service::Call<DeleteSettingsRequest>,
    ) -> impl Future<Output = crate::service::CallResult<DeleteSettingsResponse>> + Send;
    fn route(&self, routes: &mut impl crate::service::Routes) {
        let service = self.clone();
        routes
            .unary(
                "settings.v1.SettingsService/Get",
                move |call| {
                    let service = service.clone();
                    async move { service.get(call).await }
                },
            );
        let service = self.clone();
        routes
            .unary(
                "settings.v1.SettingsService/Set",
                move |call| {
                    let service = service.clone();
                    async move { service.set(call).await }
                },
            );
        let service = self.clone();
        routes
            .unary(
                "settings.v1.SettingsService/Delete",
                move |call| {
                    let service = service.clone();
                    async move { service.delete(call).await }
                },
            );
    }
}
/// The calls of `settings.v1.RecordingRulesService`.
pub trait RecordingRulesService: Clone + Send + Sync + 'static {
    fn get_recording_rule(
        &self,
        call: crate::service::Call<GetRecordingRuleRequest>,
    ) -> impl Future<
        Output = crate::service::CallResult<GetRecordingRuleResponse>,
    > + Send;
    fn list_recording_rules(
        &self,
        call: crate::service::Call<ListRecordingRulesRequest>,
    ) -> impl Future<
        Output = crate::service::CallResult<ListRecordingRulesResponse>,
    > + Send;
    fn upsert_recording_rule(
        &self,
        call: crate::service::Call<UpsertRecordingRuleRequest>,
    ) -> impl Future<
        Output = crate::service::CallResult<UpsertRecordingRuleResponse>,
    > + Send;
    fn delete_recording_rule(
        &self,
        call: crate::service::Call<DeleteRecordingRuleRequest>,
    ) -> impl Future<
        Output = crate::service::CallResult<DeleteRecordingRuleResponse>,
    > + Send;
    fn route(&self, routes: &mut impl crate::service::Routes) {
        let service = self.clone();
        routes
            .unary(
                "settings.v1.RecordingRulesService/GetRecordingRule",
                move |call| {
                    let service = service.clone();
                    async move { service.get_recording_rule(call).await }
                },
            );
        let service = self.clone();
        routes
            .unary(
                "settings.v1.RecordingRulesService/ListRecordingRules",
                move |call| {
                    let service = service.clone();
                    async move { service.list_recording_rules(call).await }
                },
            );
        let service = self.clone();
        routes
            .unary(
                "settings.v1.RecordingRulesService/UpsertRecordingRule",
                move |call| {
                    let service = service.clone();
                    async move { service.upsert_recording_rule(call).await }
                },
            );
        let service = self.clone();
        routes
            .unary(
                "settings.v1.RecordingRulesService/DeleteRecordingRule",
                move |call| {
                    let service = service.clone();
                    async move { service.delete_recording_rule(call).await }
                },
            );
    }
}

impl crate::json::ToJson for Setting {
    fn write(&self, out: &mut crate::json::Writer) {
        out.message(|out| {
            out.field("name", &self.name);
            out.field("value", &self.value);
            out.field("modifiedAt", &self.modified_at);
        });
    }
}

impl crate::json::Fields for Setting {
    const NAMES: &'static [[&'static str; 2]] = &[["name", "name"], ["value", "value"], ["modifiedAt", "modifiedAt"]];

    fn read_field<'de, A: serde::de::MapAccess<'de>>(&mut self, index: usize, map: &mut A) -> Result<(), A::Error> {
        match index {
            0 => map.next_value_seed(crate::json::Field(&mut self.name)),
            1 => map.next_value_seed(crate::json::Field(&mut self.value)),
            2 => map.next_value_seed(crate::json::Field(&mut self.modified_at)),
            _ => Ok(()),
        }
    }
}

impl crate::json::ToJson for GetSettingsRequest {
    fn write(&self, out: &mut crate::json::Writer) {
        out.message(|_| {});
    }
}

impl crate::json::Fields for GetSettingsRequest {
    const NAMES: &'static [[&'static str; 2]] = &[];

    fn read_field<'de, A: serde::de::MapAccess<'de>>(&mut self, index: usize, _: &mut A) -> Result<(), A::Error> {
        match index {
            _ => Ok(()),
        }
    }
}

impl crate::json::ToJson for GetSettingsResponse {
    fn write(&self, out: &mut crate::json::Writer) {
        out.message(|out| {
            out.field("settings", &self.settings);
        });
    }
}

impl crate::json::ToJson for SetSettingsRequest {
    fn write(&self, out: &mut crate::json::Writer) {
        out.message(|out| {
            out.field("setting", &self.setting);
        });
    }
}

impl crate::json::Fields for SetSettingsRequest {
    const NAMES: &'static [[&'static str; 2]] = &[["setting", "setting"]];

    fn read_field<'de, A: serde::de::MapAccess<'de>>(&mut self, index: usize, map: &mut A) -> Result<(), A::Error> {
        match index {
            0 => map.next_value_seed(crate::json::Field(&mut self.setting)),
            _ => Ok(()),
        }
    }
}

impl crate::json::ToJson for SetSettingsResponse {
    fn write(&self, out: &mut crate::json::Writer) {
        out.message(|out| {
            out.field("setting", &self.setting);
        });
    }
}

impl crate::json::ToJson for DeleteSettingsRequest {
    fn write(&self, out: &mut crate::json::Writer) {
        out.message(|out| {
            out.field("name", &self.name);
        });
    }
}

impl crate::json::Fields for DeleteSettingsRequest {
    const NAMES: &'static [[&'static str; 2]] = &[["name", "name"]];

    fn read_field<'de, A: serde::de::MapAccess<'de>>(&mut self, index: usize, map: &mut A) -> Result<(), A::Error> {
        match index {
            0 => map.next_value_seed(crate::json::Field(&mut self.name)),
            _ => Ok(()),
        }
    }
}

impl crate::json::ToJson for DeleteSettingsResponse {
    fn write(&self, out: &mut crate::json::Writer) {
        out.message(|_| {});
    }
}

impl crate::json::ToJson for GetRecordingRuleRequest {
    fn write(&self, out: &mut crate::json::Writer) {
        out.message(|out| {
            out.field("id", &self.id);
        });
    }
}

impl crate::json::Fields for GetRecordingRuleRequest {
    const NAMES: &'static [[&'static str; 2]] = &[["id", "id"]];

    fn read_field<'de, A: serde::de::MapAccess<'de>>(&mut self, index: usize, map: &mut A) -> Result<(), A::Error> {
        match index {
            0 => map.next_value_seed(crate::json::Field(&mut self.id)),
            _ => Ok(()),
        }
    }
}

impl crate::json::ToJson for GetRecordingRuleResponse {
    fn write(&self, out: &mut crate::json::Writer) {
        out.message(|out| {
            out.field("rule", &self.rule);
        });
    }
}

impl crate::json::ToJson for ListRecordingRulesRequest {
    fn write(&self, out: &mut crate::json::Writer) {
        out.message(|_| {});
    }
}

impl crate::json::Fields for ListRecordingRulesRequest {
    const NAMES: &'static [[&'static str; 2]] = &[];

    fn read_field<'de, A: serde::de::MapAccess<'de>>(&mut self, index: usize, _: &mut A) -> Result<(), A::Error> {
        match index {
            _ => Ok(()),
        }
    }
}

impl crate::json::ToJson for ListRecordingRulesResponse {
    fn write(&self, out: &mut crate::json::Writer) {
        out.message(|out| {
            out.field("rules", &self.rules);
        });
    }
}

impl crate::json::ToJson for UpsertRecordingRuleRequest {
    fn write(&self, out: &mut crate::json::Writer) {
        out.message(|out| {
            out.field("id", &self.id);
            out.field("metricName", &self.metric_name);
            out.field("matchers", &self.matchers);
            out.field("groupBy", &self.group_by);
            out.field("externalLabels", &self.external_labels);
            out.field("generation", &self.generation);
            out.field("stacktraceFilter", &self.stacktrace_filter);
        });
    }
}

impl crate::json::Fields for UpsertRecordingRuleRequest {
    const NAMES: &'static [[&'static str; 2]] = &[["id", "id"], ["metricName", "metric_name"], ["matchers", "matchers"], ["groupBy", "group_by"], ["externalLabels", "external_labels"], ["generation", "generation"], ["stacktraceFilter", "stacktrace_filter"]];

    fn read_field<'de, A: serde::de::MapAccess<'de>>(&mut self, index: usize, map: &mut A) -> Result<(), A::Error> {
        match index {
            0 => map.next_value_seed(crate::json::Field(&mut self.id)),
            1 => map.next_value_seed(crate::json::Field(&mut self.metric_name)),
            2 => map.next_value_seed(crate::json::Field(&mut self.matchers)),
            3 => map.next_value_seed(crate::json::Field(&mut self.group_by)),
            4 => map.next_value_seed(crate::json::Field(&mut self.external_labels)),
            5 => map.next_value_seed(crate::json::Field(&mut self.generation)),
            6 => map.next_value_seed(crate::json::Field(&mut self.stacktrace_filter)),
            _ => Ok(()),
        }
    }
}

impl crate::json::ToJson for UpsertRecordingRuleResponse {
    fn write(&self, out: &mut crate::json::Writer) {
        out.message(|out| {
            out.field("rule", &self.rule);
        });
    }
}

impl crate::json::ToJson for DeleteRecordingRuleRequest {
    fn write(&self, out: &mut crate::json::Writer) {
        out.message(|out| {
            out.field("id", &self.id);
        });
    }
}

impl crate::json::Fields for DeleteRecordingRuleRequest {
    const NAMES: &'static [[&'static str; 2]] = &[["id", "id"]];

    fn read_field<'de, A: serde::de::MapAccess<'de>>(&mut self, index: usize, map: &mut A) -> Result<(), A::Error> {
        match index {
            0 => map.next_value_seed(crate::json::Field(&mut self.id)),
            _ => Ok(()),
        }
    }
}

impl crate::json::ToJson for DeleteRecordingRuleResponse {
    fn write(&self, out: &mut crate::json::Writer) {
        out.message(|_| {});
    }
}

impl crate::json::ToJson for RecordingRule {
    fn write(&self, out: &mut crate::json::Writer) {
        out.message(|out| {
            out.field("id", &self.id);
            out.field("metricName", &self.metric_name);
            out.field("profileType", &self.profile_type);
            out.field("matchers", &self.matchers);
            out.field("groupBy", &self.group_by);
            out.field("externalLabels", &self.external_labels);
            out.field("generation", &self.generation);
            out.field("stacktraceFilter", &self.stacktrace_filter);
            out.field("provisioned", &self.provisioned);
        });
    }
}

impl crate::json::ToJson for StacktraceFilter {
    fn write(&self, out: &mut crate::json::Writer) {
        out.message(|out| {
            out.field("functionName", &self.function_name);
        });
    }
}

impl crate::json::Fields for StacktraceFilter {
    const NAMES: &'static [[&'static str; 2]] = &[["functionName", "function_name"]];

    fn read_field<'de, A: serde::de::MapAccess<'de>>(&mut self, index: usize, map: &mut A) -> Result<(), A::Error> {
        match index {
            0 => map.next_value_seed(crate::json::Field(&mut self.function_name)),
            _ => Ok(()),
        }
    }
}

impl crate::json::ToJson for StacktraceFilterFunctionName {
    fn write(&self, out: &mut crate::json::Writer) {
        out.message(|out| {
            out.field("functionName", &self.function_name);
            out.field("metricType", &Some(self.metric_type).filter(|value| *value != 0).map(|value| crate::proto::settings::MetricType::try_from(value).map(|value| value.as_str_name()).map_err(|_| value)));
        });
    }
}

impl crate::json::Fields for StacktraceFilterFunctionName {
    const NAMES: &'static [[&'static str; 2]] = &[["functionName", "function_name"], ["metricType", "metric_type"]];

    fn read_field<'de, A: serde::de::MapAccess<'de>>(&mut self, index: usize, map: &mut A) -> Result<(), A::Error> {
        match index {
            0 => map.next_value_seed(crate::json::Field(&mut self.function_name)),
            1 => map.next_value_seed(crate::json::Enum(&mut self.metric_type, |name| crate::proto::settings::MetricType::from_str_name(name).map(Into::into))),
            _ => Ok(()),
        }
    }
}
