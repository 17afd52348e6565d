//! Whose data a request is about: the header `X-Scope-OrgID`.
//!
//! In: headers. Out: a valid tenant id. Whether the caller may speak for that tenant is a proxy's business: there is no authentication here, as in
//! Pyroscope.

use http::HeaderMap;

use crate::wire::call::TENANT_HEADER;
use crate::wire::connect::{Code, ConnectError};

/// The tenant of everything when there is only one.
pub const DEFAULT_TENANT: &str = "anonymous";

/// Longest id; the same as Pyroscope's.
const MAX_LENGTH: usize = 150;

/// Characters of an id besides ASCII letters and digits; the same as Pyroscope's.
const PUNCTUATION: &[u8] = b"!-_.*'()";

/// The tenant that a request speaks for. With `multi_tenant` off the header is not looked at.
pub fn tenant(headers: &HeaderMap, multi_tenant: bool) -> Result<String, ConnectError> {
    if !multi_tenant {
        return Ok(DEFAULT_TENANT.to_owned());
    }
    let Some(value) = headers.get(TENANT_HEADER) else {
        return Err(ConnectError::new(
            Code::Unauthenticated,
            "no org id: the header X-Scope-OrgID is missing",
        ));
    };
    let id = String::from_utf8_lossy(value.as_bytes());
    validate(&id)?;
    Ok(id.into_owned())
}

/// Checks the form of a tenant id.
pub(crate) fn validate(id: &str) -> Result<(), ConnectError> {
    if id.is_empty() {
        return Err(ConnectError::new(
            Code::Unauthenticated,
            "no org id: X-Scope-OrgID is empty",
        ));
    }
    if id.len() > MAX_LENGTH {
        return Err(ConnectError::invalid(format!(
            "tenant id of {} characters is too long, the limit is {MAX_LENGTH}",
            id.len()
        )));
    }
    if id == "." || id == ".." {
        return Err(ConnectError::invalid(format!("tenant id `{id}` is not allowed")));
    }
    let allowed = |character: char| {
        character.is_ascii_alphanumeric() || u8::try_from(character).is_ok_and(|byte| PUNCTUATION.contains(&byte))
    };
    match id.chars().find(|character| !allowed(*character)) {
        None => Ok(()),
        Some('|') => Err(ConnectError::invalid(format!(
            "tenant id `{id}` names several tenants, a request is about exactly one"
        ))),
        Some(character) => Err(ConnectError::invalid(format!(
            "tenant id `{id}` has the character `{character}`: letters, digits and !-_.*'() are allowed"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(header: Option<&str>, multi_tenant: bool) -> Result<String, u16> {
        let mut headers = HeaderMap::new();
        if let Some(header) = header {
            headers.insert(TENANT_HEADER, header.parse().unwrap());
        }
        tenant(&headers, multi_tenant).map_err(|error| error.status)
    }

    #[test]
    fn with_one_tenant_the_header_does_not_matter() {
        assert_eq!(of(None, false).unwrap(), "anonymous");
        assert_eq!(of(Some("../../etc"), false).unwrap(), "anonymous");
    }

    #[test]
    fn with_several_the_header_must_be_there_and_valid() {
        assert_eq!(of(Some("team-1_(a)!*.'"), true).unwrap(), "team-1_(a)!*.'");
        assert_eq!(of(None, true), Err(401));
        assert_eq!(of(Some(""), true), Err(401));
        let long = "x".repeat(151);
        for bad in ["a/b", "..", ".", "a|b", "a b", "\u{e9}", long.as_str()] {
            assert_eq!(of(Some(bad), true), Err(400), "{bad}");
        }
    }
}
