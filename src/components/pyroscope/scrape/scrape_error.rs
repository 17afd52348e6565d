//! The reason why a scrape failed.

use crate::common::passing::unpacked::UnpackError;
use crate::pyroscope::scrape::response::ResponseError;
use alluvium_profile::SinkError;
use alluvium_profile::legacy::LegacyError;
use alluvium_profile::pprof::DecodeError;
use alluvium_wire::client::ClientError;

/// The reason why a scrape forwarded no profile.
#[derive(Debug, thiserror::Error)]
pub(super) enum ScrapeError {
    /// The credentials for the target cannot be obtained.
    #[error(transparent)]
    Credentials(#[from] ClientError),
    /// The target is an endpoint of this program itself, and its URL is invalid.
    #[error(transparent)]
    Request(#[from] http::Error),
    /// The target returned no profile.
    #[error(transparent)]
    Response(#[from] ResponseError),
    #[error(transparent)]
    Unpack(#[from] UnpackError),
    #[error("cannot read the profile as text: {0}")]
    Text(#[from] LegacyError),
    #[error("cannot read the profile: {0}")]
    Profile(#[from] DecodeError),
    /// The thread that reads profiles panicked.
    #[error("cannot read the profile: {0}")]
    Panicked(#[from] tokio::task::JoinError),
    /// A receiver refused the profile.
    #[error("cannot forward the profile: {0}")]
    Refused(#[from] SinkError),
    #[error("cannot forward the profile: its receivers did not accept it before the component stopped")]
    Stopped,
}
