//! Generated from `proto/push/v1/push.proto` by `UPDATE_EXPECT=1 cargo test --test integration protos`: do not edit.
//!
//! The messages of one package, as prost makes them.

#[derive(Clone, PartialEq, ::prost::Message)]
pub struct PushRequest {
    #[prost(message, repeated, tag = "1")]
    pub series: ::prost::alloc::vec::Vec<RawProfileSeries>,
}
#[derive(Clone, Copy, PartialEq, Eq, Hash, ::prost::Message)]
pub struct PushResponse {}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct RawProfileSeries {
    /// `__name__` and `service_name` are expected among them.
    #[prost(message, repeated, tag = "1")]
    pub labels: ::prost::alloc::vec::Vec<crate::wire::proto::types::LabelPair>,
    #[prost(message, repeated, tag = "2")]
    pub samples: ::prost::alloc::vec::Vec<RawSample>,
    /// Not taken from clients.
    #[prost(message, repeated, tag = "3")]
    pub annotations: ::prost::alloc::vec::Vec<ProfileAnnotation>,
}
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct RawSample {
    /// pprof, compressed by gzip or not.
    #[prost(bytes = "bytes", tag = "1")]
    pub raw_profile: ::prost::bytes::Bytes,
    /// A UUID that the sender may give.
    #[prost(string, tag = "2")]
    pub id: ::prost::alloc::string::String,
}
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct ProfileAnnotation {
    #[prost(string, tag = "1")]
    pub key: ::prost::alloc::string::String,
    #[prost(string, tag = "2")]
    pub value: ::prost::alloc::string::String,
}

include!("push_json.rs");
