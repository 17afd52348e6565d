//! Generated from `proto/debuginfo/v1alpha1/debuginfo.proto` by `UPDATE_EXPECT=1 cargo test --test integration protos`: do not edit.

#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct FileMetadata {
    /// In hexadecimal.
    #[prost(string, tag = "1")]
    pub gnu_build_id: ::prost::alloc::string::String,
    #[prost(string, tag = "2")]
    pub go_build_id: ::prost::alloc::string::String,
    #[prost(string, tag = "3")]
    pub otel_file_id: ::prost::alloc::string::String,
    #[prost(string, tag = "4")]
    pub name: ::prost::alloc::string::String,
    #[prost(enumeration = "FileType", tag = "5")]
    pub r#type: i32,
}
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct ShouldInitiateUploadRequest {
    #[prost(message, optional, tag = "1")]
    pub file: ::core::option::Option<FileMetadata>,
}
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct ShouldInitiateUploadResponse {
    #[prost(bool, tag = "1")]
    pub should_initiate_upload: bool,
    #[prost(string, tag = "2")]
    pub reason: ::prost::alloc::string::String,
}
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct UploadFinishedRequest {
    #[prost(string, tag = "1")]
    pub gnu_build_id: ::prost::alloc::string::String,
}
#[derive(Clone, Copy, PartialEq, Eq, Hash, ::prost::Message)]
pub struct UploadFinishedResponse {}
#[derive(Clone, Copy, PartialEq, Eq, Hash, ::prost::Message)]
pub struct ListDebuginfoRequest {}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct ListDebuginfoResponse {
    #[prost(message, repeated, tag = "1")]
    pub object: ::prost::alloc::vec::Vec<ObjectMetadata>,
}
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct DeleteDebuginfoRequest {
    #[prost(string, tag = "1")]
    pub gnu_build_id: ::prost::alloc::string::String,
}
#[derive(Clone, Copy, PartialEq, Eq, Hash, ::prost::Message)]
pub struct DeleteDebuginfoResponse {}
/// A file that was uploaded; its state and times are not told here.
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct ObjectMetadata {
    #[prost(message, optional, tag = "1")]
    pub file: ::core::option::Option<FileMetadata>,
    #[prost(int64, tag = "5")]
    pub size_bytes: i64,
}
/// `FileMetadata.Type` in Pyroscope.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, ::prost::Enumeration)]
#[repr(i32)]
pub enum FileType {
    TypeUnspecified = 0,
    TypeExecutableFull = 1,
    TypeExecutableNoText = 2,
}
impl FileType {
    /// String value of the enum field names used in the ProtoBuf definition.
    ///
    /// The values are not transformed in any way and thus are considered stable
    /// (if the ProtoBuf definition does not change) and safe for programmatic use.
    pub fn as_str_name(&self) -> &'static str {
        match self {
            Self::TypeUnspecified => "TYPE_UNSPECIFIED",
            Self::TypeExecutableFull => "TYPE_EXECUTABLE_FULL",
            Self::TypeExecutableNoText => "TYPE_EXECUTABLE_NO_TEXT",
        }
    }
    /// Creates an enum from field names used in the ProtoBuf definition.
    pub fn from_str_name(value: &str) -> ::core::option::Option<Self> {
        match value {
            "TYPE_UNSPECIFIED" => Some(Self::TypeUnspecified),
            "TYPE_EXECUTABLE_FULL" => Some(Self::TypeExecutableFull),
            "TYPE_EXECUTABLE_NO_TEXT" => Some(Self::TypeExecutableNoText),
            _ => None,
        }
    }
}
/// The calls of `debuginfo.v1alpha1.DebuginfoService`.
pub trait DebuginfoService: Clone + Send + Sync + 'static {
    fn should_initiate_upload(
        &self,
        call: crate::service::Call<ShouldInitiateUploadRequest>,
    ) -> impl Future<
        Output = crate::service::CallResult<ShouldInitiateUploadResponse>,
    > + Send;
    fn upload_finished(
        &self,
        call: crate::service::Call<UploadFinishedRequest>,
    ) -> impl Future<Output = crate::service::CallResult<UploadFinishedResponse>> + Send;
    fn list_debuginfo(
        &self,
        call: crate::service::Call<ListDebuginfoRequest>,
    ) -> impl Future<Output = crate::service::CallResult<ListDebuginfoResponse>> + Send;
    fn delete_debuginfo(
        &self,
        call: crate::service::Call<DeleteDebuginfoRequest>,
    ) -> impl Future<
        Output = crate::service::CallResult<DeleteDebuginfoResponse>,
    > + Send;
    fn route(&self, routes: &mut impl crate::service::Routes) {
        let service = self.clone();
        routes
            .unary(
                "debuginfo.v1alpha1.DebuginfoService/ShouldInitiateUpload",
                move |call| {
                    let service = service.clone();
                    async move { service.should_initiate_upload(call).await }
                },
            );
        let service = self.clone();
        routes
            .unary(
                "debuginfo.v1alpha1.DebuginfoService/UploadFinished",
                move |call| {
                    let service = service.clone();
                    async move { service.upload_finished(call).await }
                },
            );
        let service = self.clone();
        routes
            .unary(
                "debuginfo.v1alpha1.DebuginfoService/ListDebuginfo",
                move |call| {
                    let service = service.clone();
                    async move { service.list_debuginfo(call).await }
                },
            );
        let service = self.clone();
        routes
            .unary(
                "debuginfo.v1alpha1.DebuginfoService/DeleteDebuginfo",
                move |call| {
                    let service = service.clone();
                    async move { service.delete_debuginfo(call).await }
                },
            );
    }
}

impl crate::json::ToJson for FileMetadata {
    fn write(&self, out: &mut crate::json::Writer) {
        out.message(|out| {
            out.field("gnuBuildId", &self.gnu_build_id);
            out.field("goBuildId", &self.go_build_id);
            out.field("otelFileId", &self.otel_file_id);
            out.field("name", &self.name);
            out.field("type", &Some(self.r#type).filter(|value| *value != 0).map(|value| crate::proto::debuginfo::FileType::try_from(value).map(|value| value.as_str_name()).map_err(|_| value)));
        });
    }
}

impl crate::json::Fields for FileMetadata {
    const NAMES: &'static [[&'static str; 2]] = &[["gnuBuildId", "gnu_build_id"], ["goBuildId", "go_build_id"], ["otelFileId", "otel_file_id"], ["name", "name"], ["type", "type"]];

    fn read_field<'de, A: serde::de::MapAccess<'de>>(&mut self, index: usize, map: &mut A) -> Result<(), A::Error> {
        match index {
            0 => map.next_value_seed(crate::json::Field(&mut self.gnu_build_id)),
            1 => map.next_value_seed(crate::json::Field(&mut self.go_build_id)),
            2 => map.next_value_seed(crate::json::Field(&mut self.otel_file_id)),
            3 => map.next_value_seed(crate::json::Field(&mut self.name)),
            4 => map.next_value_seed(crate::json::Enum(&mut self.r#type, |name| crate::proto::debuginfo::FileType::from_str_name(name).map(Into::into))),
            _ => Ok(()),
        }
    }
}

impl crate::json::ToJson for ShouldInitiateUploadRequest {
    fn write(&self, out: &mut crate::json::Writer) {
        out.message(|out| {
            out.field("file", &self.file);
        });
    }
}

impl crate::json::Fields for ShouldInitiateUploadRequest {
    const NAMES: &'static [[&'static str; 2]] = &[["file", "file"]];

    fn read_field<'de, A: serde::de::MapAccess<'de>>(&mut self, index: usize, map: &mut A) -> Result<(), A::Error> {
        match index {
            0 => map.next_value_seed(crate::json::Field(&mut self.file)),
            _ => Ok(()),
        }
    }
}

impl crate::json::ToJson for ShouldInitiateUploadResponse {
    fn write(&self, out: &mut crate::json::Writer) {
        out.message(|out| {
            out.field("shouldInitiateUpload", &self.should_initiate_upload);
            out.field("reason", &self.reason);
        });
    }
}

impl crate::json::ToJson for UploadFinishedRequest {
    fn write(&self, out: &mut crate::json::Writer) {
        out.message(|out| {
            out.field("gnuBuildId", &self.gnu_build_id);
        });
    }
}

impl crate::json::Fields for UploadFinishedRequest {
    const NAMES: &'static [[&'static str; 2]] = &[["gnuBuildId", "gnu_build_id"]];

    fn read_field<'de, A: serde::de::MapAccess<'de>>(&mut self, index: usize, map: &mut A) -> Result<(), A::Error> {
        match index {
            0 => map.next_value_seed(crate::json::Field(&mut self.gnu_build_id)),
            _ => Ok(()),
        }
    }
}

impl crate::json::ToJson for UploadFinishedResponse {
    fn write(&self, out: &mut crate::json::Writer) {
        out.message(|_| {});
    }
}

impl crate::json::ToJson for ListDebuginfoRequest {
    fn write(&self, out: &mut crate::json::Writer) {
        out.message(|_| {});
    }
}

impl crate::json::Fields for ListDebuginfoRequest {
    const NAMES: &'static [[&'static str; 2]] = &[];

    fn read_field<'de, A: serde::de::MapAccess<'de>>(&mut self, index: usize, _: &mut A) -> Result<(), A::Error> {
        match index {
            _ => Ok(()),
        }
    }
}

impl crate::json::ToJson for ListDebuginfoResponse {
    fn write(&self, out: &mut crate::json::Writer) {
        out.message(|out| {
            out.field("object", &self.object);
        });
    }
}

impl crate::json::ToJson for DeleteDebuginfoRequest {
    fn write(&self, out: &mut crate::json::Writer) {
        out.message(|out| {
            out.field("gnuBuildId", &self.gnu_build_id);
        });
    }
}

impl crate::json::Fields for DeleteDebuginfoRequest {
    const NAMES: &'static [[&'static str; 2]] = &[["gnuBuildId", "gnu_build_id"]];

    fn read_field<'de, A: serde::de::MapAccess<'de>>(&mut self, index: usize, map: &mut A) -> Result<(), A::Error> {
        match index {
            0 => map.next_value_seed(crate::json::Field(&mut self.gnu_build_id)),
            _ => Ok(()),
        }
    }
}

impl crate::json::ToJson for DeleteDebuginfoResponse {
    fn write(&self, out: &mut crate::json::Writer) {
        out.message(|_| {});
    }
}

impl crate::json::ToJson for ObjectMetadata {
    fn write(&self, out: &mut crate::json::Writer) {
        out.message(|out| {
            out.field("file", &self.file);
            out.field("sizeBytes", &self.size_bytes);
        });
    }
}
