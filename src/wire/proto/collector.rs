//! Generated from `proto/collector/v1/collector.proto` by `UPDATE_EXPECT=1 cargo test --test integration protos`: do not edit.

#[derive(Clone, PartialEq, ::prost::Message)]
pub struct GetConfigRequest {
    #[prost(string, tag = "1")]
    pub id: ::prost::alloc::string::String,
    /// What older collectors sent in the place of `local_attributes`.
    #[prost(map = "string, string", tag = "2")]
    pub attributes: ::std::collections::HashMap<
        ::prost::alloc::string::String,
        ::prost::alloc::string::String,
    >,
    /// The hash that came with the last answer: the server then need not send the same again.
    #[prost(string, tag = "3")]
    pub hash: ::prost::alloc::string::String,
    #[prost(map = "string, string", tag = "4")]
    pub local_attributes: ::std::collections::HashMap<
        ::prost::alloc::string::String,
        ::prost::alloc::string::String,
    >,
    /// Only when it is another than the last one sent.
    #[prost(message, optional, tag = "5")]
    pub remote_config_status: ::core::option::Option<RemoteConfigStatus>,
}
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct RemoteConfigStatus {
    #[prost(enumeration = "RemoteConfigStatuses", tag = "1")]
    pub status: i32,
    /// Why it is FAILED.
    #[prost(string, tag = "2")]
    pub error_message: ::prost::alloc::string::String,
}
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct GetConfigResponse {
    /// The whole configuration, in the collector's language.
    #[prost(string, tag = "1")]
    pub content: ::prost::alloc::string::String,
    #[prost(string, tag = "2")]
    pub hash: ::prost::alloc::string::String,
    /// Nothing else is said: what the collector has is right.
    #[prost(bool, tag = "3")]
    pub not_modified: bool,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct RegisterCollectorRequest {
    #[prost(string, tag = "1")]
    pub id: ::prost::alloc::string::String,
    /// What older collectors sent in the place of `local_attributes`.
    #[prost(map = "string, string", tag = "2")]
    pub attributes: ::std::collections::HashMap<
        ::prost::alloc::string::String,
        ::prost::alloc::string::String,
    >,
    #[prost(string, tag = "3")]
    pub name: ::prost::alloc::string::String,
    #[prost(map = "string, string", tag = "4")]
    pub local_attributes: ::std::collections::HashMap<
        ::prost::alloc::string::String,
        ::prost::alloc::string::String,
    >,
}
#[derive(Clone, Copy, PartialEq, Eq, Hash, ::prost::Message)]
pub struct RegisterCollectorResponse {}
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct UnregisterCollectorRequest {
    #[prost(string, tag = "1")]
    pub id: ::prost::alloc::string::String,
}
#[derive(Clone, Copy, PartialEq, Eq, Hash, ::prost::Message)]
pub struct UnregisterCollectorResponse {}
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, ::prost::Enumeration)]
#[repr(i32)]
pub enum RemoteConfigStatuses {
    Unset = 0,
    Applied = 1,
    Applying = 2,
    Failed = 3,
}
impl RemoteConfigStatuses {
    /// String value of the enum field names used in the ProtoBuf definition.
    ///
    /// The values are not transformed in any way and thus are considered stable
    /// (if the ProtoBuf definition does not change) and safe for programmatic use.
    pub fn as_str_name(&self) -> &'static str {
        match self {
            Self::Unset => "RemoteConfigStatuses_UNSET",
            Self::Applied => "RemoteConfigStatuses_APPLIED",
            Self::Applying => "RemoteConfigStatuses_APPLYING",
            Self::Failed => "RemoteConfigStatuses_FAILED",
        }
    }
    /// Creates an enum from field names used in the ProtoBuf definition.
    pub fn from_str_name(value: &str) -> ::core::option::Option<Self> {
        match value {
            "RemoteConfigStatuses_UNSET" => Some(Self::Unset),
            "RemoteConfigStatuses_APPLIED" => Some(Self::Applied),
            "RemoteConfigStatuses_APPLYING" => Some(Self::Applying),
            "RemoteConfigStatuses_FAILED" => Some(Self::Failed),
            _ => None,
        }
    }
}
