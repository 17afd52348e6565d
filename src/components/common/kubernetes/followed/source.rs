//! The watches of one set of arguments, with their state and the objects that they have found.
//!
//! In: arguments. Out: watches to run, the targets when they have changed, and the overall health.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::sync::Arc;

use futures::future::BoxFuture;
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::common::kubernetes::access;
use crate::common::kubernetes::api::Api;
use crate::common::kubernetes::followed::arguments::Role;
use crate::common::kubernetes::followed::cluster::{Cluster, Count, Stored};
use crate::common::kubernetes::followed::metrics::KubernetesMetrics;
use crate::common::kubernetes::followed::role_targets::{LeftOut, Outcome, RoleTargets};
use crate::common::kubernetes::followed::wanted::FollowArguments;
use crate::common::kubernetes::objects::{
    EndpointSlice, Endpoints, Ingress, Key, Namespace, Node, Pod, Resource, Service,
};
use crate::common::kubernetes::watch::{Event, Pace, Query, Sink, State, follow};
use alluvium_lang::value::Value;
use alluvium_pipeline::component::{ComponentError, Context};

/// The watches of one set of arguments, and the objects that they found.
pub(super) struct Source {
    id: Arc<str>,
    selection: FollowArguments,
    api: Api,
    /// Namespaces to search. A single empty name stands for all namespaces.
    namespaces: BTreeSet<Arc<str>>,
    metrics: KubernetesMetrics,
    known: Mutex<Known>,
    /// Notified when objects are found, or when the state of a watch changes.
    pub(super) changed: Notify,
}

struct Known {
    cluster: Cluster,
    targets: RoleTargets,
    watches: Vec<Watch>,
    /// Whether targets have changed since the last call of [`Source::targets`].
    outcome: Outcome,
    /// Number of watches that had listed their objects at the last call of [`Source::targets`].
    listed: usize,
}

/// The result of [`Source::targets`], compared with the last call.
pub(super) enum Refresh {
    /// Not all objects have been listed yet.
    Incomplete,
    Unchanged,
    Changed(Vec<Value>),
}

/// One watch, in the form that debug info shows.
#[derive(Clone, Debug)]
pub(super) struct Watch {
    /// Kind of the objects, in the plural.
    pub(super) kind: &'static str,
    /// Namespace of the objects; empty for all.
    pub(super) namespace: Arc<str>,
    pub(super) state: State,
    /// Whether all objects have been listed once.
    pub(super) is_listed: bool,
}

/// State of all watches, with counts of objects.
pub(super) struct Standing {
    pub(super) watches: Vec<Watch>,
    pub(super) objects: Count,
    pub(super) left_out: LeftOut,
}

impl Source {
    /// Prepares the watches: finds the server and reads certificates. Sends no request.
    pub(super) fn new(
        selection: FollowArguments,
        context: &Context,
        metrics: KubernetesMetrics,
    ) -> Result<Self, ComponentError> {
        let cluster = &selection.cluster;
        let mut namespaces: BTreeSet<Arc<str>> = cluster.namespaces.names.iter().cloned().collect();
        if cluster.namespaces.own_namespace {
            namespaces.insert(access::own_namespace()?);
        }
        if namespaces.is_empty() {
            namespaces.insert("".into());
        }
        let known = Known {
            cluster: Cluster::new(cluster.attach_metadata.clone()),
            targets: RoleTargets::new(selection.role, selection.choose),
            watches: Vec::new(),
            outcome: Outcome::Unchanged,
            listed: 0,
        };
        Ok(Self {
            id: context.id.clone(),
            api: access::api(&cluster.client, &context.user_agent)?,
            selection,
            namespaces,
            metrics,
            known: Mutex::new(known),
            changed: Notify::new(),
        })
    }

    /// Returns all watches, which must run concurrently. They replace the watches of an earlier call.
    pub(super) fn watches(self: &Arc<Self>, pace: Pace) -> Vec<BoxFuture<'static, Infallible>> {
        let (role, attached) = (self.selection.role, &self.selection.cluster.attach_metadata);
        let all = || "".into();
        self.known.lock().watches.clear();
        let mut watches = Vec::new();
        let takes_nodes = matches!(role, Role::Pod | Role::Endpoints | Role::EndpointSlice);
        if role == Role::Node || (takes_nodes && attached.node) {
            watches.push(self.watch::<Node>(all(), Some(Role::Node), pace));
        }
        if role != Role::Node && attached.namespace {
            watches.push(self.watch::<Namespace>(all(), None, pace));
        }
        for namespace in &self.namespaces {
            let name = || namespace.clone();
            match role {
                Role::Node => {}
                Role::Pod => watches.push(self.watch::<Pod>(name(), Some(Role::Pod), pace)),
                Role::Service => watches.push(self.watch::<Service>(name(), Some(Role::Service), pace)),
                Role::Ingress => watches.push(self.watch::<Ingress>(name(), Some(Role::Ingress), pace)),
                Role::Endpoints => watches.push(self.watch::<Endpoints>(name(), Some(Role::Endpoints), pace)),
                Role::EndpointSlice => {
                    watches.push(self.watch::<EndpointSlice>(name(), Some(Role::EndpointSlice), pace));
                }
            }
            if matches!(role, Role::Endpoints | Role::EndpointSlice) {
                watches.push(self.watch::<Service>(name(), Some(Role::Service), pace));
                watches.push(self.watch::<Pod>(name(), Some(Role::Pod), pace));
            }
        }
        watches
    }

    /// Returns one watch of a namespace, for objects that match the selector of `role`. If there is no role or no
    /// selector, all objects match.
    fn watch<T: Stored>(
        self: &Arc<Self>,
        namespace: Arc<str>,
        role: Option<Role>,
        pace: Pace,
    ) -> BoxFuture<'static, Infallible> {
        let selector = role.and_then(|role| self.selection.cluster.selector(role));
        let query = Query {
            namespace: Some(namespace.clone()).filter(|name| !name.is_empty()),
            labels: selector
                .and_then(|selector| selector.label.clone())
                .map(|label| label.0),
            fields: selector
                .and_then(|selector| selector.field.clone())
                .map(|field| field.0),
        };
        let mut known = self.known.lock();
        let sink = Feed {
            source: self.clone(),
            index: known.watches.len(),
            namespace: namespace.clone(),
        };
        known.watches.push(Watch {
            kind: T::PLURAL,
            namespace,
            state: State::Starting,
            is_listed: false,
        });
        Box::pin(follow::<T>(self.api.clone(), query, pace, Arc::new(sink)))
    }

    /// Rebuilds the targets and returns them if they have changed. This takes milliseconds. The first complete set is
    /// treated as changed, since the targets of former arguments may still be exported.
    pub(super) fn targets(&self) -> Refresh {
        let mut known = self.known.lock();
        known.refresh();
        let outcome = std::mem::replace(&mut known.outcome, Outcome::Unchanged);
        let listed = known.watches.iter().filter(|watch| watch.is_listed).count();
        let has_listed = std::mem::replace(&mut known.listed, listed) < listed;
        let is_complete = listed == known.watches.len();
        if outcome == Outcome::Unchanged && !has_listed {
            return if is_complete {
                Refresh::Unchanged
            } else {
                Refresh::Incomplete
            };
        }
        let targets = known.all();
        // A list without targets must not replace the targets of former arguments before everything is listed.
        if outcome == Outcome::Unchanged && !is_complete && targets.is_empty() {
            return Refresh::Incomplete;
        }
        Refresh::Changed(targets)
    }

    /// Returns the state of the watches, and counts of the objects that they found.
    pub(super) fn standing(&self) -> Standing {
        let known = self.known.lock();
        Standing {
            watches: known.watches.clone(),
            objects: known.cluster.count(),
            left_out: known.targets.left_out(),
        }
    }
}

impl Known {
    /// Rebuilds the targets that are affected by changes since the last call.
    fn refresh(&mut self) {
        let is_settled = settled(&self.watches);
        if self.targets.refresh(&mut self.cluster, &is_settled) == Outcome::Changed {
            self.outcome = Outcome::Changed;
        }
    }

    /// Returns the targets of all objects that are settled.
    fn all(&self) -> Vec<Value> {
        self.targets.all(&settled(&self.watches))
    }

    fn change(&mut self, index: usize, change: impl FnOnce(&mut Watch)) {
        if let Some(watch) = self.watches.get_mut(index) {
            change(watch);
        }
    }
}

/// Returns a function that returns true for objects whose namespace was listed by all watches that search it.
fn settled(watches: &[Watch]) -> impl Fn(&Key) -> bool {
    move |key: &Key| {
        let concerns = |watch: &&Watch| watch.namespace.is_empty() || watch.namespace == key.namespace;
        watches.iter().filter(concerns).all(|watch| watch.is_listed)
    }
}

impl Watch {
    /// Returns the error of a failing watch; `None` if the watch does not fail.
    pub(super) fn failure(&self) -> Option<&String> {
        match &self.state {
            State::Failing(error) => Some(error),
            State::Starting | State::Watching => None,
        }
    }
}

/// Passes the events of one watch to the source.
struct Feed {
    source: Arc<Source>,
    /// Index of the watch in `Known::watches`.
    index: usize,
    namespace: Arc<str>,
}

impl<T: Stored + Resource> Sink<T> for Feed {
    fn event(&self, event: Event<T>) {
        let metrics = &self.source.metrics;
        let is_page = matches!(&event, Event::Present(objects) if objects.len() > 1);
        let mut known = self.source.known.lock();
        match &event {
            Event::ListBegins => {
                metrics.lists.inc();
            }
            Event::ListEnds => known.change(self.index, |watch| watch.is_listed = true),
            Event::Present(objects) => {
                metrics.events.inc_by(objects.len() as u64);
            }
            Event::Absent(_) => {
                metrics.events.inc();
            }
        }
        known.cluster.take(&self.namespace, event);
        // The objects of a page are replaced by their targets before the next page arrives.
        if is_page && known.targets.tells_of_one_object(&known.cluster) {
            known.refresh();
        }
        drop(known);
        self.source.changed.notify_one();
    }

    fn state(&self, state: State) {
        if let State::Failing(error) = &state {
            self.source.metrics.failures.inc();
            tracing::warn!(component = %self.source.id, error, "cannot follow objects, keeping the last targets");
        }
        self.source.known.lock().change(self.index, |watch| watch.state = state);
        self.source.changed.notify_one();
    }

    fn asks(&self) {
        self.source.metrics.requests.inc();
    }
}
