//! The connections of a port: how many there may be, and which one gives way when there are too many.
//!
//! In: connections, and what their requests are at. Out: a [`Place`] for each once there is room, which says when its
//! connection must be closed. To a new connection gives way the one that has waited for a request longest; without such
//! a one, the one that has been sending an answer longest, whose client is slow to read. A connection with a request in
//! work stays: that ends by limits of its own. So silent and slow clients keep nobody out.

use std::collections::{BTreeMap, HashMap};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::base::Shutdown;

/// All connections of a port.
pub(super) struct Connections {
    most: usize,
    table: Mutex<Table>,
    /// At the limit: a connection has ended, or may give way now.
    changed: Notify,
}

#[derive(Default)]
struct Table {
    all: HashMap<u64, Connection>,
    /// Connections that wait for a request, by the moment since when.
    waiting: BTreeMap<u64, u64>,
    /// Connections whose requests are all answered and not all sent, by the moment since when.
    sending: BTreeMap<u64, u64>,
    /// Number of connections that were told to close and are still there.
    leaving: usize,
    /// Counts changes: a moment, and the number of a connection.
    last: u64,
}

struct Connection {
    /// Number of its requests in work.
    working: usize,
    /// Number of its answers that are being sent.
    sending: usize,
    state: State,
    since: u64,
    gives_way: Shutdown,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Waiting,
    Working,
    Sending,
    Leaving,
}

/// A connection's place, released on drop.
pub(super) struct Place {
    gives_way: Shutdown,
    requests: Requests,
}

/// Tells of the requests of one connection.
#[derive(Clone)]
pub(super) struct Requests {
    number: u64,
    all: Arc<Connections>,
}

/// A request until its answer was sent or it was dropped.
pub(super) struct Request {
    requests: Requests,
    is_answered: bool,
}

/// The body of an answer; until it is dropped its connection is sending.
pub(super) struct Sending {
    body: axum::body::Body,
    _request: Option<Request>,
}

impl Connections {
    /// A table for at most `most` connections, and at least one.
    pub(super) fn new(most: usize) -> Arc<Self> {
        Arc::new(Self {
            most: most.max(1),
            table: Mutex::default(),
            changed: Notify::new(),
        })
    }

    /// Waits for a place, which another connection may have to give up. Only one caller may wait at one time.
    pub(super) async fn place(self: &Arc<Self>) -> Place {
        loop {
            {
                let mut table = self.table.lock();
                if table.all.len() < self.most {
                    let (number, gives_way) = table.enter();
                    let requests = Requests {
                        number,
                        all: self.clone(),
                    };
                    return Place { gives_way, requests };
                }
                table.give_way();
            }
            self.changed.notified().await;
        }
    }

    /// Has a connection closed where there is one that may be: something else than places has run out.
    pub(super) fn give_way(&self) {
        self.table.lock().give_way();
    }

    fn change(&self, number: u64, change: impl FnOnce(&mut Connection)) {
        let is_full = {
            let mut table = self.table.lock();
            table.change(number, change);
            table.all.len() >= self.most
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
            since: number,
            gives_way: gives_way.clone(),
        };
        self.all.insert(number, connection);
        self.waiting.insert(number, number);
        (number, gives_way)
    }

    fn change(&mut self, number: u64, change: impl FnOnce(&mut Connection)) {
        // What is left of the requests of a connection that has ended changes nothing.
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
        self.waiting.remove(&connection.since);
        self.sending.remove(&connection.since);
        self.last += 1;
        connection.state = state;
        connection.since = self.last;
        match state {
            State::Waiting => drop(self.waiting.insert(self.last, number)),
            State::Sending => drop(self.sending.insert(self.last, number)),
            State::Working | State::Leaving => {}
        }
    }

    /// Tells a connection to close, unless one is about to.
    fn give_way(&mut self) {
        if self.leaving > 0 {
            return;
        }
        let oldest = self.waiting.pop_first().or_else(|| self.sending.pop_first());
        let Some(connection) = oldest.and_then(|(_, number)| self.all.get_mut(&number)) else {
            return;
        };
        connection.state = State::Leaving;
        connection.gives_way.cancel();
        self.leaving += 1;
    }

    fn leave(&mut self, number: u64) {
        if let Some(connection) = self.all.remove(&number) {
            self.waiting.remove(&connection.since);
            self.sending.remove(&connection.since);
            self.leaving -= usize::from(connection.state == State::Leaving);
        }
    }
}

impl Place {
    /// Returns when the connection must be closed.
    pub(super) async fn gives_way(&self) {
        self.gives_way.cancelled().await;
    }

    /// For the requests of the connection.
    pub(super) fn requests(&self) -> Requests {
        self.requests.clone()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let Requests { number, all } = &self.requests;
        all.table.lock().leave(*number);
        all.changed.notify_one();
    }
}

impl Requests {
    /// Counts a request as in work until what this returns is dropped.
    pub(super) fn begin(&self) -> Request {
        self.all.change(self.number, |connection| connection.working += 1);
        Request {
            requests: self.clone(),
            is_answered: false,
        }
    }
}

impl Request {
    /// The request is answered with this body.
    pub(super) fn answer(mut self, body: axum::body::Body) -> Sending {
        if body.is_end_stream() {
            return Sending { body, _request: None };
        }
        self.is_answered = true;
        self.requests.all.change(self.requests.number, |connection| {
            connection.working -= 1;
            connection.sending += 1;
        });
        Sending {
            body,
            _request: Some(self),
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
        Pin::new(&mut self.body).poll_frame(context)
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

    fn is_told(place: &Place) -> bool {
        place.gives_way.is_cancelled()
    }

    #[tokio::test]
    async fn the_one_that_has_waited_longest_gives_way_and_one_with_a_request_in_work_stays() {
        let all = Connections::new(3);
        let places = [all.place().await, all.place().await, all.place().await];
        let first = places[0].requests().begin();
        // Now it is the last that has begun to wait.
        drop(places[1].requests().begin());
        let mut next = pin!(all.place());
        assert!(futures::poll!(next.as_mut()).is_pending());
        assert_eq!(places.each_ref().map(is_told), [false, false, true]);
        // One at a time.
        all.give_way();
        assert_eq!(places.each_ref().map(is_told), [false, false, true]);
        let [working, waiting, told] = places;
        drop(told);
        let fourth = next.await;
        drop(first);
        assert!(!is_told(&working) && !is_told(&waiting) && !is_told(&fourth));
    }

    #[tokio::test]
    async fn without_one_that_waits_the_slowest_reader_gives_way() {
        let all = Connections::new(2);
        let (one, other) = (all.place().await, all.place().await);
        let working = other.requests().begin();
        let request = one.requests().begin();
        let mut next = pin!(all.place());
        assert!(futures::poll!(next.as_mut()).is_pending());
        assert!(!is_told(&one) && !is_told(&other));
        let empty = other.requests().begin().answer(axum::body::Body::empty());
        let sending = request.answer("an answer".into());
        assert!(futures::poll!(next.as_mut()).is_pending());
        assert!(is_told(&one) && !is_told(&other));
        drop((one, empty));
        let third = next.await;
        // What is left of a connection that has ended changes nothing.
        drop(sending);
        drop((other, working, third));
        assert_eq!(all.table.lock().all.len(), 0);
        assert_eq!(all.table.lock().leaving, 0);
    }
}
