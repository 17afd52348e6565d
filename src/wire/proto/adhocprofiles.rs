//! Generated from `proto/adhocprofiles/v1/adhocprofiles.proto` by `UPDATE_EXPECT=1 cargo test --test integration protos`: do not edit.

#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct AdHocProfilesUploadRequest {
    #[prost(string, tag = "1")]
    pub name: ::prost::alloc::string::String,
    /// The file in base64.
    #[prost(string, tag = "2")]
    pub profile: ::prost::alloc::string::String,
    #[prost(int64, optional, tag = "3")]
    pub max_nodes: ::core::option::Option<i64>,
}
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct AdHocProfilesGetRequest {
    #[prost(string, tag = "1")]
    pub id: ::prost::alloc::string::String,
    /// One of profile_types; the server chooses when it is left out.
    #[prost(string, optional, tag = "2")]
    pub profile_type: ::core::option::Option<::prost::alloc::string::String>,
    #[prost(int64, optional, tag = "3")]
    pub max_nodes: ::core::option::Option<i64>,
}
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct AdHocProfilesGetResponse {
    #[prost(string, tag = "1")]
    pub id: ::prost::alloc::string::String,
    #[prost(string, tag = "2")]
    pub name: ::prost::alloc::string::String,
    /// Unix time in milliseconds.
    #[prost(int64, tag = "3")]
    pub uploaded_at: i64,
    #[prost(string, tag = "4")]
    pub profile_type: ::prost::alloc::string::String,
    #[prost(string, repeated, tag = "5")]
    pub profile_types: ::prost::alloc::vec::Vec<::prost::alloc::string::String>,
    /// A flame graph in the JSON of the plain routes.
    #[prost(string, tag = "6")]
    pub flamebearer_profile: ::prost::alloc::string::String,
}
#[derive(Clone, Copy, PartialEq, Eq, Hash, ::prost::Message)]
pub struct AdHocProfilesListRequest {}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct AdHocProfilesListResponse {
    #[prost(message, repeated, tag = "1")]
    pub profiles: ::prost::alloc::vec::Vec<AdHocProfilesProfileMetadata>,
}
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct AdHocProfilesProfileMetadata {
    #[prost(string, tag = "1")]
    pub id: ::prost::alloc::string::String,
    #[prost(string, tag = "2")]
    pub name: ::prost::alloc::string::String,
    #[prost(int64, tag = "3")]
    pub uploaded_at: i64,
}
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct AdHocProfilesDiffRequest {
    #[prost(string, tag = "1")]
    pub left_id: ::prost::alloc::string::String,
    #[prost(string, tag = "2")]
    pub right_id: ::prost::alloc::string::String,
    #[prost(string, optional, tag = "3")]
    pub profile_type: ::core::option::Option<::prost::alloc::string::String>,
    #[prost(int64, optional, tag = "4")]
    pub max_nodes: ::core::option::Option<i64>,
}
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct AdHocProfilesDiffResponse {
    /// The types that both have.
    #[prost(string, repeated, tag = "1")]
    pub profile_types: ::prost::alloc::vec::Vec<::prost::alloc::string::String>,
    #[prost(string, tag = "2")]
    pub flamebearer_profile: ::prost::alloc::string::String,
}
/// The calls of `adhocprofiles.v1.AdHocProfileService`.
pub trait AdHocProfileService: Clone + Send + Sync + 'static {
    fn upload(
        &self,
        call: crate::service::Call<AdHocProfilesUploadRequest>,
    ) -> impl Future<
        Output = crate::service::CallResult<AdHocProfilesGetResponse>,
    > + Send;
    fn get(
        &self,
        call: crate::service::Call<AdHocProfilesGetRequest>,
    ) -> impl Future<
        Output = crate::service::CallResult<AdHocProfilesGetResponse>,
    > + Send;
    fn list(
        &self,
        call: crate::service::Call<AdHocProfilesListRequest>,
    ) -> impl Future<
        Output = crate::service::CallResult<AdHocProfilesListResponse>,
    > + Send;
    fn diff(
        &self,
        call: crate::service::Call<AdHocProfilesDiffRequest>,
    ) -> impl Future<
        Output = crate::service::CallResult<AdHocProfilesDiffResponse>,
    > + Send;
    fn route(&self, routes: &mut impl crate::service::Routes) {
        let service = self.clone();
        routes
            .unary(
                "adhocprofiles.v1.AdHocProfileService/Upload",
                move |call| {
                    let service = service.clone();
                    async move { service.upload(call).await }
                },
            );
        let service = self.clone();
        routes
            .unary(
                "adhocprofiles.v1.AdHocProfileService/Get",
                move |call| {
                    let service = service.clone();
                    async move { service.get(call).await }
                },
            );
        let service = self.clone();
        routes
            .unary(
                "adhocprofiles.v1.AdHocProfileService/List",
                move |call| {
                    let service = service.clone();
                    async move { service.list(call).await }
                },
            );
        let service = self.clone();
        routes
            .unary(
                "adhocprofiles.v1.AdHocProfileService/Diff",
                move |call| {
                    let service = service.clone();
                    async move { service.diff(call).await }
                },
            );
    }
}

impl crate::json::ToJson for AdHocProfilesUploadRequest {
    fn write(&self, out: &mut crate::json::Writer) {
        out.message(|out| {
            out.field("name", &self.name);
            out.field("profile", &self.profile);
            out.field("maxNodes", &self.max_nodes);
        });
    }
}

impl crate::json::Fields for AdHocProfilesUploadRequest {
    const NAMES: &'static [[&'static str; 2]] = &[["name", "name"], ["profile", "profile"], ["maxNodes", "max_nodes"]];

    fn read_field<'de, A: serde::de::MapAccess<'de>>(&mut self, index: usize, map: &mut A) -> Result<(), A::Error> {
        match index {
            0 => map.next_value_seed(crate::json::Field(&mut self.name)),
            1 => map.next_value_seed(crate::json::Field(&mut self.profile)),
            2 => map.next_value_seed(crate::json::Field(&mut self.max_nodes)),
            _ => Ok(()),
        }
    }
}

impl crate::json::ToJson for AdHocProfilesGetRequest {
    fn write(&self, out: &mut crate::json::Writer) {
        out.message(|out| {
            out.field("id", &self.id);
            out.field("profileType", &self.profile_type);
            out.field("maxNodes", &self.max_nodes);
        });
    }
}

impl crate::json::Fields for AdHocProfilesGetRequest {
    const NAMES: &'static [[&'static str; 2]] = &[["id", "id"], ["profileType", "profile_type"], ["maxNodes", "max_nodes"]];

    fn read_field<'de, A: serde::de::MapAccess<'de>>(&mut self, index: usize, map: &mut A) -> Result<(), A::Error> {
        match index {
            0 => map.next_value_seed(crate::json::Field(&mut self.id)),
            1 => map.next_value_seed(crate::json::Field(&mut self.profile_type)),
            2 => map.next_value_seed(crate::json::Field(&mut self.max_nodes)),
            _ => Ok(()),
        }
    }
}

impl crate::json::ToJson for AdHocProfilesGetResponse {
    fn write(&self, out: &mut crate::json::Writer) {
        out.message(|out| {
            out.field("id", &self.id);
            out.field("name", &self.name);
            out.field("uploadedAt", &self.uploaded_at);
            out.field("profileType", &self.profile_type);
            out.field("profileTypes", &self.profile_types);
            out.field("flamebearerProfile", &self.flamebearer_profile);
        });
    }
}

impl crate::json::ToJson for AdHocProfilesListRequest {
    fn write(&self, out: &mut crate::json::Writer) {
        out.message(|_| {});
    }
}

impl crate::json::Fields for AdHocProfilesListRequest {
    const NAMES: &'static [[&'static str; 2]] = &[];

    fn read_field<'de, A: serde::de::MapAccess<'de>>(&mut self, index: usize, _: &mut A) -> Result<(), A::Error> {
        match index {
            _ => Ok(()),
        }
    }
}

impl crate::json::ToJson for AdHocProfilesListResponse {
    fn write(&self, out: &mut crate::json::Writer) {
        out.message(|out| {
            out.field("profiles", &self.profiles);
        });
    }
}

impl crate::json::ToJson for AdHocProfilesProfileMetadata {
    fn write(&self, out: &mut crate::json::Writer) {
        out.message(|out| {
            out.field("id", &self.id);
            out.field("name", &self.name);
            out.field("uploadedAt", &self.uploaded_at);
        });
    }
}

impl crate::json::ToJson for AdHocProfilesDiffRequest {
    fn write(&self, out: &mut crate::json::Writer) {
        out.message(|out| {
            out.field("leftId", &self.left_id);
            out.field("rightId", &self.right_id);
            out.field("profileType", &self.profile_type);
            out.field("maxNodes", &self.max_nodes);
        });
    }
}

impl crate::json::Fields for AdHocProfilesDiffRequest {
    const NAMES: &'static [[&'static str; 2]] = &[["leftId", "left_id"], ["rightId", "right_id"], ["profileType", "profile_type"], ["maxNodes", "max_nodes"]];

    fn read_field<'de, A: serde::de::MapAccess<'de>>(&mut self, index: usize, map: &mut A) -> Result<(), A::Error> {
        match index {
            0 => map.next_value_seed(crate::json::Field(&mut self.left_id)),
            1 => map.next_value_seed(crate::json::Field(&mut self.right_id)),
            2 => map.next_value_seed(crate::json::Field(&mut self.profile_type)),
            3 => map.next_value_seed(crate::json::Field(&mut self.max_nodes)),
            _ => Ok(()),
        }
    }
}

impl crate::json::ToJson for AdHocProfilesDiffResponse {
    fn write(&self, out: &mut crate::json::Writer) {
        out.message(|out| {
            out.field("profileTypes", &self.profile_types);
            out.field("flamebearerProfile", &self.flamebearer_profile);
        });
    }
}
