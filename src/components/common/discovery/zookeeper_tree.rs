//! Members that are registered as nodes in ZooKeeper, for `discovery.nerve` and `discovery.serverset`.
//!
//! In: servers and paths, and the type of the members in the nodes ([`Member`]). Every node at or below a path is read
//! once and then watched. Out: the targets of the nodes that contain a member, after each change.

use std::collections::{BTreeMap, BTreeSet};
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use serde::de::DeserializeOwned;
use tokio::sync::Mutex;

use crate::common::arguments::targets::Target;
use crate::common::discovery::discovery_error::DiscoveryError;
use crate::common::discovery::outdated::Outdated;
use crate::common::discovery::polled::Discovery;
use alluvium_base::go_json;
use alluvium_lang::argument_error::ArgumentError;
use alluvium_lang::attribute::{FromValue, Interval, NotEmpty, wrong};
use alluvium_lang::body::arguments;
use alluvium_lang::schema::Kind;
use alluvium_lang::value::Value;
use alluvium_pipeline::component::{ComponentError, Context};
use alluvium_wire::zookeeper::Session;

/// Maximum number of watched nodes. It equals the maximum number of exported targets.
const MAX_NODES: usize = 100_000;
/// Longest pause after an export. Several changes during the pause become one export.
const TOGETHER: Duration = Duration::from_secs(1);
/// Pause before a lost session is replaced, as in Prometheus.
const RETRY: Duration = Duration::from_secs(10);

arguments! {
    /// Servers and paths at which members are registered.
    pub(crate) struct ZooKeeperArguments {
        /// Paths in ZooKeeper under which to discover members.
        paths: NotEmpty<Vec<ZooKeeperPath>>,
        /// Addresses of the ZooKeeper servers, HOST:PORT. The default port is 2181.
        servers: NotEmpty<Vec<Arc<str>>>,
        /// Session timeout of the connection to ZooKeeper.
        timeout: Interval = "10s",
    }
}

/// An absolute path in ZooKeeper.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ZooKeeperPath(Arc<str>);

impl FromValue for ZooKeeperPath {
    const KIND: Kind = Kind::String;

    fn from_value(name: &str, value: &Value) -> Result<Self, ArgumentError> {
        let path = Arc::<str>::from_value(name, value)?;
        if !path.starts_with('/') {
            return Err(wrong(format!("`{path}` must begin with /")));
        }
        match path.trim_end_matches('/') {
            "" => Ok(Self("/".into())),
            trimmed => Ok(Self(trimmed.into())),
        }
    }
}

/// A member of a service. A node contains the member as JSON.
pub(crate) trait Member: DeserializeOwned + Send + Sync + 'static {
    /// Returns the target of the member. `path` is the path of its node.
    fn target(self, path: &str) -> Target;
}

/// Discovers the members of type `M` in the nodes at and below the configured paths.
pub(crate) struct Members<M> {
    tree: ZooKeeperTree,
    kind: PhantomData<fn() -> M>,
}

impl<M: Member> Discovery for Members<M> {
    type Arguments = ZooKeeperArguments;

    fn new(arguments: &ZooKeeperArguments, _context: &Context) -> Result<Self, ComponentError> {
        Ok(Self {
            tree: ZooKeeperTree::new(arguments),
            kind: PhantomData,
        })
    }

    fn interval(&self) -> Duration {
        self.tree.pause()
    }

    async fn targets(&self) -> Result<Vec<Target>, DiscoveryError> {
        self.tree.changed::<M>().await
    }

    fn failure(&self) -> Option<Outdated> {
        self.tree.failure()
    }
}

struct ZooKeeperTree {
    arguments: ZooKeeperArguments,
    is_connected: AtomicBool,
    missing: parking_lot::Mutex<BTreeSet<String>>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    session: Option<Session>,
    /// Contents of the nodes, by path.
    nodes: BTreeMap<String, Bytes>,
}

impl ZooKeeperTree {
    fn new(arguments: &ZooKeeperArguments) -> Self {
        Self {
            arguments: arguments.clone(),
            is_connected: AtomicBool::new(false),
            missing: parking_lot::Mutex::default(),
            state: Mutex::default(),
        }
    }

    /// Returns the time until the next call of [`ZooKeeperTree::changed`]. The time is short, because that function
    /// itself waits for a change. Without a session, the time is [`RETRY`].
    fn pause(&self) -> Duration {
        if self.is_connected.load(Ordering::Relaxed) {
            TOGETHER.min(self.arguments.timeout.get() / 4)
        } else {
            RETRY
        }
    }

    /// Returns an error that names the missing paths; `None` if all paths exist.
    fn failure(&self) -> Option<Outdated> {
        let missing: Vec<String> = self.missing.lock().iter().cloned().collect();
        (!missing.is_empty()).then_some(Outdated::NoNodes(missing))
    }

    /// Returns the targets of the nodes that contain members. Without a session, connects and returns immediately.
    /// Otherwise waits for a change first.
    async fn changed<M: Member>(&self) -> Result<Vec<Target>, DiscoveryError> {
        let mut state = self.state.lock().await;
        // The flag becomes true again only if the refresh succeeds. A failed session is dropped.
        self.is_connected.store(false, Ordering::Relaxed);
        let session = self.refresh(&mut state).await?;
        state.session = Some(session);
        self.is_connected.store(true, Ordering::Relaxed);
        Ok(state
            .nodes
            .iter()
            .filter_map(|(path, data)| Some(member::<M>(path, data)?.target(path)))
            .collect())
    }

    /// Waits for a change and reads the changed nodes, or connects and reads all nodes.
    async fn refresh(&self, state: &mut State) -> Result<Session, DiscoveryError> {
        if let Some(mut session) = state.session.take() {
            let mut changed = vec![session.changed().await?];
            while let Some(path) = session.changed_too() {
                changed.push(path);
            }
            self.read(&mut session, changed, &mut state.nodes).await?;
            return Ok(session);
        }
        let mut session = Session::connect(&self.arguments.servers.0, self.arguments.timeout.get()).await?;
        let mut nodes = BTreeMap::new();
        let paths = self.arguments.paths.0.iter().map(|path| path.0.to_string());
        self.read(&mut session, paths.collect(), &mut nodes).await?;
        state.nodes = nodes;
        Ok(session)
    }

    /// Reads the nodes at `paths` and the new nodes below them, and stores their contents in `nodes`.
    async fn read(
        &self,
        session: &mut Session,
        mut paths: Vec<String>,
        nodes: &mut BTreeMap<String, Bytes>,
    ) -> Result<(), DiscoveryError> {
        while !paths.is_empty() {
            paths.sort();
            paths.dedup();
            let contents = session.nodes(&paths).await?;
            let mut child_paths = Vec::new();
            for (path, node) in paths.into_iter().zip(contents) {
                let Some(node) = node else {
                    nodes.remove(&path);
                    self.expect(session, path).await?;
                    continue;
                };
                let parent = path.trim_end_matches('/');
                let children = node.children.iter().map(|child| format!("{parent}/{child}"));
                child_paths.extend(children.filter(|child| !nodes.contains_key(child)));
                self.missing.lock().remove(&path);
                nodes.insert(path, node.data);
                if nodes.len() + child_paths.len() > MAX_NODES {
                    return Err(DiscoveryError::TooManyNodes(MAX_NODES));
                }
            }
            paths = child_paths;
        }
        Ok(())
    }

    /// If `path` is one of the configured paths, records that it does not exist, and watches for its creation.
    async fn expect(&self, session: &mut Session, path: String) -> Result<(), DiscoveryError> {
        if self.arguments.paths.0.iter().any(|configured| *configured.0 == *path) {
            session.expect(&path).await?;
            self.missing.lock().insert(path);
        }
        Ok(())
    }
}

/// Parses the member in a node as Go does. Returns `None` for a node without a member, such as a parent of the members.
fn member<M: Member>(path: &str, data: &Bytes) -> Option<M> {
    if data.is_empty() {
        return None;
    }
    let read = go_json::from_slice(data);
    read.inspect_err(|error| tracing::debug!(path, %error, "a node in zookeeper contains no member"))
        .ok()
}
