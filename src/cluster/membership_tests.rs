//! Members in a simulated network with its own time. The tests measure how long it takes until all members know of a
//! change.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use tokio::time::Instant;

use super::{Event, MOST_MEMBERS, Membership};
use crate::envelope::{LONGEST_MESSAGE, Refused};
use crate::member::Member;

const LATENCY: Duration = Duration::from_millis(2);
/// Maximum time until a change is known: the 15 s that `docs/clustering.md` promises, minus the 1 s between two notices
/// to components, and minus the duration of a lookup.
const PROMISE: Duration = Duration::from_secs(13);

fn address(number: u16) -> SocketAddr {
    ([10, 0, (number >> 8) as u8, number as u8], 12345).into()
}

fn membership(number: u16) -> Membership {
    let member = Member::new(format!("m{number}").into(), address(number));
    Membership::new(member, StdRng::seed_from_u64(number.into()))
}

struct Network {
    now: Instant,
    members: BTreeMap<SocketAddr, Membership>,
    on_the_way: BTreeMap<(Instant, u64), (SocketAddr, SocketAddr, Vec<u8>)>,
    sent: u64,
    /// Members on the other side of a partition.
    beyond: BTreeSet<SocketAddr>,
    /// Members that do nothing; messages to them wait.
    paused: BTreeSet<SocketAddr>,
    /// Fraction of messages that is lost.
    loss: f64,
    random: StdRng,
}

impl Network {
    /// Creates `count` members, which join by the address of the first.
    fn of(count: u16) -> Self {
        let mut network = Self {
            now: Instant::now(),
            members: BTreeMap::new(),
            on_the_way: BTreeMap::new(),
            sent: 0,
            beyond: BTreeSet::new(),
            paused: BTreeSet::new(),
            loss: 0.0,
            random: StdRng::seed_from_u64(1),
        };
        for number in 0..count {
            network.join(number);
        }
        network
    }

    fn join(&mut self, number: u16) {
        self.admit(membership(number));
    }

    fn admit(&mut self, mut member: Membership) {
        let own = member.own().address;
        if own != address(0) {
            member.announce(self.now, address(0));
        }
        self.members.insert(own, member);
        self.collect(own);
    }

    fn collect(&mut self, from: SocketAddr) {
        let Some(member) = self.members.get_mut(&from) else {
            return;
        };
        for (to, message) in member.outgoing() {
            assert!(message.len() <= LONGEST_MESSAGE);
            self.sent += 1;
            if !self.random.random_bool(self.loss) {
                let arrival = (self.now + LATENCY, self.sent);
                self.on_the_way.insert(arrival, (from, to, message));
            }
        }
    }

    /// Simulates the next event.
    fn step(&mut self) {
        let awake = self
            .members
            .iter()
            .filter(|(address, _)| !self.paused.contains(*address));
        let tick = awake
            .filter_map(|(address, member)| Some((member.next_tick()?, *address)))
            .min();
        let arrival = self.on_the_way.keys().next().copied();
        match (arrival, tick) {
            (Some(arrival), tick) if tick.is_none_or(|(time, _)| arrival.0 <= time) => {
                let (from, to, message) = self.on_the_way.remove(&arrival).unwrap();
                self.now = self.now.max(arrival.0);
                if self.paused.contains(&to) {
                    // A socket keeps the message, at least for a while.
                    self.on_the_way
                        .insert((arrival.0 + Duration::from_millis(500), arrival.1), (from, to, message));
                } else if self.beyond.contains(&from) == self.beyond.contains(&to)
                    && let Some(member) = self.members.get_mut(&to)
                {
                    let _ = member.receive(self.now, &message);
                    self.collect(to);
                }
            }
            (_, Some((time, address))) => {
                self.now = self.now.max(time);
                self.members.get_mut(&address).unwrap().tick(self.now);
                self.collect(address);
            }
            (_, None) => panic!("nothing happens any more"),
        }
    }

    fn pass(&mut self, time: Duration) {
        let end = self.now + time;
        while self.now < end {
            self.step();
        }
    }

    /// Lets time pass until all of `members` know each other and no other members. Returns how long that took.
    fn run_until_all_know(&mut self, members: &[SocketAddr]) -> Duration {
        let begin = self.now;
        while !members.iter().all(|address| self.knows(*address, members)) {
            self.step();
            assert!(self.now - begin < Duration::from_mins(2), "they never agree");
        }
        self.now - begin
    }

    fn knows(&self, address: SocketAddr, members: &[SocketAddr]) -> bool {
        let member = &self.members[&address];
        let others = member.others();
        others.len() + 1 == members.len() && others.iter().all(|other| members.contains(&other.address))
    }

    fn addresses(&self) -> Vec<SocketAddr> {
        self.members.keys().copied().collect()
    }
}

#[test]
fn members_that_join_by_one_of_them_soon_know_all() {
    for count in [2, 5, 50] {
        let mut network = Network::of(count);
        let duration = network.run_until_all_know(&network.addresses());
        println!("{count} members know each other after {duration:?}");
        assert!(duration < PROMISE, "{count}: {duration:?}");
    }
}

#[test]
fn half_of_the_members_die_at_once_and_the_others_know_in_time() {
    for count in [5, 10, 50] {
        let mut network = Network::of(count);
        network.run_until_all_know(&network.addresses());
        network.pass(Duration::from_secs(5));
        for number in 0..count / 2 {
            network.members.remove(&address(number));
        }
        let duration = network.run_until_all_know(&network.addresses());
        println!(
            "{} of {count} members died, the others know after {duration:?}",
            count / 2
        );
        assert!(duration < PROMISE, "{count}: {duration:?}");
    }
}

#[test]
fn a_member_that_leaves_is_gone_at_once() {
    let mut network = Network::of(50);
    network.run_until_all_know(&network.addresses());
    let leaving = address(7);
    let now = network.now;
    network.members.get_mut(&leaving).unwrap().leave(now);
    network.collect(leaving);
    network.members.remove(&leaving);
    let duration = network.run_until_all_know(&network.addresses());
    assert!(duration < Duration::from_secs(2), "{duration:?}");
}

#[test]
fn a_cut_makes_two_clusters_and_when_it_heals_one() {
    let mut network = Network::of(5);
    let all = network.addresses();
    network.run_until_all_know(&all);
    network.beyond = all[..2].iter().copied().collect();
    let durations = [
        network.run_until_all_know(&all[..2]),
        network.run_until_all_know(&all[2..]),
    ];
    assert!(durations[0] + durations[1] < PROMISE, "{durations:?}");
    network.pass(Duration::from_mins(2));
    assert!(network.knows(all[0], &all[..2]) && network.knows(all[4], &all[2..]));
    network.beyond.clear();
    let duration = network.run_until_all_know(&all);
    println!("a cut of two minutes is healed after {duration:?}");
    assert!(duration < PROMISE, "{duration:?}");
}

#[test]
fn a_member_that_slept_is_taken_back_under_a_new_start() {
    let mut network = Network::of(5);
    let all = network.addresses();
    network.run_until_all_know(&all);
    let before = network.members[&all[1]].own().clone();
    network.paused.insert(all[1]);
    let awake: Vec<SocketAddr> = all.iter().copied().filter(|address| *address != all[1]).collect();
    assert!(network.run_until_all_know(&awake) < PROMISE);
    network.pass(Duration::from_secs(20));
    network.paused.clear();
    let duration = network.run_until_all_know(&all);
    assert!(duration < PROMISE, "{duration:?}");
    let after = network.members[&all[1]].own().clone();
    assert!(after.started > before.started);
    let events = network.members.get_mut(&all[1]).unwrap().events();
    assert!(events.contains(&Event::Rejoined), "{events:?}");
}

#[test]
fn a_member_that_is_started_anew_at_its_address_takes_its_place_at_once() {
    let mut network = Network::of(3);
    let all = network.addresses();
    network.run_until_all_know(&all);
    let before = network.members[&all[2]].own().started;
    network.join(2);
    network.pass(Duration::from_secs(2));
    let known = network.members[&all[0]].others();
    let known = known.iter().find(|member| member.address == all[2]).unwrap();
    assert!(known.started > before && network.knows(all[2], &all));
}

#[test]
fn a_member_that_is_started_anew_after_its_clock_was_set_back_takes_its_place() {
    let mut network = Network::of(2);
    let current = membership(2).own().clone();
    let ahead = Member {
        started: current.started + 7_200_000_000,
        ..current
    };
    network.admit(Membership::new(ahead, StdRng::seed_from_u64(2)));
    let all = network.addresses();
    network.run_until_all_know(&all);
    network.join(2);
    let sent = network.sent;
    network.pass(Duration::from_secs(5));
    let own = network.members[&all[2]].own().clone();
    for other in &all[..2] {
        assert!(network.members[other].others().contains(&own), "{own:?}");
    }
    assert!(network.knows(all[2], &all));
    assert!(network.sent - sent < 1000, "{} messages", network.sent - sent);
}

#[test]
fn lost_messages_make_nobody_dead() {
    let mut network = Network::of(10);
    network.run_until_all_know(&network.addresses());
    network.loss = 0.05;
    network.pass(Duration::from_mins(2));
    for member in network.members.values_mut() {
        let departures: Vec<Event> = member
            .events()
            .into_iter()
            .filter(|event| matches!(event, Event::Left(_)))
            .collect();
        assert_eq!(departures, []);
    }
}

#[test]
fn strangers_beyond_the_bound_are_refused() {
    let mut member = membership(0);
    let now = Instant::now();
    let mut refused = 0;
    for number in 1..=u16::try_from(MOST_MEMBERS).unwrap() + 50 {
        let mut stranger = membership(number);
        stranger.announce(now, address(0));
        for (_, message) in stranger.outgoing() {
            refused += usize::from(member.receive(now, &message) == Err(Refused::Full));
        }
    }
    assert_eq!((member.other_count(), refused), (MOST_MEMBERS, 50));
    assert_eq!(member.receive(now, b"nonsense"), Err(Refused::Malformed));
}
