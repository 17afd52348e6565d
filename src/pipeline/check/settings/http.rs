//! The `http` block, which protects the program's own listener: its schema and settings.
//!
//! In: the block. Out: [`HttpSettings`], checked as far as possible without reading a file. The program that runs the
//! listener loads the certificates.

use std::path::PathBuf;
use std::sync::Arc;

use crate::check::arguments::{argument_error, decode_known};
use crate::check::graph::SourceBlock;
use alluvium_base::pem::Pem;
use alluvium_lang::Diagnostics;
use alluvium_lang::argument_error::ArgumentError;
use alluvium_lang::attribute::Secret;
use alluvium_lang::body::arguments;
use alluvium_lang::decode::Resolve;

arguments! {
    /// The body of `http { }`.
    struct HttpBody {}
    blocks {
        /// Credentials that requests must carry.
        auth: Option<AuthBody>,
        /// TLS settings of the listener.
        tls: Option<TlsBody>,
    }
}

arguments! {
    /// The body of `http > auth { }`.
    struct AuthBody {}
    blocks {
        /// The user name and the password.
        basic: Option<BasicBody>,
        /// Paths that require the credentials; without this block, all paths do.
        filter: Option<FilterBody>,
    }
}

arguments! {
    /// The body of `http > auth > basic { }`.
    struct BasicBody {
        /// Password that requests must carry.
        password: Secret,
        /// User name that requests must carry.
        username: Arc<str>,
    }
}

arguments! {
    /// The body of `http > auth > filter { }`.
    struct FilterBody {
        /// If true, the listed paths require the credentials; if false, all other paths do.
        authenticate_matching_paths: bool = true,
        /// Path prefixes, such as `/metrics`.
        paths: Vec<Arc<str>> = [],
    }
}

arguments! {
    /// The body of `http > tls { }`.
    struct TlsBody {
        /// File with the certificate of the listener.
        cert_file: Option<PathBuf>,
        /// The certificate of the listener as PEM text.
        cert_pem: Option<Arc<str>>,
        /// Enabled cipher suites of TLS 1.2; all if empty.
        cipher_suites: Vec<Arc<str>> = [],
        /// Whether the listener requests client certificates, and how it verifies them.
        client_auth_type: Option<Arc<str>>,
        /// File with the authorities that sign client certificates.
        client_ca_file: Option<PathBuf>,
        /// The authorities that sign client certificates, as PEM text.
        client_ca_pem: Option<Arc<str>>,
        /// Enabled curves, most preferred first; all if empty.
        curve_preferences: Vec<Arc<str>> = [],
        /// File with the key of the certificate.
        key_file: Option<PathBuf>,
        /// The key of the certificate as PEM text.
        key_pem: Option<Secret>,
        /// Maximum version of TLS: TLS12 or TLS13.
        max_version: Option<Arc<str>>,
        /// Minimum version of TLS: TLS10, TLS11, TLS12 or TLS13.
        min_version: Option<Arc<str>>,
    }
}

/// Settings of the `http` block. Contains secrets, and is therefore never printed.
#[derive(Clone, Default)]
pub struct HttpSettings {
    /// Certificates; `None` for plain HTTP.
    pub tls: Option<TlsSettings>,
    /// Required credentials; `None` if requests need none.
    pub auth: Option<AuthSettings>,
}

/// Certificates of the listener.
#[derive(Clone)]
pub struct TlsSettings {
    /// The listener's certificate chain.
    pub certificate: Pem,
    /// The key of the certificate.
    pub key: Pem,
    /// Authorities that sign client certificates.
    pub client_ca: Option<Pem>,
    /// Request and verification of client certificates.
    pub client_auth: ClientAuth,
    /// Go names of cipher suites; empty for all.
    pub cipher_suites: Vec<Arc<str>>,
    /// Go names of curves, most preferred first; empty for all.
    pub curves: Vec<Arc<str>>,
    /// Minimum TLS version: 10 for TLS 1.0, up to 13 for TLS 1.3.
    pub min_version: Option<u8>,
    /// Maximum TLS version: 12 for TLS 1.2, or 13 for TLS 1.3.
    pub max_version: Option<u8>,
}

/// The rule for client certificates: whether they are required, and which authorities may sign them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClientAuth {
    /// No certificate is requested.
    None,
    /// A certificate is requested but optional, from any signer.
    Request,
    /// A certificate is required, from any signer.
    RequireAny,
    /// A certificate is optional, but must be from a known authority.
    VerifyIfGiven,
    /// A certificate from a known authority is required.
    RequireAndVerify,
}

/// Credentials that requests must carry.
#[derive(Clone)]
pub struct AuthSettings {
    /// User name that requests must carry.
    pub username: Arc<str>,
    /// Password that requests must carry.
    pub password: Arc<str>,
    /// Path prefixes to which `matching` refers.
    pub paths: Vec<Arc<str>>,
    /// True if the paths in `paths` require the credentials, false if all other paths do.
    pub matching: bool,
}

const CLIENT_AUTHS: [(&str, ClientAuth); 5] = [
    ("NoClientCert", ClientAuth::None),
    ("RequestClientCert", ClientAuth::Request),
    ("RequireAnyClientCert", ClientAuth::RequireAny),
    ("VerifyClientCertIfGiven", ClientAuth::VerifyIfGiven),
    ("RequireAndVerifyClientCert", ClientAuth::RequireAndVerify),
];
const VERSIONS: [(&str, u8); 4] = [("TLS10", 10), ("TLS11", 11), ("TLS12", 12), ("TLS13", 13)];
/// The cipher suites that Alloy accepts.
const SUITES: [&str; 17] = [
    "TLS_RSA_WITH_AES_128_CBC_SHA",
    "TLS_RSA_WITH_AES_256_CBC_SHA",
    "TLS_RSA_WITH_AES_128_GCM_SHA256",
    "TLS_RSA_WITH_AES_256_GCM_SHA384",
    "TLS_AES_128_GCM_SHA256",
    "TLS_AES_256_GCM_SHA384",
    "TLS_CHACHA20_POLY1305_SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA",
    "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
    "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
];
const CURVES: [&str; 4] = ["CurveP256", "CurveP384", "CurveP521", "X25519"];

/// Decodes the block and checks it. If a value is not known yet, returns the default settings, without TLS and
/// authentication.
pub(crate) fn settings(text: &SourceBlock, resolve: &dyn Resolve) -> Result<HttpSettings, Diagnostics> {
    let Some(body) = decode_known::<HttpBody>(text, resolve)? else {
        return Ok(HttpSettings::default());
    };
    let tls = body.tls.as_ref().map(tls).transpose();
    Ok(HttpSettings {
        tls: tls.map_err(|error| argument_error(text, &error))?,
        auth: body.auth.and_then(auth),
    })
}

fn auth(body: AuthBody) -> Option<AuthSettings> {
    let BasicBody { username, password } = body.basic?;
    let filter = body.filter;
    let is_for_named = filter.as_ref().is_none_or(|filter| filter.authenticate_matching_paths);
    let paths = filter.map(|filter| filter.paths).unwrap_or_default();
    Some(AuthSettings {
        username,
        password: password.0,
        // Without paths Alloy would protect nothing, but a configured password is meant to protect everything.
        matching: is_for_named && !paths.is_empty(),
        paths,
    })
}

fn tls(body: &TlsBody) -> Result<TlsSettings, ArgumentError> {
    let choose_pem = |text: Option<&Arc<str>>, file: &Option<PathBuf>, name: &str| match (text, file) {
        (Some(_), Some(_)) => Err(error("tls", format!("cannot specify both {name}_pem and {name}_file"))),
        (text, file) => Ok(Pem::of(text, file.as_ref())),
    };
    let needed = |pem: Option<Pem>, name: &str| {
        pem.ok_or_else(|| error("tls", format!("must specify either {name}_pem or {name}_file")))
    };
    let client_ca = choose_pem(body.client_ca_pem.as_ref(), &body.client_ca_file, "client_ca")?;
    let certificate = choose_pem(body.cert_pem.as_ref(), &body.cert_file, "cert")?;
    let key = choose_pem(body.key_pem.as_ref().map(|key| &key.0), &body.key_file, "key")?;
    let client_auth = choice(&body.client_auth_type, "client_auth_type", &CLIENT_AUTHS)?.unwrap_or(ClientAuth::None);
    let verifies = matches!(client_auth, ClientAuth::VerifyIfGiven | ClientAuth::RequireAndVerify);
    if client_ca.is_some() && client_auth == ClientAuth::None {
        let message = "cannot specify client_ca_pem or client_ca_file when client_auth_type is NoClientCert";
        return Err(error("tls", message));
    }
    if client_ca.is_none() && verifies {
        // Go would trust all authorities that the system trusts for web sites, which would accept nearly any client.
        let message = "this client_auth_type needs client_ca_pem or client_ca_file";
        return Err(error("tls.client_auth_type", message));
    }
    let (min_version, max_version) = (
        choice(&body.min_version, "min_version", &VERSIONS)?,
        choice(&body.max_version, "max_version", &VERSIONS)?,
    );
    if max_version.is_some_and(|max| max < 12) {
        return Err(error(
            "tls.max_version",
            "TLS 1.0 and 1.1 are not supported: use TLS12 or TLS13",
        ));
    }
    if min_version > max_version && max_version.is_some() {
        return Err(error("tls.min_version", "min_version is above max_version"));
    }
    Ok(TlsSettings {
        certificate: needed(certificate, "cert")?,
        key: needed(key, "key")?,
        client_ca,
        client_auth,
        cipher_suites: known_values(&body.cipher_suites, "cipher_suites", &SUITES)?,
        curves: known_values(&body.curve_preferences, "curve_preferences", &CURVES)?,
        min_version,
        max_version,
    })
}

fn error(path: &str, message: impl Into<String>) -> ArgumentError {
    ArgumentError::new(path, message)
}

fn choice<T: Copy>(argument: &Option<Arc<str>>, name: &str, choices: &[(&str, T)]) -> Result<Option<T>, ArgumentError> {
    let Some(argument) = argument else { return Ok(None) };
    let selected = choices.iter().find(|(choice, _)| *choice == &**argument);
    selected.map(|(_, value)| Some(*value)).ok_or_else(|| {
        let names: Vec<&str> = choices.iter().map(|(choice, _)| *choice).collect();
        let message = format!("unknown {name} \"{argument}\": use one of {}", names.join(", "));
        error(&format!("tls.{name}"), message)
    })
}

fn known_values(values: &[Arc<str>], name: &str, known: &[&str]) -> Result<Vec<Arc<str>>, ArgumentError> {
    match values.iter().find(|value| !known.contains(&&***value)) {
        Some(unknown) => {
            let message = format!(
                "unknown value \"{unknown}\": use values from this list: {}",
                known.join(", ")
            );
            Err(error(&format!("tls.{name}"), message))
        }
        None => Ok(values.to_vec()),
    }
}
