//! A small ZooKeeper server for tests: nodes in memory, sessions over a socket, and watches that fire once.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::task::JoinSet;

/// Internal message that ends a session. It is empty, unlike all messages of the protocol.
const END: &[u8] = &[];

/// A server that runs until it is dropped.
pub struct ZooKeeper {
    pub address: Arc<str>,
    tree: Arc<Mutex<Tree>>,
    task: tokio::task::JoinHandle<()>,
}

#[derive(Default)]
struct Tree {
    nodes: BTreeMap<String, Vec<u8>>,
    sessions: Vec<Watcher>,
    pings: usize,
}

struct Watcher {
    out: UnboundedSender<Vec<u8>>,
    nodes: BTreeSet<String>,
    children: BTreeSet<String>,
}

impl Drop for ZooKeeper {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl ZooKeeper {
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string().into();
        let tree = Arc::new(Mutex::new(Tree::default()));
        let shared = tree.clone();
        let task = tokio::spawn(async move {
            let mut sessions = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                sessions.spawn(session(stream, shared.clone()));
            }
        });
        Self { address, tree, task }
    }

    /// Creates a node or changes its data. Missing parents are created.
    pub fn set(&self, path: &str, data: &str) {
        let mut tree = self.tree.lock();
        let parent = parent(path);
        if parent != "/" && !tree.nodes.contains_key(parent) {
            drop(tree);
            self.set(parent, "");
            tree = self.tree.lock();
        }
        let is_new = tree.nodes.insert(path.to_owned(), data.into()).is_none();
        tree.tell(path, if is_new { 1 } else { 3 }, is_new);
    }

    pub fn delete(&self, path: &str) {
        let mut tree = self.tree.lock();
        tree.nodes.remove(path).expect("a node");
        tree.tell(path, 2, true);
    }

    /// Ends all sessions by closing their connections.
    pub fn end_sessions(&self) {
        for session in self.tree.lock().sessions.drain(..) {
            let _ = session.out.send(END.to_vec());
        }
    }

    pub fn pings(&self) -> usize {
        self.tree.lock().pings
    }

    /// Returns the number of open sessions.
    pub fn sessions(&self) -> usize {
        let mut tree = self.tree.lock();
        tree.sessions.retain(|session| !session.out.is_closed());
        tree.sessions.len()
    }
}

impl Tree {
    fn tell(&mut self, path: &str, event: i32, is_child_changed: bool) {
        let parent = parent(path).to_owned();
        for session in &mut self.sessions {
            if session.nodes.remove(path) | (event == 2 && session.children.remove(path)) {
                let _ = session.out.send(event_message(event, path));
            }
            if is_child_changed && session.children.remove(&parent) {
                let _ = session.out.send(event_message(4, &parent));
            }
        }
    }

    fn children(&self, path: &str) -> Vec<String> {
        let children = self.nodes.keys().filter(|node| parent(node) == path && *node != "/");
        children
            .map(|node| node.rsplit('/').next().unwrap().to_owned())
            .collect()
    }
}

fn parent(path: &str) -> &str {
    match path.rsplit_once('/') {
        Some(("", _)) | None => "/",
        Some((parent, _)) => parent,
    }
}

async fn session(mut stream: TcpStream, tree: Arc<Mutex<Tree>>) {
    let (out, mut messages) = unbounded_channel::<Vec<u8>>();
    let mut is_new = true;
    loop {
        tokio::select! {
            length = stream.read_u32() => {
                let Ok(length) = length else { return };
                let mut request = vec![0; length as usize];
                stream.read_exact(&mut request).await.unwrap();
                let answer = if std::mem::take(&mut is_new) {
                    let watcher = Watcher { out: out.clone(), nodes: BTreeSet::new(), children: BTreeSet::new() };
                    tree.lock().sessions.push(watcher);
                    // Version, requested timeout, session, password, not read-only.
                    let mut answer = vec![0; 4];
                    answer.extend_from_slice(&request[12..16]);
                    answer.extend_from_slice(&7_i64.to_be_bytes());
                    answer.extend(bytes(&[1; 16]));
                    answer.push(0);
                    answer
                } else {
                    answer(&request, &mut tree.lock(), &out)
                };
                if stream.write_all(&bytes(&answer)).await.is_err() { return }
            }
            message = messages.recv() => {
                let message = message.expect("this task has a sender");
                if message == END { return }
                if stream.write_all(&bytes(&message)).await.is_err() { return }
            }
        }
    }
}

fn answer(request: &[u8], tree: &mut Tree, out: &UnboundedSender<Vec<u8>>) -> Vec<u8> {
    let number = |offset: usize| i32::from_be_bytes(request[offset..offset + 4].try_into().unwrap());
    let (xid, operation) = (number(0), number(4));
    let reply = |error: i32, body: &[u8]| {
        let mut reply = xid.to_be_bytes().to_vec();
        reply.extend_from_slice(&9_i64.to_be_bytes());
        reply.extend_from_slice(&error.to_be_bytes());
        reply.extend_from_slice(body);
        reply
    };
    if operation == 11 {
        tree.pings += 1;
        return reply(0, &[]);
    }
    let length = usize::try_from(number(8)).unwrap();
    let path = std::str::from_utf8(&request[12..12 + length]).unwrap();
    assert_eq!(request[12 + length..], [1], "every request sets a watch");
    let stat = [0; 68];
    let node = tree.nodes.get(path).cloned();
    let children = tree.children(path);
    let watcher = tree
        .sessions
        .iter_mut()
        .find(|session| session.out.same_channel(out))
        .unwrap();
    match (operation, node) {
        (_, _) if path == "/denied" => reply(-102, &[]),
        (3, None) => {
            watcher.nodes.insert(path.to_owned());
            reply(-101, &[])
        }
        (_, None) => reply(-101, &[]),
        (3, Some(_)) => {
            watcher.nodes.insert(path.to_owned());
            reply(0, &stat)
        }
        (4, Some(data)) => {
            watcher.nodes.insert(path.to_owned());
            reply(0, &[bytes(&data), stat.to_vec()].concat())
        }
        (8, Some(_)) => {
            watcher.children.insert(path.to_owned());
            let count = i32::try_from(children.len()).unwrap().to_be_bytes().to_vec();
            let names = children.iter().flat_map(|name| bytes(name.as_bytes()));
            reply(0, &count.into_iter().chain(names).collect::<Vec<u8>>())
        }
        other => panic!("operation {other:?}"),
    }
}

fn event_message(event: i32, path: &str) -> Vec<u8> {
    let mut message = (-1_i32).to_be_bytes().to_vec();
    message.extend_from_slice(&(-1_i64).to_be_bytes());
    message.extend_from_slice(&0_i32.to_be_bytes());
    message.extend_from_slice(&event.to_be_bytes());
    message.extend_from_slice(&3_i32.to_be_bytes());
    message.extend(bytes(path.as_bytes()));
    message
}

/// Returns bytes with their length as a prefix, for a buffer, a text or a whole message.
fn bytes(bytes: &[u8]) -> Vec<u8> {
    let mut out = u32::try_from(bytes.len()).unwrap().to_be_bytes().to_vec();
    out.extend_from_slice(bytes);
    out
}
