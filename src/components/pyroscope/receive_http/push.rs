//! Splits a push of push.v1 into profiles. Their bytes stay unchanged.

use bytes::Bytes;

use crate::common::serving::intake::{Intake, TakenBody};
use crate::pyroscope::receive_http::ingest::with_service;
use alluvium_profile::RawProfile;
use alluvium_profile::upload::Upload;
use alluvium_wire::connect::{self, Codec, ConnectError};
use alluvium_wire::proto::push::PushRequest;
use alluvium_wire::push::{PushBatch, PushOutcome};
use alluvium_wire::weight;

/// A push, split into profiles.
pub(super) struct Push {
    /// The profiles that can be forwarded.
    pub profiles: Vec<RawProfile>,
    /// The data that the response needs about all profiles of the push.
    pub outcome: PushOutcome,
}

/// Reads a decompressed message. The second value reserves memory for the push until the value is dropped. JSON is
/// decoded on a blocking thread.
pub(super) async fn read(
    intake: &Intake,
    codec: Codec,
    body: TakenBody,
) -> Result<(Push, impl Send + use<>), ConnectError> {
    let (bytes, held) = body.split();
    let weighed = intake.take(weight::push(codec, &bytes)?)?;
    let request = match codec {
        Codec::Proto => decode(codec, bytes)?,
        Codec::Json => tokio::task::spawn_blocking(move || decode(codec, bytes))
            .await
            .map_err(|error| ConnectError::new(connect::Code::Internal, format!("the decoder panicked: {error}")))??,
    };
    let (mut profiles, outcome) = PushBatch::from_request(request)?.split();
    if profiles.iter().any(|profile| Upload::is_in(&profile.pprof)) {
        return Err(ConnectError::invalid("the push contains a profile that is not pprof"));
    }
    for profile in &mut profiles {
        profile.labels = with_service(&profile.labels);
    }
    Ok((Push { profiles, outcome }, (held, weighed)))
}

fn decode(codec: Codec, bytes: Bytes) -> Result<PushRequest, ConnectError> {
    connect::decode(codec, bytes)
}
