//! `/-/support`: downloads the support bundle as a zip file.
//!
//! In: `?duration=SECONDS`. Out: the bytes that the closure returns, as a download. Only one bundle is taken at a time,
//! because it includes a CPU profile of the process. `app` defines the contents.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{Query, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;

use alluvium_base::BoxFuture;

/// Builds a bundle over this duration; returns the bytes of a zip file.
pub type Support = Arc<dyn Fn(Duration) -> BoxFuture<'static, Result<Vec<u8>, SupportError>> + Send + Sync>;

/// Reason why there is no bundle.
#[derive(Debug, thiserror::Error)]
pub enum SupportError {
    /// Another bundle is being taken.
    #[error("a support bundle is already being taken: try again when it is done")]
    Busy,
    #[error("the support bundle failed: {0}")]
    Failed(String),
}

/// Default of `duration`, as in Alloy.
const DEFAULT_SECONDS: u64 = 30;
/// Maximum duration in seconds, the same as for a CPU profile.
const MAX_SECONDS: u64 = 300;

#[derive(serde::Deserialize)]
struct BundleQuery {
    duration: Option<String>,
}

pub(super) fn router<S: Clone + Send + Sync + 'static>(support: Support) -> Router<S> {
    Router::new().route("/-/support", get(bundle).with_state(support))
}

async fn bundle(State(support): State<Support>, Query(query): Query<BundleQuery>) -> Response {
    let seconds = match query.duration.as_deref() {
        None | Some("") => Some(DEFAULT_SECONDS),
        Some(text) => text.parse().ok(),
    };
    let Some(seconds) = seconds.filter(|seconds| (1..=MAX_SECONDS).contains(seconds)) else {
        let text = format!("`duration` must be a whole number of seconds from 1 to {MAX_SECONDS}\n");
        return (StatusCode::BAD_REQUEST, text).into_response();
    };
    match support(Duration::from_secs(seconds)).await {
        Ok(bytes) => {
            let headers = [
                (header::CONTENT_TYPE, "application/zip"),
                (
                    header::CONTENT_DISPOSITION,
                    "attachment; filename=\"alluvium-support-bundle.zip\"",
                ),
            ];
            (headers, bytes).into_response()
        }
        Err(error) => {
            let status = match error {
                SupportError::Busy => StatusCode::CONFLICT,
                SupportError::Failed(_) => StatusCode::INTERNAL_SERVER_ERROR,
            };
            (status, format!("{error}\n")).into_response()
        }
    }
}
