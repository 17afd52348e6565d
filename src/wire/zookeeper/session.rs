//! A session: its connection, outstanding requests, pings, and reported changes.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut, TryGetError};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::Instant;

use crate::zookeeper::messages::{self, EVENT, Header, MAX_MESSAGE, NO_NODE, PING, Question};

/// Number of nodes to request before reading replies.
const CHUNK_NODES: usize = 64;
/// Port of a server whose address contains no port. Other clients have the same default.
const DEFAULT_PORT: u16 = 2181;

/// Reason why a session could not be opened, or why it ended.
#[derive(Debug, thiserror::Error)]
pub enum ZooKeeperError {
    /// No server granted a session.
    #[error("cannot connect to zookeeper: {0}")]
    Connect(String),
    /// The connection to the server broke.
    #[error("zookeeper at {0}: {1}")]
    Lost(Arc<str>, io::Error),
    /// The server sent nothing within the timeout of the session.
    #[error("zookeeper at {0}: no response in {1:?}")]
    Silent(Arc<str>, Duration),
    /// The server violated the protocol.
    #[error("zookeeper at {0}: {1}")]
    Protocol(Arc<str>, String),
    /// The server refused a request about a node.
    #[error("zookeeper at {server} refuses `{path}`: error {code}")]
    Refused {
        /// Address of the server that refused.
        server: Arc<str>,
        /// Path of the requested node.
        path: String,
        /// Error code of the protocol, such as -102 for a missing permission to read the node.
        code: i32,
    },
}

/// Contents of a ZooKeeper node.
#[derive(Debug)]
pub struct Node {
    /// The bytes of the node itself.
    pub data: Bytes,
    /// Names of the child nodes, without this node's path.
    pub children: Vec<String>,
}

/// A session with one server.
#[derive(Debug)]
pub struct Session {
    server: Arc<str>,
    stream: TcpStream,
    input: BytesMut,
    timeout: Duration,
    /// Number of the last request.
    number: i32,
    /// Paths of changed nodes that have not been reported to the caller.
    changed: VecDeque<String>,
    receive_time: Instant,
    ping_time: Instant,
}

impl Session {
    /// Opens a session with the first of the servers (`HOST:PORT` or `HOST`) that accepts. The client requests
    /// `timeout`, and the server may grant another timeout. If no message arrives during the granted timeout, the
    /// session ends.
    pub async fn connect(servers: &[Arc<str>], timeout: Duration) -> Result<Self, ZooKeeperError> {
        let mut failures = Vec::new();
        for server in servers {
            match tokio::time::timeout(timeout, Self::connect_to(server, timeout)).await {
                Ok(Ok(session)) => return Ok(session),
                Ok(Err(error)) => failures.push(error.to_string()),
                Err(_) => failures.push(ZooKeeperError::Silent(server.clone(), timeout).to_string()),
            }
        }
        Err(ZooKeeperError::Connect(failures.join("; ")))
    }

    async fn connect_to(server: &Arc<str>, timeout: Duration) -> Result<Self, ZooKeeperError> {
        let lost = |error| ZooKeeperError::Lost(server.clone(), error);
        let now = Instant::now();
        let mut session = Self {
            server: server.clone(),
            stream: TcpStream::connect(&*with_port(server)).await.map_err(lost)?,
            input: BytesMut::new(),
            timeout,
            number: 0,
            changed: VecDeque::new(),
            receive_time: now,
            ping_time: now,
        };
        let requested_millis = i32::try_from(timeout.as_millis()).unwrap_or(i32::MAX);
        session.send(&messages::connect(requested_millis)).await?;
        let answer = session.receive().await?;
        let granted_millis = messages::connected(answer).map_err(|error| session.broken(&error))?;
        match u64::try_from(granted_millis) {
            Ok(granted_millis) if granted_millis > 0 => session.timeout = Duration::from_millis(granted_millis),
            _ => {
                return Err(ZooKeeperError::Protocol(
                    server.clone(),
                    "it granted no session".to_owned(),
                ));
            }
        }
        Ok(session)
    }

    /// Reads the nodes at these paths. Returns `None` for a node that does not exist. [`Session::changed`] reports the
    /// next change of each existing node.
    pub async fn nodes(&mut self, paths: &[String]) -> Result<Vec<Option<Node>>, ZooKeeperError> {
        let mut nodes = Vec::with_capacity(paths.len());
        for paths in paths.chunks(CHUNK_NODES) {
            let mut questions = BytesMut::new();
            let first = self.number;
            for path in paths {
                for question in [Question::Data, Question::Children] {
                    self.number = self.number.wrapping_add(1) & i32::MAX;
                    questions.extend_from_slice(&messages::question(self.number, question, path));
                }
            }
            self.send(&questions).await?;
            let mut number = first;
            for path in paths {
                let data = self.reply(&mut number, path, messages::data).await?;
                let children = self.reply(&mut number, path, messages::children).await?;
                nodes.push(data.zip(children).map(|(data, children)| Node { data, children }));
            }
        }
        Ok(nodes)
    }

    /// Makes [`Session::changed`] report the creation of this node. If the node exists already, it is reported at once.
    pub async fn expect(&mut self, path: &str) -> Result<(), ZooKeeperError> {
        let mut number = self.number;
        self.number = self.number.wrapping_add(1) & i32::MAX;
        self.send(&messages::question(self.number, Question::Exists, path))
            .await?;
        let reply = self.reply(&mut number, path, |_| Ok(())).await?;
        self.changed.extend(reply.map(|()| path.to_owned()));
        Ok(())
    }

    /// Waits for the next change of a node and returns its path. Keeps the session alive meanwhile.
    pub async fn changed(&mut self) -> Result<String, ZooKeeperError> {
        loop {
            if let Some(path) = self.changed.pop_front() {
                return Ok(path);
            }
            let mut message = self.receive().await?;
            let header = messages::header(&mut message).map_err(|error| self.broken(&error))?;
            self.take_event(&header, message)?;
        }
    }

    /// Returns the path of another changed node, if its change was already received.
    pub fn changed_too(&mut self) -> Option<String> {
        self.changed.pop_front()
    }

    /// Increments `number` and reads the reply to the request with the new number. Returns `None` when the node does
    /// not exist.
    async fn reply<T>(
        &mut self,
        number: &mut i32,
        path: &str,
        read: impl Fn(&mut Bytes) -> Result<T, TryGetError>,
    ) -> Result<Option<T>, ZooKeeperError> {
        *number = number.wrapping_add(1) & i32::MAX;
        loop {
            let mut message = self.receive().await?;
            let header = messages::header(&mut message).map_err(|error| self.broken(&error))?;
            if header.number < 0 {
                self.take_event(&header, message)?;
                continue;
            }
            if header.number != *number {
                let violation = format!("it replied to request {} instead of {number}", header.number);
                return Err(ZooKeeperError::Protocol(self.server.clone(), violation));
            }
            return match header.error {
                0 => read(&mut message).map(Some).map_err(|error| self.broken(&error)),
                NO_NODE => Ok(None),
                code => Err(ZooKeeperError::Refused {
                    server: self.server.clone(),
                    path: path.to_owned(),
                    code,
                }),
            };
        }
    }

    fn take_event(&mut self, header: &Header, mut message: Bytes) -> Result<(), ZooKeeperError> {
        match header.number {
            EVENT => {
                let path = messages::event(&mut message).map_err(|error| self.broken(&error))?;
                if !path.is_empty() {
                    self.changed.push_back(path);
                }
                Ok(())
            }
            PING => Ok(()),
            number => {
                let violation = format!("it replied to request {number}, which was not sent");
                Err(ZooKeeperError::Protocol(self.server.clone(), violation))
            }
        }
    }

    /// Returns the next message. Sends pings while it waits.
    async fn receive(&mut self) -> Result<Bytes, ZooKeeperError> {
        loop {
            match messages::message(&mut self.input) {
                Ok(Some(message)) => {
                    self.receive_time = Instant::now();
                    return Ok(message);
                }
                Ok(None) => {}
                Err(length) => {
                    let violation = format!("it sent a message of {length} bytes, the limit is {MAX_MESSAGE}");
                    return Err(ZooKeeperError::Protocol(self.server.clone(), violation));
                }
            }
            let deadline = self.receive_time + self.timeout;
            let next_ping = self.ping_time.max(self.receive_time) + self.timeout / 3;
            tokio::select! {
                read = self.stream.read_buf(&mut self.input) => match read {
                    Ok(0) => return Err(self.lost(io::ErrorKind::UnexpectedEof.into())),
                    Ok(_) => {}
                    Err(error) => return Err(self.lost(error)),
                },
                () = tokio::time::sleep_until(deadline) => {
                    return Err(ZooKeeperError::Silent(self.server.clone(), self.timeout));
                }
                () = tokio::time::sleep_until(next_ping), if next_ping < deadline => {
                    self.ping_time = Instant::now();
                    self.send(&messages::ping()).await?;
                }
            }
        }
    }

    async fn send(&mut self, message: &[u8]) -> Result<(), ZooKeeperError> {
        match tokio::time::timeout(self.timeout, self.stream.write_all(message)).await {
            Ok(sent) => sent.map_err(|error| self.lost(error)),
            Err(_) => Err(ZooKeeperError::Silent(self.server.clone(), self.timeout)),
        }
    }

    fn lost(&self, error: io::Error) -> ZooKeeperError {
        ZooKeeperError::Lost(self.server.clone(), error)
    }

    fn broken(&self, error: &TryGetError) -> ZooKeeperError {
        ZooKeeperError::Protocol(self.server.clone(), format!("a message is too short: {error}"))
    }
}

/// Returns the address of a server, with the default port if `server` is only a host.
pub(super) fn with_port(server: &str) -> Cow<'_, str> {
    if server.contains(':') {
        server.into()
    } else {
        format!("{server}:{DEFAULT_PORT}").into()
    }
}
