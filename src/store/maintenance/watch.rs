//! Guards deletion by age against a wall clock that is wrong.
//!
//! A clock that is set wrong for an hour (an empty battery, a bad time server, a typing error) makes everything look
//! old, and a deletion cannot be undone. The wall clock is therefore compared with the monotonic clock, and after a
//! start with the time that an earlier process stored in the file `CLOCK` of the data folder. After a jump forward
//! nothing is deleted by age until the clock is back, or has run evenly for a day.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use chrono::{DateTime, SecondsFormat, Utc};

use crate::base::file::replace;
use crate::store::clock::Clock;
use crate::store::metrics::Metrics;

const HOUR: Duration = Duration::from_hours(1);
const DAY: Duration = Duration::from_hours(24);
/// How far the clock may be from the expected time.
const SLACK: Duration = DAY;
/// How long a server may have been down.
const AWAY: Duration = DAY.saturating_mul(30);
/// How long a clock must run without another jump to be trusted again.
const SETTLE: Duration = DAY;
/// Interval between writes of the time to `CLOCK`.
const KEEP: Duration = HOUR;

pub(crate) struct Watch {
    file: PathBuf,
    /// When the clock was last trusted.
    believed: Option<Seen>,
    /// Since when the clock runs evenly after a jump.
    settling: Option<Seen>,
    /// Monotonic time of the last write to `CLOCK`.
    kept: Option<Duration>,
}

#[derive(Debug, Clone, Copy)]
struct Seen {
    wall: SystemTime,
    /// The monotonic time of the reading.
    running: Duration,
    /// How far a later reading may be ahead of the expected time.
    slack: Duration,
}

/// Position of a later reading relative to the expected time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Expected,
    Ahead,
    Behind,
}

impl Seen {
    fn expected(&self, running: Duration) -> SystemTime {
        self.wall + running.saturating_sub(self.running)
    }

    fn place(&self, later: &Self) -> Place {
        let expected = self.expected(later.running);
        let by = |one: SystemTime, other: SystemTime| one.duration_since(other).unwrap_or_default();
        if by(later.wall, expected) > self.slack {
            Place::Ahead
        } else if by(expected, later.wall) > SLACK {
            Place::Behind
        } else {
            Place::Expected
        }
    }
}

impl Watch {
    /// Reads the time that an earlier process stored. Without that file the clock is trusted.
    pub(crate) fn open(dir: &Path, clock: &Clock) -> Self {
        let file = dir.join("CLOCK");
        let kept = match fs::read_to_string(&file) {
            Ok(text) => DateTime::parse_from_rfc3339(text.trim())
                .inspect_err(
                    |error| tracing::warn!(%error, file = %file.display(), "the time that was seen last is lost"),
                )
                .ok(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => {
                tracing::warn!(%error, file = %file.display(), "cannot read the time that was seen last");
                None
            }
        };
        Self {
            file,
            believed: kept.map(|time| Seen {
                wall: time.into(),
                running: clock.running(),
                slack: AWAY,
            }),
            settling: None,
            kept: None,
        }
    }

    /// Checks the clock; returns whether data may be deleted for its age.
    pub(crate) fn look(&mut self, clock: &Clock, metrics: &Metrics) -> bool {
        let now = Seen {
            wall: clock.now(),
            running: clock.running(),
            slack: SLACK,
        };
        let place = self.believed.map_or(Place::Expected, |seen| seen.place(&now));
        let settled = self.settling.is_some_and(|since| {
            since.place(&now) == Place::Expected && now.running.saturating_sub(since.running) >= SETTLE
        });
        if place == Place::Expected || settled {
            if self.settling.take().is_some() {
                tracing::info!(now = text(now.wall), "the clock is believed again");
            }
            self.believed = Some(now);
            self.keep(now);
        } else if self.settling.is_none_or(|since| since.place(&now) != Place::Expected) {
            self.settling = Some(now);
            if let Some(believed) = self.believed.filter(|_| place == Place::Ahead) {
                metrics.clock_jumps.inc();
                tracing::warn!(
                    expected = text(believed.expected(now.running)),
                    now = text(now.wall),
                    hours = SETTLE.as_secs() / 3600,
                    "the clock has jumped: nothing is deleted or made coarser for its age until it is back, or has \
                        run evenly for so many hours"
                );
            }
        }
        // A clock that is behind makes nothing look too old.
        let may_delete = place != Place::Ahead || settled;
        metrics.clock_doubted.set(i64::from(!may_delete));
        may_delete
    }

    /// Stores the time for the next process, once per [`KEEP`].
    fn keep(&mut self, now: Seen) {
        if self.kept.is_some_and(|kept| now.running.saturating_sub(kept) < KEEP) {
            return;
        }
        self.kept = Some(now.running);
        if let Err(error) = replace(&self.file, format!("{}\n", text(now.wall)).as_bytes()) {
            tracing::warn!(%error, file = %self.file.display(), "cannot keep the time for the next start");
        }
    }
}

fn text(time: SystemTime) -> String {
    DateTime::<Utc>::from(time).to_rfc3339_opts(SecondsFormat::Secs, true)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::UNIX_EPOCH;

    use parking_lot::Mutex;

    use super::*;
    use crate::telemetry::metrics::Scope;

    /// A clock that is set by hand.
    #[derive(Clone)]
    struct Hands(Arc<Mutex<(Duration, Duration)>>);

    impl Hands {
        fn new() -> Self {
            Self(Arc::new(Mutex::new((DAY * 20_000, Duration::ZERO))))
        }

        fn clock(&self) -> Clock {
            let (wall, running) = (self.clone(), self.clone());
            Clock::set_by(move || UNIX_EPOCH + wall.0.lock().0, move || running.0.lock().1)
        }

        fn pass(&self, time: Duration) {
            let mut hands = self.0.lock();
            hands.0 += time;
            hands.1 += time;
        }

        fn ahead(&self, time: Duration) {
            self.0.lock().0 += time;
        }

        fn back(&self, time: Duration) {
            self.0.lock().0 -= time;
        }
    }

    struct Machine {
        hands: Hands,
        clock: Clock,
        metrics: Metrics,
        watch: Watch,
        dir: tempfile::TempDir,
    }

    impl Machine {
        fn new() -> Self {
            let dir = tempfile::tempdir().unwrap();
            let hands = Hands::new();
            let clock = hands.clock();
            let watch = Watch::open(dir.path(), &clock);
            let metrics = Metrics::new(&Scope::new());
            Self {
                hands,
                clock,
                metrics,
                watch,
                dir,
            }
        }

        fn look(&mut self) -> bool {
            self.watch.look(&self.clock, &self.metrics)
        }

        fn restart(&mut self) {
            self.watch = Watch::open(self.dir.path(), &self.clock);
        }
    }

    #[test]
    fn a_jump_of_days_is_believed_after_a_day_or_when_it_is_taken_back() {
        let mut machine = Machine::new();
        for _ in 0..100 {
            assert!(machine.look());
            machine.hands.pass(HOUR);
            // It is put right now and then.
            machine.hands.ahead(Duration::from_mins(1));
        }
        machine.hands.ahead(DAY * 2);
        assert!(!machine.look());
        machine.hands.back(DAY * 2);
        assert!(machine.look(), "it is back");
        machine.hands.ahead(DAY * 3000);
        for _ in 0..24 {
            assert!(!machine.look());
            machine.hands.pass(HOUR);
        }
        assert!(machine.look(), "it has run for a day");
        assert_eq!(machine.metrics.clock_jumps.get(), 2);
        assert_eq!(machine.metrics.clock_doubted.get(), 0);
    }

    #[test]
    fn another_jump_begins_another_day() {
        let mut machine = Machine::new();
        assert!(machine.look());
        machine.hands.ahead(DAY * 300);
        assert!(!machine.look());
        machine.hands.pass(HOUR * 23);
        machine.hands.ahead(DAY * 300);
        for _ in 0..24 {
            assert!(!machine.look());
            machine.hands.pass(HOUR);
        }
        assert!(machine.look());
        assert_eq!(machine.metrics.clock_jumps.get(), 2);
    }

    #[test]
    fn a_clock_that_was_late_may_come_back_at_once() {
        let mut machine = Machine::new();
        assert!(machine.look());
        machine.hands.back(DAY * 18_000);
        assert!(machine.look());
        machine.hands.pass(HOUR);
        assert!(machine.look());
        machine.hands.ahead(DAY * 18_000);
        assert!(
            machine.look(),
            "a machine without a battery asks for the time after its start"
        );
        assert_eq!(machine.metrics.clock_jumps.get(), 0);
        // Who puts it back for good is believed after a day, too: what is ahead is measured from there.
        machine.hands.back(DAY * 300);
        assert!(machine.look());
        machine.hands.pass(DAY);
        assert!(machine.look());
        machine.hands.ahead(DAY * 300);
        assert!(!machine.look());
    }

    #[test]
    fn after_a_start_the_time_of_the_last_process_counts() {
        let mut machine = Machine::new();
        assert!(machine.look());
        machine.hands.pass(DAY * 29);
        machine.restart();
        assert!(machine.look(), "it was away for a month");
        machine.restart();
        machine.hands.ahead(DAY * 31);
        assert!(!machine.look());
        // Another start changes nothing about it.
        machine.hands.pass(HOUR);
        machine.restart();
        assert!(!machine.look());
        machine.hands.pass(DAY);
        assert!(machine.look());
        machine.restart();
        assert!(machine.look());
        assert_eq!(machine.metrics.clock_jumps.get(), 2);
    }

    #[test]
    fn without_the_file_the_clock_is_believed_and_a_damaged_one_is_none() {
        let mut machine = Machine::new();
        assert!(machine.look());
        machine.hands.ahead(DAY * 300);
        fs::remove_file(machine.dir.path().join("CLOCK")).unwrap();
        machine.restart();
        assert!(machine.look());
        fs::write(machine.dir.path().join("CLOCK"), "\0\0").unwrap();
        machine.hands.ahead(DAY * 300);
        machine.restart();
        assert!(machine.look());
    }
}
