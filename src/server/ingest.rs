//! `/ingest` and `/pyroscope/ingest`.
//!
//! In: a request of an SDK. Out: one profile to the store. Reading the formats is `wire::ingest`; a profile that is no pprof is 400 and one that is
//! too large 413, where Pyroscope says 422 for both.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::header::CONTENT_TYPE;
use http::{Request, StatusCode};

use crate::server::ServerState;
use crate::server::tenant::tenant;
use crate::wire::connect::ConnectError;
use crate::wire::ingest::{self, IngestQuery, Upload};

/// The route.
pub async fn ingest(State(state): State<ServerState>, request: Request<Body>) -> Response {
    match take(state, request).await {
        Ok(()) => StatusCode::OK.into_response(),
        Err(error) => error.into_response(),
    }
}

async fn take(state: ServerState, request: Request<Body>) -> Result<(), ConnectError> {
    let (parts, body) = request.into_parts();
    let tenant = tenant(&parts.headers, state.options.multi_tenant)?;
    let query = IngestQuery::parse(parts.uri.query().unwrap_or_default(), now_nanos())?;
    let content_type = parts
        .headers
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default()
        .to_owned();
    let limits = &state.options.limits;
    let max_profile = match limits.profile_bytes {
        0 => limits.unpacked_body_bytes,
        limit => limit,
    };
    let body = state.intake.read(&parts.headers, body, limits.push()).await?;
    let work_bytes = ingest::work_bytes(body.bytes.len(), max_profile);
    let query = Arc::new(query);
    let asked = query.clone();
    let weigh = move |bytes| {
        let upload = Upload::new(&asked, &content_type, bytes)?;
        let weight = upload.weight(max_profile)?;
        Ok((upload, weight))
    };
    let make = move |upload: Upload| upload.profile(&query, max_profile);
    let (profile, charge) = state.intake.make(body, work_bytes, weigh, make).await?;
    let errors = state.append(tenant, vec![profile], charge).await?;
    match errors.into_iter().next() {
        None => Ok(()),
        Some((_, error)) => Err(error.into()),
    }
}

fn now_nanos() -> i64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .ok()
        .and_then(|since| i64::try_from(since.as_nanos()).ok())
        .unwrap_or_default()
}
