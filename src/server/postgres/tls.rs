//! TLS of the PostgreSQL port: its certificates, and whether connections without TLS are refused.

use crate::server::postgres::options::{PostgresError, PostgresTls};
use crate::server::tls::{PortTls, Protocols};

pub(super) struct Tls {
    pub(super) port: PortTls,
    pub(super) required: bool,
}

impl Tls {
    /// Reads the certificate, the key and the authorities.
    pub(super) fn load(tls: &PostgresTls) -> Result<Self, PostgresError> {
        Ok(Self {
            port: PortTls::read(tls.files.clone(), Protocols::Postgres).map_err(PostgresError::Tls)?,
            required: tls.required,
        })
    }
}
