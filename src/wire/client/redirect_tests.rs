//! Tests redirects against servers on this machine, which record what they receive. `127.0.0.1` and `localhost` are two
//! hosts. The expected requests are those of Go's client, except for secrets that leave the host.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use alluvium_testing::http::{Server, serve};
use axum::Router;
use axum::body::Bytes;
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri};
use parking_lot::Mutex;
use url::Url;

use crate::client::{ClientOptions, Credential, HttpClient, OAuth2, RedirectError, Secret, SendError};

/// A server that redirects a request to the URL in its parameter `to`, with the status in its parameter `status`.
struct Redirector {
    url: String,
    requests: Arc<Mutex<Vec<Request>>>,
    _server: Server,
}

/// A request that the server received.
#[derive(Clone)]
struct Request {
    line: String,
    headers: HeaderMap,
    body: String,
}

impl Redirector {
    async fn start() -> Self {
        let requests: Arc<Mutex<Vec<Request>>> = Arc::default();
        let recorded = requests.clone();
        let answer = move |method: Method, uri: Uri, headers: HeaderMap, body: Bytes| {
            let host = headers["host"].to_str().unwrap();
            let host = host.split_once(':').map_or(host, |(host, _)| host);
            recorded.lock().push(Request {
                line: format!("{method} {host}{}", uri.path()),
                headers: headers.clone(),
                body: String::from_utf8(body.into()).unwrap(),
            });
            std::future::ready(respond(&uri))
        };
        let (url, server) = serve(Router::new().fallback(answer)).await;
        Self {
            url,
            requests,
            _server: server,
        }
    }

    /// Returns the URL of `path` under the name `localhost`.
    fn localhost(&self, path: &str) -> String {
        format!("{}{path}", self.url.replace("127.0.0.1", "localhost"))
    }

    /// Returns the URL of a redirect to `target`.
    fn redirect(&self, status: u16, target: &str) -> String {
        redirect(&self.url, status, target)
    }

    fn lines(&self) -> Vec<String> {
        self.requests
            .lock()
            .iter()
            .map(|request| request.line.clone())
            .collect()
    }

    /// Returns the last request.
    fn last(&self) -> Request {
        self.requests.lock().last().unwrap().clone()
    }
}

impl Request {
    /// Returns the names of the received headers that [`headers`] lists.
    fn headers(&self) -> Vec<&'static str> {
        let names = headers().into_iter().map(|(name, _)| name);
        names.filter(|name| self.headers.contains_key(*name)).collect()
    }
}

fn respond(uri: &Uri) -> Response {
    let parameters = url::form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes());
    let parameters: BTreeMap<_, _> = parameters.into_owned().collect();
    let Some(target) = parameters.get("to") else {
        return "the end".into_response();
    };
    let status = StatusCode::from_u16(parameters["status"].parse().unwrap()).unwrap();
    let location = HeaderValue::from_str(target).unwrap();
    (status, [("location", location)], "moved").into_response()
}

/// Returns a URL at `base` that the server redirects to `target`.
fn redirect(base: &str, status: u16, target: &str) -> String {
    let mut url: Url = base.parse().unwrap();
    url.query_pairs_mut()
        .append_pair("status", &status.to_string())
        .append_pair("to", target);
    url.into()
}

/// The headers of each request.
fn headers() -> Vec<(&'static str, &'static str)> {
    vec![
        ("accept", "application/json"),
        ("authorization", "Bearer hush"),
        ("cookie", "a=hush"),
        ("www-authenticate", "hush"),
        ("x-scope-orgid", "shop"),
        ("x-vault-token", "hush"),
    ]
}

fn client(follow_redirects: bool) -> HttpClient {
    let credentials = Secret::Text("hush".into());
    let headers = headers().into_iter().filter(|(name, _)| *name != "authorization");
    let options = ClientOptions {
        follow_redirects,
        credential: Credential::Authorization {
            scheme: "Bearer".into(),
            credentials,
        },
        headers: headers
            .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)))
            .collect(),
        ..ClientOptions::new("alluvium-test".into())
    };
    HttpClient::new(&options).unwrap()
}

async fn send(method: Method, url: &str, body: Option<&'static str>) -> Result<reqwest::Response, SendError> {
    let client = client(true);
    let connections = client.client();
    let mut request = connections.request(method, url.parse().unwrap());
    request = request.headers(client.headers().await.unwrap());
    if let Some(body) = body {
        request = request.header("content-type", "text/plain").body(body);
    }
    connections.send(request).await
}

async fn get(url: &str) -> Result<reqwest::Response, SendError> {
    send(Method::GET, url, None).await
}

fn all_headers() -> Vec<&'static str> {
    headers().into_iter().map(|(name, _)| name).collect()
}

#[tokio::test]
async fn a_redirect_on_the_same_host_keeps_credentials_and_headers_on_every_port() {
    let (first, second) = (Redirector::start().await, Redirector::start().await);
    for target in [format!("{}/end", first.url), "/end".to_owned(), "end?a=1#b".to_owned()] {
        let response = get(&first.redirect(302, &target)).await.unwrap();
        assert_eq!(response.text().await.unwrap(), "the end");
        let request = first.last();
        assert_eq!(request.line, "GET 127.0.0.1/end");
        assert_eq!(request.headers(), all_headers());
        assert_eq!(request.headers["user-agent"], "alluvium-test");
        assert!(!request.headers.contains_key("referer"));
    }
    get(&first.redirect(307, &format!("{}/end", second.url))).await.unwrap();
    let request = second.last();
    assert_eq!(request.headers(), all_headers());
    assert_eq!(request.headers["host"], second.url.trim_start_matches("http://"));
}

#[tokio::test]
async fn another_host_receives_no_secret_nor_does_any_later_one() {
    let server = Redirector::start().await;
    // Back to the first host, through two redirects on the other host.
    let end = format!("{}/end", server.url);
    let second = redirect(&server.localhost("/second"), 302, &end);
    let first = redirect(&server.localhost("/first"), 302, &second);
    get(&server.redirect(302, &first)).await.unwrap();
    let lines = [
        "GET 127.0.0.1/",
        "GET localhost/first",
        "GET localhost/second",
        "GET 127.0.0.1/end",
    ];
    assert_eq!(server.lines(), lines);
    let requests = server.requests.lock();
    assert_eq!(requests[0].headers(), all_headers());
    for request in &requests[1..] {
        assert_eq!(request.headers(), ["accept"], "{}", request.line);
        assert_eq!(request.headers["user-agent"], "alluvium-test");
        for (name, value) in &request.headers {
            assert!(!value.to_str().unwrap().contains("hush"), "{name}");
        }
    }
}

#[tokio::test]
async fn user_and_password_of_a_redirect_are_for_its_host_only() {
    let server = Redirector::start().await;
    let last = redirect(&server.url, 302, "/end");
    let target = redirect(&server.localhost("/").replace("http://", "http://a:b@"), 302, &last);
    get(&server.redirect(302, &target)).await.unwrap();
    let requests = server.requests.lock();
    assert_eq!(requests[1].headers["authorization"], "Basic YTpi");
    assert_eq!(requests.len(), 4);
    for request in &requests[2..] {
        assert!(!request.headers.contains_key("authorization"), "{}", request.line);
    }
}

#[tokio::test]
async fn methods_and_bodies_change_as_in_go() {
    let server = Redirector::start().await;
    for (method, status, expected, body) in [
        (Method::POST, 301, "GET", ""),
        (Method::POST, 302, "GET", ""),
        (Method::POST, 303, "GET", ""),
        (Method::PUT, 301, "GET", ""),
        (Method::PUT, 303, "GET", ""),
        (Method::DELETE, 302, "GET", ""),
        (Method::HEAD, 302, "HEAD", ""),
        (Method::HEAD, 303, "HEAD", ""),
        (Method::POST, 307, "POST", "text"),
        (Method::POST, 308, "POST", "text"),
        (Method::PUT, 307, "PUT", "text"),
        (Method::HEAD, 308, "HEAD", ""),
    ] {
        let sent = (method != Method::HEAD).then_some("text");
        send(method.clone(), &server.redirect(status, "/end"), sent)
            .await
            .unwrap();
        let request = server.last();
        assert_eq!(request.line, format!("{expected} 127.0.0.1/end"), "{method} {status}");
        assert_eq!(request.body, body, "{method} {status}");
        assert_eq!(
            request.headers.contains_key("content-type"),
            !body.is_empty(),
            "{method} {status}"
        );
    }
    for status in [300, 304, 305] {
        let response = get(&server.redirect(status, "/end")).await.unwrap();
        assert_eq!(response.status(), status);
    }
}

#[tokio::test]
async fn a_body_is_not_sent_to_another_host() {
    let server = Redirector::start().await;
    for status in [307, 308] {
        let target = server.localhost("/end?token=hush");
        let error = send(Method::POST, &server.redirect(status, &target), Some("text")).await;
        let error = error.unwrap_err().to_string();
        let expected = format!("redirected the request to {}, but its body", server.localhost(""));
        assert!(error.contains(&expected) && !error.contains("hush"), "{error}");
    }
    assert_eq!(server.lines(), ["POST 127.0.0.1/"; 2]);
    // Without a body, the redirect is followed.
    for body in [None, Some("")] {
        let response = send(Method::POST, &server.redirect(307, &server.localhost("/end")), body).await;
        assert_eq!(response.unwrap().status(), StatusCode::OK);
    }
}

#[tokio::test]
async fn a_loop_ends_after_ten_requests() {
    let server = Redirector::start().await;
    let mut target = server.url.clone() + "/end";
    for _ in 0..9 {
        target = redirect(&server.url, 302, &target);
    }
    assert_eq!(get(&target).await.unwrap().text().await.unwrap(), "the end");
    assert_eq!(server.lines().len(), 10);
    let error = get(&redirect(&server.url, 302, &target)).await.unwrap_err();
    assert_eq!(error.to_string(), "the server redirected the request more than 9 times");
    assert_eq!(server.lines().len(), 20);
}

#[tokio::test]
async fn a_timeout_covers_all_redirects_of_a_request() {
    let slow = |uri: Uri| async move {
        tokio::time::sleep(Duration::from_millis(60)).await;
        respond(&uri)
    };
    let (url, _server) = serve(Router::new().fallback(slow)).await;
    let mut target = url.clone() + "/end";
    for _ in 0..9 {
        target = redirect(&url, 302, &target);
    }
    let client = client(true);
    let request = client.get(target.parse().unwrap()).await.unwrap();
    let error = client.client().send(request.timeout(Duration::from_millis(300))).await;
    assert!(matches!(error, Err(SendError::Lost(error)) if error.is_timeout()));
}

#[tokio::test]
async fn without_follow_redirects_the_redirect_is_the_response() {
    let server = Redirector::start().await;
    let client = client(false);
    for status in [301, 302, 303, 307, 308] {
        let request = client.get(server.redirect(status, "/end").parse().unwrap()).await;
        let response = client.client().send(request.unwrap()).await.unwrap();
        assert_eq!(response.status(), status);
        assert_eq!(response.text().await.unwrap(), "moved");
    }
    assert_eq!(server.lines(), ["GET 127.0.0.1/"; 5]);
}

#[tokio::test]
async fn an_unusable_address_is_an_error_and_no_address_is_a_response() {
    let server = Redirector::start().await;
    for target in [
        "ftp://x/y",
        "file:///etc/passwd",
        "http://",
        "http://a b/",
        "unix:/run/x",
    ] {
        let error = get(&server.redirect(302, target)).await.unwrap_err();
        assert!(
            matches!(error, SendError::Redirect(RedirectError::Location)),
            "{target}: {error}"
        );
    }
    let response = get(&server.redirect(302, "")).await.unwrap();
    assert_eq!(response.status(), StatusCode::FOUND);
}

#[tokio::test]
async fn the_client_secret_of_a_token_request_stays_at_its_host() {
    let server = Redirector::start().await;
    let token = async |url: String| {
        let oauth2 = OAuth2 {
            client_id: "id".into(),
            client_secret: Secret::Text("hush\n".into()),
            scopes: Vec::new(),
            token_url: url.parse().unwrap(),
            endpoint_params: BTreeMap::new(),
            options: ClientOptions::new("alluvium-test".into()),
        };
        let options = ClientOptions {
            credential: Credential::OAuth2(Box::new(oauth2)),
            ..ClientOptions::new("alluvium-test".into())
        };
        let client = HttpClient::new(&options).unwrap();
        client.headers().await.unwrap_err().to_string()
    };
    let error = token(server.redirect(307, &server.localhost("/end"))).await;
    assert!(
        error.contains("its body may contain secrets") && !error.contains("hush"),
        "{error}"
    );
    assert_eq!(server.lines(), ["POST 127.0.0.1/"]);
    // The response is not a token, so each of these ends with an error.
    token(server.redirect(302, &server.localhost("/end"))).await;
    let request = server.last();
    assert_eq!(
        (request.line.as_str(), request.body.as_str()),
        ("GET localhost/end", "")
    );
    assert_eq!(request.headers(), ["accept"]);
    token(server.redirect(307, "/end")).await;
    let request = server.last();
    assert_eq!(request.line, "POST 127.0.0.1/end");
    assert_eq!(request.body, "grant_type=client_credentials");
    assert_eq!(request.headers["authorization"], "Basic aWQ6aHVzaA==");
}
