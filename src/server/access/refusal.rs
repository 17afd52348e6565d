//! Refusals: the reason why a caller was refused, as an error of the protocols and as a label of the metric.

use std::fmt;

use crate::server::access::identity::Right;
use alluvium_profile::TenantId;
use alluvium_wire::connect::{Code, ConnectError};

/// The reason why a caller was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Refusal {
    Missing,
    /// The credential is wrong, expired or revoked. The error does not say which of the three applies.
    InvalidCredential,
    /// The identity lacks this right.
    Right(Right),
    /// The identity may not use this tenant.
    Tenant(TenantId),
    /// The call concerns all tenants, but the identity may use only some of them.
    AllTenants,
    /// Too many failed attempts. For up to a minute, the server checks no further attempt.
    Attempts,
    /// The client is on another machine and does not use TLS, so the server does not ask for a password.
    Plain,
    /// The server cannot fetch the keys of the token's issuer.
    Issuer,
}

impl Refusal {
    /// All values of the label `reason`.
    pub(super) const REASONS: [&'static str; 8] = [
        "missing", "wrong", "right", "tenant", "whole", "attempts", "plain", "issuer",
    ];

    /// Returns the value of the label `reason`.
    pub(crate) fn reason(&self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::InvalidCredential => "wrong",
            Self::Right(_) => "right",
            Self::Tenant(_) => "tenant",
            Self::AllTenants => "whole",
            Self::Attempts => "attempts",
            Self::Plain => "plain",
            Self::Issuer => "issuer",
        }
    }

    fn code(&self) -> Code {
        match self {
            Self::Missing | Self::InvalidCredential => Code::Unauthenticated,
            Self::Right(_) | Self::Tenant(_) | Self::AllTenants | Self::Plain => Code::PermissionDenied,
            Self::Attempts => Code::ResourceExhausted,
            Self::Issuer => Code::Unavailable,
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => out.write_str(
                "authentication required: send `Authorization: Bearer TOKEN` (`alluvium token new` creates a token) \
                    or a user and a password",
            ),
            Self::InvalidCredential => out.write_str("the token, or the user and the password, are not valid"),
            Self::Right(right) => write!(out, "the caller lacks the role `{}`", right.name()),
            Self::Tenant(tenant) => write!(out, "the caller is not allowed to use the tenant `{tenant}`"),
            Self::AllTenants => {
                out.write_str("the call concerns all tenants, but the caller may use only some of them")
            }
            Self::Attempts => out.write_str("too many attempts to log in, try again in a minute"),
            Self::Plain => out.write_str("a password is accepted only over TLS or from the same machine"),
            Self::Issuer => out.write_str("cannot fetch the keys of the token's issuer, try again"),
        }
    }
}

impl From<&Refusal> for ConnectError {
    fn from(refusal: &Refusal) -> Self {
        ConnectError::new(refusal.code(), refusal.to_string())
    }
}
