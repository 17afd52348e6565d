//! Watches the catalog by blocking queries, a bounded number at once.
//!
//! A query waits at Consul until its subject changes, so that a change is seen at once and there is no polling.
//! [`PLACES`] bounds the concurrent queries. With more services than that, each query waits for a shorter time, so that
//! all have their turn within the refresh interval. No subject is queried twice within that interval.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures::future::{AbortHandle, Abortable, Aborted, BoxFuture, FutureExt as _};
use futures::stream::{FuturesUnordered, StreamExt as _};
use tokio::sync::{Mutex, Semaphore};
use tokio::time::Instant;

use crate::components::common::arguments::targets::Target;
use crate::components::common::discovery::parts::Parts;
use crate::components::discovery::consul::api::{Api, LONGEST_WAIT, Seen, Wait};

/// Services that are queried concurrently. An agent refuses more than 200 connections from one address.
const PLACES: u32 = 32;
/// Pause after an export, so that changes close in time are exported together.
const TOGETHER: Duration = Duration::from_secs(1);
/// The part that records failures of the catalog itself: no service has an empty name.
const CATALOG: &str = "";

/// The running queries, and their last answers.
pub(super) struct Watches {
    api: Arc<Api>,
    interval: Duration,
    places: Arc<Semaphore>,
    parts: Parts,
    datacenter: OnceLock<Arc<str>>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    queries: FuturesUnordered<Abortable<BoxFuture<'static, Answer>>>,
    /// The watched services, each with the handle that ends its query.
    services: BTreeMap<Arc<str>, AbortHandle>,
    /// Subjects without an answer yet: nothing is exported until each has one.
    unseen: BTreeSet<Arc<str>>,
}

struct Answer {
    subject: Arc<str>,
    asked: Instant,
    /// The index that the query waited on.
    index: u64,
    seen: Result<Seen<Content>, String>,
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
            places: Arc::new(Semaphore::new(PLACES as usize)),
            parts: Parts::default(),
            datacenter: OnceLock::new(),
            state: Mutex::default(),
        }
    }

    /// The targets: as soon as all are known, and then after each change.
    pub(super) async fn changed(&self) -> Result<Vec<Target>, String> {
        let mut state = self.state.lock().await;
        if self.datacenter.get().is_none() {
            let datacenter = self.api.datacenter().await?;
            self.start(&mut state, datacenter);
        }
        let mut is_changed = false;
        loop {
            let next = if is_changed && state.unseen.is_empty() {
                // Answers that are ready already are included.
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

    /// Time until [`Watches::changed`] is called again: short, since that waits for a change itself, unless nothing is
    /// watched yet.
    pub(super) fn pause(&self) -> Duration {
        match self.datacenter.get() {
            Some(_) => TOGETHER,
            None => self.interval,
        }
    }

    /// Why the last query of a subject failed.
    pub(super) fn failure(&self) -> Option<String> {
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

    /// Watches these services and no others.
    fn watch(&self, state: &mut State, services: &[Arc<str>]) {
        let there: BTreeSet<&Arc<str>> = services.iter().collect();
        state.services.retain(|name, query| {
            let is_there = there.contains(name);
            if !is_there {
                query.abort();
            }
            is_there
        });
        state.unseen.retain(|name| there.contains(name));
        self.parts.retain(|name| state.services.contains_key(name));
        for name in there {
            if !state.services.contains_key(name) {
                state.unseen.insert(name.clone());
                self.ask(state, name.clone(), 0, Instant::now());
            }
        }
    }

    /// Takes an answer and starts the next query; true when the answer is new.
    fn take(&self, state: &mut State, answer: Answer) -> bool {
        let Answer {
            subject,
            asked,
            index,
            seen,
        } = answer;
        state.unseen.remove(&subject);
        let (next, is_new) = match seen {
            Ok(Seen { index: now, value }) => {
                match value {
                    Content::Services(services) => {
                        self.watch(state, &services);
                        self.parts.set(&subject, Ok(Vec::new()));
                    }
                    Content::Targets(targets) => self.parts.set(&subject, Ok(targets)),
                }
                // An index that went back is reset. Otherwise it is at least 1: a query with index 0 does not wait.
                (if now < index { 0 } else { now.max(1) }, now != index)
            }
            Err(error) => {
                self.parts.set(&subject, Err(error));
                (0, true)
            }
        };
        self.ask(state, subject, next, asked + self.interval);
        is_new
    }

    /// Queries a subject at the time `at`: for its current state if `index` is 0, else for the next change after it.
    fn ask(&self, state: &mut State, subject: Arc<str>, index: u64, at: Instant) {
        let share = u32::try_from(state.services.len()).unwrap_or(u32::MAX).max(1);
        let turn = self.interval.saturating_mul(PLACES) / share;
        let is_catalog = &*subject == CATALOG;
        let at_most = if is_catalog {
            LONGEST_WAIT
        } else {
            LONGEST_WAIT.min(turn)
        };
        let wait = (index > 0).then_some(Wait { after: index, at_most });
        let datacenter = self.datacenter.get().cloned().unwrap_or_default();
        let (api, places, name) = (self.api.clone(), self.places.clone(), subject.clone());
        let query = async move {
            tokio::time::sleep_until(at).await;
            let (asked, seen) = if is_catalog {
                (Instant::now(), map(api.services(wait).await, Content::Services))
            } else {
                let _place = places.acquire().await;
                (
                    Instant::now(),
                    map(api.service(&name, &datacenter, wait).await, Content::Targets),
                )
            };
            Answer {
                subject: name,
                asked,
                index,
                seen,
            }
        };
        let (handle, registration) = AbortHandle::new_pair();
        state.queries.push(Abortable::new(query.boxed(), registration));
        if !is_catalog {
            state.services.insert(subject, handle);
        }
    }
}

fn map<T>(seen: Result<Seen<T>, String>, content: fn(T) -> Content) -> Result<Seen<Content>, String> {
    let Seen { index, value } = seen?;
    Ok(Seen {
        index,
        value: content(value),
    })
}
