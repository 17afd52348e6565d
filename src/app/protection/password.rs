//! Basic authentication: determines the paths that require the password, and checks the password of a request.
//!
//! In: settings, a request. Out: whether the request is authorized, or the 401 response.

use std::sync::Arc;

use axum::extract::Request;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use sha2::{Digest, Sha256};

use alluvium_pipeline::check::settings::http::AuthSettings;

/// User, password, and the paths that require them.
pub(super) struct Auth {
    /// SHA-256 of user and password, so that the time of a comparison does not reveal how much of them matches.
    expected: [[u8; 32]; 2],
    paths: Vec<Arc<str>>,
    matching: bool,
}

impl Auth {
    pub(super) fn new(settings: &AuthSettings) -> Self {
        Self {
            expected: [
                digest(settings.username.as_bytes()),
                digest(settings.password.as_bytes()),
            ],
            paths: settings.paths.clone(),
            matching: settings.matching,
        }
    }

    /// Returns true if the path of the request requires no password, or if the request contains the right password.
    pub(super) fn lets_in(&self, request: &Request) -> bool {
        !self.needs_password(request.uri().path()) || self.has_password(request)
    }

    /// Returns true if the path requires a password. The path is checked in two forms, as sent and percent-decoded, and
    /// the stricter result applies.
    fn needs_password(&self, path: &str) -> bool {
        let decoded = percent_encoding::percent_decode_str(path).decode_utf8_lossy();
        let named = |path: &str| self.paths.iter().any(|start| path.starts_with(&**start));
        [path, &*decoded].into_iter().any(|path| named(path) == self.matching)
    }

    fn has_password(&self, request: &Request) -> bool {
        let authorization = request.headers().get(header::AUTHORIZATION);
        let authorization = authorization.and_then(|value| value.to_str().ok()).unwrap_or_default();
        let Some((scheme, encoded)) = authorization.split_once(' ') else {
            return false;
        };
        let decoded = base64::engine::general_purpose::STANDARD.decode(encoded.trim());
        let Ok(decoded) = decoded else { return false };
        let Some(colon) = decoded.iter().position(|byte| *byte == b':') else {
            return false;
        };
        let digests = [digest(&decoded[..colon]), digest(&decoded[colon + 1..])];
        let different = digests
            .iter()
            .flatten()
            .zip(self.expected.iter().flatten())
            .fold(0, |different, (left, right)| different | (left ^ right));
        scheme.eq_ignore_ascii_case("basic") && different == 0
    }
}

fn digest(text: &[u8]) -> [u8; 32] {
    Sha256::digest(text).into()
}

/// Returns status 401 with the challenge that makes a browser ask for the password.
pub(super) fn unauthorized() -> Response {
    (
        StatusCode::UNAUTHORIZED,
        [(header::WWW_AUTHENTICATE, "Basic realm=\"Restricted\"")],
        "unauthorized\n",
    )
        .into_response()
}
