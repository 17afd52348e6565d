//! Who a member of a cluster is: its name, where it is reached, and since when it runs.
//!
//! What is known of a member is replaced by what a younger one at the same address says: that is the same collector
//! after a restart, or after others took it for dead.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

/// A member that is taken for dead so soon after its start, in microseconds, is known as one that started later: by a
/// clock that was set back since.
const SOON: u64 = 10_000_000;
/// By how much at least it goes ahead of its clock then, in microseconds.
const STEP: u64 = 1_000_000;

/// Bytes of the longest name.
pub(crate) const LONGEST_NAME: usize = 128;

/// A member. Of two with one name the one that started last is meant.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Member {
    /// Unique among members; the ring is made of names.
    pub name: Arc<str>,
    /// Microseconds since 1970 when it started, or came back. After a clock was set back, ahead of it.
    pub started: u64,
    /// Where others send datagrams to.
    pub address: SocketAddr,
}

impl Member {
    /// A member that starts now.
    pub(crate) fn new(name: Arc<str>, address: SocketAddr) -> Self {
        Self {
            name,
            started: microseconds(),
            address,
        }
    }

    /// Stands for whoever is at an address.
    pub(super) fn anyone_at(address: SocketAddr) -> Self {
        Self {
            name: Arc::default(),
            started: 0,
            address,
        }
    }
}

impl foca::Identity for Member {
    type Addr = SocketAddr;

    fn renew(&self) -> Option<Self> {
        Some(Self {
            started: later(self.started, microseconds()),
            ..self.clone()
        })
    }

    fn addr(&self) -> SocketAddr {
        self.address
    }

    fn win_addr_conflict(&self, other: &Self) -> bool {
        (self.started, &self.name) > (other.started, &other.name)
    }
}

/// Why a text cannot be the name of a member.
pub(crate) fn check_name(name: &str) -> Result<(), String> {
    if name.is_empty() || name.len() > LONGEST_NAME {
        return Err(format!("a name has 1 to {LONGEST_NAME} bytes"));
    }
    if name.chars().any(char::is_control) {
        return Err("a name has no control characters".to_owned());
    }
    Ok(())
}

/// When a member that others took for dead starts anew. One that is refused at once doubles its lead each time, as
/// nobody says how far it has to go.
fn later(started: u64, now: u64) -> u64 {
    if started.saturating_add(SOON) < now {
        return now;
    }
    let lead = started.saturating_sub(now).saturating_mul(2);
    now.saturating_add(lead.max(STEP))
}

fn microseconds() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use foca::Identity as _;

    use super::*;

    #[test]
    fn a_member_that_comes_back_replaces_what_was_known_of_it() {
        let first = Member::new("a".into(), ([127, 0, 0, 1], 1).into());
        let second = first.renew().unwrap();
        assert!(second.win_addr_conflict(&first) && !first.win_addr_conflict(&second));
        assert!(!first.win_addr_conflict(&first));
        // Even with a clock that was set back.
        let late = Member {
            started: u64::MAX - 1,
            ..first.clone()
        };
        assert!(late.renew().unwrap().win_addr_conflict(&late));
        assert!(first.win_addr_conflict(&Member::anyone_at(first.address)));
    }

    #[test]
    fn a_member_that_is_refused_at_once_goes_ahead_of_its_clock_and_one_that_was_long_there_does_not() {
        let now = 1_800_000_000_000_000;
        assert_eq!(later(now - 2 * SOON, now), now);
        // Two hours are made up for by a few refusals.
        let mut started = now;
        for _ in 0..14 {
            let next = later(started, now);
            assert!(next > started);
            started = next;
        }
        assert!(started > now + 7_200_000_000, "{started}");
        assert_eq!(later(u64::MAX, now), u64::MAX);
    }

    #[test]
    fn names_have_a_bound_and_no_control_characters() {
        assert!(check_name("collector-0.alluvium").is_ok());
        assert!(check_name(&"x".repeat(LONGEST_NAME)).is_ok());
        for name in ["", &"x".repeat(LONGEST_NAME + 1), "a\nb"] {
            assert!(check_name(name).is_err(), "{name:?}");
        }
    }
}
