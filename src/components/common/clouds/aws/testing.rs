//! A test server for requests to AWS, which checks every signature as AWS does.
//!
//! The responses, which each test supplies, follow the documentation of the service.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::http::{Request, StatusCode};
use chrono::NaiveDateTime;
use parking_lot::Mutex;

use crate::common::testing::{Server, serve};
use alluvium_wire::sigv4::{Credentials, Scope, sign};

/// Returns the response to a request, which is given as `METHOD /path?query body`, or as an action with its parameters.
pub(crate) type Answer = dyn Fn(&str) -> (StatusCode, String) + Send + Sync;

/// The test server, with all requests that it has received.
pub(crate) struct Amazon {
    pub(crate) url: String,
    requests: Arc<Mutex<Vec<String>>>,
    _server: Server,
}

impl Amazon {
    /// Starts a server. It accepts unsigned requests, and requests that one of the keys has signed for the service
    /// `name` in the region `eu-central-1`. If `name` is empty, the server accepts signatures for any service.
    pub(crate) async fn start(
        name: &'static str,
        key: &[(&str, &str)],
        answer: impl Fn(&str) -> (StatusCode, String) + Send + Sync + 'static,
    ) -> Self {
        let requests: Arc<Mutex<Vec<String>>> = Arc::default();
        let credentials = |(id, secret): &(&str, &str)| Credentials {
            access_key: (*id).into(),
            secret_key: (*secret).into(),
            session_token: None,
        };
        let keys: Vec<Credentials> = key.iter().map(credentials).collect();
        let (log, answer): (_, Arc<Answer>) = (requests.clone(), Arc::new(answer));
        let router = Router::new().fallback(move |request: Request<Body>| {
            let (log, keys, answer) = (log.clone(), keys.clone(), answer.clone());
            async move {
                let (parts, body) = request.into_parts();
                let body = axum::body::to_bytes(body, 1 << 20).await.unwrap();
                let text = String::from_utf8_lossy(&body);
                let header = |name: &str| parts.headers.get(name).map(|value| value.to_str().unwrap().to_owned());
                let line = match (header("x-amz-target"), text.starts_with("Action=")) {
                    (Some(target), _) => format!("{} {text}", target.rsplit('.').next().unwrap()),
                    (None, true) => text["Action=".len()..].to_owned(),
                    (None, false) => format!("{} {} {text}", parts.method, parts.uri).trim().to_owned(),
                };
                log.lock().push(line.clone());
                let authorization = header("authorization").unwrap_or_default();
                if authorization.starts_with("AWS4") && !keys.iter().any(|key| is_signed(key, name, &parts, &body)) {
                    let text = "<Response><Errors><Error><Code>AuthFailure</Code><Message>the signature is not \
                        right</Message></Error></Errors></Response>";
                    return (StatusCode::UNAUTHORIZED, text.to_owned());
                }
                answer(&line)
            }
        });
        let (url, server) = serve(router).await;
        Self {
            url,
            requests,
            _server: server,
        }
    }

    /// Returns all requests that the server has received so far.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.requests.lock().clone()
    }
}

/// Signs the request again, with the headers that its signature covers, and compares the signatures.
fn is_signed(key: &Credentials, service: &str, parts: &axum::http::request::Parts, body: &[u8]) -> bool {
    let header = |name: &str| parts.headers.get(name).map(|value| value.to_str().unwrap());
    let Some(authorization) = header("authorization") else {
        return false;
    };
    let service = if service.is_empty() {
        authorization.split('/').nth(3).unwrap()
    } else {
        service
    };
    let signed = authorization
        .split("SignedHeaders=")
        .nth(1)
        .and_then(|rest| rest.split(',').next())
        .unwrap();
    let url = format!("http://{}{}", header("host").unwrap(), parts.uri);
    let mut copy = reqwest::Request::new(parts.method.clone(), url.parse().unwrap());
    *copy.body_mut() = Some(body.to_vec().into());
    for name in signed.split(';').filter(|name| *name != "host") {
        let name: http::HeaderName = name.parse().unwrap();
        copy.headers_mut().insert(name.clone(), parts.headers[&name].clone());
    }
    let time = NaiveDateTime::parse_from_str(header("x-amz-date").unwrap(), "%Y%m%dT%H%M%SZ").unwrap();
    let scope = Scope {
        service,
        region: "eu-central-1",
    };
    sign(&mut copy, key, scope, time.and_utc()).unwrap();
    copy.headers()["authorization"] == authorization
}
