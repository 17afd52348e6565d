//! The running member of a cluster: the socket, the clock, the lookups, and the view that components see.
//!
//! In: options, datagrams. Out: a [`Cluster`] and datagrams. One task does all of this work. When the program stops,
//! the task tells the other members that this member leaves, so that they take over its targets at once.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::seq::SliceRandom as _;
use tokio::net::UdpSocket;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::advertise::{self, AdvertiseError};
use crate::envelope::{Envelope, LONGEST_DATAGRAM, Refused, SecretError, read_secret};
use crate::join::{self, Contact, ContactError, LookupResult};
use crate::member::{Member, NameError, check_name};
use crate::membership::{Event, Membership};
use crate::metrics::ClusterMetrics;
use crate::readiness::Readiness;
use crate::view::{Cluster, Part, View};
use alluvium_base::Shutdown;
use alluvium_base::net::{is_this_machine, listen_reason};
use alluvium_telemetry::metrics::Scope;

/// Minimum time between two change notices to components.
const NOTICE_AT_MOST_EVERY: Duration = Duration::from_secs(1);
/// Time for which a new member looks for others before it starts alone.
const LOOK_FOR_OTHERS: Duration = Duration::from_secs(5);
/// Time for which a new member waits for further members after it has found a member. The found member may be new as
/// well, and then does not know all members yet.
const HEAR_ALL: Duration = Duration::from_millis(500);
/// First and longest pause between attempts to join, as long as no member is found.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// Maximum number of datagrams to receive before timers are processed.
const MOST_AT_ONCE: usize = 64;
/// Number of rounds in which leave messages are sent, and the time between two rounds.
const FAREWELLS: usize = 3;
const BETWEEN_FAREWELLS: Duration = Duration::from_millis(50);

/// Options for the membership of this program in a cluster.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Name of this member, unique in the cluster.
    pub name: String,
    /// Name of the cluster; datagrams of other clusters are ignored.
    pub cluster: String,
    /// `HOST:PORT` for the datagrams; empty for the address of the HTTP endpoints.
    pub listen: String,
    /// Address to advertise, with or without port; empty to detect one.
    pub advertise: String,
    /// Interfaces whose address may be advertised, separated by commas.
    pub interfaces: String,
    /// Addresses of possible members, separated by commas.
    pub join: String,
    /// Time between two lookups of the addresses in `join`; zero for no further lookup once a member is found.
    pub rejoin_interval: Duration,
    /// Maximum number of members to contact per lookup; zero for all.
    pub most_joined: usize,
    /// Number of members that must be present before this member takes its share of the targets.
    pub wait_for_size: usize,
    /// Maximum time to wait for `wait_for_size` members; zero to wait without limit.
    pub wait_timeout: Duration,
    /// File with the shared secret, if the cluster has a secret.
    pub secret: Option<PathBuf>,
}

/// The reason why this program cannot join a cluster.
#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    /// The name of this member is invalid.
    #[error("--cluster.node-name: {0}")]
    Name(#[from] NameError),
    /// The file of the secret is unusable.
    #[error("--cluster.secret-file: {0}")]
    Secret(#[from] SecretError),
    /// The list of possible members is invalid.
    #[error("--cluster.join-addresses: {0}")]
    Join(#[from] ContactError),
    /// This member has no address to advertise.
    #[error("--cluster.advertise-address: {0}")]
    Advertise(#[from] AdvertiseError),
    /// The port for datagrams cannot be opened.
    #[error("cannot listen for members of the cluster on {0} (UDP): {reason}", reason = listen_reason(.1))]
    Listen(String, io::Error),
}

/// A member with an open port for datagrams. [`Agent::run`] runs it.
pub struct Agent {
    socket: UdpSocket,
    envelope: Envelope,
    membership: Membership,
    contacts: Vec<Contact>,
    options: Options,
    readiness: Readiness,
    /// Time until which this member looks for others before it takes a share of the targets.
    looks_until: Option<Instant>,
    /// Time of the next lookup of others.
    joins_at: Option<Instant>,
    is_looking: bool,
    pause: Duration,
    /// True if the published view is out of date.
    is_stale: bool,
    noticed_at: Option<Instant>,
    /// True once the log has mentioned a sender with another secret or cluster name.
    has_warned: bool,
    views: watch::Sender<Arc<View>>,
    metrics: ClusterMetrics,
}

impl Agent {
    /// Creates a member and opens its port. `http` is the address of the program's HTTP endpoints.
    pub async fn bind(options: Options, http: SocketAddr, scope: &Scope) -> Result<Self, ClusterError> {
        check_name(&options.name)?;
        let secret = options.secret.as_deref().map(read_secret).transpose()?;
        let listen = match options.listen.as_str() {
            "" => http.to_string(),
            configured => configured.to_owned(),
        };
        let refused = |error: io::Error| ClusterError::Listen(listen.clone(), error);
        let socket = UdpSocket::bind(&listen).await.map_err(refused)?;
        let listening = socket.local_addr().map_err(refused)?;
        let contacts = join::parse_contacts(&options.join, listening.port())?;
        let toward = contacts.iter().find_map(|contact| match contact {
            Contact::Address(address) => Some(*address),
            _ => None,
        });
        let advertised = advertise::address(&options.advertise, &options.interfaces, listening, toward).await?;
        tracing::info!(%listening, %advertised, name = %options.name, cluster = %options.cluster, "joins the cluster");
        if secret.is_none() && !is_this_machine(listening.ip()) {
            tracing::warn!(
                %listening,
                "any host that reaches this port can join the cluster and take targets: give all members a \
                 --cluster.secret-file"
            );
        }
        let own = Member::new(options.name.as_str().into(), advertised);
        let metrics = ClusterMetrics::new(scope);
        metrics.min_members.set(options.wait_for_size as i64);
        let view = View::new(own.clone(), Vec::new(), Part::Viewer);
        metrics.show(&view, 0);
        let now = Instant::now();
        Ok(Self {
            envelope: Envelope::new(secret.as_deref().unwrap_or_default(), &options.cluster),
            membership: Membership::new(own, rand::make_rng::<StdRng>()),
            looks_until: (!contacts.is_empty()).then_some(now + LOOK_FOR_OTHERS),
            joins_at: (!contacts.is_empty()).then_some(now),
            is_looking: false,
            pause: FIRST_PAUSE,
            readiness: Readiness::new(options.wait_for_size, options.wait_timeout),
            is_stale: false,
            noticed_at: None,
            has_warned: false,
            views: watch::Sender::new(Arc::new(view)),
            socket,
            contacts,
            options,
            metrics,
        })
    }

    /// Returns the cluster as components see it.
    pub fn cluster(&self) -> Cluster {
        Cluster::new(self.views.subscribe())
    }

    /// Runs until `shutdown`, then leaves the cluster.
    pub async fn run(mut self, shutdown: Shutdown) {
        let mut lookups: JoinSet<LookupResult> = JoinSet::new();
        loop {
            self.show().await;
            let next = self.next_step();
            tokio::select! {
                () = shutdown.cancelled() => break,
                ready = self.socket.readable() => {
                    if let Err(error) = ready {
                        tracing::error!(%error, "the cluster's socket failed");
                        tokio::time::sleep(NOTICE_AT_MOST_EVERY).await;
                    }
                }
                Some(lookup) = lookups.join_next() => self.announce(lookup.unwrap_or_default()),
                () = sleep_until(next) => {}
            }
            self.receive();
            let now = Instant::now();
            self.membership.tick(now);
            if !self.is_looking && self.joins_at.is_some_and(|time| time <= now) {
                self.is_looking = true;
                lookups.spawn(join::look_up(self.contacts.clone()));
            }
            self.tell();
            self.send();
        }
        self.leave().await;
    }

    /// Receives pending datagrams, at most [`MOST_AT_ONCE`].
    fn receive(&mut self) {
        let mut buffer = [0; LONGEST_DATAGRAM + 1];
        for _ in 0..MOST_AT_ONCE {
            match self.socket.try_recv_from(&mut buffer) {
                Ok((length, from)) => self.take(buffer.get(..length).unwrap_or_default(), from),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                // The error belongs to a datagram that was sent earlier.
                Err(error) => tracing::debug!(%error, "cannot receive from the cluster"),
            }
        }
    }

    fn take(&mut self, datagram: &[u8], from: SocketAddr) {
        self.metrics.received.inc();
        self.metrics.received_bytes.inc_by(datagram.len() as u64);
        let opened = self.envelope.open(datagram);
        if let Err(refused) = opened.and_then(|message| self.membership.receive(Instant::now(), message)) {
            self.metrics.refused(refused);
            if matches!(refused, Refused::Cluster | Refused::Secret) && !self.has_warned {
                self.has_warned = true;
                tracing::warn!(
                    %from, reason = refused.name(),
                    "a sender has another --cluster.name or --cluster.secret-file; further such datagrams are \
                     counted but not logged"
                );
            }
        }
    }

    fn send(&mut self) {
        for (to, message) in self.membership.outgoing() {
            let datagram = self.envelope.seal(&message);
            match self.socket.try_send_to(&datagram, to) {
                Ok(bytes) => {
                    self.metrics.sent.inc();
                    self.metrics.sent_bytes.inc_by(bytes as u64);
                }
                // A retry is not necessary, because the protocol repeats important messages.
                Err(error) => {
                    self.metrics.not_sent.inc();
                    tracing::debug!(%to, %error, "cannot send to the cluster");
                }
            }
        }
    }

    /// Announces this member to the members that were found, and schedules the next lookup.
    fn announce(&mut self, lookup: LookupResult) {
        self.is_looking = false;
        for (contact, error) in &lookup.errors {
            tracing::warn!(error = %format_args!("{contact}: {error}"), "cannot look up members of the cluster");
        }
        let own = self.membership.own().address;
        let mut others: Vec<SocketAddr> = lookup.addresses.into_iter().filter(|other| *other != own).collect();
        others.shuffle(&mut rand::rng());
        if self.options.most_joined > 0 {
            others.truncate(self.options.most_joined);
        }
        let now = Instant::now();
        for other in others {
            self.membership.announce(now, other);
        }
        self.joins_at = if self.membership.other_count() == 0 {
            let pause = self.pause;
            self.pause = (pause * 2).min(LONGEST_PAUSE);
            Some(now + pause)
        } else {
            self.pause = FIRST_PAUSE;
            (!self.options.rejoin_interval.is_zero()).then_some(now + self.options.rejoin_interval)
        };
    }

    /// Logs joined and gone members. If no other member is left, schedules a lookup of others soon.
    fn tell(&mut self) {
        for event in self.membership.events() {
            match event {
                Event::Joined(member) => {
                    tracing::info!(name = %member.name, address = %member.address, "a member joined the cluster");
                }
                Event::Left(member) => {
                    tracing::info!(name = %member.name, address = %member.address, "a member is gone from the cluster");
                }
                Event::Rejoined => tracing::warn!("the cluster considered this member dead; this member has rejoined"),
            }
        }
        if self.membership.has_changed() {
            self.is_stale = true;
            if self.membership.other_count() == 0 && !self.contacts.is_empty() {
                let retry_time = Instant::now() + FIRST_PAUSE;
                self.joins_at = Some(self.joins_at.map_or(retry_time, |time| time.min(retry_time)));
            }
        }
    }

    /// Returns the state of this member, which depends on the number of members that it has found and on the time.
    fn part(&mut self, now: Instant) -> Part {
        let others = self.membership.other_count();
        if let Some(deadline) = self.looks_until {
            let deadline = if others > 0 {
                deadline.min(now + HEAR_ALL)
            } else {
                deadline
            };
            self.looks_until = Some(deadline).filter(|deadline| *deadline > now);
            if self.looks_until.is_none() && others == 0 {
                tracing::warn!("no member of the cluster responds; this member starts alone and keeps looking");
            }
        }
        let is_ready = self.readiness.is_ready(others + 1, now);
        match self.looks_until {
            None if is_ready => Part::Participant,
            _ => Part::Viewer,
        }
    }

    /// Publishes the view to components, at most once per [`NOTICE_AT_MOST_EVERY`].
    async fn show(&mut self) {
        let now = Instant::now();
        let part = self.part(now);
        self.is_stale |= self.views.borrow().part != part;
        let is_early = self
            .noticed_at
            .is_some_and(|noticed| now < noticed + NOTICE_AT_MOST_EVERY);
        if !self.is_stale || is_early {
            return;
        }
        self.is_stale = false;
        self.noticed_at = Some(now);
        self.publish(part).await;
    }

    async fn publish(&mut self, part: Part) {
        let (own, others) = (self.membership.own().clone(), self.membership.others());
        // Computing a view takes milliseconds for hundreds of members.
        let result = tokio::task::spawn_blocking(move || View::new(own, others, part)).await;
        let Ok(view) = result else { return };
        if !view.bears_its_name() {
            tracing::warn!(
                name = %view.own.name,
                "another member has this name and started later, so it gets the targets of both; give each member a \
                 --cluster.node-name of its own"
            );
        }
        // One receiver belongs to the [`Cluster`] handle itself, so it is not an observer.
        self.metrics.show(&view, self.views.receiver_count().saturating_sub(1));
        self.views.send_replace(Arc::new(view));
    }

    /// Returns the time of the next work that does not depend on a datagram.
    fn next_step(&self) -> Option<Instant> {
        let notice = self
            .noticed_at
            .filter(|_| self.is_stale)
            .map(|noticed| noticed + NOTICE_AT_MOST_EVERY);
        let steps = [
            self.membership.next_tick(),
            self.joins_at.filter(|_| !self.is_looking),
            self.looks_until,
            // A timeout that has passed needs no wake-up.
            self.readiness.patience_ends().filter(|end| *end > Instant::now()),
            notice,
        ];
        steps.into_iter().flatten().min()
    }

    async fn leave(&mut self) {
        self.publish(Part::Terminating).await;
        for round in 0..FAREWELLS {
            if round > 0 {
                tokio::time::sleep(BETWEEN_FAREWELLS).await;
            }
            self.membership.leave(Instant::now());
            self.send();
        }
        tracing::info!("left the cluster");
    }
}

async fn sleep_until(time: Option<Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
#[path = "agent_tests.rs"]
mod tests;
