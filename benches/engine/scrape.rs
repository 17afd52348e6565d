//! Targets that respond like Go programs, and a receiver for the collector's pushes.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use alluvium_profile::pprof::{self, Profile, ValueType};
use alluvium_testing::fleet::{Fleet, FleetShape, Kind};

/// Seconds between two scrapes of a target.
const EVERY: u64 = 15;
/// Number of different programs. If there are more targets, several of them respond with the profiles of one program.
const PROGRAMS: usize = 20;
/// Number of scrapes for which cumulative profiles grow. Later scrapes repeat the last profile.
const ROUNDS: usize = 16;

/// Server that responds as every target and as the endpoint for pushes, on one port.
pub(crate) struct Targets {
    address: String,
    started: Instant,
    /// Times at which the collector requested goroutine profiles, by target, in seconds from the start.
    asked: Vec<Mutex<Vec<f64>>>,
    /// Response bodies by program and by round. The round is the number of scrape intervals since the start.
    cpu: Vec<Vec<Vec<u8>>>,
    heap: Vec<Vec<Vec<u8>>>,
    contention: Vec<Vec<Vec<u8>>>,
    goroutines: Vec<Vec<Vec<u8>>>,
    /// Number of scraped profiles. `pushed` is the number of bytes of the collector's pushes.
    scraped: AtomicU64,
    pushed: AtomicU64,
}

impl Targets {
    /// Builds the profiles and serves this number of targets.
    pub(crate) fn start(count: usize) -> Arc<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let shape = FleetShape {
            services: PROGRAMS,
            pods: 1,
            ..FleetShape::default()
        };
        let fleet = Fleet::new(shape, 1);
        let targets = Arc::new(Self {
            address: listener.local_addr().unwrap().to_string(),
            started: Instant::now(),
            asked: (0..count).map(|_| Mutex::default()).collect(),
            cpu: bodies(&fleet, Kind::Cpu, |profile, _| profile),
            heap: bodies(&fleet, Kind::Heap, grown),
            contention: bodies(&fleet, Kind::Cpu, |mut profile, round| {
                profile.sample_types = vec![value_type("contentions", "count"), value_type("delay", "nanoseconds")];
                profile.period_type = value_type("contentions", "count");
                grown(profile, round)
            }),
            goroutines: bodies(&fleet, Kind::Cpu, |mut profile, _| {
                profile.sample_types = vec![value_type("goroutine", "count")];
                profile.period_type = value_type("goroutine", "count");
                profile.values = profile.values.iter().step_by(2).copied().collect();
                profile
            }),
            scraped: AtomicU64::new(0),
            pushed: AtomicU64::new(0),
        });
        let answering = targets.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let targets = answering.clone();
                std::thread::spawn(move || targets.answer(&stream));
            }
        });
        targets
    }

    /// Returns a configuration that scrapes all targets and pushes to this server.
    pub(crate) fn config(&self) -> String {
        let target = |index| {
            format!(
                "\t\t{{\"__address__\" = \"{0}\", \"__profile_path_prefix__\" = \"/{1}/{index}\", \
                 \"service_name\" = \"s{1}\", \"pod\" = \"p{index}\"}},\n",
                self.address,
                index % PROGRAMS
            )
        };
        format!(
            "pyroscope.scrape \"bench\" {{\n\ttargets = [\n{}\t]\n\tforward_to      = [pyroscope.write.sink.receiver]\
             \n\tscrape_interval = \"{EVERY}s\"\n}}\n\npyroscope.write \"sink\" {{\n\tendpoint {{\
             \n\t\turl = \"http://{}\"\n\t}}\n}}\n",
            (0..self.asked.len()).map(target).collect::<String>(),
            self.address
        )
    }

    /// Returns the number of profiles scraped so far.
    pub(crate) fn scraped(&self) -> u64 {
        self.scraped.load(Ordering::Relaxed)
    }

    pub(crate) fn pushed(&self) -> u64 {
        self.pushed.load(Ordering::Relaxed)
    }

    /// Returns the absolute differences between the configured interval and the intervals between successive scrapes of
    /// a target, in seconds, sorted.
    pub(crate) fn jitter(&self) -> Vec<f64> {
        let of_target = |asked: &Mutex<Vec<f64>>| {
            let asked = asked.lock().unwrap();
            let missed = asked.windows(2).map(|pair| (pair[1] - pair[0] - EVERY as f64).abs());
            missed.collect::<Vec<f64>>()
        };
        let mut all: Vec<f64> = self.asked.iter().flat_map(of_target).collect();
        all.sort_by(f64::total_cmp);
        all
    }

    /// Handles the requests of a connection until it is closed.
    fn answer(&self, mut stream: &TcpStream) {
        let mut reader = BufReader::new(stream);
        let mut line = String::new();
        while reader.read_line(&mut line).is_ok_and(|read| read > 0) {
            let path = line.split(' ').nth(1).unwrap_or_default().to_owned();
            let mut length = 0;
            line.clear();
            while reader.read_line(&mut line).is_ok_and(|read| read > 2) {
                if let Some((name, value)) = line.split_once(':')
                    && name.eq_ignore_ascii_case("content-length")
                {
                    length = value.trim().parse().unwrap_or(0);
                }
                line.clear();
            }
            line.clear();
            let mut body = vec![0; length];
            if reader.read_exact(&mut body).is_err() {
                return;
            }
            self.pushed.fetch_add(length as u64, Ordering::Relaxed);
            let body = self.body(&path);
            let head = format!(
                "HTTP/1.1 200 OK\r\ncontent-type: application/proto\r\ncontent-length: {}\r\n\r\n",
                body.len()
            );
            if stream.write_all(head.as_bytes()).is_err() || stream.write_all(body).is_err() {
                return;
            }
        }
    }

    /// Returns the response for the path of a target, after the requested seconds. The response to a push is empty.
    fn body(&self, path: &str) -> &[u8] {
        let Some((target, rest)) = path.trim_start_matches('/').split_once("/debug/pprof/") else {
            return &[];
        };
        let (program, index) = target.split_once('/').unwrap_or((target, ""));
        let (kind, query) = rest.split_once('?').unwrap_or((rest, ""));
        let asked = index.parse().ok().and_then(|index: usize| self.asked.get(index));
        if let Some(asked) = asked.filter(|_| kind == "goroutine") {
            asked.lock().unwrap().push(self.started.elapsed().as_secs_f64());
        }
        if let Some(seconds) = query.split('&').find_map(|part| part.strip_prefix("seconds=")) {
            std::thread::sleep(Duration::from_secs(seconds.parse().unwrap_or(0)));
        }
        self.scraped.fetch_add(1, Ordering::Relaxed);
        let bodies = match kind {
            "profile" => &self.cpu,
            "allocs" | "heap" => &self.heap,
            "goroutine" => &self.goroutines,
            _ => &self.contention,
        };
        let round = (self.started.elapsed().as_secs() / EVERY) as usize;
        let program: usize = program.parse().unwrap_or(0);
        &bodies[program % PROGRAMS][round.min(ROUNDS - 1)]
    }
}

fn bodies(fleet: &Fleet, kind: Kind, change: impl Fn(Profile<'_>, usize) -> Profile<'_>) -> Vec<Vec<Vec<u8>>> {
    let body = |program: usize, round: usize| {
        let (_, profile) = fleet.profile(0, program * 2 + usize::from(kind == Kind::Heap), 0);
        pprof::gzip(&pprof::encode(&change(profile, round)))
    };
    let rounds = |program| (0..ROUNDS).map(|round| body(program, round)).collect();
    (0..PROGRAMS).map(rounds).collect()
}

/// Returns the profile after `round` more rounds of the same work.
fn grown(mut profile: Profile<'_>, round: usize) -> Profile<'_> {
    for value in &mut profile.values {
        *value *= round as i64 + 1;
    }
    profile
}

fn value_type<'a>(kind: &'a str, unit: &'a str) -> ValueType<'a> {
    ValueType { kind, unit }
}
