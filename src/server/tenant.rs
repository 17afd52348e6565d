//! Whose data a request is about: the header `X-Scope-OrgID`.
//!
//! In: headers. Out: a tenant id. Whether the caller may speak for that tenant is a proxy's business: there is no
//! authentication here, as in Pyroscope.

use http::HeaderMap;

use crate::profile::{TenantError, TenantId};
use crate::wire::call::TENANT_HEADER;
use crate::wire::connect::{Code, ConnectError};

/// The tenant that a request speaks for. With `multi_tenant` off the header is not looked at.
pub fn tenant(headers: &HeaderMap, multi_tenant: bool) -> Result<TenantId, ConnectError> {
    if !multi_tenant {
        return Ok(TenantId::anonymous());
    }
    let unauthenticated = |problem| {
        let message = format!("no org id: the header X-Scope-OrgID is {problem}");
        ConnectError::new(Code::Unauthenticated, message)
    };
    let value = headers.get(TENANT_HEADER).ok_or_else(|| unauthenticated("missing"))?;
    String::from_utf8_lossy(value.as_bytes())
        .parse()
        .map_err(|error| match error {
            TenantError::Empty => unauthenticated("empty"),
            error => ConnectError::invalid(error.to_string()),
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(header: Option<&str>, multi_tenant: bool) -> Result<String, u16> {
        let mut headers = HeaderMap::new();
        if let Some(header) = header {
            headers.insert(TENANT_HEADER, header.parse().unwrap());
        }
        tenant(&headers, multi_tenant)
            .map(|tenant| tenant.to_string())
            .map_err(|error| error.status)
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
        for bad in ["a/b", "..", "a|b", "\u{e9}"] {
            assert_eq!(of(Some(bad), true), Err(400), "{bad}");
        }
    }
}
