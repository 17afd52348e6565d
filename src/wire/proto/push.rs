//! Generated from `proto/push/v1/push.proto` by `UPDATE_EXPECT=1 cargo test --test integration protos`: do not edit.

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
    pub labels: ::prost::alloc::vec::Vec<crate::proto::types::LabelPair>,
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
/// The calls of `push.v1.PusherService`.
pub trait PusherService: Clone + Send + Sync + 'static {
    fn push(
        &self,
        call: crate::service::Call<PushRequest>,
    ) -> impl Future<Output = crate::service::CallResult<PushResponse>> + Send;
    fn route(&self, routes: &mut impl crate::service::Routes) {
        let service = self.clone();
        routes
            .unary(
                "push.v1.PusherService/Push",
                move |call| {
                    let service = service.clone();
                    async move { service.push(call).await }
                },
            );
    }
}

impl crate::json::ToJson for PushRequest {
    fn write(&self, out: &mut crate::json::Writer) {
        out.message(|out| {
            out.field("series", &self.series);
        });
    }
}

impl crate::json::Fields for PushRequest {
    const NAMES: &'static [[&'static str; 2]] = &[["series", "series"]];

    fn read_field<'de, A: serde::de::MapAccess<'de>>(&mut self, index: usize, map: &mut A) -> Result<(), A::Error> {
        match index {
            0 => map.next_value_seed(crate::json::Field(&mut self.series)),
            _ => Ok(()),
        }
    }
}

impl crate::json::ToJson for PushResponse {
    fn write(&self, out: &mut crate::json::Writer) {
        out.message(|_| {});
    }
}

impl crate::json::ToJson for RawProfileSeries {
    fn write(&self, out: &mut crate::json::Writer) {
        out.message(|out| {
            out.field("labels", &self.labels);
            out.field("samples", &self.samples);
            out.field("annotations", &self.annotations);
        });
    }
}

impl crate::json::Fields for RawProfileSeries {
    const NAMES: &'static [[&'static str; 2]] = &[["labels", "labels"], ["samples", "samples"], ["annotations", "annotations"]];

    fn read_field<'de, A: serde::de::MapAccess<'de>>(&mut self, index: usize, map: &mut A) -> Result<(), A::Error> {
        match index {
            0 => map.next_value_seed(crate::json::Field(&mut self.labels)),
            1 => map.next_value_seed(crate::json::Field(&mut self.samples)),
            2 => map.next_value_seed(crate::json::Field(&mut self.annotations)),
            _ => Ok(()),
        }
    }
}

impl crate::json::ToJson for RawSample {
    fn write(&self, out: &mut crate::json::Writer) {
        out.message(|out| {
            out.field("rawProfile", &self.raw_profile);
            out.field("ID", &self.id);
        });
    }
}

impl crate::json::Fields for RawSample {
    const NAMES: &'static [[&'static str; 2]] = &[["rawProfile", "raw_profile"], ["ID", "ID"]];

    fn read_field<'de, A: serde::de::MapAccess<'de>>(&mut self, index: usize, map: &mut A) -> Result<(), A::Error> {
        match index {
            0 => map.next_value_seed(crate::json::Field(&mut self.raw_profile)),
            1 => map.next_value_seed(crate::json::Field(&mut self.id)),
            _ => Ok(()),
        }
    }
}

impl crate::json::ToJson for ProfileAnnotation {
    fn write(&self, out: &mut crate::json::Writer) {
        out.message(|out| {
            out.field("key", &self.key);
            out.field("value", &self.value);
        });
    }
}

impl crate::json::Fields for ProfileAnnotation {
    const NAMES: &'static [[&'static str; 2]] = &[["key", "key"], ["value", "value"]];

    fn read_field<'de, A: serde::de::MapAccess<'de>>(&mut self, index: usize, map: &mut A) -> Result<(), A::Error> {
        match index {
            0 => map.next_value_seed(crate::json::Field(&mut self.key)),
            1 => map.next_value_seed(crate::json::Field(&mut self.value)),
            _ => Ok(()),
        }
    }
}
