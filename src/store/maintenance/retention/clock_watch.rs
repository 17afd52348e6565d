//! Guards deletion by age against a wrong wall clock.
//!
//! If the clock is far ahead for only an hour (an empty battery, a bad time server, a typing error), all profiles look
//! old for that hour, and a deletion cannot be undone. The wall clock is therefore compared with an anchor: a trusted
//! time that advances with the monotonic clock. Small steps of the wall clock add up, because the anchor follows it by
//! at most an hour a day. The anchor survives a restart in the file `CLOCK` of the data folder, together with the time
//! since the boot of the system. After a boot, the wall clock can be compared only with the time in the file. After a
//! jump forward, nothing is deleted by age until the clock is correct again, or has run for a day without another jump.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use chrono::{DateTime, SecondsFormat, Utc};

use crate::store::common::clock::Clock;
use crate::store::common::metrics::Metrics;
use alluvium_base::boot::SinceBoot;
use alluvium_base::file::replace;

const HOUR: Duration = Duration::from_hours(1);
const DAY: Duration = Duration::from_hours(24);
/// Maximum distance of the clock from the expected time.
const MAX_DEVIATION: Duration = DAY;
/// Maximum time that a machine is assumed to have been off.
const MAX_OFF_TIME: Duration = DAY.saturating_mul(30);
/// Time that a clock must run without another jump to be trusted again.
const TRUST_DELAY: Duration = DAY;
/// Interval between writes of the time to `CLOCK`.
const WRITE_INTERVAL: Duration = HOUR;
/// In this many hours, the anchor moves toward the wall clock by at most one hour. That is an hour a day. Without a
/// jump, a time server corrects a clock by less than that.
const FOLLOWED: u32 = 24;

pub(crate) struct ClockWatch {
    file: PathBuf,
    /// The anchor: a trusted time, with its monotonic time.
    anchor: Option<ClockReading>,
    /// First reading after a jump. The clock has not jumped again since this reading.
    first_after_jump: Option<ClockReading>,
    /// Monotonic time of the last write to `CLOCK`.
    written_at: Option<Duration>,
}

#[derive(Debug, Clone, Copy)]
struct ClockReading {
    wall: SystemTime,
    /// The monotonic time of the reading.
    running: Duration,
    /// How far a later reading may be ahead of the expected time.
    tolerance: Duration,
}

/// Position of a later reading relative to the expected time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReadingPosition {
    Expected,
    Ahead,
    Behind,
}

impl ClockReading {
    fn expected(&self, running: Duration) -> SystemTime {
        self.wall + running.saturating_sub(self.running)
    }

    fn position_of(&self, later: &Self) -> ReadingPosition {
        let expected = self.expected(later.running);
        if lead(later.wall, expected) > self.tolerance {
            ReadingPosition::Ahead
        } else if lead(expected, later.wall) > MAX_DEVIATION {
            ReadingPosition::Behind
        } else {
            ReadingPosition::Expected
        }
    }

    /// Returns the anchor at the time of `later`, which must be a reading close to the expected time.
    fn followed_by(&self, later: Self) -> Self {
        if self.tolerance > MAX_DEVIATION {
            // The machine may have been off, so only the wall clock shows the present time.
            return later;
        }
        let expected = self.expected(later.running);
        let max = later.running.saturating_sub(self.running) / FOLLOWED;
        let wall = expected + lead(later.wall, expected).min(max) - lead(expected, later.wall).min(max);
        Self { wall, ..later }
    }
}

/// Returns how far `one` is ahead of `other`.
fn lead(one: SystemTime, other: SystemTime) -> Duration {
    one.duration_since(other).unwrap_or_default()
}

impl ClockWatch {
    /// Reads the time that an earlier process stored. Without the file, the clock is trusted.
    pub(crate) fn open(dir: &Path, clock: &Clock) -> Self {
        let file = dir.join("CLOCK");
        let stored_anchor = match fs::read_to_string(&file) {
            Ok(text) => anchor(&text, clock)
                .inspect_err(
                    |error| tracing::warn!(%error, file = %file.display(), "cannot parse the last trusted time"),
                )
                .ok(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => {
                tracing::warn!(%error, file = %file.display(), "cannot read the last trusted time");
                None
            }
        };
        Self {
            file,
            anchor: stored_anchor,
            first_after_jump: None,
            written_at: None,
        }
    }

    /// Checks the clock. Returns true if data may be deleted by its age.
    pub(crate) fn check(&mut self, clock: &Clock, metrics: &Metrics) -> bool {
        let now = ClockReading {
            wall: clock.now(),
            running: clock.running(),
            tolerance: MAX_DEVIATION,
        };
        let position = self
            .anchor
            .map_or(ReadingPosition::Expected, |anchor| anchor.position_of(&now));
        let settled = self.first_after_jump.is_some_and(|reading| {
            reading.position_of(&now) == ReadingPosition::Expected
                && now.running.saturating_sub(reading.running) >= TRUST_DELAY
        });
        if position == ReadingPosition::Expected || settled {
            if self.first_after_jump.take().is_some() {
                self.written_at = None;
                tracing::info!(now = text(now.wall), "the clock is trusted again");
            }
            let anchor = self
                .anchor
                .filter(|_| !settled)
                .map_or(now, |anchor| anchor.followed_by(now));
            self.anchor = Some(anchor);
            self.write_anchor(anchor, clock);
        } else if self
            .first_after_jump
            .is_none_or(|reading| reading.position_of(&now) != ReadingPosition::Expected)
        {
            self.first_after_jump = Some(now);
            if let Some(believed) = self.anchor.filter(|_| position == ReadingPosition::Ahead) {
                metrics.clock_jumps.inc();
                tracing::warn!(
                    expected = text(believed.expected(now.running)),
                    now = text(now.wall),
                    hours = TRUST_DELAY.as_secs() / 3600,
                    "the clock has jumped: nothing is deleted or downsampled by age until the clock is correct again, \
                        or has run without another jump for the time in `hours`"
                );
            }
        }
        // A clock that is behind makes nothing look too old.
        let may_delete = position != ReadingPosition::Ahead || settled;
        metrics.clock_doubted.set(i64::from(!may_delete));
        may_delete
    }

    /// Stores the anchor for the next process, once per [`WRITE_INTERVAL`].
    fn write_anchor(&mut self, now: ClockReading, clock: &Clock) {
        if self
            .written_at
            .is_some_and(|time| now.running.saturating_sub(time) < WRITE_INTERVAL)
        {
            return;
        }
        self.written_at = Some(now.running);
        let boot = clock.since_boot().map(|boot| boot.text()).unwrap_or_default();
        if let Err(error) = replace(&self.file, format!("{}\n{boot}\n", text(now.wall)).as_bytes()) {
            tracing::warn!(%error, file = %self.file.display(), "cannot store the time for the next start");
        }
    }
}

/// Returns the anchor that an earlier process left. The anchor is exact if the system has not been booted since.
fn anchor(text: &str, clock: &Clock) -> Result<ClockReading, chrono::ParseError> {
    let mut lines = text.lines();
    let wall: SystemTime = DateTime::parse_from_rfc3339(lines.next().unwrap_or_default().trim())?.into();
    let boot = lines.next().and_then(SinceBoot::parse);
    let time_off = boot.and_then(|stored| clock.since_boot()?.since(&stored));
    Ok(ClockReading {
        wall: wall + time_off.unwrap_or_default(),
        running: clock.running(),
        tolerance: if time_off.is_some() {
            MAX_DEVIATION
        } else {
            MAX_OFF_TIME
        },
    })
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
    use alluvium_telemetry::metrics::Scope;

    /// A clock that the test sets.
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

        /// Returns the clock of a machine that knows the time since its boot.
        fn clock_of_boot(&self, id: &'static str) -> Clock {
            let hands = self.clone();
            self.clock().with_boot(move || SinceBoot {
                id: id.to_owned(),
                time: hands.0.lock().1,
            })
        }

        fn pass(&self, time: Duration) {
            let mut hands = self.0.lock();
            hands.0 += time;
            hands.1 += time;
        }

        fn set_ahead(&self, time: Duration) {
            self.0.lock().0 += time;
        }

        fn set_back(&self, time: Duration) {
            self.0.lock().0 -= time;
        }
    }

    struct Machine {
        hands: Hands,
        clock: Clock,
        metrics: Metrics,
        watch: ClockWatch,
        dir: tempfile::TempDir,
    }

    impl Machine {
        fn new() -> Self {
            let dir = tempfile::tempdir().unwrap();
            let hands = Hands::new();
            let clock = hands.clock();
            let watch = ClockWatch::open(dir.path(), &clock);
            let metrics = Metrics::new(&Scope::new());
            Self {
                hands,
                clock,
                metrics,
                watch,
                dir,
            }
        }

        fn of_boot(id: &'static str) -> Self {
            let mut machine = Self::new();
            machine.clock = machine.hands.clock_of_boot(id);
            machine
        }

        fn check(&mut self) -> bool {
            self.watch.check(&self.clock, &self.metrics)
        }

        fn restart(&mut self) {
            self.watch = ClockWatch::open(self.dir.path(), &self.clock);
        }
    }

    #[test]
    fn a_jump_of_days_is_believed_after_a_day_or_when_it_is_taken_back() {
        let mut machine = Machine::new();
        for _ in 0..100 {
            assert!(machine.check());
            machine.hands.pass(HOUR);
            // A time server corrects the clock now and then.
            machine.hands.set_ahead(Duration::from_mins(1));
        }
        machine.hands.set_ahead(DAY * 2);
        assert!(!machine.check());
        machine.hands.set_back(DAY * 2);
        assert!(machine.check(), "refused although the clock is correct again");
        machine.hands.set_ahead(DAY * 3000);
        for _ in 0..24 {
            assert!(!machine.check());
            machine.hands.pass(HOUR);
        }
        assert!(
            machine.check(),
            "refused although the clock has run for a day without a jump"
        );
        assert_eq!(machine.metrics.clock_jumps.get(), 2);
        assert_eq!(machine.metrics.clock_doubted.get(), 0);
    }

    #[test]
    fn small_jumps_add_up() {
        let mut machine = Machine::new();
        assert!(machine.check());
        let mut results = Vec::new();
        for _ in 0..6 {
            machine.hands.pass(Duration::from_secs(10));
            machine.hands.set_ahead(HOUR * 20);
            results.push(machine.check());
        }
        assert_eq!(results, [true, false, false, false, false, false]);
        assert!(machine.metrics.clock_jumps.get() > 0);
        machine.hands.set_back(HOUR * 100);
        assert!(machine.check(), "refused although the clock is only 20 hours ahead");
    }

    #[test]
    fn small_jumps_add_up_over_restarts_as_long_as_the_system_runs() {
        let mut machine = Machine::of_boot("first");
        assert!(machine.check());
        machine.hands.set_ahead(HOUR * 20);
        for _ in 0..3 {
            machine.restart();
            machine.hands.pass(Duration::from_secs(10));
            assert!(machine.check(), "refused although the clock is only 20 hours ahead");
        }
        machine.hands.set_ahead(HOUR * 20);
        machine.restart();
        assert!(!machine.check());
        machine.hands.set_back(HOUR * 20);
        assert!(machine.check());
        // The machine was not off, as the time since the boot shows.
        machine.restart();
        machine.hands.set_ahead(DAY * 20);
        assert!(!machine.check());
        machine.hands.set_back(DAY * 20);
        machine.restart();
        machine.hands.pass(DAY * 50);
        assert!(
            machine.check(),
            "refused although the same time has passed since the boot"
        );
        // After another boot, nothing shows how long the machine was off.
        machine.clock = machine.hands.clock_of_boot("second");
        machine.restart();
        machine.hands.set_ahead(DAY * 20);
        assert!(machine.check());
        machine.hands.set_ahead(HOUR * 25);
        assert!(!machine.check());
    }

    #[test]
    fn a_clock_that_is_a_little_fast_is_followed() {
        let mut machine = Machine::new();
        for _ in 0..24 * 60 {
            assert!(machine.check());
            machine.hands.pass(HOUR);
            machine.hands.set_ahead(Duration::from_mins(2));
        }
        assert_eq!(machine.metrics.clock_jumps.get(), 0);
    }

    #[test]
    fn another_jump_begins_another_day() {
        let mut machine = Machine::new();
        assert!(machine.check());
        machine.hands.set_ahead(DAY * 300);
        assert!(!machine.check());
        machine.hands.pass(HOUR * 23);
        machine.hands.set_ahead(DAY * 300);
        for _ in 0..24 {
            assert!(!machine.check());
            machine.hands.pass(HOUR);
        }
        assert!(machine.check());
        assert_eq!(machine.metrics.clock_jumps.get(), 2);
    }

    #[test]
    fn a_clock_that_was_late_may_come_back_at_once() {
        let mut machine = Machine::new();
        assert!(machine.check());
        machine.hands.set_back(DAY * 18_000);
        assert!(machine.check());
        machine.hands.pass(HOUR);
        assert!(machine.check());
        machine.hands.set_ahead(DAY * 18_000);
        assert!(
            machine.check(),
            "a machine without a battery gets the time after its start"
        );
        assert_eq!(machine.metrics.clock_jumps.get(), 0);
        // A clock that is set back for good is also trusted after a day. A later jump is measured from the new time.
        machine.hands.set_back(DAY * 300);
        assert!(machine.check());
        machine.hands.pass(DAY);
        assert!(machine.check());
        machine.hands.set_ahead(DAY * 300);
        assert!(!machine.check());
    }

    #[test]
    fn after_a_start_the_time_of_the_last_process_counts() {
        let mut machine = Machine::new();
        assert!(machine.check());
        machine.hands.pass(DAY * 29);
        machine.restart();
        assert!(
            machine.check(),
            "refused although the machine may have been off for 29 days"
        );
        machine.restart();
        machine.hands.set_ahead(DAY * 31);
        assert!(!machine.check());
        // Another start does not change this.
        machine.hands.pass(HOUR);
        machine.restart();
        assert!(!machine.check());
        machine.hands.pass(DAY);
        assert!(machine.check());
        machine.restart();
        assert!(machine.check());
        assert_eq!(machine.metrics.clock_jumps.get(), 2);
    }

    #[test]
    fn without_the_file_the_clock_is_believed_and_a_damaged_one_is_none() {
        let mut machine = Machine::new();
        assert!(machine.check());
        machine.hands.set_ahead(DAY * 300);
        fs::remove_file(machine.dir.path().join("CLOCK")).unwrap();
        machine.restart();
        assert!(machine.check());
        fs::write(machine.dir.path().join("CLOCK"), "\0\0").unwrap();
        machine.hands.set_ahead(DAY * 300);
        machine.restart();
        assert!(machine.check());
    }
}
