//! Sessions of the page. A session has a random id, which the browser keeps in a cookie, and the proof of an identity.
//!
//! In: the proof of an identity. Out: the id of a session, and later the proof for that id. `sources` checks the proof
//! again at every use, so a revoked token or a changed password ends its sessions. If the table is full, a new session
//! replaces the one that would end first.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use prometheus_client::metrics::gauge::Gauge;

use crate::server::access::identity::Identity;
use crate::server::access::secret::{self, Digest, digest};

/// Maximum lifetime of a session.
pub(super) const LENGTH: Duration = Duration::from_hours(12);
const MOST: usize = 10_000;

#[derive(Debug, Clone)]
pub(super) enum Proof {
    Token(Digest),
    /// A password: the user and the hash of the password.
    Password(Arc<str>, Arc<[u8]>),
    /// The identity that the token of an OIDC issuer contained. The server does not keep the token, so it cannot check
    /// the token again, and this proof stays valid until the session ends.
    Claims(Arc<Identity>),
}

pub(super) struct Sessions {
    open: Mutex<HashMap<Digest, Session>>,
    number: Gauge,
}

struct Session {
    proof: Proof,
    ends: Instant,
}

impl Sessions {
    /// Creates an empty table. The gauge `number` shows the number of sessions.
    pub(super) fn new(number: Gauge) -> Self {
        Self {
            open: Mutex::new(HashMap::new()),
            number,
        }
    }

    /// Starts a session that lasts at most `length`, and returns its id.
    pub(super) fn begin(&self, proof: Proof, length: Duration) -> String {
        let id = secret::random();
        let now = Instant::now();
        let ends = now + length.min(LENGTH);
        let mut open = self.open.lock();
        open.retain(|_, session| session.ends > now);
        if open.len() >= MOST
            && let Some(first) = open.iter().min_by_key(|(_, session)| session.ends).map(|(id, _)| *id)
        {
            open.remove(&first);
        }
        open.insert(digest(&id), Session { proof, ends });
        self.number.set(open.len() as i64);
        id
    }

    /// Returns the proof of the session with this id, if the session is open.
    pub(super) fn proof(&self, id: &str) -> Option<Proof> {
        let open = self.open.lock();
        let session = open.get(&digest(id))?;
        if session.ends > Instant::now() {
            return Some(session.proof.clone());
        }
        drop(open);
        self.end(id);
        None
    }

    /// Ends the session with this id.
    pub(super) fn end(&self, id: &str) {
        let mut open = self.open.lock();
        open.remove(&digest(id));
        self.number.set(open.len() as i64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proof() -> Proof {
        Proof::Token(digest("a"))
    }

    #[test]
    fn a_session_ends_by_its_time_and_by_hand() {
        let sessions = Sessions::new(Gauge::default());
        let (first, second) = (sessions.begin(proof(), LENGTH), sessions.begin(proof(), Duration::ZERO));
        assert!(sessions.proof(&first).is_some() && sessions.proof(&second).is_none());
        assert!(sessions.proof("other").is_none());
        sessions.end(&first);
        assert!(sessions.proof(&first).is_none());
        assert_eq!(sessions.number.get(), 0);
    }

    #[test]
    fn sessions_that_have_ended_are_not_counted_when_one_begins() {
        let sessions = Sessions::new(Gauge::default());
        (0..3).for_each(|_| drop(sessions.begin(proof(), Duration::ZERO)));
        sessions.begin(proof(), LENGTH);
        assert_eq!(sessions.number.get(), 1);
    }

    #[test]
    fn the_oldest_session_makes_room() {
        let sessions = Sessions::new(Gauge::default());
        let first = sessions.begin(proof(), LENGTH / 2);
        let ends = Instant::now() + LENGTH;
        let others = (1..MOST).map(|number| (digest(&number.to_string()), Session { proof: proof(), ends }));
        sessions.open.lock().extend(others);
        let last = sessions.begin(proof(), LENGTH);
        assert!(sessions.proof(&first).is_none() && sessions.proof(&last).is_some());
        assert_eq!(sessions.number.get(), MOST as i64);
    }
}
