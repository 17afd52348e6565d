//! `/ingest` and `/pyroscope/ingest`: accept profiles from SDKs.
//!
//! In: a request of an SDK. Out: decoded profiles to the store. `wire::ingest` reads the formats. If a profile is not
//! valid pprof, the status is 400. If a profile is too large, the status is 413. Pyroscope returns 422 in both cases.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{Request, StatusCode};

use crate::server::bodies::body::Charge;
use crate::server::state::shared::ServerState;
use crate::server::state::tenant::tenant;
use alluvium_profile::{DecodedProfile, SinkError, TenantId};
use alluvium_wire::connect::ConnectError;
use alluvium_wire::ingest::{self, IngestQuery, Opening, ReadError, Upload};
use alluvium_wire::service::Charged as _;

/// `POST /ingest`: responds as soon as the profile is durable.
pub(in crate::server) async fn ingest(State(state): State<ServerState>, request: Request<Body>) -> Response {
    match accept(state, request).await {
        Ok(()) => StatusCode::OK.into_response(),
        Err(error) => error.into_response(),
    }
}

async fn accept(state: ServerState, request: Request<Body>) -> Result<(), ConnectError> {
    let (parts, body) = request.into_parts();
    let tenant = tenant(&parts.headers, &state.options)?;
    let query = IngestQuery::parse(parts.uri.query().unwrap_or_default(), now_nanos())?;
    let upload_id = ingest::upload_id(&parts.headers)?;
    let content_type = parts
        .headers
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default()
        .to_owned();
    let limit = state.options.limits.push();
    let is_packed = |body: &[u8]| ingest::is_packed(&query, &content_type, body);
    let body = state.intake.read_upload(&parts.headers, body, limit, is_packed).await?;
    let body = (body.bytes, body.charge);
    let (mut profiles, charge) = read_upload(&state, &tenant, body, content_type, Arc::new(query)).await?;
    ingest::set_profile_ids(&mut profiles, &upload_id);
    let errors = state.append_decoded(tenant, profiles, Box::new(charge)).await?;
    match SinkError::joined(errors) {
        None => Ok(()),
        Some(error) => Err(error.into()),
    }
}

/// Reads the profiles of a body in any format of `/ingest`, within the limits of `tenant`. Returns the profiles with
/// the charge for their memory.
pub(super) async fn read_upload(
    state: &ServerState,
    tenant: &TenantId,
    body: (Bytes, Charge),
    content_type: String,
    query: Arc<IngestQuery>,
) -> Result<(Vec<DecodedProfile>, Charge), ConnectError> {
    let limits = &state.options.limits;
    let max_profile = match state.store.limits(tenant).max_profile_size_bytes {
        0 => limits.unpacked_body_bytes,
        limit => limit.min(limits.unpacked_body_bytes),
    };
    let work_bytes = ingest::work_bytes(body.0.len(), max_profile);
    let requested = query.clone();
    let take_apart = move |bytes| Upload::new(&requested, &content_type, bytes);
    let opening = Opening::Announced(max_profile);
    let (read, mut charge) = open(state, body, work_bytes, take_apart, &query, opening).await?;
    match read {
        Read::Profiles(profiles) => Ok((profiles, charge)),
        Read::LargerThanAnnounced(upload) => {
            charge.release_last();
            let opening = Opening::AtMost(max_profile);
            match open(state, (upload, charge), work_bytes, Ok, &query, opening).await? {
                (Read::Profiles(profiles), charge) => Ok((profiles, charge)),
                (Read::LargerThanAnnounced(_), _) => {
                    let message = format!("profile exceeds {max_profile} bytes uncompressed");
                    Err(ConnectError::too_large(message))
                }
            }
        }
    }
}

/// The result of reading an upload.
enum Read {
    Profiles(Vec<DecodedProfile>),
    LargerThanAnnounced(Upload),
}

/// Reads the profiles of an upload. The memory for reading is charged first. Then the charge is reduced to the memory
/// of the profiles.
async fn open<Source: Send + 'static>(
    state: &ServerState,
    source: (Source, Charge),
    work_bytes: usize,
    take_apart: impl FnOnce(Source) -> Result<Upload, ConnectError> + Send + 'static,
    query: &Arc<IngestQuery>,
    opening: Opening,
) -> Result<(Read, Charge), ConnectError> {
    let weigh = move |source| {
        let upload = take_apart(source)?;
        let memory = upload.memory(opening)?;
        Ok((upload, memory))
    };
    let query = query.clone();
    let make = move |upload: Upload| match upload.read(&query, opening) {
        Ok(profiles) => Ok(Read::Profiles(profiles)),
        Err(ReadError::LargerThanAnnounced) => Ok(Read::LargerThanAnnounced(upload)),
        Err(ReadError::Refused(error)) => Err(error),
    };
    let (read, mut charge) = state.intake.make(source, work_bytes, weigh, make).await?;
    if let Read::Profiles(profiles) = &read {
        charge.keep(profiles.iter().map(|profile| profile.columns.bytes()).sum());
    }
    Ok((read, charge))
}

/// Returns the current time in Unix nanoseconds.
pub(super) fn now_nanos() -> i64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .ok()
        .and_then(|duration| i64::try_from(duration.as_nanos()).ok())
        .unwrap_or_default()
}
