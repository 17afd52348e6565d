//! The credential in the headers of a request.
//!
//! In: headers. Out: one credential, not proven yet. The header `Authorization` takes precedence over a cookie.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::HeaderMap;
use http::header::{AUTHORIZATION, COOKIE};

/// Name of the cookie that holds the id of a session.
pub(super) const COOKIE_NAME: &str = "alluvium_session";

#[derive(Clone, PartialEq, Eq)]
pub(super) enum Credential {
    /// The request has neither the header `Authorization` nor a session cookie.
    None,
    /// `Authorization: Bearer TOKEN`.
    Bearer(String),
    /// `Authorization: Basic`, with user and password.
    Basic(String, String),
    /// The id in a session cookie.
    Session(String),
    /// The header `Authorization` is malformed, has another scheme, or occurs several times.
    Unknown,
}

impl Credential {
    /// Reads the credential from the headers of a request.
    pub(super) fn of(headers: &HeaderMap) -> Self {
        if let Some(value) = headers.get(AUTHORIZATION) {
            // Several `Authorization` headers are ambiguous, so the credential is unknown.
            let is_alone = headers.get_all(AUTHORIZATION).iter().count() == 1;
            let read = value.to_str().ok().filter(|_| is_alone).and_then(authorization);
            return read.unwrap_or(Self::Unknown);
        }
        session(headers).map_or(Self::None, Self::Session)
    }
}

fn authorization(text: &str) -> Option<Credential> {
    let (scheme, rest) = text.split_once(' ')?;
    let rest = rest.trim();
    if scheme.eq_ignore_ascii_case("bearer") {
        return Some(Credential::Bearer(rest.to_owned()));
    }
    if !scheme.eq_ignore_ascii_case("basic") {
        return None;
    }
    let decoded = String::from_utf8(STANDARD.decode(rest).ok()?).ok()?;
    let (user, password) = decoded.split_once(':')?;
    Some(Credential::Basic(user.to_owned(), password.to_owned()))
}

/// Returns the session id in the cookies of a request.
pub(super) fn session(headers: &HeaderMap) -> Option<String> {
    let cookies = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut pairs = cookies.flat_map(|cookies| cookies.split(';')).map(str::trim);
    let value = pairs.find_map(|pair| pair.strip_prefix(COOKIE_NAME)?.strip_prefix('='))?;
    Some(value.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn credential_text(headers: &[(&str, &str)]) -> String {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(
                http::HeaderName::from_bytes(name.as_bytes()).unwrap(),
                value.parse().unwrap(),
            );
        }
        match Credential::of(&map) {
            Credential::None => "none".to_owned(),
            Credential::Bearer(token) => format!("bearer {token}"),
            Credential::Basic(user, password) => format!("basic {user} {password}"),
            Credential::Session(id) => format!("session {id}"),
            Credential::Unknown => "unknown".to_owned(),
        }
    }

    #[test]
    fn the_header_wins_over_the_cookie() {
        assert_eq!(credential_text(&[]), "none");
        assert_eq!(credential_text(&[("authorization", "bearer abc ")]), "bearer abc");
        assert_eq!(
            credential_text(&[("authorization", "Basic YWRhOmE6Yg==")]),
            "basic ada a:b"
        );
        assert_eq!(credential_text(&[("cookie", "a=b; alluvium_session=x")]), "session x");
        assert_eq!(
            credential_text(&[("cookie", "a=b"), ("cookie", "alluvium_session=x; c=d")]),
            "session x"
        );
        assert_eq!(
            credential_text(&[("cookie", "alluvium_session=x"), ("authorization", "Bearer y")]),
            "bearer y"
        );
    }

    #[test]
    fn what_cannot_be_read_is_not_taken_for_nothing() {
        for value in ["", "Bearer", "Basic ???", "Basic YWRh", "Digest x"] {
            assert_eq!(credential_text(&[("authorization", value)]), "unknown", "{value}");
        }
        assert_eq!(
            credential_text(&[("authorization", "Bearer a"), ("authorization", "Bearer b")]),
            "unknown"
        );
        assert_eq!(credential_text(&[("cookie", "alluvium_sessions=x")]), "none");
    }
}
