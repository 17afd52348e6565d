//! `POST /api/0/profiles`: accepts one profile as pprof.
//!
//! In: parameters and a body. Out: as soon as the profile is durable, its id, type, labels and time, in the form
//! of an entry in the list of profiles. The id contains the time of the profile, so that a lookup does not have to
//! search all profiles. The server does not keep the original bytes. If a client requests the profile, the server
//! encodes the stored data as pprof.

use std::sync::Arc;

use axum::body::Body;
use http::Request;
use rand::RngExt as _;
use uuid::{Builder, Uuid};

use crate::server::routes::ingest::{now_nanos, read_upload};
use crate::server::state::shared::ServerState;
use crate::server::state::tenant::tenant;
use alluvium_profile::SinkError;
use alluvium_profile::labels::PROFILE_NAME;
use alluvium_wire::connect::ConnectError;
use alluvium_wire::ingest::IngestQuery;
use alluvium_wire::profefe::{NewProfile, ProfileAnswer, Refusal};

const MILLI_NANOS: i64 = 1_000_000;

/// Stores the profile of a request.
pub(super) async fn accept(state: &ServerState, request: Request<Body>) -> Result<ProfileAnswer, Refusal> {
    let (parts, body) = request.into_parts();
    let tenant = tenant(&parts.headers, &state.options)?;
    let NewProfile {
        service,
        word,
        labels,
        created_nanos,
    } = NewProfile::parse(parts.uri.query().unwrap_or_default(), now_nanos())?;
    let query = IngestQuery {
        app: service,
        labels,
        from_nanos: created_nanos,
        until_nanos: created_nanos,
        spy_name: String::new(),
        sample_rate: None,
        format: "pprof".to_owned(),
    };
    // The content type is ignored, because profefe never sends a form. pprof itself may be gzip.
    let body = state
        .intake
        .read_upload(&parts.headers, body, state.options.limits.push(), |_| false)
        .await?;
    let body = (body.bytes, body.charge);
    let read = read_upload(state, &tenant, body, String::new(), Arc::new(query)).await;
    let (mut profiles, charge) = read.map_err(malformed)?;
    let mut answers = Vec::new();
    for profile in &mut profiles {
        let columns = profile.columns.get();
        if columns.sample_count() == 0 {
            return Err(malformed(ConnectError::invalid("the profile has no samples")));
        }
        let time_nanos = columns.time_nanos;
        if let Some(name) = word.names.first() {
            profile.labels = profile.labels.with(PROFILE_NAME, name);
        }
        profile.id = new_id(time_nanos).into();
        let time_us = time_nanos.div_euclid(1000);
        answers.push(ProfileAnswer::new(&profile.id, word, &profile.labels, time_us));
    }
    let errors = state.append_decoded(tenant, profiles, Box::new(charge)).await?;
    if let Some(error) = SinkError::joined(errors) {
        return Err(ConnectError::from(error).into());
    }
    answers
        .pop()
        .ok_or_else(|| Refusal::bad("the body contains no profile"))
}

fn malformed(error: ConnectError) -> Refusal {
    let mut refusal = Refusal::from(error);
    if refusal.status == 400 {
        refusal.message = format!("malformed profile (could not parse pprof profile: {})", refusal.message);
    }
    refusal
}

/// Returns a UUID of version 7, which contains the time in milliseconds.
fn new_id(time_nanos: i64) -> String {
    let millis = u64::try_from(time_nanos.div_euclid(MILLI_NANOS)).unwrap_or(0);
    let random: [u8; 10] = rand::rng().random();
    Builder::from_unix_timestamp_millis(millis, &random)
        .into_uuid()
        .to_string()
}

/// Returns the Unix time in milliseconds that a UUID of version 7 contains, or `None` for any other id. The id may come
/// from another program.
pub(super) fn time_of(id: &str) -> Option<i64> {
    let id = Uuid::parse_str(id).ok().filter(|id| id.get_version_num() == 7)?;
    i64::try_from(id.as_u128() >> 80).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_has_the_time_of_its_profile() {
        let id = new_id(1_700_000_000_123_456_789);
        assert_eq!(time_of(&id), Some(1_700_000_000_123));
        assert_ne!(id, new_id(1_700_000_000_123_456_789));
        for other in ["", "bpc00mript33iv4net00", "6f1d0c2b-9a8e-4f53-8a8e-6f1d0c2b9a8e"] {
            assert_eq!(time_of(other), None, "{other}");
        }
    }
}
