//! The connections of a port: limits their number and the response bytes that their clients leave unread, and decides
//! which connection must close.
//!
//! In: connections, and the progress of their requests. Out: a [`ConnectionSlot`] for each connection once there is
//! room. The slot reports when its connection must close. If a new connection needs room, the connection that has
//! waited longest for a request closes. If no connection waits for a request, the connection that has been sending a
//! response longest closes, because its client reads slowly. A connection with a request in progress stays, because
//! other limits end such requests. So silent and slow clients cannot block other clients.
//!
//! Responses count against a budget until the socket accepts them: an HTTP/2 client may request many responses and open
//! no window for them. If a response exceeds the budget, its request is refused, and the slowest reader must close.

use std::collections::{BTreeMap, HashMap};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use parking_lot::Mutex;
use tokio::sync::Notify;

use alluvium_base::Shutdown;
use alluvium_base::bytes::{ByteBudget, HeldBytes};
use alluvium_base::waiters::Waiters;

/// Responses of up to this many bytes do not count against the budget and are never refused. When a response is ready,
/// the server has already done the work, so a small response must reach its client even if the budget is exhausted.
const FREE_BYTES: u64 = 1 << 10;
/// Maximum number of bytes that count for one response. Some files of the web interface are larger, but they are
/// embedded in the program, and responses do not copy them.
const MAX_BYTES: u64 = 256 << 10;
/// Number of bytes that count for a streamed response: one piece in transit, and the next piece.
const PIECE_BYTES: u64 = 128 << 10;

/// All connections of a port.
pub(super) struct Connections {
    limit: usize,
    /// Budget for bytes that clients leave unread; `None` for no limit.
    unread: Option<ByteBudget>,
    table: Mutex<Table>,
    /// The connections that wait for a slot.
    waiters: Waiters,
    /// Notified when a connection has ended. If no slot is free, also notified when a request changes the state of its
    /// connection, because the connection may then be closed.
    changed: Notify,
}

#[derive(Default)]
struct Table {
    all: HashMap<u64, Connection>,
    /// Connections that wait for a request, by the moment at which they began to wait.
    waiting: BTreeMap<u64, u64>,
    /// Connections that are still sending responses and process no request, by the moment at which they entered this
    /// state.
    sending: BTreeMap<u64, u64>,
    /// Number of connections that were told to close and still exist.
    leaving: usize,
    /// Counter of changes. Its values serve as points in time and as identifiers of connections.
    last: u64,
}

struct Connection {
    /// Number of requests in progress.
    working: usize,
    /// Number of responses that are being sent.
    sending: usize,
    state: State,
    state_start: u64,
    gives_way: Shutdown,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Waiting,
    Working,
    Sending,
    Leaving,
}

/// Slot of a connection, released on drop.
pub(super) struct ConnectionSlot {
    gives_way: Shutdown,
    requests: Requests,
}

/// Reports the requests of one connection.
#[derive(Clone)]
pub(super) struct Requests {
    number: u64,
    all: Arc<Connections>,
}

/// A request of a connection. It ends when this value is dropped, usually because its response is sent.
pub(super) struct Request {
    requests: Requests,
    is_answered: bool,
}

/// Body of a response. The connection counts as sending until the body is dropped and all of its bytes are sent.
pub(super) struct Sending {
    body: axum::body::Body,
    unsent: Option<Arc<Unsent>>,
}

/// A response that is not completely sent, with the memory that counts for it.
struct Unsent {
    _request: Request,
    _held: Option<HeldBytes>,
}

/// Bytes of a response on their way to the socket.
struct Piece {
    bytes: Bytes,
    _unsent: Arc<Unsent>,
}

impl AsRef<[u8]> for Piece {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// Error: clients leave too many response bytes unread.
#[derive(Debug)]
pub(super) struct Unread;

impl Connections {
    /// Creates a table for at most `limit` connections; 0 counts as 1. `unread` is the budget for bytes that clients
    /// leave unread.
    pub(super) fn new(limit: usize, unread: Option<ByteBudget>) -> Arc<Self> {
        Arc::new(Self {
            limit: limit.max(1),
            unread,
            table: Mutex::default(),
            waiters: Waiters::default(),
            changed: Notify::new(),
        })
    }

    /// Waits for a slot, which another connection may have to give up. Only one caller may wait at a time.
    pub(super) async fn slot(self: &Arc<Self>) -> ConnectionSlot {
        let mut waiting = None;
        loop {
            {
                let mut table = self.table.lock();
                if table.all.len() < self.limit {
                    let (number, gives_way) = table.enter();
                    let requests = Requests {
                        number,
                        all: self.clone(),
                    };
                    return ConnectionSlot { gives_way, requests };
                }
                table.give_way();
            }
            waiting.get_or_insert_with(|| self.waiters.begin());
            self.changed.notified().await;
        }
    }

    /// Returns true while a connection waits for a slot.
    pub(super) fn are_wanted(&self) -> bool {
        self.waiters.is_any()
    }

    /// Makes a connection close, if one may be closed and no other connection is already closing. A caller uses this
    /// if it lacks a resource other than a slot, such as a file descriptor.
    pub(super) fn give_way(&self) {
        self.table.lock().give_way();
    }

    fn change(&self, number: u64, change: impl FnOnce(&mut Connection)) {
        let is_full = {
            let mut table = self.table.lock();
            table.change(number, change);
            table.all.len() >= self.limit
        };
        if is_full {
            self.changed.notify_one();
        }
    }
}

impl Table {
    fn enter(&mut self) -> (u64, Shutdown) {
        self.last += 1;
        let (number, gives_way) = (self.last, Shutdown::new());
        let connection = Connection {
            working: 0,
            sending: 0,
            state: State::Waiting,
            state_start: number,
            gives_way: gives_way.clone(),
        };
        self.all.insert(number, connection);
        self.waiting.insert(number, number);
        (number, gives_way)
    }

    fn change(&mut self, number: u64, change: impl FnOnce(&mut Connection)) {
        // Late changes of a connection that has ended are ignored.
        let Some(connection) = self.all.get_mut(&number) else {
            return;
        };
        change(connection);
        let state = match connection {
            Connection {
                state: State::Leaving, ..
            } => State::Leaving,
            Connection { working: 1.., .. } => State::Working,
            Connection { sending: 1.., .. } => State::Sending,
            Connection { .. } => State::Waiting,
        };
        if state == connection.state {
            return;
        }
        self.waiting.remove(&connection.state_start);
        self.sending.remove(&connection.state_start);
        self.last += 1;
        connection.state = state;
        connection.state_start = self.last;
        match state {
            State::Waiting => drop(self.waiting.insert(self.last, number)),
            State::Sending => drop(self.sending.insert(self.last, number)),
            State::Working | State::Leaving => {}
        }
    }

    /// Makes a connection close, unless another connection is already closing.
    fn give_way(&mut self) {
        if self.leaving > 0 {
            return;
        }
        let oldest = self.waiting.pop_first().or_else(|| self.sending.pop_first());
        self.end(oldest);
    }

    /// Tells the slowest reader to close, unless a connection is already closing.
    fn reader_gives_way(&mut self) {
        if self.leaving > 0 {
            return;
        }
        let oldest = self.sending.pop_first();
        self.end(oldest);
    }

    fn end(&mut self, oldest: Option<(u64, u64)>) {
        let Some(connection) = oldest.and_then(|(_, number)| self.all.get_mut(&number)) else {
            return;
        };
        connection.state = State::Leaving;
        connection.gives_way.cancel();
        self.leaving += 1;
    }

    fn leave(&mut self, number: u64) {
        if let Some(connection) = self.all.remove(&number) {
            self.waiting.remove(&connection.state_start);
            self.sending.remove(&connection.state_start);
            self.leaving -= usize::from(connection.state == State::Leaving);
        }
    }
}

impl ConnectionSlot {
    /// Waits until the connection must be closed.
    pub(super) async fn gives_way(&self) {
        self.gives_way.cancelled().await;
    }

    /// Returns the handle for the requests of the connection.
    pub(super) fn requests(&self) -> Requests {
        self.requests.clone()
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        let Requests { number, all } = &self.requests;
        all.table.lock().leave(*number);
        all.changed.notify_one();
    }
}

impl Requests {
    /// Returns all connections of the port.
    pub(super) fn slots(&self) -> Arc<Connections> {
        self.all.clone()
    }

    /// Counts a request as in progress until the returned value is dropped.
    pub(super) fn begin(&self) -> Request {
        self.all.change(self.number, |connection| connection.working += 1);
        Request {
            requests: self.clone(),
            is_answered: false,
        }
    }
}

impl Request {
    /// Reserves memory in the budget for a response with this body. On failure, tells the slowest reader to close.
    pub(super) fn hold(&self, body: &axum::body::Body) -> Result<Option<HeldBytes>, Unread> {
        let all = &self.requests.all;
        let bytes = body.size_hint().exact().unwrap_or(PIECE_BYTES);
        let Some(unread) = all.unread.as_ref().filter(|_| bytes > FREE_BYTES) else {
            return Ok(None);
        };
        let held = unread.try_take(bytes.min(MAX_BYTES) as usize);
        if held.is_none() {
            all.table.lock().reader_gives_way();
        }
        held.map(Some).ok_or(Unread)
    }

    /// Marks the request as answered with this body. `held` is the memory reserved for the response.
    pub(super) fn answer(mut self, body: axum::body::Body, held: Option<HeldBytes>) -> Sending {
        if body.is_end_stream() {
            return Sending { body, unsent: None };
        }
        self.is_answered = true;
        self.requests.all.change(self.requests.number, |connection| {
            connection.working -= 1;
            connection.sending += 1;
        });
        let unsent = Unsent {
            _request: self,
            _held: held,
        };
        Sending {
            body,
            unsent: Some(Arc::new(unsent)),
        }
    }
}

impl Drop for Request {
    fn drop(&mut self) {
        let is_answered = self.is_answered;
        self.requests.all.change(self.requests.number, |connection| {
            let count = if is_answered {
                &mut connection.sending
            } else {
                &mut connection.working
            };
            *count -= 1;
        });
    }
}

impl Body for Sending {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(context);
        let Some(unsent) = &self.unsent else { return polled };
        let wrap = |bytes: Bytes| {
            let piece = Piece {
                bytes,
                _unsent: unsent.clone(),
            };
            Bytes::from_owner(piece)
        };
        polled.map_ok(|frame| frame.map_data(wrap))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use super::*;

    fn must_close(slot: &ConnectionSlot) -> bool {
        slot.gives_way.is_cancelled()
    }

    fn is_refused(slot: &ConnectionSlot, bytes: usize) -> bool {
        slot.requests().begin().hold(&vec![0; bytes].into()).is_err()
    }

    #[tokio::test]
    async fn what_clients_leave_unread_is_bounded_and_the_slowest_reader_gives_way() {
        let unread = ByteBudget::new(560 << 10);
        let all = Connections::new(10, Some(unread.clone()));
        let (slow, idle, honest) = (all.slot().await, all.slot().await, all.slot().await);
        let mut answers = Vec::new();
        for _ in 0..2 {
            let (request, body) = (slow.requests().begin(), axum::body::Body::from(vec![0; 1 << 20]));
            let held = request.hold(&body).unwrap();
            answers.push(request.answer(body, held));
        }
        // Bytes in transit count, even after their body is dropped.
        let mut answer = answers.pop().unwrap();
        let frame = std::future::poll_fn(|context| Pin::new(&mut answer).poll_frame(context)).await;
        let bytes = frame.unwrap().unwrap().into_data().unwrap();
        drop(answer);
        assert_eq!((bytes.len(), unread.used()), (1 << 20, 512 << 10));
        assert!(!is_refused(&honest, 10 << 10) && !must_close(&slow));
        assert!(is_refused(&honest, 60 << 10) && !is_refused(&honest, 1 << 10));
        assert_eq!([&slow, &idle, &honest].map(must_close), [true, false, false]);
        drop((bytes, answers));
        assert_eq!(unread.used(), 0);
        assert!(!is_refused(&honest, 60 << 10));
    }

    #[tokio::test]
    async fn the_one_that_has_waited_longest_gives_way_and_one_with_a_request_in_work_stays() {
        let all = Connections::new(3, None);
        let slots = [all.slot().await, all.slot().await, all.slot().await];
        let first = slots[0].requests().begin();
        // After this request, `slots[1]` is the connection that began to wait last.
        drop(slots[1].requests().begin());
        let mut next = pin!(all.slot());
        assert!(futures::poll!(next.as_mut()).is_pending());
        assert_eq!(slots.each_ref().map(must_close), [false, false, true]);
        // Only one connection closes at a time.
        all.give_way();
        assert_eq!(slots.each_ref().map(must_close), [false, false, true]);
        let [working, waiting, closing] = slots;
        drop(closing);
        let fourth = next.await;
        drop(first);
        assert!(!must_close(&working) && !must_close(&waiting) && !must_close(&fourth));
    }

    #[tokio::test]
    async fn without_one_that_waits_the_slowest_reader_gives_way() {
        let all = Connections::new(2, None);
        let (one, other) = (all.slot().await, all.slot().await);
        let working = other.requests().begin();
        let request = one.requests().begin();
        let mut next = pin!(all.slot());
        assert!(futures::poll!(next.as_mut()).is_pending());
        assert!(!must_close(&one) && !must_close(&other));
        let empty = other.requests().begin().answer(axum::body::Body::empty(), None);
        let sending = request.answer("an answer".into(), None);
        assert!(futures::poll!(next.as_mut()).is_pending());
        assert!(must_close(&one) && !must_close(&other));
        drop((one, empty));
        let third = next.await;
        // Late changes of a connection that has ended are ignored.
        drop(sending);
        drop((other, working, third));
        assert_eq!(all.table.lock().all.len(), 0);
        assert_eq!(all.table.lock().leaving, 0);
    }
}
