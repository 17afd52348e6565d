//! The identity of a member of a cluster: its name, its address, and its start time.
//!
//! A member that started later replaces an older member at the same address: both are the same collector, before and
//! after a restart, or before and after other members considered it dead.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

/// Time after the start of a member, in microseconds. If the other members consider the member dead within this time,
/// they remember a later start time from its previous run: its clock was set back between the two starts.
const SOON: u64 = 10_000_000;
/// Minimum lead over the clock, in microseconds, of the start time that [`later`] returns if [`SOON`] has not passed.
const STEP: u64 = 1_000_000;

/// Maximum length of a name in bytes.
pub(crate) const LONGEST_NAME: usize = 128;

/// A member. If two members have the same name, the member that started last owns the keys of both.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Member {
    /// Name, unique among members. The ring is computed from the names.
    pub name: Arc<str>,
    /// Time of the start or of the last return to the cluster, in microseconds since 1970. If the clock was set back,
    /// this time may be ahead of the clock.
    pub started: u64,
    /// Address that others send datagrams to.
    pub address: SocketAddr,
}

impl Member {
    /// Creates a member that starts now.
    pub fn new(name: Arc<str>, address: SocketAddr) -> Self {
        Self {
            name,
            started: microseconds(),
            address,
        }
    }

    /// Creates a placeholder for the unknown member at an address.
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

/// The reason why a text cannot be the name of a member.
#[derive(Debug, thiserror::Error)]
pub enum NameError {
    /// The name is empty or too long.
    #[error("the name must have 1 to {LONGEST_NAME} bytes")]
    Length,
    #[error("the name must not contain control characters")]
    ControlCharacter,
}

/// Checks whether a text can be the name of a member.
pub(crate) fn check_name(name: &str) -> Result<(), NameError> {
    if name.is_empty() || name.len() > LONGEST_NAME {
        return Err(NameError::Length);
    }
    if name.chars().any(char::is_control) {
        return Err(NameError::ControlCharacter);
    }
    Ok(())
}

/// Returns the new start time of a member that other members considered dead: `now`, or a time ahead of the clock if
/// `started` is not older than [`SOON`]. The member does not know the start time that the other members remember, so
/// each further call within [`SOON`] doubles the lead over the clock until the other members accept the start time.
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
        // This holds even with a clock that was set back.
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
        // After a few refusals, the start time is two hours ahead of the clock.
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
