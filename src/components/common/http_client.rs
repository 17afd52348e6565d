//! HTTP client arguments of the configuration, shared by every component that makes requests.
//!
//! In: an evaluated body. Out: [`ClientOptions`], or the attribute that is wrong. The names, defaults and checks are Alloy's. A
//! component lists the constants it takes in its own schema (sorted among its own attributes).

use std::path::PathBuf;
use std::sync::Arc;

use http::{HeaderMap, HeaderName, HeaderValue};
use url::Url;

use crate::lang::schema::{Arguments, Attribute, Block, Kind, Schema};
use crate::lang::value::Value;
use crate::pipeline::component::ArgumentError;
use crate::wire::client::{ClientOptions, Credential, OAuth2, Pem, ProxyOptions, Secret, TlsOptions, TlsVersion};

/// `bearer_token`.
pub const BEARER_TOKEN: Attribute =
    Attribute::optional("bearer_token", Kind::Secret, "Bearer token to send with every request.");
/// `bearer_token_file`.
pub const BEARER_TOKEN_FILE: Attribute = Attribute::optional(
    "bearer_token_file",
    Kind::String,
    "File with a bearer token; read for every request.",
);
/// `enable_http2`.
pub const ENABLE_HTTP2: Attribute = Attribute::with_default(
    "enable_http2",
    Kind::Bool,
    "true",
    "Whether HTTP/2 is offered over TLS.",
);
/// `follow_redirects`.
pub const FOLLOW_REDIRECTS: Attribute = Attribute::with_default(
    "follow_redirects",
    Kind::Bool,
    "true",
    "Whether redirects (up to 10) are followed.",
);
/// `http_headers`.
pub const HTTP_HEADERS: Attribute = Attribute::optional(
    "http_headers",
    Kind::Map(&Kind::List(&Kind::Secret)),
    "Headers to send with every request, each with a list of values.",
);
/// `no_proxy`.
pub const NO_PROXY: Attribute = Attribute::optional(
    "no_proxy",
    Kind::String,
    "Comma-separated hosts, domains and networks that are reached without the proxy.",
);
/// `proxy_connect_header`.
pub const PROXY_CONNECT_HEADER: Attribute = Attribute::optional(
    "proxy_connect_header",
    Kind::Map(&Kind::List(&Kind::Secret)),
    "Headers to send to the proxy in CONNECT requests.",
);
/// `proxy_from_environment`.
pub const PROXY_FROM_ENVIRONMENT: Attribute = Attribute::with_default(
    "proxy_from_environment",
    Kind::Bool,
    "false",
    "Whether the proxy is taken from HTTP_PROXY, HTTPS_PROXY and NO_PROXY.",
);
/// `proxy_url`.
pub const PROXY_URL: Attribute = Attribute::optional("proxy_url", Kind::String, "Proxy for all requests.");

/// `authorization { }`.
pub const AUTHORIZATION: Block = block("authorization", &AUTHORIZATION_SCHEMA, "Authorization header to send.");
/// `basic_auth { }`.
pub const BASIC_AUTH: Block = block("basic_auth", &BASIC_AUTH_SCHEMA, "User and password to send.");
/// `oauth2 { }`.
pub const OAUTH2: Block = block(
    "oauth2",
    &OAUTH2_SCHEMA,
    "Token server that gives bearer tokens (client credentials).",
);
/// `tls_config { }`.
pub const TLS_CONFIG: Block = block("tls_config", &TLS_SCHEMA, "Certificates of client and server.");

/// All attributes above, sorted.
pub const ATTRIBUTES: &[Attribute] = &[
    BEARER_TOKEN,
    BEARER_TOKEN_FILE,
    ENABLE_HTTP2,
    FOLLOW_REDIRECTS,
    HTTP_HEADERS,
    NO_PROXY,
    PROXY_CONNECT_HEADER,
    PROXY_FROM_ENVIRONMENT,
    PROXY_URL,
];
/// The attributes of clients that have credentials of their own.
pub const TRANSPORT_ATTRIBUTES: &[Attribute] = &[
    ENABLE_HTTP2,
    FOLLOW_REDIRECTS,
    HTTP_HEADERS,
    NO_PROXY,
    PROXY_CONNECT_HEADER,
    PROXY_FROM_ENVIRONMENT,
    PROXY_URL,
];
/// All blocks above, sorted.
pub const BLOCKS: &[Block] = &[AUTHORIZATION, BASIC_AUTH, OAUTH2, TLS_CONFIG];

const fn block(name: &'static str, schema: &'static Schema, doc: &'static str) -> Block {
    Block {
        name,
        labelled: false,
        many: false,
        required: false,
        implied: false,
        schema,
        defaults: &[],
        doc,
    }
}

const BASIC_AUTH_SCHEMA: Schema = Schema {
    attributes: &[
        Attribute::optional("password", Kind::Secret, "Password."),
        Attribute::optional(
            "password_file",
            Kind::String,
            "File with the password; read for every request.",
        ),
        Attribute::with_default("username", Kind::String, "\"\"", "User."),
    ],
    blocks: &[],
};

const AUTHORIZATION_SCHEMA: Schema = Schema {
    attributes: &[
        Attribute::optional("credentials", Kind::Secret, "What follows the type."),
        Attribute::optional(
            "credentials_file",
            Kind::String,
            "File with the credentials; read for every request.",
        ),
        Attribute::with_default("type", Kind::String, "\"Bearer\"", "Type of the header."),
    ],
    blocks: &[],
};

const OAUTH2_SCHEMA: Schema = Schema {
    attributes: &[
        Attribute::with_default("client_id", Kind::String, "\"\"", "Id of the client."),
        Attribute::optional("client_secret", Kind::Secret, "Secret of the client."),
        Attribute::optional(
            "client_secret_file",
            Kind::String,
            "File with the secret of the client.",
        ),
        Attribute::optional(
            "endpoint_params",
            Kind::Map(&Kind::String),
            "Further parameters of the token request.",
        ),
        NO_PROXY,
        PROXY_CONNECT_HEADER,
        PROXY_FROM_ENVIRONMENT,
        PROXY_URL,
        Attribute::with_default("scopes", Kind::List(&Kind::String), "[]", "Scopes to ask for."),
        Attribute::with_default("token_url", Kind::String, "\"\"", "URL of the token server."),
    ],
    blocks: &[TLS_CONFIG],
};

const TLS_SCHEMA: Schema = Schema {
    attributes: &[
        Attribute::optional(
            "ca_file",
            Kind::String,
            "File with the authorities to trust instead of the system's.",
        ),
        Attribute::optional("ca_pem", Kind::String, "Authorities to trust, as PEM text."),
        Attribute::optional("cert_file", Kind::String, "File with the certificate to show."),
        Attribute::optional("cert_pem", Kind::String, "Certificate to show, as PEM text."),
        Attribute::with_default(
            "insecure_skip_verify",
            Kind::Bool,
            "false",
            "Whether any certificate of the server is accepted.",
        ),
        Attribute::optional("key_file", Kind::String, "File with the key of the certificate."),
        Attribute::optional("key_pem", Kind::Secret, "Key of the certificate, as PEM text."),
        Attribute::optional(
            "min_version",
            Kind::String,
            "Lowest TLS version: TLS10, TLS11, TLS12 or TLS13; the first two mean TLS12, the lowest there is.",
        ),
        Attribute::optional(
            "server_name",
            Kind::String,
            "Name to check the server's certificate against, instead of the host of the URL.",
        ),
    ],
    blocks: &[],
};

/// Options from a body that holds the attributes and blocks above. Checks only; nothing is read or opened.
/// `path` is put before the names of attributes in errors: `endpoint[0].` or empty.
pub fn options(arguments: &Arguments, user_agent: Arc<str>, path: &str) -> Result<ClientOptions, ArgumentError> {
    let mut options = ClientOptions::new(user_agent.clone());
    // A body without these attributes (a test's) gets the defaults.
    options.follow_redirects = !matches!(arguments.value("follow_redirects"), Value::Bool(false));
    options.enable_http2 = !matches!(arguments.value("enable_http2"), Value::Bool(false));
    options.headers = headers(arguments.value("http_headers"), &format!("{path}http_headers"))?;
    options.proxy = proxy(arguments, path)?;
    options.tls = tls(arguments, path)?;
    options.credential = credential(arguments, user_agent, path)?;
    Ok(options)
}

/// The check of [`options`] without its result.
pub fn check(arguments: &Arguments, path: &str) -> Result<(), ArgumentError> {
    options(arguments, "".into(), path).map(drop)
}

/// True when none of the attributes and blocks above is given, or as its default is.
pub fn is_default(arguments: &Arguments) -> bool {
    let plain = |attribute: &Attribute| match (arguments.value(attribute.name), attribute.default) {
        (Value::Null, _) => true,
        (Value::Bool(value), Some(default)) => default == if *value { "true" } else { "false" },
        (Value::String(text) | Value::Secret(text), _) => text.is_empty(),
        (Value::Object(fields), _) => fields.is_empty(),
        _ => false,
    };
    ATTRIBUTES.iter().all(plain) && BLOCKS.iter().all(|block| arguments.block(block.name).is_none())
}

fn credential(arguments: &Arguments, user_agent: Arc<str>, path: &str) -> Result<Credential, ArgumentError> {
    let mut given = Vec::new();
    if let Some(basic) = arguments.block("basic_auth") {
        let at = format!("{path}basic_auth.");
        let password = secret(basic, "password", "password_file", &at)?;
        given.push(Credential::Basic {
            username: basic.string("username"),
            password: password.unwrap_or_else(|| Secret::Text(Arc::from(""))),
        });
    }
    if let Some(authorization) = arguments.block("authorization") {
        let at = format!("{path}authorization.");
        let scheme = authorization.string("type");
        if scheme.trim().eq_ignore_ascii_case("basic") {
            let message = "the authorization type cannot be \"basic\": use a basic_auth block";
            return Err(error(format!("{at}type"), message));
        }
        let credentials = secret(authorization, "credentials", "credentials_file", &at)?;
        given.push(Credential::Authorization {
            scheme,
            credentials: credentials.unwrap_or_else(|| Secret::Text(Arc::from(""))),
        });
    }
    if let Some(block) = arguments.block("oauth2") {
        given.push(Credential::OAuth2(Box::new(oauth2(
            block,
            user_agent,
            &format!("{path}oauth2."),
        )?)));
    }
    for (name, is_file) in [("bearer_token", false), ("bearer_token_file", true)] {
        if let Some(text) = arguments.optional_string(name).filter(|text| !text.is_empty()) {
            given.push(Credential::Authorization {
                scheme: "Bearer".into(),
                credentials: if is_file {
                    Secret::File(PathBuf::from(text.as_ref()))
                } else {
                    Secret::Text(text)
                },
            });
        }
    }
    if given.len() > 1 {
        let message =
            "at most one of basic_auth, authorization, oauth2, bearer_token and bearer_token_file may be configured";
        return Err(error(path.trim_end_matches('.'), message));
    }
    Ok(given.pop().unwrap_or(Credential::None))
}

fn oauth2(block: &Arguments, user_agent: Arc<str>, path: &str) -> Result<OAuth2, ArgumentError> {
    let token_url =
        url(block, "token_url", path)?.ok_or_else(|| error(format!("{path}token_url"), "oauth2 needs a token_url"))?;
    if block.string("client_id").is_empty() {
        return Err(error(format!("{path}client_id"), "oauth2 needs a client_id"));
    }
    let client_secret = secret(block, "client_secret", "client_secret_file", path)?.ok_or_else(|| {
        error(
            path.trim_end_matches('.'),
            "oauth2 needs client_secret or client_secret_file",
        )
    })?;
    let mut options = ClientOptions::new(user_agent);
    options.proxy = proxy(block, path)?;
    options.tls = tls(block, path)?;
    Ok(OAuth2 {
        client_id: block.string("client_id"),
        client_secret,
        scopes: block.strings("scopes"),
        token_url,
        endpoint_params: block.string_map("endpoint_params"),
        options,
    })
}

fn proxy(arguments: &Arguments, path: &str) -> Result<ProxyOptions, ArgumentError> {
    let proxy = ProxyOptions {
        url: url(arguments, "proxy_url", path)?,
        no_proxy: arguments.string("no_proxy"),
        from_environment: arguments.bool("proxy_from_environment"),
        connect_headers: headers(
            arguments.value("proxy_connect_header"),
            &format!("{path}proxy_connect_header"),
        )?,
    };
    if proxy.from_environment && proxy.url.is_some() {
        let message = "if proxy_from_environment is configured, proxy_url must not be configured";
        return Err(error(format!("{path}proxy_from_environment"), message));
    }
    if proxy.from_environment && !proxy.no_proxy.is_empty() {
        let message = "if proxy_from_environment is configured, no_proxy must not be configured";
        return Err(error(format!("{path}proxy_from_environment"), message));
    }
    if !proxy.from_environment && proxy.url.is_none() && !proxy.no_proxy.is_empty() {
        let message = "if no_proxy is configured, proxy_url must also be configured";
        return Err(error(format!("{path}no_proxy"), message));
    }
    if !proxy.connect_headers.is_empty() && proxy.url.is_none() && !proxy.from_environment {
        let message =
            "if proxy_connect_header is configured, proxy_url or proxy_from_environment must also be configured";
        return Err(error(format!("{path}proxy_connect_header"), message));
    }
    Ok(proxy)
}

fn tls(arguments: &Arguments, path: &str) -> Result<TlsOptions, ArgumentError> {
    let Some(block) = arguments.block("tls_config") else {
        return Ok(TlsOptions::default());
    };
    let at = format!("{path}tls_config.");
    let options = TlsOptions {
        ca: pem(block, "ca_pem", "ca_file", &at)?,
        certificate: pem(block, "cert_pem", "cert_file", &at)?,
        key: pem(block, "key_pem", "key_file", &at)?,
        server_name: block.optional_string("server_name").filter(|name| !name.is_empty()),
        insecure_skip_verify: block.bool("insecure_skip_verify"),
        min_version: match block.string("min_version").as_ref() {
            "" | "TLS10" | "TLS11" | "TLS12" => TlsVersion::Tls12,
            "TLS13" => TlsVersion::Tls13,
            other => {
                let message = format!("unknown TLS version `{other}`; TLS10, TLS11, TLS12 and TLS13 are known");
                return Err(error(format!("{at}min_version"), message));
            }
        },
    };
    if options.certificate.is_some() != options.key.is_some() {
        let message = "a certificate needs its key: both of cert_pem or cert_file and key_pem or key_file, or none";
        return Err(error(at.trim_end_matches('.'), message));
    }
    Ok(options)
}

fn pem(block: &Arguments, text: &str, file: &str, path: &str) -> Result<Option<Pem>, ArgumentError> {
    Ok(one_of(block, text, file, path)?.map(|(value, is_file)| {
        if is_file {
            Pem::File(PathBuf::from(value.as_ref()))
        } else {
            Pem::Text(value)
        }
    }))
}

fn secret(block: &Arguments, text: &str, file: &str, path: &str) -> Result<Option<Secret>, ArgumentError> {
    Ok(one_of(block, text, file, path)?.map(|(value, is_file)| {
        if is_file {
            Secret::File(PathBuf::from(value.as_ref()))
        } else {
            Secret::Text(value)
        }
    }))
}

/// The one that is given of an attribute and its file form, and whether it is the file.
fn one_of(block: &Arguments, text: &str, file: &str, path: &str) -> Result<Option<(Arc<str>, bool)>, ArgumentError> {
    let set = |name: &str| block.optional_string(name).filter(|value| !value.is_empty());
    match (set(text), set(file)) {
        (Some(_), Some(_)) => Err(error(
            format!("{path}{text}"),
            format!("at most one of {text} and {file} may be configured"),
        )),
        (Some(value), None) => Ok(Some((value, false))),
        (None, Some(value)) => Ok(Some((value, true))),
        (None, None) => Ok(None),
    }
}

/// A URL attribute; `None` when it is empty.
fn url(arguments: &Arguments, name: &str, path: &str) -> Result<Option<Url>, ArgumentError> {
    let text = arguments.string(name);
    if text.is_empty() {
        return Ok(None);
    }
    http_url(&text)
        .map(Some)
        .map_err(|message| error(format!("{path}{name}"), message))
}

/// Reads a URL that HTTP can reach.
pub fn http_url(text: &str) -> Result<Url, String> {
    let url: Url = text
        .parse()
        .map_err(|error| format!("`{text}` is not a URL: {error}"))?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
        return Err(format!("`{text}` is not an http:// or https:// URL"));
    }
    Ok(url)
}

/// Headers from a map of lists.
fn headers(value: &Value, path: &str) -> Result<HeaderMap, ArgumentError> {
    let mut headers = HeaderMap::new();
    let Value::Object(fields) = value else {
        return Ok(headers);
    };
    for (name, values) in fields.iter() {
        let Value::Array(values) = values else { continue };
        for value in values.iter() {
            if let Value::String(text) | Value::Secret(text) = value {
                let (name, value) = header(name, text).map_err(|message| error(path, message))?;
                headers.append(name, value);
            }
        }
    }
    Ok(headers)
}

/// One header, checked.
pub fn header(name: &str, value: &str) -> Result<(HeaderName, HeaderValue), String> {
    let checked = HeaderName::try_from(name).map_err(|_| format!("`{name}` is not a header name"))?;
    let mut value =
        HeaderValue::try_from(value).map_err(|_| format!("the value of header `{name}` holds forbidden characters"))?;
    value.set_sensitive(true);
    Ok((checked, value))
}

fn error(path: impl Into<String>, message: impl Into<String>) -> ArgumentError {
    ArgumentError {
        path: path.into(),
        message: message.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lang::schema::ArgumentBlock;

    fn body(attributes: &[(&str, Value)], blocks: Vec<(&str, Arguments)>) -> Arguments {
        Arguments {
            attributes: attributes
                .iter()
                .map(|(name, value)| ((*name).into(), value.clone()))
                .collect(),
            blocks: blocks
                .into_iter()
                .map(|(name, body)| ArgumentBlock {
                    name: name.into(),
                    label: None,
                    body,
                })
                .collect(),
        }
    }

    fn message(arguments: &Arguments) -> String {
        let error = options(arguments, "agent".into(), "endpoint[0].").unwrap_err();
        format!("{}: {}", error.path, error.message)
    }

    #[test]
    fn defaults_follow_redirects_and_offer_http2() {
        let options = options(&Arguments::default(), "agent".into(), "").unwrap();
        assert!(options.follow_redirects && options.enable_http2);
        assert!(matches!(options.credential, Credential::None));
    }

    #[test]
    fn two_credentials_are_refused() {
        let basic = body(&[("username", Value::string("u"))], vec![]);
        let arguments = body(
            &[("bearer_token", Value::Secret("t".into()))],
            vec![("basic_auth", basic)],
        );
        assert!(message(&arguments).starts_with("endpoint[0]: at most one of basic_auth"));
    }

    #[test]
    fn contradictions_are_refused_at_their_attribute() {
        let arguments = body(&[("no_proxy", Value::string("x"))], vec![]);
        assert_eq!(
            message(&arguments),
            "endpoint[0].no_proxy: if no_proxy is configured, proxy_url must also be configured"
        );
        let tls = body(
            &[("ca_pem", Value::string("a")), ("ca_file", Value::string("b"))],
            vec![],
        );
        assert_eq!(
            message(&body(&[], vec![("tls_config", tls)])),
            "endpoint[0].tls_config.ca_pem: at most one of ca_pem and ca_file may be configured"
        );
        let arguments = body(&[("proxy_url", Value::string("ftp://x"))], vec![]);
        assert_eq!(
            message(&arguments),
            "endpoint[0].proxy_url: `ftp://x` is not an http:// or https:// URL"
        );
    }
}
