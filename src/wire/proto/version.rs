//! Generated from `proto/version/v1/version.proto` by `UPDATE_EXPECT=1 cargo test --test integration protos`: do not edit.

#[derive(Clone, Copy, PartialEq, Eq, Hash, ::prost::Message)]
pub struct VersionRequest {}
#[derive(Clone, Copy, PartialEq, Eq, Hash, ::prost::Message)]
pub struct VersionResponse {
    #[prost(uint64, tag = "1")]
    pub querier_api: u64,
}
/// The calls of `version.v1.Version`.
pub trait Version: Clone + Send + Sync + 'static {
    fn version(
        &self,
        call: crate::service::Call<VersionRequest>,
    ) -> impl Future<Output = crate::service::CallResult<VersionResponse>> + Send;
    fn route(&self, routes: &mut impl crate::service::Routes) {
        let service = self.clone();
        routes
            .unary(
                "version.v1.Version/Version",
                move |call| {
                    let service = service.clone();
                    async move { service.version(call).await }
                },
            );
    }
}

impl crate::json::ToJson for VersionRequest {
    fn write(&self, out: &mut crate::json::Writer) {
        out.message(|_| {});
    }
}

impl crate::json::Fields for VersionRequest {
    const NAMES: &'static [[&'static str; 2]] = &[];

    fn read_field<'de, A: serde::de::MapAccess<'de>>(&mut self, index: usize, _: &mut A) -> Result<(), A::Error> {
        match index {
            _ => Ok(()),
        }
    }
}

impl crate::json::ToJson for VersionResponse {
    fn write(&self, out: &mut crate::json::Writer) {
        out.message(|out| {
            out.field("QuerierAPI", &self.querier_api);
        });
    }
}
