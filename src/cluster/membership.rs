//! The protocol by which members find and watch each other (SWIM, by `foca`), without sockets and without a clock.
//!
//! In: messages, timers that are due, requests to join or leave. Out: messages to send, the list of members, and
//! changes. With the settings in this file, all members learn within seconds that a member has died; see
//! `docs/adr/0013-clustering.md`.

use std::collections::{BTreeMap, HashSet};
use std::net::SocketAddr;
use std::num::{NonZeroU8, NonZeroUsize};
use std::time::Duration;

use bytes::Buf as _;
use foca::{Codec as _, Config, Foca, NoCustomBroadcast, Notification, PeriodicParams, Runtime, Timer};
use rand::rngs::StdRng;
use tokio::time::Instant;

use crate::codec::Codec;
use crate::envelope::{LONGEST_MESSAGE, Refused};
use crate::member::Member;

/// Maximum number of known members, including members that are gone. More members are not needed, because with a
/// thousand members, each already has a small share of the targets.
pub(super) const MOST_MEMBERS: usize = 1024;
/// Maximum number of timers; each gone member has one until it is forgotten.
const MOST_TIMERS: usize = 8 * MOST_MEMBERS;

/// Time between two probes, and the time without a response after which other members probe the same member too.
const PROBE_PERIOD: Duration = Duration::from_millis(600);
const PROBE_ANSWER: Duration = Duration::from_millis(200);
/// Time in which a suspected member can object before it is considered dead.
const SUSPICION: Duration = Duration::from_secs(3);
/// Time for which a gone member is remembered. During this time, other members ask it now and then whether it is back.
/// If a network partition lasts longer, members find each other again through their configured join addresses.
const REMEMBER: Duration = Duration::from_hours(1);
/// Number of members to which a member sends each of its leave messages directly.
const TOLD_OF_LEAVING: usize = 16;

/// A change of a member, for logs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Event {
    Joined(Member),
    /// The member left, or is considered dead.
    Left(Member),
    /// Other members considered this member dead, and it has rejoined.
    Rejoined,
}

/// A message and its destination.
pub(super) type Outgoing = (SocketAddr, Vec<u8>);

/// The knowledge of one member about all members.
pub(super) struct Membership {
    foca: Foca<Member, Codec, StdRng, NoCustomBroadcast>,
    effects: Effects,
    /// Timers by due time; the number distinguishes timers with the same due time.
    timers: BTreeMap<(Instant, u64), Timer<Member>>,
    timers_made: u64,
}

/// The effects that the protocol requests during one call.
#[derive(Default)]
struct Effects {
    outgoing: Vec<Outgoing>,
    timers: Vec<(Duration, Timer<Member>)>,
    events: Vec<Event>,
    has_changed: bool,
}

impl Runtime<Member> for Effects {
    fn notify(&mut self, notification: Notification<'_, Member>) {
        let event = match notification {
            Notification::MemberUp(member) => Event::Joined(member.clone()),
            Notification::MemberDown(member) => Event::Left(member.clone()),
            Notification::Rejoin(_) => Event::Rejoined,
            // A member with a later start time replaced the known one at the same address.
            Notification::Rename(..) => {
                self.has_changed = true;
                return;
            }
            Notification::Active | Notification::Idle | Notification::Defunct => return,
        };
        self.has_changed = true;
        self.events.push(event);
    }

    fn send_to(&mut self, to: Member, data: &[u8]) {
        self.outgoing.push((to.address, data.to_vec()));
    }

    fn submit_after(&mut self, timer: Timer<Member>, after: Duration) {
        self.timers.push((after, timer));
    }
}

impl Membership {
    /// Creates a member that knows no other members yet.
    pub(super) fn new(own: Member, random: StdRng) -> Self {
        let codec = Codec { own: own.address };
        Self {
            foca: Foca::new(own, settings(), random, codec),
            effects: Effects::default(),
            timers: BTreeMap::new(),
            timers_made: 0,
        }
    }

    /// Returns the identity of this member, as other members know it.
    pub(super) fn own(&self) -> &Member {
        self.foca.identity()
    }

    /// Returns the present members, without this one.
    pub(super) fn others(&self) -> Vec<Member> {
        self.foca.iter_members().map(|entry| entry.id().clone()).collect()
    }

    /// Returns the number of present members, without this one.
    pub(super) fn other_count(&self) -> usize {
        self.foca.num_members()
    }

    /// Asks the member at an address to let this member join.
    pub(super) fn announce(&mut self, now: Instant, address: SocketAddr) {
        let done = self.foca.announce(Member::anyone_at(address), &mut self.effects);
        self.settle(now, done);
    }

    /// Processes a message of a member.
    pub(super) fn receive(&mut self, now: Instant, message: &[u8]) -> Result<(), Refused> {
        let known = self.foca.iter_membership_state().len();
        if known >= MOST_MEMBERS && self.names_a_stranger(message) {
            return Err(Refused::Full);
        }
        let done = self.foca.handle_data(message, &mut self.effects);
        let done = done.map_err(|error| tracing::debug!(%error, "refused a message of the cluster"));
        self.schedule(now);
        done.map_err(|()| Refused::Malformed)
    }

    /// Processes the timers that are due by now.
    pub(super) fn tick(&mut self, now: Instant) {
        // Timers that the handlers below add are left for the next call, even if they are due.
        let future_timers = self.timers.split_off(&(now, u64::MAX));
        let due = std::mem::replace(&mut self.timers, future_timers);
        for (_, timer) in due {
            let done = self.foca.handle_timer(timer, &mut self.effects);
            self.settle(now, done);
        }
    }

    /// Returns the time at which `tick` must be called next.
    pub(super) fn next_tick(&self) -> Option<Instant> {
        self.timers.keys().next().map(|(time, _)| *time)
    }

    /// Tells some of the other members that this member leaves. Each further call tells more of them. After the first
    /// call, incoming messages are ignored.
    pub(super) fn leave(&mut self, now: Instant) {
        let mut settings = settings();
        settings.num_indirect_probes = at_least_one(TOLD_OF_LEAVING);
        let done = self.foca.set_config(settings);
        self.settle(now, done);
        let done = self.foca.leave_cluster(&mut self.effects);
        self.settle(now, done);
    }

    /// Removes and returns the messages to send, in order.
    pub(super) fn outgoing(&mut self) -> Vec<Outgoing> {
        std::mem::take(&mut self.effects.outgoing)
    }

    /// Removes and returns the events since the last call.
    pub(super) fn events(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.effects.events)
    }

    /// Returns true if, since the last call, the set of members has changed or a member has been replaced by one with a
    /// later start time.
    pub(super) fn has_changed(&mut self) -> bool {
        std::mem::take(&mut self.effects.has_changed)
    }

    fn settle(&mut self, now: Instant, done: Result<(), foca::Error>) {
        if let Err(error) = done {
            tracing::debug!(%error, "a step of the cluster's protocol failed");
        }
        self.schedule(now);
    }

    fn schedule(&mut self, now: Instant) {
        for (after, timer) in self.effects.timers.drain(..) {
            if self.timers.len() >= MOST_TIMERS && matches!(timer, Timer::RemoveDown(_)) {
                // Without this timer, the gone member is remembered longer. [`MOST_MEMBERS`] limits the number of such
                // members.
                continue;
            }
            self.timers_made += 1;
            self.timers.insert((now + after, self.timers_made), timer);
        }
    }

    /// Returns true if a message contains a member at an unknown address.
    fn names_a_stranger(&self, mut message: &[u8]) -> bool {
        let known: HashSet<SocketAddr> = self
            .foca
            .iter_membership_state()
            .map(|entry| entry.id().address)
            .collect();
        let mut codec = Codec {
            own: self.own().address,
        };
        let Ok(header) = codec.decode_header(&mut message) else {
            return false;
        };
        let is_strange = |address: SocketAddr| address != self.own().address && !known.contains(&address);
        let count = if message.len() < 2 { 0 } else { message.get_u16() };
        let mut entries = (0..count).map_while(|_| codec.decode_member(&mut message).ok());
        is_strange(header.src.address) || entries.any(|entry| is_strange(entry.id().address))
    }
}

fn settings() -> Config {
    let periodic = |frequency: Duration, members: usize| {
        Some(PeriodicParams {
            frequency,
            num_members: at_least_one(members),
        })
    };
    Config {
        probe_period: PROBE_PERIOD,
        probe_rtt: PROBE_ANSWER,
        num_indirect_probes: at_least_one(3),
        max_transmissions: NonZeroU8::new(10).unwrap_or(NonZeroU8::MIN),
        suspect_to_down_after: SUSPICION,
        remove_down_after: Some(REMEMBER),
        max_packet_size: at_least_one(LONGEST_MESSAGE),
        notify_down_members: true,
        // Each response to an announcement names about thirty other members.
        periodic_announce: periodic(Duration::from_secs(1), 1),
        // Heals a network partition.
        periodic_announce_to_down_members: periodic(Duration::from_secs(3), 2),
        periodic_gossip: periodic(Duration::from_millis(200), 3),
    }
}

fn at_least_one(number: usize) -> NonZeroUsize {
    NonZeroUsize::new(number).unwrap_or(NonZeroUsize::MIN)
}

#[cfg(test)]
#[path = "membership_tests.rs"]
mod tests;
