//! Details of an error besides its code and its text: protobuf messages, which programs can read.
//!
//! Connect puts the details into the JSON of the error, gRPC puts them into `grpc-status-details-bin`
//! ([`crate::grpc_status`]). Clients ignore details of unknown types.

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use bytes::Bytes;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Connect writes base64 without padding, and accepts base64 with or without padding.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new()
        .with_encode_padding(false)
        .with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// A message that explains an error.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorDetail {
    /// Full name of the message's type, without a URL.
    #[serde(rename = "type")]
    pub type_name: String,
    /// The message in protobuf's binary form.
    #[serde(serialize_with = "write_base64", deserialize_with = "read_base64")]
    pub value: Bytes,
}

impl ErrorDetail {
    /// Encodes a message of the type with this name.
    pub fn new(type_name: &str, message: &impl prost::Message) -> Self {
        Self {
            type_name: type_name.to_owned(),
            value: message.encode_to_vec().into(),
        }
    }

    /// Returns the message when it has the type with this name and can be decoded.
    pub fn read<M: prost::Message + Default>(&self, type_name: &str) -> Option<M> {
        if self.type_name == type_name {
            M::decode(self.value.clone()).ok()
        } else {
            None
        }
    }
}

fn write_base64<S: Serializer>(value: &Bytes, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&BASE64.encode(value))
}

fn read_base64<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Bytes, D::Error> {
    let text = String::deserialize(deserializer)?;
    BASE64.decode(text).map(Bytes::from).map_err(serde::de::Error::custom)
}
