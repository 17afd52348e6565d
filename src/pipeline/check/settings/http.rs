//! The `http` block: how the program's own listener is protected. What it may hold, and its settings.
//!
//! In: the block. Out: [`HttpSettings`], checked as far as that goes without reading a file. Certificates and the
//! listener are the business of who runs it.

use std::path::PathBuf;
use std::sync::Arc;

use crate::lang::Diagnostics;
use crate::lang::decode::{Resolve, decode};
use crate::lang::schema::{Arguments, Attribute, Block, Kind, Schema};
use crate::pipeline::check::arguments::argument_error;
use crate::pipeline::check::graph::SourceBlock;
use crate::pipeline::component::ArgumentError;

const STRINGS: Kind = Kind::List(&Kind::String);

/// `http { }`.
pub const SCHEMA: Schema = Schema {
    attributes: &[],
    blocks: &[
        Block::optional("auth", &AUTH, "Who is let in."),
        Block::optional("tls", &TLS, "Certificates of the listener."),
    ],
};

const AUTH: Schema = Schema {
    attributes: &[],
    blocks: &[
        Block::optional("basic", &BASIC, "User and password."),
        Block::optional("filter", &FILTER, "Paths that need them."),
    ],
};

const BASIC: Schema = Schema {
    attributes: &[
        Attribute::required("password", Kind::Secret, "Password."),
        Attribute::required("username", Kind::String, "User."),
    ],
    blocks: &[],
};

const FILTER: Schema = Schema {
    attributes: &[
        Attribute::with_default(
            "authenticate_matching_paths",
            Kind::Bool,
            "true",
            "Whether it is the paths named that need them, or all others.",
        ),
        Attribute::with_default("paths", STRINGS, "[]", "Beginnings of paths."),
    ],
    blocks: &[],
};

const TLS: Schema = Schema {
    attributes: &[
        Attribute::optional("cert_file", Kind::String, "File with the certificate."),
        Attribute::optional("cert_pem", Kind::String, "The certificate, as PEM text."),
        Attribute::with_default("cipher_suites", STRINGS, "[]", "Cipher suites of TLS 1.2 to use."),
        Attribute::optional("client_auth_type", Kind::String, "Whether clients show certificates."),
        Attribute::optional("client_ca_file", Kind::String, "File with the authorities of clients."),
        Attribute::optional(
            "client_ca_pem",
            Kind::String,
            "The authorities of clients, as PEM text.",
        ),
        Attribute::with_default("curve_preferences", STRINGS, "[]", "Curves to use."),
        Attribute::optional("key_file", Kind::String, "File with the key."),
        Attribute::optional("key_pem", Kind::Secret, "The key, as PEM text."),
        Attribute::optional("max_version", Kind::String, "Highest version of TLS."),
        Attribute::optional("min_version", Kind::String, "Lowest version of TLS."),
    ],
    blocks: &[],
};

/// What the block asks for. Holds secrets, and is therefore never printed.
#[derive(Clone, Default)]
pub struct HttpSettings {
    /// Certificates; none for plain HTTP.
    pub tls: Option<TlsSettings>,
    /// Who is let in; none for everybody.
    pub auth: Option<AuthSettings>,
}

/// Certificates of the listener.
#[derive(Clone)]
pub struct TlsSettings {
    /// The listener's certificate chain.
    pub certificate: PemText,
    /// Its key.
    pub key: PemText,
    /// Authorities of clients.
    pub client_ca: Option<PemText>,
    /// What is asked of clients.
    pub client_auth: ClientAuth,
    /// Names of cipher suites as Go has them; empty for all.
    pub cipher_suites: Vec<Arc<str>>,
    /// Names of curves as Go has them, the most wanted first; empty for all.
    pub curves: Vec<Arc<str>>,
    /// Lowest version, 10 to 13.
    pub min_version: Option<u8>,
    /// Highest version, 10 to 13.
    pub max_version: Option<u8>,
}

/// PEM text, or the file that holds it.
#[derive(Clone)]
pub enum PemText {
    /// The text.
    Text(Arc<str>),
    /// The file.
    File(PathBuf),
}

/// What is asked of clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClientAuth {
    /// Nothing.
    None,
    /// A certificate, if they have one, whoever signed it.
    Request,
    /// A certificate, whoever signed it.
    RequireAny,
    /// A certificate of a known authority, if they have one.
    VerifyIfGiven,
    /// A certificate of a known authority.
    RequireAndVerify,
}

/// Who is let in.
#[derive(Clone)]
pub struct AuthSettings {
    /// User.
    pub username: Arc<str>,
    /// Password.
    pub password: Arc<str>,
    /// Beginnings of paths.
    pub paths: Vec<Arc<str>>,
    /// Whether `paths` need the password, or all others do.
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
/// The suites that Alloy knows.
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

/// Reads the block. Where values are not known yet, what depends on them is not checked.
pub(crate) fn settings(text: &SourceBlock, resolve: &dyn Resolve) -> Result<HttpSettings, Diagnostics> {
    let SourceBlock { source, block } = text;
    let decoded = decode(source, block.header(), &block.body, &SCHEMA, resolve);
    if !decoded.complete {
        return decoded.diagnostics.into_result(HttpSettings::default());
    }
    let mut diagnostics = decoded.diagnostics;
    let settings = read(&decoded.arguments).unwrap_or_else(|wrong| {
        diagnostics.push(argument_error(text, &wrong));
        HttpSettings::default()
    });
    diagnostics.into_result(settings)
}

fn error(path: &str, message: impl Into<String>) -> ArgumentError {
    ArgumentError {
        path: path.to_owned(),
        message: message.into(),
    }
}

fn read(arguments: &Arguments) -> Result<HttpSettings, ArgumentError> {
    Ok(HttpSettings {
        tls: arguments.block("tls").map(tls).transpose()?,
        auth: arguments.block("auth").and_then(auth),
    })
}

fn auth(arguments: &Arguments) -> Option<AuthSettings> {
    let basic = arguments.block("basic")?;
    let filter = arguments.block("filter");
    let paths = filter.map(|filter| filter.strings("paths")).unwrap_or_default();
    // Alloy lets everybody in everywhere when no path is named; who writes a password means it.
    let matching = match paths.is_empty() {
        true => false,
        false => filter.is_none_or(|filter| filter.bool("authenticate_matching_paths")),
    };
    Some(AuthSettings {
        username: basic.string("username"),
        password: basic.string("password"),
        paths,
        matching,
    })
}

fn tls(arguments: &Arguments) -> Result<TlsSettings, ArgumentError> {
    let one = |text: &str, file: &str| -> Result<Option<PemText>, ArgumentError> {
        let (given, path) = (arguments.string(text), arguments.string(file));
        match (given.is_empty(), path.is_empty()) {
            (true, true) => Ok(None),
            (false, true) => Ok(Some(PemText::Text(given))),
            (true, false) => Ok(Some(PemText::File(PathBuf::from(&*path)))),
            (false, false) => Err(error("tls", format!("cannot specify both {text} and {file}"))),
        }
    };
    let needed = |pem: Option<PemText>, name: &str| {
        pem.ok_or_else(|| error("tls", format!("must specify either {name}_pem or {name}_file")))
    };
    let client_ca = one("client_ca_pem", "client_ca_file")?;
    let (certificate, key) = (one("cert_pem", "cert_file")?, one("key_pem", "key_file")?);
    let client_auth = choice(arguments, "client_auth_type", &CLIENT_AUTHS)?.unwrap_or(ClientAuth::None);
    let verifies = matches!(client_auth, ClientAuth::VerifyIfGiven | ClientAuth::RequireAndVerify);
    if client_ca.is_some() && client_auth == ClientAuth::None {
        let message = "cannot specify client_ca_pem or client_ca_file when client_auth_type is NoClientCert";
        return Err(error("tls", message));
    }
    if client_ca.is_none() && verifies {
        // Go would trust every authority that the system trusts with web sites: not what a closed door means.
        let message = "this client_auth_type needs client_ca_pem or client_ca_file";
        return Err(error("tls.client_auth_type", message));
    }
    let (min_version, max_version) = (
        choice(arguments, "min_version", &VERSIONS)?,
        choice(arguments, "max_version", &VERSIONS)?,
    );
    if max_version.is_some_and(|most| most < 12) {
        return Err(error(
            "tls.max_version",
            "TLS 1.0 and 1.1 are not spoken: use TLS12 or TLS13",
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
        cipher_suites: among(arguments, "cipher_suites", &SUITES)?,
        curves: among(arguments, "curve_preferences", &CURVES)?,
        min_version,
        max_version,
    })
}

fn choice<T: Copy>(arguments: &Arguments, name: &str, choices: &[(&str, T)]) -> Result<Option<T>, ArgumentError> {
    let given = arguments.string(name);
    if given.is_empty() {
        return Ok(None);
    }
    let found = choices.iter().find(|(choice, _)| *choice == &*given);
    found.map(|(_, value)| Some(*value)).ok_or_else(|| {
        let names: Vec<&str> = choices.iter().map(|(choice, _)| *choice).collect();
        let message = format!("unknown {name} \"{given}\"; one of: {}", names.join(", "));
        error(&format!("tls.{name}"), message)
    })
}

fn among(arguments: &Arguments, name: &str, known: &[&str]) -> Result<Vec<Arc<str>>, ArgumentError> {
    let given = arguments.strings(name);
    match given.iter().find(|given| !known.contains(&&***given)) {
        Some(unknown) => {
            let message = format!("unknown \"{unknown}\"; known are: {}", known.join(", "));
            Err(error(&format!("tls.{name}"), message))
        }
        None => Ok(given),
    }
}
