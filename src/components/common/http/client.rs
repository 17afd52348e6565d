//! HTTP client arguments of the configuration, shared by every component that makes requests.
//!
//! A component includes [`HttpClientArguments`] in its own arguments (`shared`). Names, defaults and checks are the
//! same as in Alloy. Out: [`ClientOptions`] for the client itself. This module reads no files and opens no connections.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use crate::common::arguments::checks::at_most_one_of;
use crate::common::http::values::{Headers, HttpUrl, ProxyUrl, check_header_secret, check_header_text};
use alluvium_lang::argument_error::{ArgumentError, ArgumentErrors};
use alluvium_lang::attribute::{FromValue, Secret, wrong};
use alluvium_lang::body::{FromBody as _, arguments};
use alluvium_lang::schema::{Arguments, Kind};
use alluvium_lang::value::Value;
use alluvium_wire::client::{self, ClientOptions, Credential, OAuth2, Pem, ProxyOptions, TlsOptions};

arguments! {
    /// All arguments of an HTTP client.
    pub(crate) struct HttpClientArguments {
        /// Bearer token to send with every request.
        bearer_token: Option<Secret>,
        /// File with the bearer token. It is read for every request.
        bearer_token_file: Option<PathBuf>,
    }
    blocks {
        /// Authorization header to send.
        authorization: Option<Authorization>,
        /// User and password to send.
        basic_auth: Option<BasicAuth>,
        /// Token server that issues bearer tokens (OAuth 2.0 client credentials).
        oauth2: Option<OAuth2Arguments>,
        /// TLS settings for the connection to the server.
        tls_config: Option<TlsArguments>,
    }
    shared { transport: Transport }
    check HttpClientArguments::check;
}

arguments! {
    /// Transport of requests. A component with its own kind of credentials includes only these arguments of a client.
    pub(crate) struct Transport {
        /// If true, HTTP/2 is offered over TLS.
        enable_http2: bool = true,
        /// If true, up to 9 redirects are followed. Another host, or the same host after a redirect from HTTPS to HTTP,
        /// receives no credentials, `http_headers` or request body.
        follow_redirects: bool = true,
        /// Headers to send with every request, each with a list of values.
        http_headers: Headers,
    }
    shared { proxy: Proxy }
}

arguments! {
    /// Arguments of the proxy for requests.
    pub(crate) struct Proxy {
        /// Comma-separated hosts, domains and networks that are reached without the proxy.
        no_proxy: Option<Arc<str>>,
        /// Headers to send to the proxy in CONNECT requests.
        proxy_connect_header: Headers,
        /// If true, the environment variables HTTP_PROXY, HTTPS_PROXY and NO_PROXY configure the proxy.
        proxy_from_environment: bool = false,
        /// Proxy for all requests: `http://`, `https://` or `socks5://`.
        proxy_url: Option<ProxyUrl>,
    }
    check Proxy::check;
}

arguments! {
    /// The body of `basic_auth { }`.
    pub(crate) struct BasicAuth {
        /// Password to send with every request.
        password: Option<Secret>,
        /// File with the password. It is read for every request.
        password_file: Option<PathBuf>,
        /// User name to send with every request.
        username: Arc<str> = "",
    }
    check BasicAuth::check;
}

arguments! {
    /// The body of `authorization { }`.
    pub(crate) struct Authorization {
        /// Credentials, which follow the type in the header.
        credentials: Option<Secret>,
        /// File with the credentials. It is read for every request.
        credentials_file: Option<PathBuf>,
        /// Authorization type, the first word of the header.
        scheme as "type": Arc<str> = "Bearer",
    }
    check Authorization::check;
}

arguments! {
    /// The body of `oauth2 { }`.
    pub(crate) struct OAuth2Arguments {
        /// Client id at the token server.
        client_id: Arc<str> = "",
        /// Client secret at the token server.
        client_secret: Option<Secret>,
        /// File with the client secret.
        client_secret_file: Option<PathBuf>,
        /// Additional parameters of the token request.
        endpoint_params: Option<BTreeMap<Arc<str>, Arc<str>>>,
        /// Scopes to request from the token server.
        scopes: Vec<Arc<str>> = [],
        /// URL of the token server.
        token_url: Option<HttpUrl> = "",
    }
    blocks {
        /// TLS settings for the connection to the token server.
        tls_config: Option<TlsArguments>,
    }
    shared { proxy: Proxy }
    check OAuth2Arguments::check;
}

arguments! {
    /// The body of `tls_config { }`.
    pub(crate) struct TlsArguments {
        /// File with the certificate authorities to trust, instead of the system's.
        ca_file: Option<PathBuf>,
        /// Certificate authorities to trust, instead of the system's, as PEM text.
        ca_pem: Option<Arc<str>>,
        /// File with the client certificate.
        cert_file: Option<PathBuf>,
        /// Client certificate, as PEM text.
        cert_pem: Option<Arc<str>>,
        /// If true, the server's certificate is not verified.
        insecure_skip_verify: bool = false,
        /// File with the private key of the client certificate.
        key_file: Option<PathBuf>,
        /// Private key of the client certificate, as PEM text.
        key_pem: Option<Secret>,
        /// Lowest TLS version: TLS10, TLS11, TLS12 or TLS13. TLS10 and TLS11 are treated as TLS12, the lowest supported
        /// version.
        min_version: Option<TlsVersion>,
        /// Name to verify in the server's certificate, instead of the host of the URL.
        server_name: Option<Arc<str>>,
    }
    check TlsArguments::check;
}

/// The lowest TLS version that a client accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TlsVersion(client::TlsVersion);

impl FromValue for TlsVersion {
    const KIND: Kind = Kind::String;

    fn from_value(name: &str, value: &Value) -> Result<Self, ArgumentError> {
        match &*Arc::<str>::from_value(name, value)? {
            "TLS10" | "TLS11" | "TLS12" => Ok(Self(client::TlsVersion::Tls12)),
            "TLS13" => Ok(Self(client::TlsVersion::Tls13)),
            other => Err(wrong(format!(
                "unknown TLS version `{other}`: use TLS10, TLS11, TLS12 or TLS13"
            ))),
        }
    }
}

/// Reads the arguments of an HTTP client from an evaluated body, and returns the options of the client.
pub fn client_options(body: &Arguments, user_agent: &Arc<str>) -> Result<ClientOptions, ArgumentErrors> {
    Ok(HttpClientArguments::from_body(body)?.options(user_agent))
}

impl HttpClientArguments {
    /// Returns arguments of a client without credentials, for components with their own credentials.
    pub(crate) fn with_transport(transport: &Transport) -> Self {
        Self {
            bearer_token: None,
            bearer_token_file: None,
            authorization: None,
            basic_auth: None,
            oauth2: None,
            tls_config: None,
            transport: transport.clone(),
        }
    }

    /// Returns the client's options. `user_agent` is the client's name in requests.
    pub(crate) fn options(&self, user_agent: &Arc<str>) -> ClientOptions {
        ClientOptions {
            credential: self.credential(user_agent),
            ..self.transport.options(user_agent, self.tls_config.as_ref())
        }
    }

    /// Returns true if every argument has its default value.
    pub(crate) fn is_default(&self) -> bool {
        let Transport {
            enable_http2,
            follow_redirects,
            http_headers,
            proxy,
        } = &self.transport;
        let has_no_proxy = proxy.no_proxy.is_none() && proxy.proxy_url.is_none() && !proxy.proxy_from_environment;
        !self.credentials().contains(&true)
            && self.tls_config.is_none()
            && *enable_http2
            && *follow_redirects
            && http_headers.map().is_empty()
            && proxy.proxy_connect_header.map().is_empty()
            && has_no_proxy
    }

    /// Returns an error if several credentials are configured. `credentials` says which of them are.
    pub(crate) fn check_credentials(credentials: [bool; 5]) -> Result<(), ArgumentError> {
        if credentials.iter().filter(|is_set| **is_set).count() > 1 {
            let message = "at most one of basic_auth, authorization, oauth2, bearer_token and bearer_token_file may be \
                configured";
            return Err(ArgumentError::new("", message));
        }
        Ok(())
    }

    fn credentials(&self) -> [bool; 5] {
        [
            self.basic_auth.is_some(),
            self.authorization.is_some(),
            self.oauth2.is_some(),
            self.bearer_token.is_some(),
            self.bearer_token_file.is_some(),
        ]
    }

    fn check(&self) -> Result<(), ArgumentError> {
        Self::check_credentials(self.credentials())?;
        check_header_secret("bearer_token", self.bearer_token.as_ref())
    }

    fn credential(&self, user_agent: &Arc<str>) -> Credential {
        let empty = || client::Secret::Text(Arc::from(""));
        if let Some(basic) = &self.basic_auth {
            let password = secret(basic.password.as_ref(), basic.password_file.as_ref());
            return Credential::Basic {
                username: basic.username.clone(),
                password: password.unwrap_or_else(empty),
            };
        }
        if let Some(authorization) = &self.authorization {
            let credentials = secret(
                authorization.credentials.as_ref(),
                authorization.credentials_file.as_ref(),
            );
            return Credential::Authorization {
                scheme: authorization.scheme.clone(),
                credentials: credentials.unwrap_or_else(empty),
            };
        }
        if let Some(oauth2) = &self.oauth2 {
            return oauth2.credential(user_agent);
        }
        match secret(self.bearer_token.as_ref(), self.bearer_token_file.as_ref()) {
            Some(credentials) => Credential::Authorization {
                scheme: "Bearer".into(),
                credentials,
            },
            None => Credential::None,
        }
    }
}

impl Transport {
    /// Returns the options of a client without credentials. `user_agent` is the client's name in requests.
    pub(crate) fn options(&self, user_agent: &Arc<str>, tls_config: Option<&TlsArguments>) -> ClientOptions {
        ClientOptions {
            follow_redirects: self.follow_redirects,
            enable_http2: self.enable_http2,
            headers: self.http_headers.map().clone(),
            proxy: self.proxy.options(),
            tls: tls(tls_config),
            ..ClientOptions::new(user_agent.clone())
        }
    }
}

impl Proxy {
    fn options(&self) -> ProxyOptions {
        ProxyOptions {
            url: self.proxy_url.as_ref().map(|url| url.0.clone()),
            no_proxy: self.no_proxy.clone().unwrap_or_default(),
            from_environment: self.proxy_from_environment,
            connect_headers: self.proxy_connect_header.map().clone(),
        }
    }

    fn check(&self) -> Result<(), ArgumentError> {
        let error = |path: &str, message: &str| Err(ArgumentError::new(path, message));
        if self.proxy_from_environment && self.proxy_url.is_some() {
            let message = "if proxy_from_environment is configured, proxy_url must not be configured";
            return error("proxy_from_environment", message);
        }
        if self.proxy_from_environment && self.no_proxy.is_some() {
            let message = "if proxy_from_environment is configured, no_proxy must not be configured";
            return error("proxy_from_environment", message);
        }
        if self.proxy_url.is_none() && self.no_proxy.is_some() {
            return error(
                "no_proxy",
                "if no_proxy is configured, proxy_url must also be configured",
            );
        }
        if !self.proxy_connect_header.map().is_empty() && self.proxy_url.is_none() && !self.proxy_from_environment {
            let message =
                "if proxy_connect_header is configured, proxy_url or proxy_from_environment must also be configured";
            return error("proxy_connect_header", message);
        }
        Ok(())
    }
}

impl BasicAuth {
    fn check(&self) -> Result<(), ArgumentError> {
        at_most_one_of("password", &self.password, "password_file", &self.password_file)
    }
}

impl Authorization {
    fn check(&self) -> Result<(), ArgumentError> {
        if self.scheme.trim().eq_ignore_ascii_case("basic") {
            let message = "the authorization type cannot be \"basic\": use a basic_auth block";
            return Err(ArgumentError::new("type", message));
        }
        check_header_text("type", &self.scheme)?;
        check_header_secret("credentials", self.credentials.as_ref())?;
        at_most_one_of(
            "credentials",
            &self.credentials,
            "credentials_file",
            &self.credentials_file,
        )
    }
}

impl OAuth2Arguments {
    fn check(&self) -> Result<(), ArgumentError> {
        let error = |path: &str, message: &str| Err(ArgumentError::new(path, message));
        if self.token_url.is_none() {
            return error("token_url", "oauth2 needs a token_url");
        }
        if self.client_id.is_empty() {
            return error("client_id", "oauth2 needs a client_id");
        }
        let (text, file) = (&self.client_secret, &self.client_secret_file);
        at_most_one_of("client_secret", text, "client_secret_file", file)?;
        if text.is_none() && file.is_none() {
            return error("", "oauth2 needs client_secret or client_secret_file");
        }
        Ok(())
    }

    fn credential(&self, user_agent: &Arc<str>) -> Credential {
        let client_secret = secret(self.client_secret.as_ref(), self.client_secret_file.as_ref());
        // `check` rejects a block without a token URL or a client secret.
        let (Some(token_url), Some(client_secret)) = (&self.token_url, client_secret) else {
            return Credential::None;
        };
        Credential::OAuth2(Box::new(OAuth2 {
            client_id: self.client_id.clone(),
            client_secret,
            scopes: self.scopes.clone(),
            token_url: token_url.url().clone(),
            endpoint_params: self.endpoint_params.clone().unwrap_or_default(),
            options: ClientOptions {
                proxy: self.proxy.options(),
                tls: tls(self.tls_config.as_ref()),
                ..ClientOptions::new(user_agent.clone())
            },
        }))
    }
}

impl TlsArguments {
    fn check(&self) -> Result<(), ArgumentError> {
        at_most_one_of("ca_pem", &self.ca_pem, "ca_file", &self.ca_file)?;
        at_most_one_of("cert_pem", &self.cert_pem, "cert_file", &self.cert_file)?;
        at_most_one_of("key_pem", &self.key_pem, "key_file", &self.key_file)?;
        let has_certificate = self.cert_pem.is_some() || self.cert_file.is_some();
        let has_key = self.key_pem.is_some() || self.key_file.is_some();
        if has_certificate != has_key {
            let message = "a certificate needs a key: set cert_pem or cert_file, and key_pem or key_file, or \
                none of the four";
            return Err(ArgumentError::new("", message));
        }
        Ok(())
    }
}

/// Returns the TLS options of a block `tls_config`. Without a block, the system's certificate authorities are trusted.
pub(crate) fn tls(arguments: Option<&TlsArguments>) -> TlsOptions {
    let Some(arguments) = arguments else {
        return TlsOptions::default();
    };
    TlsOptions {
        ca: Pem::of(arguments.ca_pem.as_ref(), arguments.ca_file.as_ref()),
        certificate: Pem::of(arguments.cert_pem.as_ref(), arguments.cert_file.as_ref()),
        key: Pem::of(
            arguments.key_pem.as_ref().map(|key| &key.0),
            arguments.key_file.as_ref(),
        ),
        server_name: arguments.server_name.clone(),
        insecure_skip_verify: arguments.insecure_skip_verify,
        min_version: arguments
            .min_version
            .map_or(client::TlsVersion::Tls12, |version| version.0),
    }
}

fn secret(text: Option<&Secret>, file: Option<&PathBuf>) -> Option<client::Secret> {
    match (text, file) {
        (Some(text), _) => Some(client::Secret::Text(text.0.clone())),
        (None, file) => file.cloned().map(client::Secret::File),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::common::testing::Body;

    fn read(body: &Body) -> Result<HttpClientArguments, String> {
        let values = body.fit(HttpClientArguments::SCHEMA, &[]);
        HttpClientArguments::from_body(&values).map_err(|errors| errors.0[0].to_string())
    }

    #[test]
    fn defaults_follow_redirects_and_offer_http2() {
        let arguments = read(&Body::new()).unwrap();
        let options = arguments.options(&"agent".into());
        assert!(arguments.is_default() && options.follow_redirects && options.enable_http2);
        assert!(matches!(options.credential, Credential::None));
    }

    #[test]
    fn two_credentials_are_refused() {
        let body = Body::new()
            .with("bearer_token", Value::Secret("t".into()))
            .block("basic_auth", Body::new().text("username", "u"));
        assert!(read(&body).unwrap_err().starts_with(": at most one of basic_auth"));
    }

    #[test]
    fn line_breaks_at_the_end_of_secrets_are_ignored_and_others_are_refused() {
        let secret = |text: &str| Value::Secret(text.into());
        let token = |text: &str| Body::new().with("bearer_token", secret(text));
        let authorization = |text: &str| {
            let block = Body::new().with("credentials", secret(text));
            Body::new().block("authorization", block)
        };
        let headers = |text: &str| {
            let values = Value::array([secret(text)]);
            Body::new().with("http_headers", Value::object([("X-Key", values)]))
        };
        for end in ["\n", "\r\n", " \n\n"] {
            let text = format!("hush{end}");
            for body in [token(&text), authorization(&text)] {
                assert_eq!(read(&body).err(), None);
            }
            let arguments = read(&headers(&text)).unwrap();
            assert_eq!(arguments.transport.http_headers.map()["x-key"], "hush");
        }
        for (body, path) in [
            (token("hu\nsh"), "bearer_token: bearer_token"),
            (authorization("hu\nsh"), "authorization.credentials: credentials"),
            (headers("hu\nsh"), "http_headers: the value of header `X-Key`"),
        ] {
            let expected = format!("{path} contains characters that are not allowed in an HTTP header");
            let error = read(&body).unwrap_err();
            assert!(error.starts_with(&expected) && !error.contains("sh"), "{error}");
        }
    }

    #[test]
    fn contradictions_are_refused_at_their_attribute() {
        assert_eq!(
            read(&Body::new().text("no_proxy", "x")).unwrap_err(),
            "no_proxy: if no_proxy is configured, proxy_url must also be configured"
        );
        let tls = Body::new().text("ca_pem", "a").text("ca_file", "b");
        assert_eq!(
            read(&Body::new().block("tls_config", tls)).unwrap_err(),
            "tls_config.ca_pem: at most one of ca_pem and ca_file may be configured"
        );
        assert_eq!(
            read(&Body::new().text("proxy_url", "ftp://x")).unwrap_err(),
            "proxy_url: `ftp://x` is not an http://, https:// or socks5:// URL"
        );
        assert_eq!(
            read(&Body::new().text("proxy_url", "socks5://me:secret@x:1080")).err(),
            None
        );
    }
}
