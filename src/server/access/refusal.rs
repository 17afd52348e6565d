//! Refusals: why a caller was not let in, as errors of the protocols and as a label of the metric.

use std::fmt;

use crate::profile::TenantId;
use crate::server::access::identity::Right;
use crate::wire::connect::{Code, ConnectError};

/// Why a caller was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Refusal {
    Missing,
    /// The credential is wrong, expired or revoked; the caller is not told which.
    Wrong,
    /// The identity lacks this right.
    Right(Right),
    /// The identity may not speak for this tenant.
    Tenant(TenantId),
    /// The call is about all tenants, and the identity is for some of them.
    Whole,
    /// Too many attempts; no further one is looked at.
    Attempts,
    /// A password was about to be sent in the clear to another machine.
    Plain,
    /// The issuer of the token cannot be asked for its keys.
    Issuer,
}

impl Refusal {
    /// Every value of the label `reason`.
    pub(super) const REASONS: [&'static str; 8] = [
        "missing", "wrong", "right", "tenant", "whole", "attempts", "plain", "issuer",
    ];

    /// The value of the label `reason`.
    pub(crate) fn reason(&self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::Wrong => "wrong",
            Self::Right(_) => "right",
            Self::Tenant(_) => "tenant",
            Self::Whole => "whole",
            Self::Attempts => "attempts",
            Self::Plain => "plain",
            Self::Issuer => "issuer",
        }
    }

    fn code(&self) -> Code {
        match self {
            Self::Missing | Self::Wrong => Code::Unauthenticated,
            Self::Right(_) | Self::Tenant(_) | Self::Whole | Self::Plain => Code::PermissionDenied,
            Self::Attempts => Code::ResourceExhausted,
            Self::Issuer => Code::Unavailable,
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => out.write_str(
                "who calls? send `Authorization: Bearer TOKEN` (`alluvium token new` makes one) or a user and a \
                    password",
            ),
            Self::Wrong => out.write_str("the token, or the user and the password, are not valid here"),
            Self::Right(right) => write!(out, "the caller lacks the role `{}`", right.name()),
            Self::Tenant(tenant) => write!(out, "the caller may not speak for the tenant `{tenant}`"),
            Self::Whole => out.write_str("this is about all tenants, and the caller is for some of them"),
            Self::Attempts => out.write_str("too many attempts to log in, try again in a minute"),
            Self::Plain => out.write_str("a password is taken over TLS or from this machine only"),
            Self::Issuer => out.write_str("the issuer of the token cannot be asked for its keys, try again"),
        }
    }
}

impl From<&Refusal> for ConnectError {
    fn from(refusal: &Refusal) -> Self {
        ConnectError::new(refusal.code(), refusal.to_string())
    }
}
