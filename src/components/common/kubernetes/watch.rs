//! Follows the objects of a kind: lists them, then watches their changes, without end.
//!
//! In: an API, and a selection of objects. Out: [`Event`]s and [`State`]s, to a [`Sink`]. A list is read page by page.
//! A watch that ends is resumed from the last resource version that it received. All objects are listed again only if
//! the server no longer has that version (410) or refuses to resume from it. A failed request is repeated after a
//! pause, which doubles with each failure, or after the delay that the server requests.

use std::convert::Infallible;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::StatusCode;
use serde::Deserialize;
use url::Url;

use crate::common::kubernetes::api::{Api, ApiError, LostError, Page, read_json};
use crate::common::kubernetes::lines::Lines;
use crate::common::kubernetes::objects::{Key, ListMetadata, Metadata, Resource, Status};
use alluvium_base::go_json;

/// Number of objects on one page of a list.
const PAGE: usize = 500;
/// Maximum duration of a watch, after which the server ends it.
const WATCH: Duration = Duration::from_mins(5);
/// Time for which the client keeps a watch after the requested duration is over, before it aborts the watch.
const GRACE: Duration = Duration::from_secs(30);
/// Duration after which a watch counts as successful, even if no object changed.
const WORKED: Duration = Duration::from_secs(10);
/// Number of refusals after which the version of a watch is dropped, and all objects are listed again.
const MAX_REFUSALS: u32 = 3;
/// Maximum delay that a server may request. A longer delay is reduced to it.
const MAX_RETRY_AFTER: Duration = Duration::from_mins(5);

/// Selection of the objects of a kind.
#[derive(Clone, Debug, Default)]
pub(crate) struct Query {
    /// Namespace of the objects; `None` for all.
    pub(crate) namespace: Option<Arc<str>>,
    /// Label selector that the server applies.
    pub(crate) labels: Option<Arc<str>>,
    /// Field selector that the server applies.
    pub(crate) fields: Option<Arc<str>>,
}

/// A change of the objects, or the bounds of a list.
#[derive(Debug)]
pub(crate) enum Event<T> {
    /// A list begins: the objects found until `ListEnds` are all objects that exist.
    ListBegins,
    /// These objects exist. They are new, changed, or part of a list.
    Present(Vec<T>),
    /// The object with this key no longer exists.
    Absent(Key),
    /// The list is complete: objects not found since `ListBegins` no longer exist.
    ListEnds,
}

/// State of the list or watch that follows the objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// No response has arrived yet.
    Starting,
    /// The server sends changes.
    Watching,
    /// The last request failed and will be repeated.
    Failing(String),
}

/// Receives the events and states of a watch.
pub(crate) trait Sink<T>: Send + Sync + 'static {
    /// Receives an event. May be called on a blocking thread, never on two threads at once.
    fn event(&self, event: Event<T>);

    /// Receives a new state. Every failure is reported once.
    fn state(&self, state: State);

    /// Called before each request is sent.
    fn asks(&self) {}
}

/// Pauses between failed attempts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    /// The first pause. Each later pause is twice as long as the previous one.
    pub(crate) shortest: Duration,
    /// The longest pause, after many failures.
    pub(crate) longest: Duration,
}

impl Default for Pace {
    /// The pauses of client-go, Kubernetes' own client.
    fn default() -> Self {
        Self {
            shortest: Duration::from_millis(800),
            longest: Duration::from_secs(30),
        }
    }
}

/// Follows the objects of a kind until the future is dropped.
pub(crate) async fn follow<T: Resource>(api: Api, query: Query, pace: Pace, sink: Arc<dyn Sink<T>>) -> Infallible {
    let mut follower = Follower {
        url: query.url::<T>(&api),
        api,
        pace,
        failures: 0,
        sink,
        kind: PhantomData,
    };
    loop {
        let version = follower.list().await;
        follower.watch(version).await;
    }
}

struct Follower<T> {
    api: Api,
    /// URL of the objects, without the parameters of a list or a watch.
    url: Url,
    pace: Pace,
    /// Number of failed attempts since the last successful attempt.
    failures: u32,
    sink: Arc<dyn Sink<T>>,
    kind: PhantomData<fn() -> T>,
}

enum End {
    /// The server ended the watch.
    Closed,
    /// The server no longer has the version.
    Expired,
    Failed(ApiError),
}

#[derive(Deserialize)]
#[serde(tag = "type", content = "object", rename_all = "UPPERCASE")]
enum Line<T> {
    Added(T),
    Modified(T),
    Deleted(T),
    Bookmark(Bookmark),
    Error(Status),
}

/// An event that contains only the version that the watch has reached.
#[derive(Deserialize)]
struct Bookmark {
    metadata: Metadata,
}

impl Query {
    fn url<T: Resource>(&self, api: &Api) -> Url {
        let mut url = api.url::<T>(self.namespace.as_deref());
        for (name, value) in [("labelSelector", &self.labels), ("fieldSelector", &self.fields)] {
            if let Some(value) = value {
                url.query_pairs_mut().append_pair(name, value);
            }
        }
        url
    }
}

impl<T: Resource> Follower<T> {
    /// Lists all objects, and retries until the list succeeds. Returns the version of the list.
    async fn list(&mut self) -> String {
        loop {
            match self.pages().await {
                Ok(version) => return version,
                Err(error) => self.failed("list", &error).await,
            }
        }
    }

    async fn pages(&self) -> Result<String, ApiError> {
        self.sink.event(Event::ListBegins);
        let (mut next, mut size) = (String::new(), PAGE);
        loop {
            let mut url = self.url.clone();
            url.query_pairs_mut().append_pair("limit", &size.to_string());
            if !next.is_empty() {
                url.query_pairs_mut().append_pair("continue", &next);
            }
            self.sink.asks();
            let body = match self.api.get(url).await {
                // A page that is too large is requested again with fewer objects.
                Err(ApiError::TooLong(_)) if size > 1 => {
                    size /= 2;
                    continue;
                }
                body => body?,
            };
            let metadata = self.read_page(body).await?;
            if metadata.next.is_empty() {
                self.sink.event(Event::ListEnds);
                return Ok(metadata.resource_version);
            }
            next = metadata.next;
        }
    }

    /// Parses a page and passes its objects to the sink. Both steps take milliseconds, so they run on a blocking
    /// thread.
    async fn read_page(&self, body: Bytes) -> Result<ListMetadata, ApiError> {
        let sink = self.sink.clone();
        let read = tokio::task::spawn_blocking(move || {
            let page: Page<T> = go_json::from_slice(&body)?;
            drop(body);
            sink.event(Event::Present(page.items.unwrap_or_default()));
            Ok(page.metadata)
        });
        read.await.map_err(|_| ApiError::Panicked)?
    }

    /// Watches from `version` on, and resumes the watch whenever it ends. Returns when all objects must be listed
    /// again.
    async fn watch(&mut self, mut version: String) {
        let mut refusals = 0;
        let mut is_broken = false;
        loop {
            let (before, started) = (version.clone(), Instant::now());
            let end = self.changes(&mut version).await;
            let has_worked = version != before || started.elapsed() >= WORKED;
            if has_worked {
                (refusals, is_broken, self.failures) = (0, false, 0);
            }
            match end {
                End::Closed | End::Expired if has_worked => {}
                // If a server ends every watch at once, the pause limits the rate of requests.
                End::Closed | End::Expired => self.pause(None).await,
                // A broken connection is reported only if the next connection breaks, too.
                End::Failed(ApiError::Lost(_)) if !is_broken => {
                    is_broken = true;
                    self.pause(None).await;
                }
                End::Failed(ref error) => {
                    refusals += refusal(error);
                    self.failed("watch", error).await;
                }
            }
            if matches!(end, End::Expired) || refusals >= MAX_REFUSALS {
                return;
            }
        }
    }

    /// Watches once, until the server or the client ends the watch, or the connection breaks.
    async fn changes(&self, version: &mut String) -> End {
        let seconds = WATCH.as_secs() - rand::random_range(0..WATCH.as_secs() / 2);
        let mut url = self.url.clone();
        url.query_pairs_mut()
            .append_pair("watch", "true")
            .append_pair("allowWatchBookmarks", "true")
            .append_pair("resourceVersion", version)
            .append_pair("timeoutSeconds", &seconds.to_string());
        self.sink.asks();
        let longest = Duration::from_secs(seconds) + GRACE;
        match tokio::time::timeout(longest, self.read(url, version)).await {
            Ok(Ok(())) => End::Closed,
            Ok(Err(error)) if error.status() == Some(StatusCode::GONE) => End::Expired,
            Ok(Err(error)) => End::Failed(error),
            Err(_) => End::Failed(LostError::EndlessWatch(longest).into()),
        }
    }

    async fn read(&self, url: Url, version: &mut String) -> Result<(), ApiError> {
        let mut lines = Lines::new(self.api.open(url).await?);
        self.sink.state(State::Watching);
        while let Some(line) = lines.next().await? {
            let (object, is_there) = match read_json(line).await? {
                Line::Added(object) | Line::Modified(object) => (object, true),
                Line::Deleted(object) => (object, false),
                Line::Bookmark(Bookmark { metadata }) => {
                    *version = metadata.resource_version;
                    continue;
                }
                Line::Error(status) => return Err(ApiError::refused(status)),
            };
            let metadata: &Metadata = T::metadata(&object);
            version.clone_from(&metadata.resource_version);
            let key = metadata.key();
            self.sink.event(if is_there {
                Event::Present(vec![object])
            } else {
                Event::Absent(key)
            });
        }
        Ok(())
    }

    /// Reports a failure, and waits before the next attempt.
    async fn failed(&mut self, verb: &str, error: &ApiError) {
        let path = self.url.path();
        self.sink
            .state(State::Failing(format!("cannot {verb} {path}: {error}")));
        self.pause(error.retry_after()).await;
    }

    /// Waits before the next attempt. The pause has a random part, so that clients do not retry at the same time.
    async fn pause(&mut self, requested: Option<Duration>) {
        let pause = self.pace.pause(self.failures, requested);
        self.failures = self.failures.saturating_add(1);
        tokio::time::sleep(pause.mul_f64(1.0 + rand::random_range(0.0..0.5))).await;
    }
}

impl Pace {
    /// Returns the pause after this many failures, or `requested`, the delay from the server, if that is longer.
    fn pause(&self, failures: u32, requested: Option<Duration>) -> Duration {
        let own = self.shortest.saturating_mul(1 << failures.min(16)).min(self.longest);
        own.max(requested.unwrap_or_default().min(MAX_RETRY_AFTER))
    }
}

/// Returns the number to add to a watch's count of refusals after a failure: 0 if the server is unreachable or busy,
/// [`MAX_REFUSALS`] if the server rejects the request, 1 otherwise.
fn refusal(error: &ApiError) -> u32 {
    match (error, error.status()) {
        (ApiError::Lost(_), _) | (_, Some(StatusCode::TOO_MANY_REQUESTS)) => 0,
        (_, Some(status)) if status.is_client_error() => MAX_REFUSALS,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_and_the_server_may_ask_for_longer_ones() {
        let seconds = |failures, requested: Option<u64>| {
            let pace = Pace {
                shortest: Duration::from_secs(1),
                longest: Duration::from_secs(30),
            };
            pace.pause(failures, requested.map(Duration::from_secs)).as_secs()
        };
        assert_eq!(
            [0, 1, 2, 5, u32::MAX].map(|failures| seconds(failures, None)),
            [1, 2, 4, 30, 30]
        );
        assert_eq!(
            (seconds(0, Some(20)), seconds(3, Some(2)), seconds(0, Some(86_400))),
            (20, 8, 300)
        );
    }
}
