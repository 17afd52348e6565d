//! The startup of a connection: TLS, startup message, authentication, and the first messages of the session. Instead of
//! the startup message, a client may send a cancel request.
//!
//! In: a new connection. Out: a [`Connection`] that is ready for queries. Errors are sent in the PostgreSQL protocol.

use std::net::SocketAddr;
use std::sync::Arc;

use pgwire::messages::response::SslResponse;
use pgwire::messages::startup::{
    Authentication, BackendKeyData, NegotiateProtocolVersion, ParameterStatus, SecretKey, Startup,
};
use pgwire::messages::{PgWireBackendMessage, PgWireFrontendMessage, SslNegotiationMetaMessage};

use crate::server::postgres::auth;
use crate::server::postgres::connection::Connection;
use crate::server::postgres::failure::Failure;
use crate::server::postgres::parameters::Settings;
use crate::server::postgres::port::PortState;
use crate::server::postgres::wire::Wire;

/// Major version of the supported protocol, 3.0.
const MAJOR: u16 = 3;

/// Maximum number of messages up to the startup message: a GSS request, a TLS request, one more request on the
/// encrypted stream, and the startup message itself.
const MAX_NEGOTIATIONS: usize = 4;

/// Performs the startup of a connection. Returns `None` if there is no session to serve.
pub(super) async fn start(
    port: &Arc<PortState>,
    mut wire: Wire,
    peer: SocketAddr,
) -> Result<Option<Connection>, Failure> {
    wire = match negotiated(port, wire).await? {
        Some(wire) => wire,
        None => return Ok(None),
    };
    match begin(port, &mut wire, peer).await {
        Ok(Some((session, settings, slot, key))) => {
            Ok(Some(Connection::new(port.clone(), wire, session, settings, slot, key)))
        }
        Ok(None) => Ok(None),
        Err(failure) => {
            wire.close_with(&failure).await;
            Err(failure)
        }
    }
}

/// Handles all messages before the startup message.
async fn negotiated(port: &PortState, mut wire: Wire) -> Result<Option<Wire>, Failure> {
    for _ in 0..MAX_NEGOTIATIONS {
        let message = match wire.message().await {
            Ok(message) => message,
            Err(failure) => {
                wire.close_with(&failure).await;
                return Err(failure);
            }
        };
        match message {
            Some(PgWireFrontendMessage::SslNegotiation(SslNegotiationMetaMessage::PostgresSsl(_))) => {
                if let Some(tls) = port.tls.as_ref().filter(|_| !wire.is_secure) {
                    wire.put(&PgWireBackendMessage::SslResponse(SslResponse::Accept))?;
                    wire.send().await?;
                    wire = wire.secure(tls.port.current()).await?;
                } else {
                    wire.put(&PgWireBackendMessage::SslResponse(SslResponse::Refuse))?;
                    wire.send().await?;
                }
            }
            Some(PgWireFrontendMessage::SslNegotiation(SslNegotiationMetaMessage::PostgresGss(_))) => {
                wire.put(&PgWireBackendMessage::GssEncResponse(
                    pgwire::messages::response::GssEncResponse::Refuse,
                ))?;
                wire.send().await?;
            }
            Some(_) => {
                wire.expect_startup();
                return Ok(Some(wire));
            }
            None => return Ok(None),
        }
    }
    let failure = Failure::protocol("too many encryption requests");
    wire.close_with(&failure).await;
    Err(failure)
}

type Begun = (
    crate::query::SqlSession,
    Settings,
    tokio::sync::OwnedSemaphorePermit,
    crate::server::postgres::cancel::CancelKey,
);

async fn begin(port: &Arc<PortState>, wire: &mut Wire, peer: SocketAddr) -> Result<Option<Begun>, Failure> {
    let startup = match wire.message().await? {
        Some(PgWireFrontendMessage::CancelRequest(cancel)) => {
            if let Some(key) = cancel.secret_key.as_i32() {
                port.cancels.cancel(cancel.pid, key);
            }
            return Ok(None);
        }
        Some(PgWireFrontendMessage::Startup(startup)) => startup,
        Some(_) => return Err(Failure::protocol("expected a startup message")),
        None => return Ok(None),
    };
    wire.started();
    if port.tls.as_ref().is_some_and(|tls| tls.required) && !wire.is_secure {
        return Err(Failure::fatal(
            "28000",
            "this port requires TLS: connect with sslmode=require or stronger",
        ));
    }
    check_version(wire, &startup)?;
    let parameter = |name: &str| startup.parameters.get(name).map(String::as_str).unwrap_or_default();
    let user = parameter("user");
    if user.is_empty() {
        return Err(Failure::fatal("28000", "the user name is missing"));
    }
    let identity = auth::authenticate(wire, &port.users, &port.options.access, user, peer.ip()).await?;
    // The slot is taken only after authentication, because unauthenticated clients must not occupy the slots.
    let slot = port.slots.clone().try_acquire_owned().map_err(|_| {
        Failure::fatal(
            "53300",
            format!(
                "the limit of {} connections is reached: raise postgres.max_connections in the server's configuration",
                port.options.max_connections
            ),
        )
    })?;
    let tenant = auth::tenant_of(
        &port.users,
        &port.options,
        identity.as_deref(),
        user,
        parameter("database"),
    )?;
    let mut settings = Settings::new(user);
    for (name, value) in &startup.parameters {
        if !matches!(name.as_str(), "user" | "database" | "replication" | "options") && !name.starts_with("_pq_.") {
            settings.set(name, value)?;
        }
    }
    if !matches!(parameter("replication"), "" | "false" | "off" | "no" | "0") {
        return Err(Failure::fatal("0A000", "replication is not supported"));
    }
    settings.set_options(parameter("options"))?;
    let session = port.engine.session(&tenant)?;
    let key = port.cancels.register();
    wire.put(&PgWireBackendMessage::Authentication(Authentication::Ok))?;
    for (name, value) in settings.reported() {
        wire.put(&PgWireBackendMessage::ParameterStatus(ParameterStatus::new(
            name, value,
        )))?;
    }
    wire.put(&PgWireBackendMessage::BackendKeyData(BackendKeyData::new(
        key.number,
        SecretKey::I32(key.key),
    )))?;
    wire.trusted();
    tracing::debug!(peer = %peer, user, tenant = %tenant, tls = wire.is_secure, "postgresql connection begins");
    Ok(Some((session, settings, slot, key)))
}

/// Accepts protocol 3 with any minor version. If the client requests a newer version than 3.0 or a protocol extension
/// (`_pq_.`), the server responds that it supports only 3.0 without extensions.
fn check_version(wire: &mut Wire, startup: &Startup) -> Result<(), Failure> {
    if startup.protocol_number_major != MAJOR {
        return Err(Failure::fatal(
            "08P01",
            format!(
                "protocol {}.{} is not supported, use 3.0",
                startup.protocol_number_major, startup.protocol_number_minor
            ),
        ));
    }
    let unknown: Vec<String> = startup
        .parameters
        .keys()
        .filter(|name| name.starts_with("_pq_."))
        .cloned()
        .collect();
    if startup.protocol_number_minor > 0 || !unknown.is_empty() {
        wire.put(&PgWireBackendMessage::NegotiateProtocolVersion(
            NegotiateProtocolVersion::new(0, unknown),
        ))?;
    }
    Ok(())
}
