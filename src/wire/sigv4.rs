//! Signs requests to AWS and compatible services (AWS Signature Version 4).
//!
//! In: a complete request. Out: the same request with time, session token and signature as headers. The signature
//! covers every header that is set before it. Headers of the connection and of proxies may be added later.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::sync::Arc;

use chrono::{DateTime, Utc};
use http::header::{AUTHORIZATION, HeaderValue, InvalidHeaderValue};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use ring::{digest, hmac};
use url::{Position, Url};

/// Characters to escape in a signed query: all except letters, digits, `-`, `.`, `_` and `~`.
const STRICT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
/// Characters to escape in a signed path: those of a query except the slash, which separates the segments of a path.
const STRICT_PATH: &AsciiSet = &STRICT.remove(b'/');
/// Name of the signature algorithm in the `Authorization` header.
const ALGORITHM: &str = "AWS4-HMAC-SHA256";

/// Credentials for signing requests to AWS.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    /// Access key id, which is sent with the request.
    pub access_key: Arc<str>,
    /// Secret access key, which is never sent.
    pub secret_key: Arc<str>,
    /// Session token of temporary credentials, which is sent with the request.
    pub session_token: Option<Arc<str>>,
}

/// Prints the access key id and no secrets.
impl fmt::Debug for Credentials {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Credentials({})", self.access_key)
    }
}

/// Service and region for which a request is signed.
#[derive(Clone, Copy, Debug)]
pub struct Scope<'a> {
    /// Name of the service, such as `ec2`.
    pub service: &'a str,
    /// Region of the service, such as `eu-central-1`.
    pub region: &'a str,
}

/// Signs a request with the time `now`. Fails when a credential contains characters that are not allowed in a header.
pub fn sign(
    request: &mut reqwest::Request,
    credentials: &Credentials,
    scope: Scope<'_>,
    now: DateTime<Utc>,
) -> Result<(), InvalidHeaderValue> {
    let time = now.format("%Y%m%dT%H%M%SZ").to_string();
    let day = now.format("%Y%m%d").to_string();
    let body = request.body().and_then(reqwest::Body::as_bytes).unwrap_or_default();
    let body_hash = hash(body);
    let is_s3 = scope.service == "s3";
    let headers = request.headers_mut();
    headers.insert("x-amz-date", HeaderValue::from_str(&time)?);
    if is_s3 {
        headers.insert("x-amz-content-sha256", HeaderValue::from_str(&body_hash)?);
    }
    if let Some(token) = &credentials.session_token {
        let mut token = HeaderValue::from_str(token)?;
        token.set_sensitive(true);
        headers.insert("x-amz-security-token", token);
    }
    let signed = signed_headers(request);
    let names: Vec<&str> = signed.keys().map(String::as_str).collect();
    let names = names.join(";");
    let lines: String = signed.iter().map(|(name, value)| format!("{name}:{value}\n")).collect();
    // S3 escapes the path once. All other services escape the sent path a second time.
    let path = match request.url().path() {
        path if is_s3 => percent_decode_str(path).decode_utf8_lossy().into_owned(),
        path => path.to_owned(),
    };
    let path = utf8_percent_encode(&path, STRICT_PATH);
    let (method, query) = (request.method(), canonical_query(request.url()));
    let canonical_request = format!("{method}\n{path}\n{query}\n{lines}\n{names}\n{body_hash}");
    let Scope { service, region } = scope;
    let credential_scope = format!("{day}/{region}/{service}/aws4_request");
    let text = format!(
        "{ALGORITHM}\n{time}\n{credential_scope}\n{}",
        hash(canonical_request.as_bytes())
    );
    let first = format!("AWS4{}", credentials.secret_key).into_bytes();
    let parts = [&day, region, service, "aws4_request", &text];
    let signature = parts.iter().fold(first, |key, part| {
        let key = hmac::Key::new(hmac::HMAC_SHA256, &key);
        hmac::sign(&key, part.as_bytes()).as_ref().to_vec()
    });
    let signature = hexadecimal(&signature);
    let key = &credentials.access_key;
    let header =
        format!("{ALGORITHM} Credential={key}/{credential_scope}, SignedHeaders={names}, Signature={signature}");
    let mut header = HeaderValue::from_str(&header)?;
    header.set_sensitive(true);
    request.headers_mut().insert(AUTHORIZATION, header);
    Ok(())
}

/// Returns the signed headers, sorted by name, including the host. Each run of blanks in a value becomes one blank.
fn signed_headers(request: &reqwest::Request) -> BTreeMap<String, String> {
    let url = request.url();
    let host = url[Position::BeforeHost..Position::AfterPort].to_owned();
    let mut signed = BTreeMap::from([("host".to_owned(), host)]);
    for (name, value) in request.headers() {
        let value = String::from_utf8_lossy(value.as_bytes());
        let words: Vec<&str> = value.split_ascii_whitespace().collect();
        signed.insert(name.to_string(), words.join(" "));
    }
    signed
}

/// Returns the query pairs, strictly escaped and sorted.
fn canonical_query(url: &Url) -> String {
    let encode = |text: &str| utf8_percent_encode(text, STRICT).to_string();
    let pairs = url.query_pairs().map(|(name, value)| (encode(&name), encode(&value)));
    let mut pairs: Vec<(String, String)> = pairs.collect();
    pairs.sort();
    let pairs: Vec<String> = pairs.iter().map(|(name, value)| format!("{name}={value}")).collect();
    pairs.join("&")
}

fn hash(bytes: &[u8]) -> String {
    hexadecimal(digest::digest(&digest::SHA256, bytes).as_ref())
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use http::Method;

    use super::*;

    fn signature(mut request: reqwest::Request, key: &str, scope: Scope<'_>, now: &str) -> String {
        let (access_key, secret_key) = key.split_once(' ').unwrap();
        let credentials = Credentials {
            access_key: access_key.into(),
            secret_key: secret_key.into(),
            session_token: None,
        };
        let now = DateTime::parse_from_rfc3339(now).unwrap().to_utc();
        sign(&mut request, &credentials, scope, now).unwrap();
        let header = request.headers()[AUTHORIZATION].to_str().unwrap();
        header.rsplit_once("Signature=").unwrap().1.to_owned()
    }

    fn get(url: &str) -> reqwest::Request {
        reqwest::Request::new(Method::GET, url.parse().unwrap())
    }

    /// The step-by-step example from Amazon's documentation of the signature, with its result.
    #[test]
    fn the_example_of_the_documentation_has_its_signature() {
        let mut request = get("https://iam.amazonaws.com/?Action=ListUsers&Version=2010-05-08");
        let form = "application/x-www-form-urlencoded; charset=utf-8";
        request
            .headers_mut()
            .insert("content-type", HeaderValue::from_static(form));
        let scope = Scope {
            service: "iam",
            region: "us-east-1",
        };
        assert_eq!(
            signature(
                request,
                "AKIDEXAMPLE wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY",
                scope,
                "2015-08-30T12:36:00Z"
            ),
            "5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7"
        );
    }

    /// Two examples from the documentation of S3: an object with an additional header, and a query without a value.
    #[test]
    fn the_examples_of_s3_have_their_signatures() {
        let scope = Scope {
            service: "s3",
            region: "us-east-1",
        };
        let signature = |request| {
            let key = "AKIAIOSFODNN7EXAMPLE wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY";
            signature(request, key, scope, "2013-05-24T00:00:00Z")
        };
        let mut object = get("https://examplebucket.s3.amazonaws.com/test.txt");
        object
            .headers_mut()
            .insert("range", HeaderValue::from_static("bytes=0-9"));
        assert_eq!(
            signature(object),
            "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"
        );
        assert_eq!(
            signature(get("https://examplebucket.s3.amazonaws.com/?lifecycle")),
            "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"
        );
    }

    #[test]
    fn credentials_do_not_show_their_key() {
        let credentials = Credentials {
            access_key: "AKID".into(),
            secret_key: "hush".into(),
            session_token: Some("hush".into()),
        };
        assert_eq!(format!("{credentials:?}"), "Credentials(AKID)");
    }
}
