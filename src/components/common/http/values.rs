//! Attributes that are parts of HTTP requests: URLs, headers, methods.

use std::sync::Arc;

use http::header::{InvalidHeaderName, InvalidHeaderValue};
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use url::Url;

use alluvium_lang::argument_error::ArgumentError;
use alluvium_lang::attribute::{FromValue, Secret, text, wrong};
use alluvium_lang::schema::Kind;
use alluvium_lang::value::Value;

/// The reason why a text is not a URL for requests.
#[derive(Debug, thiserror::Error)]
pub enum UrlError {
    #[error("`{text}` is not a URL: {source}")]
    Invalid { text: String, source: url::ParseError },
    /// The scheme of the URL is not accepted here, or the URL has no host.
    #[error("`{text}` is not an {schemes} URL")]
    Scheme {
        text: String,
        /// The accepted schemes, for messages.
        schemes: &'static str,
    },
}

/// The reason why a header cannot be sent.
#[derive(Debug, thiserror::Error)]
enum HeaderError {
    #[error("`{name}` is not a header name")]
    Name { name: String, source: InvalidHeaderName },
    #[error("the value of header `{name}` contains characters that are not allowed in an HTTP header")]
    Value { name: String, source: InvalidHeaderValue },
}

/// A URL with `http` or `https` and a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HttpUrl {
    url: Url,
    written: Arc<str>,
}

impl HttpUrl {
    /// Returns the URL in the form that requests use.
    pub(crate) fn url(&self) -> &Url {
        &self.url
    }

    /// Returns the URL as written in the configuration, for metrics and messages.
    pub(crate) fn written(&self) -> &Arc<str> {
        &self.written
    }
}

impl FromValue for HttpUrl {
    const KIND: Kind = Kind::String;

    fn from_value(name: &str, value: &Value) -> Result<Self, ArgumentError> {
        let written = Arc::<str>::from_value(name, value)?;
        let url = http_url(&written).map_err(wrong)?;
        Ok(Self { url, written })
    }
}

/// URL of a proxy: `http`, `https`, `socks5` or `socks5h`, with a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ProxyUrl(pub(crate) Url);

impl FromValue for ProxyUrl {
    const KIND: Kind = Kind::String;

    fn from_value(name: &str, value: &Value) -> Result<Self, ArgumentError> {
        let written = Arc::<str>::from_value(name, value)?;
        proxy_url(&written).map(Self).map_err(wrong)
    }
}

/// Headers of requests: a map from names to lists of values, which are secret.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Headers(HeaderMap);

impl Headers {
    /// Returns the headers. Their values are marked as sensitive.
    pub(crate) fn map(&self) -> &HeaderMap {
        &self.0
    }
}

impl FromValue for Headers {
    const KIND: Kind = Kind::Map(&Kind::List(&Kind::Secret));
    const IS_OPTIONAL: bool = true;

    fn from_value(_: &str, value: &Value) -> Result<Self, ArgumentError> {
        let mut headers = HeaderMap::new();
        let Value::Object(fields) = value else {
            return Ok(Self(headers));
        };
        for (name, values) in fields.iter() {
            let Value::Array(values) = values else { continue };
            for value in values.iter().filter_map(text) {
                let (name, value) = header(name, &value).map_err(wrong)?;
                headers.append(name, value);
            }
        }
        Ok(Self(headers))
    }
}

/// Headers of requests: a map from names to one value each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PlainHeaders(HeaderMap);

impl PlainHeaders {
    /// Returns the headers. Their values are marked as sensitive.
    pub(crate) fn map(&self) -> &HeaderMap {
        &self.0
    }
}

impl FromValue for PlainHeaders {
    const KIND: Kind = Kind::Map(&Kind::String);

    fn from_value(_: &str, value: &Value) -> Result<Self, ArgumentError> {
        let Value::Object(fields) = value else {
            return Ok(Self::default());
        };
        let fields = fields.iter().filter_map(|(name, value)| Some((name, text(value)?)));
        let headers: Result<HeaderMap, HeaderError> = fields.map(|(name, value)| header(name, &value)).collect();
        headers.map(Self).map_err(wrong)
    }
}

/// An HTTP method, written in lower or upper case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HttpMethod(pub(crate) Method);

impl FromValue for HttpMethod {
    const KIND: Kind = Kind::String;

    fn from_value(name: &str, value: &Value) -> Result<Self, ArgumentError> {
        let written = Arc::<str>::from_value(name, value)?;
        let method = Method::from_bytes(written.to_uppercase().as_bytes());
        method
            .map(Self)
            .map_err(|_| wrong(format!("\"{written}\" is not an HTTP method")))
    }
}

/// Parses a URL with the scheme `http` or `https` and a host.
pub fn http_url(text: &str) -> Result<Url, UrlError> {
    url_of(text, &["http", "https"], "http:// or https://")
}

/// Reads the URL of a proxy.
pub(crate) fn proxy_url(text: &str) -> Result<Url, UrlError> {
    url_of(
        text,
        &["http", "https", "socks5", "socks5h"],
        "http://, https:// or socks5://",
    )
}

/// Returns an error at the attribute `name` if its text cannot be part of a header. White space at the end is ignored,
/// because the content of a file usually ends with a line break.
pub(crate) fn check_header_text(name: &str, text: &str) -> Result<(), ArgumentError> {
    if HeaderValue::from_str(text.trim_ascii_end()).is_err() {
        let message = format!("{name} contains characters that are not allowed in an HTTP header");
        return Err(ArgumentError::new(name, message));
    }
    Ok(())
}

/// Checks a secret as [`check_header_text`] checks a text. The error does not contain the secret.
pub(crate) fn check_header_secret(name: &str, secret: Option<&Secret>) -> Result<(), ArgumentError> {
    secret.map_or(Ok(()), |secret| check_header_text(name, &secret.0))
}

fn url_of(text: &str, schemes: &[&str], named: &'static str) -> Result<Url, UrlError> {
    let url: Url = text.parse().map_err(|source| UrlError::Invalid {
        text: text.to_owned(),
        source,
    })?;
    if !schemes.contains(&url.scheme()) || url.host_str().is_none_or(str::is_empty) {
        return Err(UrlError::Scheme {
            text: text.to_owned(),
            schemes: named,
        });
    }
    Ok(url)
}

/// Returns a header. White space at the end of the value is ignored, because it is not part of a header.
fn header(name: &str, value: &str) -> Result<(HeaderName, HeaderValue), HeaderError> {
    let owned = || name.to_owned();
    let checked = HeaderName::try_from(name).map_err(|source| HeaderError::Name { name: owned(), source })?;
    let mut value =
        HeaderValue::try_from(value.trim_ascii_end()).map_err(|source| HeaderError::Value { name: owned(), source })?;
    value.set_sensitive(true);
    Ok((checked, value))
}
