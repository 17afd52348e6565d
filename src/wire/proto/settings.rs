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
/// The calls of `settings.v1.SettingsService`.
pub trait SettingsService: Clone + Send + Sync + 'static {
    fn get(
        &self,
        call: crate::wire::service::Call<GetSettingsRequest>,
    ) -> impl Future<
        Output = crate::wire::service::CallResult<GetSettingsResponse>,
    > + Send;
    fn set(
        &self,
        call: crate::wire::service::Call<SetSettingsRequest>,
    ) -> impl Future<
        Output = crate::wire::service::CallResult<SetSettingsResponse>,
    > + Send;
    fn delete(
        &self,
        call: crate::wire::service::Call<DeleteSettingsRequest>,
    ) -> impl Future<
        Output = crate::wire::service::CallResult<DeleteSettingsResponse>,
    > + Send;
    fn route(&self, routes: &mut impl crate::wire::service::Routes) {
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

impl crate::wire::json::ToJson for Setting {
    fn write(&self, out: &mut crate::wire::json::Writer) {
        out.message(|out| {
            out.field("name", &self.name);
            out.field("value", &self.value);
            out.field("modifiedAt", &self.modified_at);
        });
    }
}

impl crate::wire::json::Fields for Setting {
    const NAMES: &'static [[&'static str; 2]] = &[["name", "name"], ["value", "value"], ["modifiedAt", "modifiedAt"]];

    fn read_field<'de, A: serde::de::MapAccess<'de>>(&mut self, index: usize, map: &mut A) -> Result<(), A::Error> {
        match index {
            0 => map.next_value_seed(crate::wire::json::Field(&mut self.name)),
            1 => map.next_value_seed(crate::wire::json::Field(&mut self.value)),
            2 => map.next_value_seed(crate::wire::json::Field(&mut self.modified_at)),
            _ => Ok(()),
        }
    }
}

impl crate::wire::json::ToJson for GetSettingsRequest {
    fn write(&self, out: &mut crate::wire::json::Writer) {
        out.message(|_| {});
    }
}

impl crate::wire::json::Fields for GetSettingsRequest {
    const NAMES: &'static [[&'static str; 2]] = &[];

    fn read_field<'de, A: serde::de::MapAccess<'de>>(&mut self, index: usize, _: &mut A) -> Result<(), A::Error> {
        match index {
            _ => Ok(()),
        }
    }
}

impl crate::wire::json::ToJson for GetSettingsResponse {
    fn write(&self, out: &mut crate::wire::json::Writer) {
        out.message(|out| {
            out.field("settings", &self.settings);
        });
    }
}

impl crate::wire::json::ToJson for SetSettingsRequest {
    fn write(&self, out: &mut crate::wire::json::Writer) {
        out.message(|out| {
            out.field("setting", &self.setting);
        });
    }
}

impl crate::wire::json::Fields for SetSettingsRequest {
    const NAMES: &'static [[&'static str; 2]] = &[["setting", "setting"]];

    fn read_field<'de, A: serde::de::MapAccess<'de>>(&mut self, index: usize, map: &mut A) -> Result<(), A::Error> {
        match index {
            0 => map.next_value_seed(crate::wire::json::Field(&mut self.setting)),
            _ => Ok(()),
        }
    }
}

impl crate::wire::json::ToJson for SetSettingsResponse {
    fn write(&self, out: &mut crate::wire::json::Writer) {
        out.message(|out| {
            out.field("setting", &self.setting);
        });
    }
}

impl crate::wire::json::ToJson for DeleteSettingsRequest {
    fn write(&self, out: &mut crate::wire::json::Writer) {
        out.message(|out| {
            out.field("name", &self.name);
        });
    }
}

impl crate::wire::json::Fields for DeleteSettingsRequest {
    const NAMES: &'static [[&'static str; 2]] = &[["name", "name"]];

    fn read_field<'de, A: serde::de::MapAccess<'de>>(&mut self, index: usize, map: &mut A) -> Result<(), A::Error> {
        match index {
            0 => map.next_value_seed(crate::wire::json::Field(&mut self.name)),
            _ => Ok(()),
        }
    }
}

impl crate::wire::json::ToJson for DeleteSettingsResponse {
    fn write(&self, out: &mut crate::wire::json::Writer) {
        out.message(|_| {});
    }
}
