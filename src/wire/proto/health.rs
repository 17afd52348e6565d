//! Generated from `proto/health/v1/health.proto` by `UPDATE_EXPECT=1 cargo test --test integration protos`: do not edit.

#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct HealthCheckRequest {
    /// Empty for the server as a whole.
    #[prost(string, tag = "1")]
    pub service: ::prost::alloc::string::String,
}
#[derive(Clone, Copy, PartialEq, Eq, Hash, ::prost::Message)]
pub struct HealthCheckResponse {
    #[prost(enumeration = "ServingStatus", tag = "1")]
    pub status: i32,
}
/// `HealthCheckResponse.ServingStatus` in the file of gRPC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, ::prost::Enumeration)]
#[repr(i32)]
pub enum ServingStatus {
    Unknown = 0,
    Serving = 1,
    NotServing = 2,
    ServiceUnknown = 3,
}
impl ServingStatus {
    /// String value of the enum field names used in the ProtoBuf definition.
    ///
    /// The values are not transformed in any way and thus are considered stable
    /// (if the ProtoBuf definition does not change) and safe for programmatic use.
    pub fn as_str_name(&self) -> &'static str {
        match self {
            Self::Unknown => "UNKNOWN",
            Self::Serving => "SERVING",
            Self::NotServing => "NOT_SERVING",
            Self::ServiceUnknown => "SERVICE_UNKNOWN",
        }
    }
    /// Creates an enum from field names used in the ProtoBuf definition.
    pub fn from_str_name(value: &str) -> ::core::option::Option<Self> {
        match value {
            "UNKNOWN" => Some(Self::Unknown),
            "SERVING" => Some(Self::Serving),
            "NOT_SERVING" => Some(Self::NotServing),
            "SERVICE_UNKNOWN" => Some(Self::ServiceUnknown),
            _ => None,
        }
    }
}
/// The calls of `grpc.health.v1.Health`.
pub trait Health: Clone + Send + Sync + 'static {
    fn check(
        &self,
        call: crate::service::Call<HealthCheckRequest>,
    ) -> impl Future<Output = crate::service::CallResult<HealthCheckResponse>> + Send;
    fn route(&self, routes: &mut impl crate::service::Routes) {
        let service = self.clone();
        routes
            .unary(
                "grpc.health.v1.Health/Check",
                move |call| {
                    let service = service.clone();
                    async move { service.check(call).await }
                },
            );
    }
}

impl crate::json::ToJson for HealthCheckRequest {
    fn write(&self, out: &mut crate::json::Writer) {
        out.message(|out| {
            out.field("service", &self.service);
        });
    }
}

impl crate::json::Fields for HealthCheckRequest {
    const NAMES: &'static [[&'static str; 2]] = &[["service", "service"]];

    fn read_field<'de, A: serde::de::MapAccess<'de>>(&mut self, index: usize, map: &mut A) -> Result<(), A::Error> {
        match index {
            0 => map.next_value_seed(crate::json::Field(&mut self.service)),
            _ => Ok(()),
        }
    }
}

impl crate::json::ToJson for HealthCheckResponse {
    fn write(&self, out: &mut crate::json::Writer) {
        out.message(|out| {
            out.field("status", &Some(self.status).filter(|value| *value != 0).map(|value| crate::proto::health::ServingStatus::try_from(value).map(|value| value.as_str_name()).map_err(|_| value)));
        });
    }
}
