//! Authenticates a connection by SCRAM-SHA-256, by a client certificate, or by a password or token, and determines its
//! tenant.
//!
//! In: the configured users, and the messages of a client. Out: a tenant, or an error. The error is the same for a
//! wrong name and a wrong password. The PostgreSQL port has users of its own, who authenticate by SCRAM. Their
//! passwords are kept as salted hashes and never sent over the wire. [`Access`] verifies tokens and all other
//! passwords. These are sent unchanged, so they are accepted only over TLS or from this machine.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;
use pgwire::api::auth::Password;
use pgwire::api::auth::sasl::scram::{SCRAM_ITERATIONS, ScramServerAuth, gen_salted_password};
use pgwire::messages::startup::Authentication;
use pgwire::messages::{PgWireBackendMessage, PgWireFrontendMessage};
use sha2::{Digest, Sha256};

use crate::server::access::{Access, Identity, Refusal, Right, TenantScope};
use crate::server::postgres::failure::Failure;
use crate::server::postgres::frames;
use crate::server::postgres::options::{PostgresError, PostgresOptions, PostgresUser};
use crate::server::postgres::wire::Wire;
use alluvium_base::net::is_this_machine;
use alluvium_profile::{TenantError, TenantId};

const PLAIN: &str = "SCRAM-SHA-256";
/// Name of the SASL mechanism that binds the exchange to the TLS channel. It prevents man-in-the-middle attacks.
const CHANNEL_BOUND: &str = "SCRAM-SHA-256-PLUS";
const SALT_BYTES: usize = 16;
/// PostgreSQL's error code (SQLSTATE) for a wrong password.
const WRONG_PASSWORD: &str = "28P01";
/// Database names that clients use by default.
const ANY_DATABASE: [&str; 4] = ["", "postgres", "alluvium", "template1"];

/// Users with their salted hashes and tenants.
pub(super) struct Users {
    by_name: HashMap<String, User>,
    /// Secret for the salts of unknown names. The salt of a name is always the same, so unknown names look like known
    /// ones.
    secret: [u8; 32],
}

struct User {
    password: Password,
    tenants: Vec<TenantId>,
}

impl Users {
    /// Hashes each password with its own salt.
    pub(super) fn new(users: &[PostgresUser]) -> Result<Self, PostgresError> {
        let mut by_name = HashMap::new();
        for user in users {
            if user.name.is_empty() || user.password.is_empty() || user.tenants.is_empty() {
                return Err(PostgresError::User(user.name.clone()));
            }
            let salt = rand::random::<[u8; SALT_BYTES]>().to_vec();
            let hash = gen_salted_password(&user.password, &salt, SCRAM_ITERATIONS);
            let made = User {
                password: Password::new(Some(salt), hash),
                tenants: user.tenants.clone(),
            };
            by_name.insert(user.name.clone(), made);
        }
        Ok(Self {
            by_name,
            secret: rand::random(),
        })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }

    /// Returns the password hash to compare with. For an unknown user, the hash is random.
    fn password(&self, user: &str) -> Password {
        if let Some(user) = self.by_name.get(user) {
            return user.password.clone();
        }
        let mut hasher = Sha256::new();
        hasher.update(self.secret);
        hasher.update(user.as_bytes());
        let salt = hasher.finalize().iter().take(SALT_BYTES).copied().collect();
        Password::new(Some(salt), rand::random::<[u8; 32]>().to_vec())
    }
}

/// Authenticates the client. A user of the port proves its password by SCRAM and has no identity. `access`
/// authenticates all other users. If `access` requires no authentication and the port has no users, any client on this
/// machine is accepted. Clients on other machines are accepted, too, if authentication is disabled explicitly.
pub(super) async fn authenticate(
    wire: &mut Wire,
    users: &Users,
    access: &Access,
    user: &str,
    peer: IpAddr,
) -> Result<Option<Arc<Identity>>, Failure> {
    if access.asks() && !users.by_name.contains_key(user) {
        let identity = prove(wire, access, user, peer).await?;
        return Ok(Some(identity));
    }
    if users.is_empty() {
        return if is_this_machine(peer) || access.is_open_on_purpose() {
            Ok(None)
        } else {
            Err(Failure::fatal(
                "28000",
                "only clients on the same machine may connect, because no users are configured",
            ))
        };
    }
    let refused = |refusal: Refusal| Failure::fatal("28000", access.refused(refusal).to_string());
    access.may_try(peer, user).map_err(refused)?;
    let proven = scram(wire, users, user).await;
    if proven.as_ref().is_err_and(|failure| failure.code == WRONG_PASSWORD) {
        access.failed(peer, user);
    }
    proven.map(|()| None)
}

/// Authenticates the client with `access`, by its certificate or by a password.
async fn prove(wire: &mut Wire, access: &Access, user: &str, peer: IpAddr) -> Result<Arc<Identity>, Failure> {
    let refused = |refusal: Refusal| {
        let refusal = access.refused(refusal);
        tracing::debug!(reason = refusal.reason(), "postgresql connection refused");
        match refusal {
            Refusal::Missing | Refusal::InvalidCredential => Failure::fatal(
                WRONG_PASSWORD,
                format!("password authentication failed for user \"{user}\""),
            ),
            refusal => Failure::fatal("28000", refusal.to_string()),
        }
    };
    let shown = wire.client_certificate.clone();
    let identity = match shown.and_then(|certificate| access.by_certificate(&certificate)) {
        Some(identity) => identity,
        None if !wire.is_secure && !is_this_machine(peer) => return Err(refused(Refusal::Plain)),
        None => {
            wire.put(&PgWireBackendMessage::Authentication(Authentication::CleartextPassword))?;
            wire.send().await?;
            let password = frames::password(password_message(wire).await?)?.password;
            access.by_password(user, &password, peer).await.map_err(refused)?
        }
    };
    Access::may(&identity, Right::Read).map_err(refused)?;
    Ok(identity)
}

/// Verifies the password of a user of the port by SCRAM. The error for an unknown user is the same as for a wrong
/// password.
async fn scram(wire: &mut Wire, users: &Users, user: &str) -> Result<(), Failure> {
    let mut scram = ScramServerAuth::new();
    let mut methods = vec![PLAIN.to_owned()];
    // If channel binding does not support the certificate, the server offers only SCRAM without channel binding.
    if let Some(certificate) = &wire.own_certificate
        && scram.configure_certificate(certificate).is_ok()
    {
        methods.insert(0, CHANNEL_BOUND.to_owned());
    }
    let refused = || {
        Failure::fatal(
            WRONG_PASSWORD,
            format!("password authentication failed for user \"{user}\""),
        )
    };
    wire.put(&PgWireBackendMessage::Authentication(Authentication::SASL(
        methods.clone(),
    )))?;
    wire.send().await?;
    let first = frames::sasl_initial(password_message(wire).await?)?;
    if !methods.contains(&first.auth_method) {
        return Err(Failure::protocol(format!(
            "the authentication method {} was not offered",
            first.auth_method
        )));
    }
    let (reply, waiting) = scram
        .on_client_first_message(first.data.as_deref().unwrap_or_default(), users.password(user))
        .map_err(|_| refused())?;
    wire.put(&PgWireBackendMessage::Authentication(Authentication::SASLContinue(
        Bytes::from(reply),
    )))?;
    wire.send().await?;
    let last = password_message(wire).await?;
    let last = last.into_sasl_response().map_err(|_| refused())?;
    let proof = waiting.on_client_final_message(&last.data).map_err(|_| refused())?;
    wire.put(&PgWireBackendMessage::Authentication(Authentication::SASLFinal(
        Bytes::from(proof),
    )))
}

/// Returns the tenant of a connection. If the user or the identity has a list of tenants, the name of the database
/// selects one of them, and a default name selects the first. Otherwise the name of the database is the tenant. A
/// single-tenant server always uses its only tenant.
pub(super) fn tenant_of(
    users: &Users,
    options: &PostgresOptions,
    identity: Option<&Identity>,
    user: &str,
    database: &str,
) -> Result<TenantId, Failure> {
    let unknown = || {
        let message = format!(
            "database \"{database}\" does not exist: a database is a tenant, and user \"{user}\" does not have it"
        );
        Failure::fatal("3D000", message)
    };
    let scope = identity.map(|identity| &identity.tenants);
    if !options.multi_tenant {
        if scope.is_some_and(|scope| !scope.has(&TenantId::anonymous())) {
            return Err(unknown());
        }
        // On a single-tenant server the name of the database has no meaning.
        return Ok(TenantId::anonymous());
    }
    let none_named = ANY_DATABASE.contains(&database) || database == user;
    let user_tenants = users.by_name.get(user).map(|user| &user.tenants);
    let listed = match scope {
        Some(TenantScope::Only(tenants)) => Some(tenants),
        Some(TenantScope::All) => None,
        None => user_tenants,
    };
    if let Some(tenants) = listed {
        let mut tenants = tenants.iter();
        let tenant = tenants.find(|tenant| none_named || tenant.as_str() == database);
        return tenant.cloned().ok_or_else(unknown);
    }
    if none_named {
        return Err(Failure::fatal(
            "3D000",
            "the tenant is missing: connect to the database that has the name of the tenant",
        ));
    }
    database
        .parse()
        .map_err(|error: TenantError| Failure::fatal("3D000", error.to_string()))
}

async fn password_message(wire: &mut Wire) -> Result<pgwire::messages::startup::PasswordMessageFamily, Failure> {
    match wire.message().await? {
        Some(PgWireFrontendMessage::PasswordMessageFamily(message)) => Ok(message),
        Some(_) => Err(Failure::protocol("expected a password message")),
        None => Err(Failure::fatal("08006", "the client disconnected during authentication")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn users(tenants: &[&str]) -> Users {
        let user = PostgresUser {
            name: "ada".to_owned(),
            password: "secret".to_owned(),
            tenants: tenants.iter().map(|tenant| tenant.parse().unwrap()).collect(),
        };
        Users::new(&[user]).unwrap()
    }

    #[test]
    fn a_connection_is_about_one_tenant_of_its_user() {
        let two = users(&["one", "two"]);
        let text = |tenant: Result<TenantId, Failure>| {
            let tenant = tenant.map_err(|failure| failure.code)?;
            Ok::<_, &str>(tenant.to_string())
        };
        let one = PostgresOptions::new("");
        let several = PostgresOptions {
            multi_tenant: true,
            ..one.clone()
        };
        let tenant_name = |database: &str| text(tenant_of(&two, &several, None, "ada", database));
        assert_eq!(tenant_name("two").unwrap(), "two");
        assert_eq!(tenant_name("ada").unwrap(), "one");
        assert_eq!(tenant_name("postgres").unwrap(), "one");
        assert_eq!(tenant_name("three"), Err("3D000"));
        assert_eq!(
            text(tenant_of(&two, &one, None, "ada", "anything")).unwrap(),
            "anonymous"
        );
        let nobody = Users::new(&[]).unwrap();
        assert_eq!(text(tenant_of(&nobody, &one, None, "x", "y")).unwrap(), "anonymous");
        assert_eq!(text(tenant_of(&nobody, &several, None, "x", "y")).unwrap(), "y");
        assert!(tenant_of(&nobody, &several, None, "x", "a/b").is_err());
        assert!(tenant_of(&nobody, &several, None, "x", "postgres").is_err());
    }

    #[test]
    fn an_unknown_user_has_the_same_salt_each_time() {
        let users = users(&["one"]);
        assert_eq!(users.password("eve").salt(), users.password("eve").salt());
        assert_ne!(users.password("eve").salt(), users.password("bob").salt());
        assert_ne!(users.password("eve").password(), users.password("eve").password());
        assert!(
            Users::new(&[PostgresUser {
                name: "x".to_owned(),
                password: String::new(),
                tenants: vec!["one".parse().unwrap()],
            }])
            .is_err()
        );
    }
}
