//! OTLP's messages, from the crate `opentelemetry-proto` with prost's encoding.
//!
//! The crate has a module for each package of OTLP. This module exports the messages that occur in requests with
//! profiles and in the responses. Their JSON form is in `json`, and `weight` computes the memory that they need.

pub use opentelemetry_proto::tonic::collector::profiles::v1development::{
    ExportProfilesPartialSuccess, ExportProfilesServiceRequest, ExportProfilesServiceResponse,
};
pub use opentelemetry_proto::tonic::common::v1::{AnyValue, ArrayValue, InstrumentationScope, KeyValue, any_value};
pub use opentelemetry_proto::tonic::profiles::v1development::{
    Function, KeyValueAndUnit, Line, Link, Location, Mapping, Profile, ProfilesDictionary, ResourceProfiles, Sample,
    ScopeProfiles, Stack, ValueType,
};
pub use opentelemetry_proto::tonic::resource::v1::Resource;
