//! The tenant of a request, from the header `X-Scope-OrgID`.
//!
//! In: headers. Out: a tenant id. Whether the caller may use the tenant was decided before, by the guard of `access` or
//! by a proxy.

use http::HeaderMap;

use crate::profile::{TenantError, TenantId};
use crate::server::state::ServerOptions;
use crate::wire::call::TENANT_HEADER;
use crate::wire::connect::{Code, ConnectError};

/// The tenant of a request. On a single-tenant server the header is not read.
pub(super) fn tenant(headers: &HeaderMap, options: &ServerOptions) -> Result<TenantId, ConnectError> {
    if !options.multi_tenant {
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

    /// The tenant by a header on a server of several tenants, or the status of the refusal.
    fn of(header: Option<&str>) -> Result<String, u16> {
        let several = ServerOptions {
            multi_tenant: true,
            ..ServerOptions::default()
        };
        by(header, &several)
    }

    fn by(header: Option<&str>, options: &ServerOptions) -> Result<String, u16> {
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
        assert_eq!(by(None, &one).unwrap(), "anonymous");
        assert_eq!(by(Some("../../etc"), &one).unwrap(), "anonymous");
    }

    #[test]
    fn with_several_the_header_must_be_there_and_valid() {
        assert_eq!(of(Some("team-1_(a)!*.'")).unwrap(), "team-1_(a)!*.'");
        assert_eq!(of(None), Err(401));
        assert_eq!(of(Some("")), Err(401));
        for bad in ["a/b", "..", "a|b", "\u{e9}"] {
            assert_eq!(of(Some(bad)), Err(400), "{bad}");
        }
    }
}
