//! `POST /api/v1/admin/delete`: deletes profiles of the caller's tenant by selector and time range.
//!
//! In: the credential of an administrator or a configured deletion token, the tenant, and `{"selector", "from", "to"}`.
//! Out: a report, as soon as the deletion is durable. If the server requires no authentication and no token is
//! configured, the route is disabled, because a deletion cannot be undone. A token is valid only for its tenants.

use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::header::{AUTHORIZATION, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderValue, Request};
use serde::Deserialize;
use serde_json::json;
use sha2::{Digest, Sha256};

use crate::server::access::deletion_token::AdminToken;
use crate::server::access::{Identity, TenantScope};
use crate::server::state::shared::ServerState;
use crate::server::state::tenant::tenant;
use crate::store::StoreError;
use crate::store::maintenance::deletion::request::Deletion;
use alluvium_profile::TimeSpan;
use alluvium_wire::connect::{Code, ConnectError};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DeleteQuery {
    selector: String,
    /// Start in Unix milliseconds. Defaults to 0. The end is `to`, which defaults to the current time.
    from: Option<i64>,
    to: Option<i64>,
}

/// `POST /api/v1/admin/delete`: deletes profiles and returns a report.
pub(in crate::server) async fn delete(State(state): State<ServerState>, request: Request<Body>) -> Response {
    run(state, request).await.unwrap_or_else(|error| {
        let is_unauthenticated = error.status == 401;
        let mut response = error.into_response();
        if is_unauthenticated {
            response
                .headers_mut()
                .insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    })
}

async fn run(state: ServerState, request: Request<Body>) -> Result<Response, ConnectError> {
    let (parts, body) = request.into_parts();
    // If the guard has authenticated an administrator, the request needs no configured token.
    let proven = parts
        .extensions
        .get::<Arc<Identity>>()
        .filter(|identity| identity.is_proven);
    let (name, tenants) = if let Some(identity) = proven {
        (identity.name.to_string(), identity.tenants.clone())
    } else {
        let token = allowed(&state.options.admin, &parts.headers)?;
        (token.name.clone(), TenantScope::Only(token.tenants.clone()))
    };
    let tenant = tenant(&parts.headers, &state.options)?;
    if !tenants.has(&tenant) {
        return Err(ConnectError::new(
            Code::PermissionDenied,
            format!("the token is not valid for the tenant `{tenant}`"),
        ));
    }
    let limit = state.options.limits.question();
    let body = state.intake.read(&parts.headers, body, limit).await?;
    let query: DeleteQuery = serde_json::from_slice(&body.bytes).map_err(|error| {
        ConnectError::invalid(format!(
            "the body must be JSON with `selector` and optionally `from` and `to` in Unix milliseconds: {error}"
        ))
    })?;
    let now_ms = chrono::Utc::now().timestamp_millis();
    let from_us = query.from.unwrap_or(0).saturating_mul(1000);
    let until_us = query.to.unwrap_or(now_ms).saturating_mul(1000);
    let deletion = Deletion::new(tenant, query.selector, TimeSpan::new(from_us, until_us));
    if deletion.from_us >= deletion.until_us {
        return Err(ConnectError::invalid("`from` must be before `to`"));
    }
    let checked = deletion.check();
    checked.map_err(|error| ConnectError::invalid(error.to_string()))?;
    tracing::info!(
        token = name,
        tenant = %deletion.tenant,
        selector = deletion.selector,
        from_ms = query.from.unwrap_or(0),
        to_ms = query.to.unwrap_or(now_ms),
        "deletion requested"
    );
    let report = state.store.delete(deletion).await.map_err(|error| match error {
        StoreError::Request(message) => ConnectError::invalid(message),
        // A later round of maintenance completes a recorded deletion. Repeating the request does no harm.
        error => ConnectError::new(Code::Unavailable, format!("the deletion is not complete yet: {error}")),
    })?;
    let response = json!({
        "files_replaced": report.files_in,
        "files_written": report.files_out,
        "rows_deleted": report.rows_in.saturating_sub(report.rows_out),
    });
    Ok(Json(response).into_response())
}

/// Returns the configured token that matches the bearer token of the request.
fn allowed<'a>(tokens: &'a [AdminToken], headers: &HeaderMap) -> Result<&'a AdminToken, ConnectError> {
    if tokens.is_empty() {
        return Err(ConnectError::new(
            Code::PermissionDenied,
            "deletion over http is disabled: the server's configuration has no `admin.tokens`",
        ));
    }
    let refused = || {
        ConnectError::new(
            Code::Unauthenticated,
            "a valid token is required: `Authorization: Bearer TOKEN`",
        )
    };
    let credential = headers
        .get(AUTHORIZATION)
        .and_then(|value| value.to_str().ok())
        .and_then(|value| value.split_once(' '))
        .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"))
        .ok_or_else(refused)?;
    let digest: [u8; 32] = Sha256::digest(credential.1.trim().as_bytes()).into();
    tokens.iter().find(|token| token.digest == digest).ok_or_else(refused)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_found_by_its_text_and_short_ones_are_refused() {
        assert!(AdminToken::new("a", "too-short", Vec::new()).is_err());
        assert!(AdminToken::new("a", "with a space in it, long", Vec::new()).is_err());
        let tokens = [
            AdminToken::new("one", "0123456789abcdef", Vec::new()).unwrap(),
            AdminToken::new("two", "fedcba9876543210", Vec::new()).unwrap(),
        ];
        let allowed_name = |tokens: &[AdminToken], header: Option<&str>| {
            let mut headers = HeaderMap::new();
            if let Some(header) = header {
                headers.insert(AUTHORIZATION, header.parse().unwrap());
            }
            allowed(tokens, &headers)
                .map(|token| token.name.clone())
                .map_err(|error| error.status)
        };
        assert_eq!(
            allowed_name(&tokens, Some("Bearer fedcba9876543210")),
            Ok("two".to_owned())
        );
        assert_eq!(
            allowed_name(&tokens, Some("bearer 0123456789abcdef")),
            Ok("one".to_owned())
        );
        for header in [
            None,
            Some("Bearer "),
            Some("Basic 0123456789abcdef"),
            Some("0123456789abcdef"),
            Some("Bearer 0123456789abcdeg"),
        ] {
            assert_eq!(allowed_name(&tokens, header), Err(401), "{header:?}");
        }
        assert_eq!(allowed_name(&[], Some("Bearer 0123456789abcdef")), Err(403));
        assert!(!format!("{tokens:?}").contains("digest"));
    }
}
