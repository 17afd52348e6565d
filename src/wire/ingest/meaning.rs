//! Meaning of the values in formats without types. The part of the application's name after its last dot determines the
//! meaning.
//!
//! In: the name and the sample rate of an upload. Out: [`Meaning`]. The known parts, such as `alloc_space`, and their
//! types are Pyroscope's. An upload with an unknown part is refused with status 422 and an error that names the part.

use crate::connect::ConnectError;
use crate::ingest::format::labels;
use crate::ingest::query::{DEFAULT_SAMPLE_RATE, IngestQuery};
use alluvium_profile::DecodedProfile;
use alluvium_profile::decoded::Columns;
use alluvium_profile::pprof::{Profile, ValueType};

const SECOND_NANOS: i64 = 1_000_000_000;

/// Ticks of a clock: part of the application's name, name of the profile, type of the values.
const CLOCKS: [(&str, &str, &str); 8] = [
    ("", "process_cpu", "cpu"),
    ("cpu", "process_cpu", "cpu"),
    ("itimer", "process_cpu", "cpu"),
    ("wall", "wall", "wall"),
    ("seconds", "wall", "wall"),
    ("milliseconds", "wall", "wall"),
    ("microseconds", "wall", "wall"),
    ("nanoseconds", "wall", "wall"),
];

/// All other values: part of the application's name, name of the profile, type and unit of the values.
const COUNTS: [(&str, &str, &str, &str); 18] = [
    ("inuse_objects", "memory", "inuse_objects", "count"),
    ("inuse_space", "memory", "inuse_space", "bytes"),
    ("alloc_objects", "memory", "alloc_objects", "count"),
    ("alloc_space", "memory", "alloc_space", "bytes"),
    (
        "alloc_in_new_tlab_objects",
        "memory",
        "alloc_in_new_tlab_objects",
        "count",
    ),
    ("alloc_in_new_tlab_bytes", "memory", "alloc_in_new_tlab_bytes", "bytes"),
    (
        "alloc_outside_tlab_objects",
        "memory",
        "alloc_outside_tlab_objects",
        "count",
    ),
    (
        "alloc_outside_tlab_bytes",
        "memory",
        "alloc_outside_tlab_bytes",
        "bytes",
    ),
    ("live", "memory", "live", "count"),
    ("bytes", "memory", "samples", "bytes"),
    ("goroutines", "goroutine", "goroutines", "count"),
    ("mutex_count", "mutex", "contentions", "count"),
    ("mutex_duration", "mutex", "delay", "nanoseconds"),
    ("block_count", "block", "contentions", "count"),
    ("block_duration", "block", "delay", "nanoseconds"),
    ("lock_count", "block", "contentions", "count"),
    ("lock_duration", "block", "delay", "nanoseconds"),
    ("exceptions", "exceptions", "samples", "count"),
];

/// Meaning of the values of a profile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Meaning {
    /// Application name without the part that determines the meaning.
    pub app: String,
    /// Value of the label `__name__`.
    pub name: &'static str,
    /// Type of the values, such as `cpu`.
    pub kind: &'static str,
    /// Unit of the values, such as `nanoseconds`.
    pub unit: &'static str,
    /// Nanoseconds between two ticks, if the values are ticks of a clock; 0 if the sample rate is 0.
    pub period: Option<i64>,
    /// Factor by which counts are multiplied.
    pub scale: i64,
}

impl Meaning {
    /// Returns the meaning of the values of the application `app`. An unknown part after its last dot is an error with
    /// status 422.
    pub(super) fn of(app: &str, query: &IngestQuery) -> Result<Self, ConnectError> {
        let (app, part) = app.rsplit_once('.').unwrap_or((app, ""));
        if let Some(&(_, name, kind)) = CLOCKS.iter().find(|(suffix, ..)| *suffix == part) {
            return Ok(Self::of_clock(app, name, kind, query));
        }
        let entry = COUNTS.iter().find(|(suffix, ..)| *suffix == part);
        let Some(&(_, name, kind, unit)) = entry else {
            return Err(ConnectError::invalid(format!("unknown profile type: {part}")).with_status(422));
        };
        Ok(Self {
            app: app.to_owned(),
            name,
            kind,
            unit,
            period: None,
            scale: 1,
        })
    }

    /// Returns true if the values are CPU time, because the application's name says so or names no quantity.
    pub(super) fn is_default(&self) -> bool {
        self.name == "process_cpu"
    }

    /// Returns the meaning of ticks at the sample rate of the query. With a rate of 0, they remain counts.
    fn of_clock(app: &str, name: &'static str, kind: &'static str, query: &IngestQuery) -> Self {
        let rate = i64::from(query.sample_rate.unwrap_or(DEFAULT_SAMPLE_RATE));
        let period = SECOND_NANOS.checked_div(rate);
        Self {
            app: app.to_owned(),
            name,
            kind: period.map_or("samples", |_| kind),
            unit: period.map_or("count", |_| "nanoseconds"),
            period: Some(period.unwrap_or(0)),
            scale: period.unwrap_or(1),
        }
    }

    /// Returns a profile without samples for values with this meaning, with the times of the query.
    pub(super) fn profile(&self, query: &IngestQuery) -> Profile<'static> {
        let mut profile = Profile {
            sample_types: vec![ValueType {
                kind: self.kind,
                unit: self.unit,
            }],
            time_nanos: query.from_nanos,
            duration_nanos: query.duration_nanos(),
            ..Profile::default()
        };
        if let Some(period) = self.period {
            profile.period = period;
            profile.period_type = ValueType {
                kind: "cpu",
                unit: "nanoseconds",
            };
        }
        profile
    }

    /// Adds the labels to columns of values with this meaning.
    pub(super) fn decoded(&self, query: &IngestQuery, columns: Columns) -> DecodedProfile {
        DecodedProfile {
            labels: labels(query, &self.app, self.name),
            id: "".into(),
            columns,
            pprof: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the service and the profile type for values of an application.
    fn meaning(app: &str, parameters: &str) -> Result<String, String> {
        let query = IngestQuery::parse(&format!("name={app}{parameters}"), 0).unwrap();
        let meaning = Meaning::of(&query.app, &query).map_err(|error| error.message)?;
        let period = meaning.profile(&query).period_type;
        let Meaning {
            app, name, kind, unit, ..
        } = &meaning;
        Ok(format!("{app} {name}:{kind}:{unit}:{}:{}", period.kind, period.unit))
    }

    #[test]
    fn the_part_after_the_last_dot_says_what_is_counted() {
        for (app, expected) in [
            ("shop", "shop process_cpu:cpu:nanoseconds:cpu:nanoseconds"),
            ("a.shop.cpu", "a.shop process_cpu:cpu:nanoseconds:cpu:nanoseconds"),
            ("shop.itimer", "shop process_cpu:cpu:nanoseconds:cpu:nanoseconds"),
            ("shop.wall", "shop wall:wall:nanoseconds:cpu:nanoseconds"),
            ("shop.seconds", "shop wall:wall:nanoseconds:cpu:nanoseconds"),
            ("shop.nanoseconds", "shop wall:wall:nanoseconds:cpu:nanoseconds"),
            ("shop.inuse_space", "shop memory:inuse_space:bytes::"),
            ("shop.alloc_objects", "shop memory:alloc_objects:count::"),
            (
                "shop.alloc_in_new_tlab_bytes",
                "shop memory:alloc_in_new_tlab_bytes:bytes::",
            ),
            (
                "shop.alloc_outside_tlab_objects",
                "shop memory:alloc_outside_tlab_objects:count::",
            ),
            ("shop.live", "shop memory:live:count::"),
            ("shop.bytes", "shop memory:samples:bytes::"),
            ("shop.goroutines", "shop goroutine:goroutines:count::"),
            ("shop.mutex_count", "shop mutex:contentions:count::"),
            ("shop.mutex_duration", "shop mutex:delay:nanoseconds::"),
            ("shop.block_count", "shop block:contentions:count::"),
            ("shop.block_duration", "shop block:delay:nanoseconds::"),
            ("shop.lock_count", "shop block:contentions:count::"),
            ("shop.lock_duration", "shop block:delay:nanoseconds::"),
            ("shop.exceptions", "shop exceptions:samples:count::"),
        ] {
            assert_eq!(meaning(app, "").as_deref(), Ok(expected), "{app}");
            // Units and aggregations are accepted and ignored, as in Pyroscope.
            let ignored_parameters = "&units=lock_nanoseconds&aggregationType=average";
            assert_eq!(meaning(app, ignored_parameters).as_deref(), Ok(expected), "{app}");
        }
        assert_eq!(meaning("shop.api", "").unwrap_err(), "unknown profile type: api");
    }

    #[test]
    fn ticks_stand_for_a_period_unless_the_rate_is_0() {
        for (rate, kind, period, scale) in [
            ("", "cpu", 10_000_000, 10_000_000),
            ("&sampleRate=x", "cpu", 10_000_000, 10_000_000),
            ("&sampleRate=-5", "cpu", 10_000_000, 10_000_000),
            ("&sampleRate=1000", "cpu", 1_000_000, 1_000_000),
            ("&sampleRate=0", "samples", 0, 1),
        ] {
            let query = IngestQuery::parse(&format!("name=shop{rate}"), 0).unwrap();
            let meaning = Meaning::of(&query.app, &query).unwrap();
            assert_eq!(
                (meaning.kind, meaning.period, meaning.scale),
                (kind, Some(period), scale),
                "{rate}"
            );
        }
        let query = IngestQuery::parse("name=shop.alloc_space&sampleRate=1000", 0).unwrap();
        let meaning = Meaning::of(&query.app, &query).unwrap();
        assert_eq!((meaning.period, meaning.scale), (None, 1));
    }
}
