//! A small Kubernetes API server for tests: paged lists, watches, bookmarks, expired versions, refused requests and
//! tokens.
//!
//! It implements the HTTP protocol of the Kubernetes documentation. It stores the objects only as a log of all changes,
//! and builds each list and watch from this log. All pages of a list have the version of the first page, as with etcd.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::common::testing::{self, Server};

/// The server, which stops when it is dropped.
pub(crate) struct ApiServer {
    /// URL without a trailing slash.
    pub(crate) url: String,
    inner: Arc<Inner>,
    _server: Server,
}

#[derive(Default)]
struct Inner {
    state: Mutex<State>,
    /// Notified when the log has grown, or when watches must end.
    changed: Notify,
}

#[derive(Default)]
struct State {
    log: Vec<Change>,
    /// The oldest version that the server still has. Requests with an older version receive the status 410.
    oldest: usize,
    /// Path and query of all requests.
    requests: Vec<String>,
    /// Error responses to future requests.
    refusals: Vec<Refusal>,
    /// The token that requests must contain; `None` if requests need no token.
    token: Option<String>,
    /// Kinds for which requests are forbidden.
    forbidden: Vec<String>,
    /// One entry for each time that a test has ended all watches, oldest first.
    ends: Vec<End>,
    /// Maximum number of objects on a page, whatever the request says.
    largest_page: Option<usize>,
}

#[derive(Clone, Copy)]
pub(crate) enum End {
    /// The server ends the watch after it has sent all changes, as after a timeout.
    Clean,
    /// The server sends the beginning of a line, and then the connection breaks.
    Broken,
}

/// An error response to a future request.
struct Refusal {
    /// Part of the path and query of the refused request.
    part: &'static str,
    status: StatusCode,
    message: String,
    retry_after: Option<u64>,
}

/// One entry of the log. Its version is its index plus one.
struct Change {
    /// Plural kind of the object; `None` for a bookmark.
    kind: Option<String>,
    key: (String, String),
    /// The object before and after the change; `None` if it did not exist.
    before: Option<Value>,
    after: Option<Value>,
}

/// Parameters of a request.
#[derive(Clone)]
struct Question {
    kind: String,
    namespace: Option<String>,
    name: Option<String>,
    parameters: BTreeMap<String, String>,
}

impl ApiServer {
    pub(crate) async fn start() -> Self {
        let inner = Arc::new(Inner::default());
        let shared = inner.clone();
        let router = Router::new().fallback(move |request: Request| {
            let answer = answer(&shared, &request);
            async move { answer }
        });
        let (url, server) = testing::serve(router).await;
        Self {
            url,
            inner,
            _server: server,
        }
    }

    /// Creates or changes an object. `kind` is its kind in the plural.
    pub(crate) fn put(&self, kind: &str, object: Value) {
        let text = |name: &str| object["metadata"][name].as_str().unwrap_or_default().to_owned();
        self.change(kind, (text("namespace"), text("name")), Some(object.clone()));
    }

    pub(crate) fn delete(&self, kind: &str, namespace: &str, name: &str) {
        self.change(kind, (namespace.to_owned(), name.to_owned()), None);
    }

    /// Sends a bookmark to the watches.
    pub(crate) fn bookmark(&self) {
        self.inner.state.lock().log.push(Change {
            kind: None,
            key: Default::default(),
            before: None,
            after: None,
        });
        self.inner.changed.notify_waiters();
    }

    /// Expires all versions except the current version.
    pub(crate) fn compact(&self) {
        let mut state = self.inner.state.lock();
        state.oldest = state.log.len();
    }

    pub(crate) fn end_watches(&self, end: End) {
        self.inner.state.lock().ends.push(end);
        self.inner.changed.notify_waiters();
    }

    /// Refuses the next request.
    pub(crate) fn refuse(&self, status: u16, message: &str, retry_after: Option<u64>) {
        self.refuse_where("", status, message, retry_after);
    }

    /// Refuses the next request whose path and query contain `part`.
    pub(crate) fn refuse_where(&self, part: &'static str, status: u16, message: &str, retry_after: Option<u64>) {
        self.inner.state.lock().refusals.push(Refusal {
            part,
            status: StatusCode::from_u16(status).unwrap(),
            message: message.to_owned(),
            retry_after,
        });
    }

    /// Accepts only requests with this token.
    pub(crate) fn require_token(&self, token: &str) {
        self.inner.state.lock().token = Some(token.to_owned());
    }

    /// Refuses every request for these kinds.
    pub(crate) fn forbid(&self, kinds: &[&str]) {
        self.inner.state.lock().forbidden = kinds.iter().map(|kind| (*kind).to_owned()).collect();
    }

    /// Limits pages to `objects` objects.
    pub(crate) fn set_largest_page(&self, objects: usize) {
        self.inner.state.lock().largest_page = Some(objects);
    }

    /// Returns the requests whose path and query contain `part`.
    pub(crate) fn requests(&self, part: &str) -> Vec<String> {
        let state = self.inner.state.lock();
        state
            .requests
            .iter()
            .filter(|request| request.contains(part))
            .cloned()
            .collect()
    }

    /// Returns how many lists of this kind were requested. The pages of a list count once.
    pub(crate) fn lists(&self, kind: &str) -> usize {
        let requests = self.requests(&format!("/{kind}?"));
        requests
            .iter()
            .filter(|request| !request.contains("watch=") && !request.contains("continue="))
            .count()
    }

    fn change(&self, kind: &str, key: (String, String), mut after: Option<Value>) {
        let mut state = self.inner.state.lock();
        let before = state.objects(kind, state.log.len()).remove(&key);
        let version = (state.log.len() + 1).to_string();
        if let Some(object) = &mut after {
            object["metadata"]["resourceVersion"] = version.into();
        }
        let kind = Some(kind.to_owned());
        state.log.push(Change {
            kind,
            key,
            before,
            after,
        });
        drop(state);
        self.inner.changed.notify_waiters();
    }
}

impl State {
    /// Returns the objects of a kind as of a version.
    fn objects(&self, kind: &str, version: usize) -> BTreeMap<(String, String), Value> {
        let mut objects = BTreeMap::new();
        for change in self.log[..version]
            .iter()
            .filter(|change| change.kind.as_deref() == Some(kind))
        {
            match &change.after {
                Some(object) => objects.insert(change.key.clone(), object.clone()),
                None => objects.remove(&change.key),
            };
        }
        objects
    }
}

impl Question {
    fn new(request: &Request) -> Self {
        let parts: Vec<&str> = request.uri().path().trim_matches('/').split('/').collect();
        let rest = match parts.as_slice() {
            ["api", _, rest @ ..] | ["apis", _, _, rest @ ..] => rest,
            _ => &[],
        };
        let (namespace, rest) = match rest {
            ["namespaces", namespace, rest @ ..] if !rest.is_empty() => (Some(*namespace), rest),
            rest => (None, rest),
        };
        let text = |part: &&str| (*part).to_owned();
        let query = request.uri().query().unwrap_or_default();
        Self {
            kind: rest.first().map(text).unwrap_or_default(),
            namespace: namespace.map(str::to_owned),
            name: rest.get(1).map(text),
            parameters: url::form_urlencoded::parse(query.as_bytes()).into_owned().collect(),
        }
    }

    fn parameter(&self, name: &str) -> &str {
        self.parameters.get(name).map_or("", String::as_str)
    }

    /// Returns true if an object matches the namespace, the label selector (`a=b`) and the field selector
    /// (`path=value`) of the request.
    fn takes(&self, object: &Value) -> bool {
        let is_in_namespace = |namespace: &String| object["metadata"]["namespace"] == **namespace;
        let pairs = |name| {
            self.parameter(name)
                .split(',')
                .filter_map(|pair: &str| pair.split_once('='))
        };
        self.namespace.as_ref().is_none_or(is_in_namespace)
            && pairs("labelSelector").all(|(key, value)| object["metadata"]["labels"][key] == value)
            && pairs("fieldSelector").all(|(path, value)| {
                let pointer = format!("/{}", path.replace('.', "/"));
                object.pointer(&pointer).is_some_and(|actual| actual == value)
            })
    }

    /// Returns the line that a watch with these parameters sends for a change.
    fn line(&self, version: usize, change: &Change) -> Option<Value> {
        let version = version.to_string();
        let Some(kind) = &change.kind else {
            let object = json!({"metadata": {"resourceVersion": version, "creationTimestamp": null}});
            let accepts_bookmarks = self.parameter("allowWatchBookmarks") == "true";
            return accepts_bookmarks.then(|| json!({"type": "BOOKMARK", "object": object}));
        };
        if *kind != self.kind {
            return None;
        }
        let before = change.before.as_ref().filter(|object| self.takes(object));
        let after = change.after.as_ref().filter(|object| self.takes(object));
        match (before, after) {
            (None, None) => None,
            (None, Some(object)) => Some(json!({"type": "ADDED", "object": object})),
            (Some(_), Some(object)) => Some(json!({"type": "MODIFIED", "object": object})),
            (Some(object), None) => {
                let mut object = object.clone();
                object["metadata"]["resourceVersion"] = version.into();
                Some(json!({"type": "DELETED", "object": object}))
            }
        }
    }
}

fn answer(inner: &Arc<Inner>, request: &Request) -> Response {
    let question = Question::new(request);
    let mut state = inner.state.lock();
    let uri = request.uri().to_string();
    state.requests.push(uri.clone());
    if let Some(index) = state.refusals.iter().position(|refusal| uri.contains(refusal.part)) {
        let refusal = state.refusals.remove(index);
        let mut answer = status(refusal.status, &refusal.message);
        if let Some(seconds) = refusal.retry_after {
            answer.headers_mut().insert("retry-after", seconds.into());
        }
        return answer;
    }
    let sent = request
        .headers()
        .get("authorization")
        .and_then(|value| value.to_str().ok());
    if state
        .token
        .as_ref()
        .is_some_and(|token| sent != Some(&format!("Bearer {token}")))
    {
        return status(StatusCode::UNAUTHORIZED, "Unauthorized");
    }
    if state.forbidden.contains(&question.kind) {
        let message = format!("{} is forbidden: User \"me\" cannot list resource", question.kind);
        return status(StatusCode::FORBIDDEN, &message);
    }
    if question.parameter("watch") == "true" {
        let version = question.parameter("resourceVersion").parse().unwrap();
        let ends = state.ends.len();
        drop(state);
        let watch = Watch {
            inner: inner.clone(),
            question,
            version,
            ends,
            is_line_begun: false,
        };
        let lines = futures::stream::unfold(watch, Watch::next);
        return Body::from_stream(lines).into_response();
    }
    match &question.name {
        Some(name) => {
            let key = (question.namespace.clone().unwrap_or_default(), name.clone());
            let object = state.objects(&question.kind, state.log.len()).remove(&key);
            let missing = || {
                status(
                    StatusCode::NOT_FOUND,
                    &format!("{} \"{name}\" not found", question.kind),
                )
            };
            object.map_or_else(missing, |object| object.to_string().into_response())
        }
        None => list(&state, &question),
    }
}

fn list(state: &State, question: &Question) -> Response {
    let (version, skipped) = match question.parameter("continue").split_once('-') {
        Some((version, skipped)) => (version.parse().unwrap(), skipped.parse().unwrap()),
        None => (state.log.len(), 0),
    };
    if version < state.oldest {
        return status(StatusCode::GONE, "The provided continue parameter is too old");
    }
    let limit: usize = question.parameter("limit").parse().unwrap();
    let limit = limit.min(state.largest_page.unwrap_or(limit));
    let all = state.objects(&question.kind, version);
    let all: Vec<&Value> = all.values().filter(|object| question.takes(object)).collect();
    let items: Vec<&Value> = all.iter().skip(skipped).take(limit).copied().collect();
    let next = match skipped + items.len() {
        end if end < all.len() => format!("{version}-{end}"),
        _ => String::new(),
    };
    let metadata = json!({"resourceVersion": version.to_string(), "continue": next});
    json!({"kind": "List", "metadata": metadata, "items": items})
        .to_string()
        .into_response()
}

fn status(code: StatusCode, message: &str) -> Response {
    (code, status_object(code, message).to_string()).into_response()
}

fn status_object(code: StatusCode, message: &str) -> Value {
    json!({"kind": "Status", "status": "Failure", "message": message, "code": code.as_u16()})
}

/// A running watch and its position in the log.
struct Watch {
    inner: Arc<Inner>,
    question: Question,
    version: usize,
    /// Number of entries of `State::ends` before this watch began.
    ends: usize,
    /// Whether the beginning of a line was sent before the connection breaks.
    is_line_begun: bool,
}

impl Watch {
    async fn next(mut self) -> Option<(Result<Bytes, std::io::Error>, Self)> {
        loop {
            let inner = self.inner.clone();
            let changed = inner.changed.notified();
            let mut changed = std::pin::pin!(changed);
            changed.as_mut().enable();
            match self.step() {
                Some(Ok(None)) => changed.await,
                Some(Ok(Some(line))) => return Some((Ok(line.into()), self)),
                Some(Err(())) => return Some((Err(std::io::Error::other("broken")), self)),
                None => return None,
            }
        }
    }

    /// Returns the next line, `Some(Ok(None))` if there is no change yet, an error for a broken connection, or `None`
    /// at the end.
    fn step(&mut self) -> Option<Result<Option<String>, ()>> {
        let inner = self.inner.clone();
        let state = inner.state.lock();
        let end = state.ends.get(self.ends);
        if let Some(End::Broken) = end {
            let is_begun = std::mem::replace(&mut self.is_line_begun, true);
            return Some(if is_begun {
                Err(())
            } else {
                Ok(Some("{\"type\": \"ADD".to_owned()))
            });
        }
        if self.version < state.oldest {
            let object = status_object(StatusCode::GONE, "too old resource version");
            self.version = usize::MAX;
            return Some(Ok(Some(format!("{}\n", json!({"type": "ERROR", "object": object})))));
        }
        while let Some(change) = state.log.get(self.version) {
            self.version += 1;
            if let Some(line) = self.question.line(self.version, change) {
                return Some(Ok(Some(format!("{line}\n"))));
            }
        }
        if end.is_some() {
            return None;
        }
        Some(Ok(None))
    }
}

/// Returns a running pod, with one container that has one port.
pub(crate) fn pod(namespace: &str, name: &str, ip: &str) -> Value {
    json!({
        "metadata": {"namespace": namespace, "name": name, "uid": format!("uid-{name}"), "labels": {"app": "shop"}},
        "spec": {
            "nodeName": "node-1",
            "containers": [{
                "name": "main",
                "image": "shop:1",
                "ports": [{"name": "http", "containerPort": 8080, "protocol": "TCP"}]
            }]
        },
        "status": {
            "phase": "Running",
            "podIP": ip,
            "hostIP": "192.168.0.1",
            "conditions": [{"type": "Ready", "status": "True"}],
            "containerStatuses": [{"name": "main", "containerID": "containerd://0a1b"}]
        }
    })
}

/// Returns very short pauses between failed attempts.
pub(crate) fn fast() -> crate::common::kubernetes::watch::Pace {
    crate::common::kubernetes::watch::Pace {
        shortest: Duration::from_millis(1),
        longest: Duration::from_millis(4),
    }
}
