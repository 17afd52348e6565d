//! Arguments of `pyroscope.scrape`, and the settings made of them: which profiles are taken, and how.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::components::common::arguments::targets::Targets;
use crate::components::common::http::client::HttpClientArguments;
use crate::components::common::passing::fanout::Receivers;
use crate::lang::argument_error::{ArgumentError, ArgumentErrors};
use crate::lang::attribute::{ByteSize, Interval, Natural, choices};
use crate::lang::body::{FromBody, Labelled, arguments};
use crate::lang::schema::{Arguments, Schema};

/// The default of `delta_profiling_duration`; given or not, it means "one second less than the interval".
const DEFAULT_DELTA_DURATION: Duration = Duration::from_secs(14);
const SECOND: Duration = Duration::from_secs(1);

arguments! {
    /// Arguments of `pyroscope.scrape`.
    pub(crate) struct ScrapeArguments {
        /// Receivers of the profiles.
        forward_to: Receivers,
        /// Targets whose profiles are fetched.
        targets: Targets,
    }
    shared { settings: Arc<Settings> }
}

arguments! {
    /// Everything but targets and receivers, as it is written.
    struct SettingsArguments {
        /// How long a profile that is taken over a time is taken; the default means one second less than
        /// scrape_interval.
        delta_profiling_duration: Duration = "14s",
        /// Value of the label job; there is no such label when it is empty.
        job_name: Arc<str> = "",
        /// Query parameters of every request.
        params: BTreeMap<Arc<str>, Vec<Arc<str>>> = {},
        /// http or https; a target's label __scheme__ goes before.
        scheme: Scheme = "http",
        /// Time from one scrape of a target to the next.
        scrape_interval: Interval = "15s",
        /// Longest time of a scrape; profiles that are taken over a time get that time on top.
        scrape_timeout: Interval = "10s",
    }
    blocks {
        /// Sharing of targets among the collectors of a cluster.
        clustering: Option<Clustering>,
        /// Bounds of what targets may bring (not in Alloy).
        limits: Limits,
        /// Which profiles are taken from a target.
        profiling_config: ProfilingConfig,
    }
    shared { client: HttpClientArguments }
    check SettingsArguments::check;
}

choices! {
    /// The scheme of the URLs of targets that name none.
    enum Scheme {
        Http = "http",
        Https = "https",
    }
}

arguments! {
    /// The body of `clustering { }`.
    struct Clustering {
        /// Whether targets are shared; a collector that runs without --cluster.enabled scrapes all.
        enabled: bool,
    }
}

arguments! {
    /// The body of `limits { }`.
    pub(super) struct Limits {
        /// Bytes of the largest profile, as it comes; a larger one is not forwarded.
        max_profile_bytes: ByteSize = "64MiB",
        /// Most samples of a profile; one with more is not forwarded. 0 is any number.
        max_profile_samples: Natural = 0,
        /// Most targets that are scraped here, the first of the list; 0 is any number.
        max_targets: Natural = 0,
    }
    check Limits::check;
}

arguments! {
    /// The body of `profiling_config { }`.
    struct ProfilingConfig {
        /// Put before the path of every profile; a target's label __profile_path_prefix__ goes before.
        path_prefix: Arc<str> = "",
    }
    blocks {
        /// Waiting on channels and locks.
        block as "profile.block": Profile { path = "/debug/pprof/block" },
        /// A profile of another kind; the label is its name.
        custom as "profile.custom": Vec<Labelled<CustomProfile>>,
        /// Wall-clock time, by fgprof.
        fgprof as "profile.fgprof": Profile { delta = true, enabled = false, path = "/debug/fgprof" },
        /// Waiting on channels and locks since the last scrape, by godeltaprof.
        godeltaprof_block as "profile.godeltaprof_block":
            Profile { enabled = false, path = "/debug/pprof/delta_block" },
        /// Allocations since the last scrape, by godeltaprof.
        godeltaprof_memory as "profile.godeltaprof_memory":
            Profile { enabled = false, path = "/debug/pprof/delta_heap" },
        /// Contention of locks since the last scrape, by godeltaprof.
        godeltaprof_mutex as "profile.godeltaprof_mutex":
            Profile { enabled = false, path = "/debug/pprof/delta_mutex" },
        /// Stacks of all goroutines.
        goroutine as "profile.goroutine": Profile { path = "/debug/pprof/goroutine" },
        /// Allocations and live memory.
        memory as "profile.memory": Profile { path = "/debug/pprof/allocs" },
        /// Contention of locks, by mutex.
        mutex as "profile.mutex": Profile { path = "/debug/pprof/mutex" },
        /// CPU time by function and line.
        process_cpu as "profile.process_cpu": Profile { delta = true, path = "/debug/pprof/profile" },
        /// Stacks that led to new threads of the system (not in Alloy).
        threadcreate as "profile.threadcreate": Profile { enabled = false, path = "/debug/pprof/threadcreate" },
    }
}

arguments! {
    /// The body of `profile.KIND { }`.
    struct Profile {
        /// Whether the profile is taken over a time, asked for by the parameter seconds.
        delta: bool = false,
        /// Whether the profile is taken.
        enabled: bool = true,
        /// Path of the profile in the target's URL.
        path: Arc<str> = "",
    }
}

arguments! {
    /// The body of `profile.custom "NAME" { }`.
    struct CustomProfile {
        /// Whether the profile is taken over a time, asked for by the parameter seconds.
        delta: bool = false,
        /// Whether the profile is taken.
        enabled: bool,
        /// Path of the profile in the target's URL.
        path: Arc<str>,
    }
}

/// One kind of profile that is taken.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ProfileKind {
    /// Name of the block after `profile.`, or the label of a custom one: tells two kinds apart.
    pub kind: Arc<str>,
    /// Value of the label `__name__`.
    pub name: Arc<str>,
    /// Path of the profile in the target's URL.
    pub path: Arc<str>,
    /// Whether it is taken over a time.
    pub delta: bool,
    /// Counts since the start of the process, so that differences are sent.
    pub cumulative: bool,
    /// The profile that is sent is an increase, computed here or by the target: the server must not take differences
    /// again.
    pub increase: bool,
}

/// Whether a kind is taken of targets that name no kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Enabled {
    Yes,
    No,
}

/// Everything but targets and receivers.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Settings {
    /// Whether targets are shared among the collectors of a cluster.
    pub(super) is_clustered: bool,
    /// Value of the label job, may be empty.
    pub(crate) job_name: Arc<str>,
    /// Query parameters of every request.
    pub(crate) params: BTreeMap<Arc<str>, Vec<Arc<str>>>,
    /// Time from one scrape of a target to the next.
    pub(crate) interval: Duration,
    /// Longest time of a scrape.
    pub(crate) timeout: Duration,
    /// How long a delta profile is taken.
    pub(crate) delta_duration: Duration,
    /// Scheme of URLs: `http` or `https`.
    pub(crate) scheme: &'static str,
    /// Bounds on what targets may send.
    pub(super) limits: Limits,
    /// How targets are reached.
    pub(crate) client: HttpClientArguments,
    /// Prefix of the path of every profile.
    pub(crate) path_prefix: Arc<str>,
    /// Profiles to take where a target names none, sorted by kind.
    pub(crate) kinds: Vec<ProfileKind>,
    /// Profiles that are taken only of targets that name them, sorted by kind.
    pub(crate) other_kinds: Vec<ProfileKind>,
}

impl FromBody for Settings {
    const SCHEMA: &'static Schema = SettingsArguments::SCHEMA;

    fn from_body(body: &Arguments) -> Result<Self, ArgumentErrors> {
        let arguments = SettingsArguments::from_body(body)?;
        let interval = arguments.scrape_interval.get();
        let delta_duration = match arguments.delta_profiling_duration {
            DEFAULT_DELTA_DURATION => interval.saturating_sub(SECOND),
            other => other,
        };
        Ok(Self {
            kinds: arguments.profiling_config.kinds(Enabled::Yes),
            other_kinds: arguments.profiling_config.kinds(Enabled::No),
            is_clustered: arguments.clustering.is_some_and(|clustering| clustering.enabled),
            job_name: arguments.job_name,
            params: arguments.params,
            interval,
            timeout: arguments.scrape_timeout.get(),
            delta_duration,
            scheme: match arguments.scheme {
                Scheme::Http => "http",
                Scheme::Https => "https",
            },
            limits: arguments.limits,
            client: arguments.client,
            path_prefix: arguments.profiling_config.path_prefix,
        })
    }
}

impl Limits {
    /// Bytes of the largest profile.
    pub(super) fn profile_bytes(&self) -> usize {
        usize::try_from(self.max_profile_bytes.get()).unwrap_or(usize::MAX)
    }

    /// Most samples of a profile, if there is a bound.
    pub(super) fn profile_samples(&self) -> Option<u64> {
        Some(self.max_profile_samples.get()).filter(|limit| *limit > 0)
    }

    /// Most targets, if there is a bound.
    pub(super) fn targets(&self) -> Option<usize> {
        let limit = Some(self.max_targets.get()).filter(|limit| *limit > 0)?;
        usize::try_from(limit).ok()
    }

    fn check(&self) -> Result<(), ArgumentError> {
        match self.max_profile_bytes.get() {
            0 => Err(ArgumentError::new(
                "max_profile_bytes",
                "max_profile_bytes must be greater than 0",
            )),
            _ => Ok(()),
        }
    }
}

impl Settings {
    /// Longest time of a request for a profile of this kind.
    pub(crate) fn deadline(&self, kind: &ProfileKind) -> Duration {
        if kind.delta {
            self.timeout + self.interval.saturating_sub(SECOND).max(self.delta_duration)
        } else {
            self.timeout
        }
    }
}

impl SettingsArguments {
    /// Checks times and kinds together, as Alloy does.
    fn check(&self) -> Result<(), ArgumentError> {
        let error = |path: &str, message: &str| Err(ArgumentError::new(path, message));
        let has_delta = self.profiling_config.kinds(Enabled::Yes).iter().any(|kind| kind.delta);
        let (interval, duration) = (self.scrape_interval.get(), self.delta_profiling_duration);
        if !has_delta {
            return Ok(());
        }
        if interval < 2 * SECOND {
            let message = "scrape_interval must be at least 2 seconds when using delta profiling";
            return error("scrape_interval", message);
        }
        if duration <= SECOND {
            let message = "delta_profiling_duration must be larger than 1 second when using delta profiling";
            return error("delta_profiling_duration", message);
        }
        if duration != DEFAULT_DELTA_DURATION && duration > interval.saturating_sub(SECOND) {
            let message = "delta_profiling_duration must be at least 1 second smaller than scrape_interval when using \
                delta profiling";
            return error("delta_profiling_duration", message);
        }
        Ok(())
    }
}

impl ProfilingConfig {
    /// The kinds that are enabled, or those that are not, sorted.
    fn kinds(&self, wanted: Enabled) -> Vec<ProfileKind> {
        let is_wanted = |enabled: bool| enabled == (wanted == Enabled::Yes);
        let named = [
            ("block", &self.block),
            ("fgprof", &self.fgprof),
            ("godeltaprof_block", &self.godeltaprof_block),
            ("godeltaprof_memory", &self.godeltaprof_memory),
            ("godeltaprof_mutex", &self.godeltaprof_mutex),
            ("goroutine", &self.goroutine),
            ("memory", &self.memory),
            ("mutex", &self.mutex),
            ("process_cpu", &self.process_cpu),
            ("threadcreate", &self.threadcreate),
        ];
        let named = named.into_iter().filter(|(_, profile)| is_wanted(profile.enabled));
        let named = named.map(|(kind, profile)| {
            let is_counted = matches!(kind, "memory" | "mutex" | "block");
            let own_delta = kind.strip_prefix("godeltaprof_");
            ProfileKind {
                kind: kind.into(),
                name: own_delta.unwrap_or(kind).into(),
                path: profile.path.clone(),
                delta: profile.delta,
                // A Go program that is asked for a duration returns the increase over it.
                cumulative: is_counted && !profile.delta,
                increase: is_counted || own_delta.is_some(),
            }
        });
        let custom = self.custom.iter().filter(|custom| is_wanted(custom.body.enabled));
        let custom = custom.map(|Labelled { label, body }| ProfileKind {
            kind: label.clone(),
            name: label.clone(),
            path: body.path.clone(),
            delta: body.delta,
            cumulative: false,
            increase: false,
        });
        let mut kinds: Vec<ProfileKind> = named.chain(custom).collect();
        kinds.sort_by(|left, right| left.kind.cmp(&right.kind));
        kinds
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::components::common::testing::{Body, receivers, targets};
    use crate::components::pyroscope::scrape::DEFINITION;
    use crate::lang::value::Value;

    fn settings(body: Body) -> Result<Arc<Settings>, String> {
        let body = body.with("targets", targets(&[])).with("forward_to", receivers([]));
        body.read(&DEFINITION).map(|arguments| arguments.settings.clone())
    }

    #[test]
    fn defaults_are_alloys() {
        let settings = settings(Body::new()).unwrap();
        let kinds: Vec<String> = settings
            .kinds
            .iter()
            .map(|kind| format!("{} {} {} {}", kind.kind, kind.name, kind.path, kind.delta))
            .collect();
        assert_eq!(
            kinds,
            [
                "block block /debug/pprof/block false",
                "goroutine goroutine /debug/pprof/goroutine false",
                "memory memory /debug/pprof/allocs false",
                "mutex mutex /debug/pprof/mutex false",
                "process_cpu process_cpu /debug/pprof/profile true",
            ]
        );
        assert_eq!(settings.interval, Duration::from_secs(15));
        assert_eq!(settings.timeout, Duration::from_secs(10));
        assert_eq!(settings.delta_duration, Duration::from_secs(14));
        assert_eq!(settings.deadline(&settings.kinds[0]), Duration::from_secs(10));
        assert_eq!(settings.deadline(&settings.kinds[4]), Duration::from_secs(24));
    }

    #[test]
    fn kinds_are_switched_renamed_and_added() {
        let custom = Body::new()
            .with("enabled", Value::Bool(true))
            .text("path", "/x")
            .with("delta", Value::Bool(true));
        let config = Body::new()
            .block("profile.memory", Body::new().with("enabled", Value::Bool(false)))
            .block(
                "profile.godeltaprof_memory",
                Body::new().with("enabled", Value::Bool(true)),
            )
            .labelled("profile.custom", "mine", custom);
        let settings = settings(Body::new().block("profiling_config", config)).unwrap();
        let find = |kind: &str| settings.kinds.iter().find(|other| other.kind.as_ref() == kind);
        assert!(find("memory").is_none());
        let godeltaprof = find("godeltaprof_memory").unwrap();
        assert_eq!(
            (godeltaprof.name.as_ref(), godeltaprof.path.as_ref()),
            ("memory", "/debug/pprof/delta_heap")
        );
        assert!(!godeltaprof.cumulative);
        assert!(find("mine").unwrap().delta);
    }

    #[test]
    fn times_that_do_not_fit_are_refused() {
        assert_eq!(
            settings(Body::new().text("scrape_interval", "5s"))
                .unwrap()
                .delta_duration,
            Duration::from_secs(4)
        );
        for (body, start) in [
            (Body::new().text("scrape_timeout", "0s"), "scrape_timeout: "),
            (Body::new().text("scrape_interval", "1s"), "scrape_interval: "),
            (
                Body::new().text("delta_profiling_duration", "1s"),
                "delta_profiling_duration: ",
            ),
            (
                Body::new().text("delta_profiling_duration", "15s"),
                "delta_profiling_duration: ",
            ),
            (Body::new().text("scheme", "ftp"), "scheme: "),
        ] {
            let message = settings(body).unwrap_err();
            assert!(message.starts_with(start), "{message}");
        }
    }
}
