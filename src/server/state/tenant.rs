//! The tenants of a request, from the header `X-Scope-OrgID`.
//!
//! In: headers. Out: one tenant id, or for a query one or more tenant ids. The guard in `server::access`, or a proxy in
//! front of the server, has already decided whether the caller may use the tenants.

use http::HeaderMap;

use crate::server::state::shared::ServerOptions;
use alluvium_profile::{TenantError, TenantId, Tenants};
use alluvium_wire::call::TENANT_HEADER;
use alluvium_wire::connect::{Code, ConnectError};

/// Reads the tenant of a request that concerns exactly one tenant. A single-tenant server ignores the header.
pub(in crate::server) fn tenant(headers: &HeaderMap, options: &ServerOptions) -> Result<TenantId, ConnectError> {
    one_tenant(&tenants(headers, options)?)
}

/// Reads the tenants of a query: one, or several separated by `|`. A single-tenant server ignores the header.
pub(in crate::server) fn tenants(headers: &HeaderMap, options: &ServerOptions) -> Result<Tenants, ConnectError> {
    if !options.multi_tenant {
        return Ok(TenantId::anonymous().into());
    }
    let unauthenticated = |problem| {
        let message = format!("no org id: the header X-Scope-OrgID is {problem}");
        ConnectError::new(Code::Unauthenticated, message)
    };
    let value = headers.get(TENANT_HEADER).ok_or_else(|| unauthenticated("missing"))?;
    if value.is_empty() {
        return Err(unauthenticated("empty"));
    }
    String::from_utf8_lossy(value.as_bytes())
        .parse()
        .map_err(|error: TenantError| ConnectError::invalid(error.to_string()))
}

/// Returns the anonymous tenant and ignores the header, for calls about the server itself.
pub(in crate::server) fn no_tenants(_headers: &HeaderMap, _options: &ServerOptions) -> Result<Tenants, ConnectError> {
    Ok(TenantId::anonymous().into())
}

/// Returns the tenant of a request that concerns exactly one tenant, such as every request that stores something. If
/// the request names several tenants, the message of the error begins as in Pyroscope.
pub(in crate::server) fn one_tenant(tenants: &Tenants) -> Result<TenantId, ConnectError> {
    tenants.single().cloned().ok_or_else(|| {
        let message = format!("multiple org IDs present: `{tenants}`, but this request concerns exactly one tenant");
        ConnectError::new(Code::Unauthenticated, message)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the tenant that a header names on a multi-tenant server, or the status of the refusal.
    fn tenant_of(header: Option<&str>) -> Result<String, u16> {
        let several = ServerOptions {
            multi_tenant: true,
            ..ServerOptions::default()
        };
        tenant_with(header, &several)
    }

    fn tenant_with(header: Option<&str>, options: &ServerOptions) -> Result<String, u16> {
        let mut headers = HeaderMap::new();
        if let Some(header) = header {
            headers.insert(TENANT_HEADER, header.parse().unwrap());
        }
        tenant(&headers, options)
            .map(|tenant| tenant.to_string())
            .map_err(|error| error.status)
    }

    #[test]
    fn with_one_tenant_the_header_does_not_matter() {
        let one = ServerOptions::default();
        assert_eq!(tenant_with(None, &one).unwrap(), "anonymous");
        assert_eq!(tenant_with(Some("../../etc"), &one).unwrap(), "anonymous");
    }

    #[test]
    fn with_several_the_header_must_be_there_and_valid() {
        assert_eq!(tenant_of(Some("team-1_(a)!*.'")).unwrap(), "team-1_(a)!*.'");
        assert_eq!(tenant_of(None), Err(401));
        assert_eq!(tenant_of(Some("")), Err(401));
        for header in ["a/b", "..", "a||b", "|", "\u{e9}"] {
            assert_eq!(tenant_of(Some(header)), Err(400), "{header}");
        }
    }

    #[test]
    fn several_are_for_questions_only() {
        assert_eq!(tenant_of(Some("a|b")), Err(401));
        assert_eq!(tenant_of(Some("a|a")).unwrap(), "a");
        let options = ServerOptions {
            multi_tenant: true,
            ..ServerOptions::default()
        };
        let mut headers = HeaderMap::new();
        headers.insert(TENANT_HEADER, "b|a|b".parse().unwrap());
        assert_eq!(tenants(&headers, &options).unwrap().to_string(), "a|b");
    }
}
