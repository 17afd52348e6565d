//! Maps errors of sinks to Connect errors. No other module does this mapping.

use crate::connect::{Code, ConnectError};
use crate::push::PushRefused;
use alluvium_profile::{SinkError, SinkErrorKind};

impl From<SinkError> for ConnectError {
    fn from(error: SinkError) -> Self {
        match error.kind {
            SinkErrorKind::Invalid => ConnectError::invalid(error.message),
            SinkErrorKind::TooLarge => ConnectError::too_large(error.message),
            SinkErrorKind::LimitExceeded => ConnectError::new(Code::ResourceExhausted, error.message),
            SinkErrorKind::Unavailable | SinkErrorKind::Gone => ConnectError::new(Code::Unavailable, error.message),
            SinkErrorKind::Internal => ConnectError::new(Code::Internal, error.message),
        }
    }
}

impl From<PushRefused> for ConnectError {
    fn from(refused: PushRefused) -> Self {
        Self::from(refused.error).with_detail(refused.detail)
    }
}
