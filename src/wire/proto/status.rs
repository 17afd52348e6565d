//! Generated from `proto/status/v1/status.proto` by `UPDATE_EXPECT=1 cargo test --test integration protos`: do not edit.

#[derive(Clone, Copy, PartialEq, Eq, Hash, ::prost::Message)]
pub struct GetBuildInfoRequest {}
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct GetBuildInfoResponse {
    #[prost(string, tag = "1")]
    pub status: ::prost::alloc::string::String,
    #[prost(message, optional, tag = "2")]
    pub data: ::core::option::Option<GetBuildInfoData>,
}
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct GetBuildInfoData {
    #[prost(string, tag = "1")]
    pub version: ::prost::alloc::string::String,
    #[prost(string, tag = "2")]
    pub revision: ::prost::alloc::string::String,
    #[prost(string, tag = "3")]
    pub branch: ::prost::alloc::string::String,
    #[prost(string, tag = "4")]
    pub build_user: ::prost::alloc::string::String,
    #[prost(string, tag = "5")]
    pub build_date: ::prost::alloc::string::String,
    #[prost(string, tag = "6")]
    pub go_version: ::prost::alloc::string::String,
}
#[derive(Clone, Copy, PartialEq, Eq, Hash, ::prost::Message)]
pub struct GetConfigRequest {}
/// The same on the wire as `google.api.HttpBody`.
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct HttpBody {
    #[prost(string, tag = "1")]
    pub content_type: ::prost::alloc::string::String,
    #[prost(bytes = "bytes", tag = "2")]
    pub data: ::prost::bytes::Bytes,
}
/// The calls of `status.v1.StatusService`.
pub trait StatusService: Clone + Send + Sync + 'static {
    fn get_build_info(
        &self,
        call: crate::service::Call<GetBuildInfoRequest>,
    ) -> impl Future<Output = crate::service::CallResult<GetBuildInfoResponse>> + Send;
    fn get_config(
        &self,
        call: crate::service::Call<GetConfigRequest>,
    ) -> impl Future<Output = crate::service::CallResult<HttpBody>> + Send;
    fn get_diff_config(
        &self,
        call: crate::service::Call<GetConfigRequest>,
    ) -> impl Future<Output = crate::service::CallResult<HttpBody>> + Send;
    fn get_default_config(
        &self,
        call: crate::service::Call<GetConfigRequest>,
    ) -> impl Future<Output = crate::service::CallResult<HttpBody>> + Send;
    fn route(&self, routes: &mut impl crate::service::Routes) {
        let service = self.clone();
        routes
            .unary(
                "status.v1.StatusService/GetBuildInfo",
                move |call| {
                    let service = service.clone();
                    async move { service.get_build_info(call).await }
                },
            );
        let service = self.clone();
        routes
            .unary(
                "status.v1.StatusService/GetConfig",
                move |call| {
                    let service = service.clone();
                    async move { service.get_config(call).await }
                },
            );
        let service = self.clone();
        routes
            .unary(
                "status.v1.StatusService/GetDiffConfig",
                move |call| {
                    let service = service.clone();
                    async move { service.get_diff_config(call).await }
                },
            );
        let service = self.clone();
        routes
            .unary(
                "status.v1.StatusService/GetDefaultConfig",
                move |call| {
                    let service = service.clone();
                    async move { service.get_default_config(call).await }
                },
            );
    }
}

impl crate::json::ToJson for GetBuildInfoRequest {
    fn write(&self, out: &mut crate::json::Writer) {
        out.message(|_| {});
    }
}

impl crate::json::Fields for GetBuildInfoRequest {
    const NAMES: &'static [[&'static str; 2]] = &[];

    fn read_field<'de, A: serde::de::MapAccess<'de>>(&mut self, index: usize, _: &mut A) -> Result<(), A::Error> {
        match index {
            _ => Ok(()),
        }
    }
}

impl crate::json::ToJson for GetBuildInfoResponse {
    fn write(&self, out: &mut crate::json::Writer) {
        out.message(|out| {
            out.field("status", &self.status);
            out.field("data", &self.data);
        });
    }
}

impl crate::json::ToJson for GetBuildInfoData {
    fn write(&self, out: &mut crate::json::Writer) {
        out.message(|out| {
            out.field("version", &self.version);
            out.field("revision", &self.revision);
            out.field("branch", &self.branch);
            out.field("buildUser", &self.build_user);
            out.field("buildDate", &self.build_date);
            out.field("goVersion", &self.go_version);
        });
    }
}

impl crate::json::ToJson for GetConfigRequest {
    fn write(&self, out: &mut crate::json::Writer) {
        out.message(|_| {});
    }
}

impl crate::json::Fields for GetConfigRequest {
    const NAMES: &'static [[&'static str; 2]] = &[];

    fn read_field<'de, A: serde::de::MapAccess<'de>>(&mut self, index: usize, _: &mut A) -> Result<(), A::Error> {
        match index {
            _ => Ok(()),
        }
    }
}

impl crate::json::ToJson for HttpBody {
    fn write(&self, out: &mut crate::json::Writer) {
        out.message(|out| {
            out.field("contentType", &self.content_type);
            out.field("data", &self.data);
        });
    }
}
