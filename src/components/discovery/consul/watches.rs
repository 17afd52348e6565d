//! Watches the catalog with blocking queries. The number of concurrent queries is bounded.
//!
//! The subject of a query is the catalog or one service. Consul answers a blocking query when its subject changes. The
//! component therefore sees a change immediately and does not poll. [`PLACES`] bounds the concurrent queries for
//! services. If there are more services, each query waits for a shorter time, so that every service is queried within
//! the refresh interval. No subject is queried twice within that interval.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures::future::{AbortHandle, Abortable, Aborted, BoxFuture, FutureExt as _};
use futures::stream::{FuturesUnordered, StreamExt as _};
use tokio::sync::{Mutex, Semaphore};
use tokio::time::Instant;

use crate::common::arguments::targets::Target;
use crate::common::discovery::discovery_error::DiscoveryError;
use crate::common::discovery::outdated::Outdated;
use crate::common::discovery::parts::Parts;
use crate::discovery::consul::api::{Api, Indexed, LONGEST_WAIT, Wait};

/// Maximum number of concurrent queries for services. An agent refuses more than 200 connections from one address.
const PLACES: u32 = 32;
/// Pause after an export, so that several changes in a short time are exported together.
const TOGETHER: Duration = Duration::from_secs(1);
/// Name of the catalog query in `Watches::parts`, next to the names of services. No service has an empty name.
const CATALOG: &str = "";

/// The running queries, and the last response to each.
pub(super) struct Watches {
    api: Arc<Api>,
    interval: Duration,
    permits: Arc<Semaphore>,
    parts: Parts,
    datacenter: OnceLock<Arc<str>>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    queries: FuturesUnordered<Abortable<BoxFuture<'static, Answer>>>,
    /// The watched services, each with the handle that aborts its query.
    services: BTreeMap<Arc<str>, AbortHandle>,
    /// Subjects without a response so far. Nothing is exported until each subject has a response.
    unseen: BTreeSet<Arc<str>>,
}

struct Answer {
    subject: Arc<str>,
    sent_at: Instant,
    /// The index after which the query waited for a change.
    index: u64,
    result: Result<Indexed<Content>, DiscoveryError>,
}

enum Content {
    Services(Vec<Arc<str>>),
    Targets(Vec<Target>),
}

impl Watches {
    pub(super) fn new(api: Api, interval: Duration) -> Self {
        Self {
            api: Arc::new(api),
            interval,
            permits: Arc::new(Semaphore::new(PLACES as usize)),
            parts: Parts::default(),
            datacenter: OnceLock::new(),
            state: Mutex::default(),
        }
    }

    /// Waits for a change and returns all targets. The first call waits until every service has a response.
    pub(super) async fn changed(&self) -> Result<Vec<Target>, DiscoveryError> {
        let mut state = self.state.lock().await;
        if self.datacenter.get().is_none() {
            let datacenter = self.api.datacenter().await?;
            self.start(&mut state, datacenter);
        }
        let mut is_changed = false;
        loop {
            let next = if is_changed && state.unseen.is_empty() {
                // Also process the other responses that have already arrived.
                state.queries.next().now_or_never().flatten()
            } else {
                state.queries.next().await
            };
            match next {
                Some(Ok(answer)) => is_changed |= self.take(&mut state, answer),
                Some(Err(Aborted)) => {}
                None => return Ok(self.parts.targets()),
            }
        }
    }

    /// Returns the time until the next call of [`Watches::changed`]. The time is short, because that function itself
    /// waits for a change. While nothing is watched, the time is the refresh interval.
    pub(super) fn pause(&self) -> Duration {
        match self.datacenter.get() {
            Some(_) => TOGETHER,
            None => self.interval,
        }
    }

    /// Returns the reason why the last query for a subject failed, or `None` if the last query for each subject
    /// succeeded.
    pub(super) fn failure(&self) -> Option<Outdated> {
        self.parts.failure()
    }

    fn start(&self, state: &mut State, datacenter: Arc<str>) {
        self.datacenter.get_or_init(|| datacenter);
        if let Some(services) = self.api.named() {
            self.watch(state, services);
        } else {
            state.unseen.insert(CATALOG.into());
            self.ask(state, CATALOG.into(), 0, Instant::now());
        }
    }

    /// Starts to watch new services, and stops watching the services that are missing in `services`.
    fn watch(&self, state: &mut State, services: &[Arc<str>]) {
        let listed: BTreeSet<&Arc<str>> = services.iter().collect();
        state.services.retain(|name, query| {
            let is_there = listed.contains(name);
            if !is_there {
                query.abort();
            }
            is_there
        });
        state.unseen.retain(|name| listed.contains(name));
        self.parts.retain(|name| state.services.contains_key(name));
        for name in listed {
            if !state.services.contains_key(name) {
                state.unseen.insert(name.clone());
                self.ask(state, name.clone(), 0, Instant::now());
            }
        }
    }

    /// Records a response and starts the next query. Returns true if the subject changed or its query failed.
    fn take(&self, state: &mut State, answer: Answer) -> bool {
        let Answer {
            subject,
            sent_at,
            index,
            result,
        } = answer;
        state.unseen.remove(&subject);
        let (next, is_new) = match result {
            Ok(Indexed { index: now, value }) => {
                match value {
                    Content::Services(services) => {
                        self.watch(state, &services);
                        self.parts.set(&subject, Ok(Vec::new()));
                    }
                    Content::Targets(targets) => self.parts.set(&subject, Ok(targets)),
                }
                // If the index went backwards, the next query starts at 0. Otherwise the index is at least 1, because a
                // query with index 0 does not wait.
                (if now < index { 0 } else { now.max(1) }, now != index)
            }
            Err(error) => {
                self.parts.set(&subject, Err(error));
                (0, true)
            }
        };
        self.ask(state, subject, next, sent_at + self.interval);
        is_new
    }

    /// Starts a query for a subject at the time `start`. If `index` is 0, Consul answers immediately. Otherwise Consul
    /// answers after the next change, or when the wait of the query ends.
    fn ask(&self, state: &mut State, subject: Arc<str>, index: u64, start: Instant) {
        let share = u32::try_from(state.services.len()).unwrap_or(u32::MAX).max(1);
        let turn = self.interval.saturating_mul(PLACES) / share;
        let is_catalog = &*subject == CATALOG;
        let max_wait = if is_catalog {
            LONGEST_WAIT
        } else {
            LONGEST_WAIT.min(turn)
        };
        let wait = (index > 0).then_some(Wait { after: index, max_wait });
        let datacenter = self.datacenter.get().cloned().unwrap_or_default();
        let (api, permits, name) = (self.api.clone(), self.permits.clone(), subject.clone());
        let query = async move {
            tokio::time::sleep_until(start).await;
            let (sent_at, result) = if is_catalog {
                (Instant::now(), map(api.services(wait).await, Content::Services))
            } else {
                let _permit = permits.acquire().await;
                (
                    Instant::now(),
                    map(api.service(&name, &datacenter, wait).await, Content::Targets),
                )
            };
            Answer {
                subject: name,
                sent_at,
                index,
                result,
            }
        };
        let (handle, registration) = AbortHandle::new_pair();
        state.queries.push(Abortable::new(query.boxed(), registration));
        if !is_catalog {
            state.services.insert(subject, handle);
        }
    }
}

fn map<T>(
    result: Result<Indexed<T>, DiscoveryError>,
    content: fn(T) -> Content,
) -> Result<Indexed<Content>, DiscoveryError> {
    let Indexed { index, value } = result?;
    Ok(Indexed {
        index,
        value: content(value),
    })
}
