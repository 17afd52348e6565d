//! Follows a kind of objects: lists them, then watches their changes, for ever.
//!
//! In: an API, and which objects. Out: [`Event`]s and [`State`]s, to a [`Sink`]. A list is read page by page. A watch
//! that ends is taken up again where it was; only when the server does not know that place any more (410), or cannot go
//! on from there, all is listed again. Failures are tried again with growing pauses, or when the server says.

use std::convert::Infallible;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::StatusCode;
use serde::Deserialize;
use url::Url;

use crate::components::common::kubernetes::api::{Api, ApiError, Page, read_json};
use crate::components::common::kubernetes::lines::Lines;
use crate::components::common::kubernetes::objects::{Key, ListMetadata, Metadata, Resource, Status};

/// Objects of one page of a list.
const PAGE: usize = 500;
/// Longest time that a watch is asked to last; the server ends it then.
const WATCH: Duration = Duration::from_mins(5);
/// A watch that has not ended this long after its time is given up.
const GRACE: Duration = Duration::from_secs(30);
/// A watch that lasted this long has worked, even when nothing changed.
const WORKED: Duration = Duration::from_secs(10);
/// After so many refusals the version that a watch has come to is not believed in any more.
const MAX_REFUSALS: u32 = 3;
/// Longest pause that a server may ask for.
const MAX_RETRY_AFTER: Duration = Duration::from_mins(5);

/// Which objects of a kind are followed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Query {
    /// The namespace that they are in; all without one.
    pub(crate) namespace: Option<Arc<str>>,
    /// Label selector that the server applies.
    pub(crate) labels: Option<Arc<str>>,
    /// Field selector that the server applies.
    pub(crate) fields: Option<Arc<str>>,
}

/// What has become of the objects.
#[derive(Debug)]
pub(crate) enum Event<T> {
    /// All that follows until `ListEnds` is all there is.
    ListBegins,
    /// These are there, new or changed.
    Found(Vec<T>),
    /// The object of this key is gone.
    Gone(Key),
    /// Those that were not found since `ListBegins` are gone.
    ListEnds,
}

/// How the following goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// Nothing was answered yet.
    Starting,
    /// The server sends changes.
    Watching,
    /// It did not work, and is tried again.
    Failing(String),
}

/// Takes the events and states of a watch.
pub(crate) trait Sink<T>: Send + Sync + 'static {
    /// Takes an event; may be called by a thread that may block, never by two at once.
    fn event(&self, event: Event<T>);

    /// Takes a new state. Every failure is given once.
    fn state(&self, state: State);

    /// A request is about to be sent.
    fn asks(&self) {}
}

/// Pauses between attempts that fail.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    /// The first pause; each further one is twice as long.
    pub(crate) least: Duration,
    /// The longest pause, after many failures.
    pub(crate) most: Duration,
}

impl Default for Pace {
    /// The pauses of client-go, Kubernetes' own client.
    fn default() -> Self {
        Self {
            least: Duration::from_millis(800),
            most: Duration::from_secs(30),
        }
    }
}

/// Follows the objects of a kind until it is dropped.
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
    /// What is asked, but for the parameters of a list or a watch.
    url: Url,
    pace: Pace,
    /// Attempts since something came.
    failures: u32,
    sink: Arc<dyn Sink<T>>,
    kind: PhantomData<fn() -> T>,
}

enum End {
    /// The server ended it at its time.
    Closed,
    /// The server does not know the version any more.
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

/// Nothing but the version up to which the watch has come.
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
    /// Lists until that succeeds; the version of the list.
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
                // A page of large objects is asked for in smaller ones.
                Err(ApiError::TooLong(_)) if size > 1 => {
                    size /= 2;
                    continue;
                }
                body => body?,
            };
            let metadata = self.found(body).await?;
            if metadata.next.is_empty() {
                self.sink.event(Event::ListEnds);
                return Ok(metadata.resource_version);
            }
            next = metadata.next;
        }
    }

    /// Reads a page and hands on its objects; both take milliseconds.
    async fn found(&self, body: Bytes) -> Result<ListMetadata, ApiError> {
        let sink = self.sink.clone();
        let read = tokio::task::spawn_blocking(move || {
            let page: Page<T> = serde_json::from_slice(&body)?;
            drop(body);
            sink.event(Event::Found(page.items.unwrap_or_default()));
            Ok(page.metadata)
        });
        read.await.map_err(|_| ApiError::Panicked)?
    }

    /// Watches from `version` on, and takes the watch up again, until all must be listed again.
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
                // A server that ends every watch at once is not asked at once again.
                End::Closed | End::Expired => self.pause(None).await,
                // That a connection breaks is nothing to tell of when the next one holds.
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

    /// Watches once, until the server ends it.
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
            Err(_) => End::Failed(ApiError::Lost(format!(
                "no end of the watch in {} s",
                longest.as_secs()
            ))),
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
                Event::Found(vec![object])
            } else {
                Event::Gone(key)
            });
        }
        Ok(())
    }

    /// Tells of a failure, and waits before the next attempt.
    async fn failed(&mut self, asked: &str, error: &ApiError) {
        let path = self.url.path();
        self.sink
            .state(State::Failing(format!("cannot {asked} {path}: {error}")));
        self.pause(error.retry_after()).await;
    }

    /// Waits; never exactly as long as others do.
    async fn pause(&mut self, wanted: Option<Duration>) {
        let pause = self.pace.pause(self.failures, wanted);
        self.failures = self.failures.saturating_add(1);
        tokio::time::sleep(pause.mul_f64(1.0 + rand::random_range(0.0..0.5))).await;
    }
}

impl Pace {
    /// The pause after so many failures; a longer one when the server wants that.
    fn pause(&self, failures: u32, wanted: Option<Duration>) -> Duration {
        let own = self.least.saturating_mul(1 << failures.min(16)).min(self.most);
        own.max(wanted.unwrap_or_default().min(MAX_RETRY_AFTER))
    }
}

/// How much a failure says against the version that a watch asks for: nothing when the server is away or busy, all when
/// it does not like the question.
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
        let seconds = |failures, wanted: Option<u64>| {
            let pace = Pace {
                least: Duration::from_secs(1),
                most: Duration::from_secs(30),
            };
            pace.pause(failures, wanted.map(Duration::from_secs)).as_secs()
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
