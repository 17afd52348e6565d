//! Arguments of `pyroscope.scrape`, and the settings made from them: which profiles to scrape, and how.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::common::arguments::targets::Targets;
use crate::common::http::client::HttpClientArguments;
use crate::common::passing::fanout::Receivers;
use alluvium_lang::argument_error::{ArgumentError, ArgumentErrors};
use alluvium_lang::attribute::{ByteSize, Interval, Natural, choices};
use alluvium_lang::body::{FromBody, Labelled, arguments};
use alluvium_lang::schema::{Arguments, Schema};

/// The default of `delta_profiling_duration`. This value means "one second less than the interval", even if a user
/// writes it.
const DEFAULT_DELTA_DURATION: Duration = Duration::from_secs(14);
const SECOND: Duration = Duration::from_secs(1);

arguments! {
    /// Arguments of `pyroscope.scrape`.
    pub(crate) struct ScrapeArguments {
        /// Receivers of the profiles.
        forward_to: Receivers,
        /// Targets to scrape profiles from.
        targets: Targets,
    }
    shared { settings: Arc<Settings> }
}

arguments! {
    /// All arguments except targets and receivers, as written in the configuration.
    struct SettingsArguments {
        /// Duration of profiles that are recorded over time. The default means one second less than
        /// scrape_interval.
        delta_profiling_duration: Duration = "14s",
        /// Value of the label job. If empty, the label is not set.
        job_name: Arc<str> = "",
        /// Query parameters of every request.
        params: BTreeMap<Arc<str>, Vec<Arc<str>>> = {},
        /// Scheme of the URLs: http or https. A target's label `__scheme__` takes precedence.
        scheme: Scheme = "http",
        /// Time between two scrapes of a target.
        scrape_interval: Interval = "15s",
        /// Timeout of a scrape. If the target records the profile over time, the timeout is longer by scrape_interval
        /// minus one second, or by delta_profiling_duration if that is longer.
        scrape_timeout: Interval = "10s",
    }
    blocks {
        /// Sharing of targets among the collectors of a cluster.
        clustering: Option<Clustering>,
        /// Limits for profiles and targets (not in Alloy).
        limits: Limits,
        /// Kinds of profiles to scrape from a target.
        profiling_config: ProfilingConfig,
    }
    shared { client: HttpClientArguments }
    check SettingsArguments::check;
}

choices! {
    /// The scheme of the URLs of targets without the label `__scheme__`.
    enum Scheme {
        Http = "http",
        Https = "https",
    }
}

arguments! {
    /// The body of `clustering { }`.
    struct Clustering {
        /// If true, the collectors of a cluster share the targets. Without --cluster.enabled, a collector scrapes all
        /// targets.
        enabled: bool,
    }
}

arguments! {
    /// The body of `limits { }`.
    pub(super) struct Limits {
        /// Maximum size of a profile in bytes, as received. A larger profile is dropped.
        max_profile_bytes: ByteSize = "64MiB",
        /// Maximum number of samples of a profile. A profile with more samples is dropped. 0 means no limit.
        max_profile_samples: Natural = 0,
        /// Maximum number of targets to scrape. If there are more, only the first targets, up to this number, are
        /// scraped. 0 means no limit.
        max_targets: Natural = 0,
    }
    check Limits::check;
}

arguments! {
    /// The body of `profiling_config { }`.
    struct ProfilingConfig {
        /// Prefix of the path of every profile. A target's label `__profile_path_prefix__` takes precedence.
        path_prefix: Arc<str> = "",
    }
    blocks {
        /// Time that goroutines are blocked on channels and locks.
        block as "profile.block": Profile { path = "/debug/pprof/block" },
        /// A profile of another kind. The label of the block is the name of the kind.
        custom as "profile.custom": Vec<Labelled<CustomProfile>>,
        /// Wall-clock time, recorded by fgprof.
        fgprof as "profile.fgprof": Profile { delta = true, enabled = false, path = "/debug/fgprof" },
        /// Time blocked on channels and locks since the last scrape, recorded by godeltaprof.
        godeltaprof_block as "profile.godeltaprof_block":
            Profile { enabled = false, path = "/debug/pprof/delta_block" },
        /// Allocations since the last scrape, recorded by godeltaprof.
        godeltaprof_memory as "profile.godeltaprof_memory":
            Profile { enabled = false, path = "/debug/pprof/delta_heap" },
        /// Lock contention since the last scrape, recorded by godeltaprof.
        godeltaprof_mutex as "profile.godeltaprof_mutex":
            Profile { enabled = false, path = "/debug/pprof/delta_mutex" },
        /// Stacks of all goroutines.
        goroutine as "profile.goroutine": Profile { path = "/debug/pprof/goroutine" },
        /// Allocations and live memory.
        memory as "profile.memory": Profile { path = "/debug/pprof/allocs" },
        /// Lock contention by mutex.
        mutex as "profile.mutex": Profile { path = "/debug/pprof/mutex" },
        /// CPU time by function and line.
        process_cpu as "profile.process_cpu": Profile { delta = true, path = "/debug/pprof/profile" },
        /// Stacks that created operating system threads (not in Alloy).
        threadcreate as "profile.threadcreate": Profile { enabled = false, path = "/debug/pprof/threadcreate" },
    }
}

arguments! {
    /// The body of `profile.KIND { }`.
    struct Profile {
        /// If true, the target records the profile for a duration, which the request contains as the parameter seconds.
        delta: bool = false,
        /// If true, the profile is scraped.
        enabled: bool = true,
        /// Path of the profile in the target's URL.
        path: Arc<str> = "",
    }
}

arguments! {
    /// The body of `profile.custom "NAME" { }`.
    struct CustomProfile {
        /// If true, the target records the profile for a duration, which the request contains as the parameter seconds.
        delta: bool = false,
        /// If true, the profile is scraped.
        enabled: bool,
        /// Path of the profile in the target's URL.
        path: Arc<str>,
    }
}

/// One kind of profile to scrape.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ProfileKind {
    /// Name of the block after `profile.`, or the label of a custom block. It identifies the kind.
    pub kind: Arc<str>,
    /// Value of the label `__name__`.
    pub name: Arc<str>,
    /// Path of the profile in the target's URL.
    pub path: Arc<str>,
    /// True if the target records the profile for the duration that the request contains.
    pub delta: bool,
    /// True if the values accumulate from the start of the process. The scraper then sends the difference between two
    /// scrapes.
    pub cumulative: bool,
    /// True if the sent profile is an increase, which the scraper or the target has computed. The server must not
    /// compute differences between such profiles.
    pub increase: bool,
}

/// Selects the enabled or the disabled kinds. Targets without the label `__profile_kinds__` have only enabled kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Enabled {
    Yes,
    No,
}

/// All settings except targets and receivers.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Settings {
    /// True if the collectors of a cluster share the targets.
    pub(super) is_clustered: bool,
    /// Value of the label job. It may be empty.
    pub(crate) job_name: Arc<str>,
    /// Query parameters of every request.
    pub(crate) params: BTreeMap<Arc<str>, Vec<Arc<str>>>,
    /// Time between two scrapes of a target.
    pub(crate) interval: Duration,
    /// Timeout of a scrape, without the additional time for profiles that are recorded over time.
    pub(crate) timeout: Duration,
    /// Duration of profiles that are recorded over time.
    pub(crate) delta_duration: Duration,
    /// Scheme of URLs: `http` or `https`.
    pub(crate) scheme: &'static str,
    /// Limits for profiles and targets.
    pub(super) limits: Limits,
    /// Settings of the HTTP client.
    pub(crate) client: HttpClientArguments,
    /// Prefix of the path of every profile.
    pub(crate) path_prefix: Arc<str>,
    /// Kinds to scrape from targets without the label `__profile_kinds__`, sorted by kind.
    pub(crate) kinds: Vec<ProfileKind>,
    /// Kinds to scrape only from targets whose label `__profile_kinds__` contains them, sorted by kind.
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
    /// Returns the maximum size of a profile in bytes.
    pub(super) fn profile_bytes(&self) -> usize {
        usize::try_from(self.max_profile_bytes.get()).unwrap_or(usize::MAX)
    }

    /// Returns the maximum number of samples of a profile, if there is a limit.
    pub(super) fn profile_samples(&self) -> Option<u64> {
        Some(self.max_profile_samples.get()).filter(|limit| *limit > 0)
    }

    /// Returns the maximum number of targets, if there is a limit.
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
    /// Returns the timeout of a request for a profile of this kind.
    pub(crate) fn deadline(&self, kind: &ProfileKind) -> Duration {
        if kind.delta {
            self.timeout + self.interval.saturating_sub(SECOND).max(self.delta_duration)
        } else {
            self.timeout
        }
    }
}

impl SettingsArguments {
    /// Checks the times together with the enabled kinds, in the same way as Alloy.
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
    /// Returns either the enabled or the disabled kinds, sorted.
    fn kinds(&self, selection: Enabled) -> Vec<ProfileKind> {
        let is_wanted = |enabled: bool| enabled == (selection == Enabled::Yes);
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
                // If the request has a duration, a Go program returns the increase over that time.
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
    use crate::common::testing::{Body, receivers, targets};
    use crate::pyroscope::scrape::DEFINITION;
    use alluvium_lang::value::Value;

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
