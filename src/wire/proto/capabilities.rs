//! Generated from `proto/capabilities/v1/feature_flags.proto` by `UPDATE_EXPECT=1 cargo test --test integration protos`: do not edit.

#[derive(Clone, Copy, PartialEq, Eq, Hash, ::prost::Message)]
pub struct GetFeatureFlagsRequest {}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct GetFeatureFlagsResponse {
    #[prost(message, repeated, tag = "1")]
    pub feature_flags: ::prost::alloc::vec::Vec<FeatureFlag>,
}
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct FeatureFlag {
    #[prost(string, tag = "1")]
    pub name: ::prost::alloc::string::String,
    #[prost(bool, tag = "2")]
    pub enabled: bool,
    #[prost(string, optional, tag = "3")]
    pub description: ::core::option::Option<::prost::alloc::string::String>,
    #[prost(string, optional, tag = "4")]
    pub documentation_url: ::core::option::Option<::prost::alloc::string::String>,
}
/// The calls of `capabilities.v1.FeatureFlagsService`.
pub trait FeatureFlagsService: Clone + Send + Sync + 'static {
    fn get_feature_flags(
        &self,
        call: crate::service::Call<GetFeatureFlagsRequest>,
    ) -> impl Future<
        Output = crate::service::CallResult<GetFeatureFlagsResponse>,
    > + Send;
    fn route(&self, routes: &mut impl crate::service::Routes) {
        let service = self.clone();
        routes
            .unary(
                "capabilities.v1.FeatureFlagsService/GetFeatureFlags",
                move |call| {
                    let service = service.clone();
                    async move { service.get_feature_flags(call).await }
                },
            );
    }
}

impl crate::json::ToJson for GetFeatureFlagsRequest {
    fn write(&self, out: &mut crate::json::Writer) {
        out.message(|_| {});
    }
}

impl crate::json::Fields for GetFeatureFlagsRequest {
    const NAMES: &'static [[&'static str; 2]] = &[];

    fn read_field<'de, A: serde::de::MapAccess<'de>>(&mut self, index: usize, _: &mut A) -> Result<(), A::Error> {
        match index {
            _ => Ok(()),
        }
    }
}

impl crate::json::ToJson for GetFeatureFlagsResponse {
    fn write(&self, out: &mut crate::json::Writer) {
        out.message(|out| {
            out.field("featureFlags", &self.feature_flags);
        });
    }
}

impl crate::json::ToJson for FeatureFlag {
    fn write(&self, out: &mut crate::json::Writer) {
        out.message(|out| {
            out.field("name", &self.name);
            out.field("enabled", &self.enabled);
            out.field("description", &self.description);
            out.field("documentationUrl", &self.documentation_url);
        });
    }
}
