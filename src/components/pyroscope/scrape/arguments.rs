//! Arguments of `pyroscope.scrape`: schema, defaults and checks.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::components::common::http_client;
use crate::components::common::targets::Target;
use crate::lang::schema::{Arguments, Attribute, Block, Kind, RECEIVERS, Schema, TARGETS};
use crate::lang::value::Value;
use crate::pipeline::component::ArgumentError;
use crate::wire::client::ClientOptions;

/// The default of `delta_profiling_duration`; given or not, it means "one second less than the interval".
const DEFAULT_DELTA_DURATION: Duration = Duration::from_secs(14);

/// Arguments of the component.
pub const SCHEMA: Schema = Schema {
    attributes: &[
        http_client::BEARER_TOKEN,
        http_client::BEARER_TOKEN_FILE,
        Attribute::with_default(
            "delta_profiling_duration",
            Kind::Duration,
            "\"14s\"",
            "How long a profile that is taken over a time is taken; the default means one second less than scrape_interval.",
        ),
        http_client::ENABLE_HTTP2,
        http_client::FOLLOW_REDIRECTS,
        Attribute::required("forward_to", RECEIVERS, "Receivers of the profiles."),
        http_client::HTTP_HEADERS,
        Attribute::with_default(
            "job_name",
            Kind::String,
            "\"\"",
            "Value of the label job; there is no such label when it is empty.",
        ),
        http_client::NO_PROXY,
        Attribute::with_default(
            "params",
            Kind::Map(&Kind::List(&Kind::String)),
            "{}",
            "Query parameters of every request.",
        ),
        http_client::PROXY_CONNECT_HEADER,
        http_client::PROXY_FROM_ENVIRONMENT,
        http_client::PROXY_URL,
        Attribute::with_default(
            "scheme",
            Kind::String,
            "\"http\"",
            "http or https; a target's label __scheme__ goes before.",
        ),
        Attribute::with_default(
            "scrape_interval",
            Kind::Duration,
            "\"15s\"",
            "Time from one scrape of a target to the next.",
        ),
        Attribute::with_default(
            "scrape_timeout",
            Kind::Duration,
            "\"10s\"",
            "Longest time of a scrape; profiles that are taken over a time get that time on top.",
        ),
        Attribute::required("targets", TARGETS, "Targets to scrape."),
    ],
    blocks: &[
        http_client::AUTHORIZATION,
        http_client::BASIC_AUTH,
        Block {
            name: "clustering",
            labelled: false,
            many: false,
            required: false,
            implied: false,
            schema: &CLUSTERING,
            defaults: &[],
            doc: "Sharing of targets among the members of a cluster.",
        },
        http_client::OAUTH2,
        Block {
            name: "profiling_config",
            labelled: false,
            many: false,
            required: false,
            implied: true,
            schema: &PROFILING_CONFIG,
            defaults: &[],
            doc: "Which profiles are taken from a target.",
        },
        http_client::TLS_CONFIG,
    ],
};

const CLUSTERING: Schema = Schema {
    attributes: &[Attribute::required(
        "enabled",
        Kind::Bool,
        "Whether targets are shared; a program that runs alone scrapes all.",
    )],
    blocks: &[],
};

const PROFILING_CONFIG: Schema = Schema {
    attributes: &[Attribute::with_default(
        "path_prefix",
        Kind::String,
        "\"\"",
        "Put before the path of every profile; a target's label __profile_path_prefix__ goes before.",
    )],
    blocks: &[
        profile_block("profile.block", DEFAULTS_BLOCK, "Waiting on channels and locks."),
        Block {
            name: "profile.custom",
            labelled: true,
            many: true,
            required: false,
            implied: false,
            schema: &CUSTOM_PROFILE,
            defaults: &[],
            doc: "A profile of another kind; the label is its name.",
        },
        profile_block("profile.fgprof", DEFAULTS_FGPROF, "Wall-clock time, by fgprof."),
        profile_block(
            "profile.godeltaprof_block",
            DEFAULTS_GODELTAPROF_BLOCK,
            "Waiting on channels and locks since the last scrape, by godeltaprof.",
        ),
        profile_block(
            "profile.godeltaprof_memory",
            DEFAULTS_GODELTAPROF_MEMORY,
            "Allocations since the last scrape, by godeltaprof.",
        ),
        profile_block(
            "profile.godeltaprof_mutex",
            DEFAULTS_GODELTAPROF_MUTEX,
            "Contention of locks since the last scrape, by godeltaprof.",
        ),
        profile_block("profile.goroutine", DEFAULTS_GOROUTINE, "Goroutines."),
        profile_block("profile.memory", DEFAULTS_MEMORY, "Allocations and live memory."),
        profile_block("profile.mutex", DEFAULTS_MUTEX, "Contention of locks."),
        profile_block("profile.process_cpu", DEFAULTS_PROCESS_CPU, "CPU time."),
    ],
};

type Defaults = &'static [(&'static str, &'static str)];

const DEFAULTS_BLOCK: Defaults = &[("path", "\"/debug/pprof/block\"")];
const DEFAULTS_FGPROF: Defaults = &[("delta", "true"), ("enabled", "false"), ("path", "\"/debug/fgprof\"")];
const DEFAULTS_GODELTAPROF_BLOCK: Defaults = &[("enabled", "false"), ("path", "\"/debug/pprof/delta_block\"")];
const DEFAULTS_GODELTAPROF_MEMORY: Defaults = &[("enabled", "false"), ("path", "\"/debug/pprof/delta_heap\"")];
const DEFAULTS_GODELTAPROF_MUTEX: Defaults = &[("enabled", "false"), ("path", "\"/debug/pprof/delta_mutex\"")];
const DEFAULTS_GOROUTINE: Defaults = &[("path", "\"/debug/pprof/goroutine\"")];
const DEFAULTS_MEMORY: Defaults = &[("path", "\"/debug/pprof/allocs\"")];
const DEFAULTS_MUTEX: Defaults = &[("path", "\"/debug/pprof/mutex\"")];
const DEFAULTS_PROCESS_CPU: Defaults = &[("delta", "true"), ("path", "\"/debug/pprof/profile\"")];

const fn profile_block(name: &'static str, defaults: Defaults, doc: &'static str) -> Block {
    Block {
        name,
        labelled: false,
        many: false,
        required: false,
        implied: true,
        schema: &PROFILE,
        defaults,
        doc,
    }
}

const PROFILE: Schema = Schema {
    attributes: &[
        Attribute::with_default(
            "delta",
            Kind::Bool,
            "false",
            "Whether the profile is taken over a time, asked for by the parameter seconds.",
        ),
        Attribute::with_default("enabled", Kind::Bool, "true", "Whether the profile is taken."),
        Attribute::with_default("path", Kind::String, "\"\"", "Path of the profile."),
    ],
    blocks: &[],
};

const CUSTOM_PROFILE: Schema = Schema {
    attributes: &[
        Attribute::with_default(
            "delta",
            Kind::Bool,
            "false",
            "Whether the profile is taken over a time, asked for by the parameter seconds.",
        ),
        Attribute::required("enabled", Kind::Bool, "Whether the profile is taken."),
        Attribute::required("path", Kind::String, "Path of the profile."),
    ],
    blocks: &[],
};

/// One kind of profile that is taken.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ProfileKind {
    /// Name of the block after `profile.`, or the label of a custom one: tells two kinds apart.
    pub kind: Arc<str>,
    /// Value of `__name__`.
    pub name: Arc<str>,
    /// Path.
    pub path: Arc<str>,
    /// Taken over a time.
    pub delta: bool,
    /// Counts since the start of the process, so that differences are sent.
    pub cumulative: bool,
    /// What is sent is an increase, by our difference or by the target's: the server must not take differences again.
    pub increase: bool,
}

/// The arguments, typed.
#[derive(Clone, Debug)]
pub struct ScrapeArguments {
    /// Targets.
    pub targets: Vec<Target>,
    /// What to scrape and how.
    pub settings: Arc<Settings>,
}

/// Everything but targets and receivers.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Value of the label job, may be empty.
    pub job_name: Arc<str>,
    /// Query parameters.
    pub params: BTreeMap<Arc<str>, Vec<Arc<str>>>,
    /// Time between scrapes.
    pub interval: Duration,
    /// Longest scrape.
    pub timeout: Duration,
    /// How long a delta profile is taken.
    pub delta_duration: Duration,
    /// `http` or `https`.
    pub scheme: Arc<str>,
    /// Client.
    pub client: ClientOptions,
    /// Before every path.
    pub path_prefix: Arc<str>,
    /// Profiles to take.
    pub kinds: Vec<ProfileKind>,
}

impl ScrapeArguments {
    /// Checks and types the arguments.
    pub fn from_arguments(arguments: &Arguments, user_agent: Arc<str>) -> Result<Self, ArgumentError> {
        let none = Arguments::default();
        let config = arguments.block("profiling_config").unwrap_or(&none);
        let settings = Settings {
            job_name: arguments.string("job_name"),
            params: params(arguments.value("params")),
            interval: arguments.duration("scrape_interval"),
            timeout: arguments.duration("scrape_timeout"),
            delta_duration: arguments.duration("delta_profiling_duration"),
            scheme: arguments.string("scheme"),
            client: http_client::options(arguments, user_agent, "")?,
            path_prefix: config.string("path_prefix"),
            kinds: kinds(config),
        };
        Ok(Self {
            targets: arguments.targets("targets"),
            settings: Arc::new(settings.checked()?),
        })
    }
}

impl Settings {
    /// The checks of Alloy; sets the duration of delta profiles.
    fn checked(mut self) -> Result<Self, ArgumentError> {
        let second = Duration::from_secs(1);
        let error = |path: &str, message: &str| {
            Err(ArgumentError {
                path: path.to_owned(),
                message: message.to_owned(),
            })
        };
        if !matches!(self.scheme.as_ref(), "http" | "https") {
            return error("scheme", "scheme must be \"http\" or \"https\"");
        }
        if self.timeout.is_zero() {
            return error("scrape_timeout", "scrape_timeout must be greater than 0");
        }
        if self.interval.is_zero() {
            return error("scrape_interval", "scrape_interval must be greater than 0");
        }
        let has_delta = self.kinds.iter().any(|kind| kind.delta);
        if has_delta && self.interval < 2 * second {
            let message = "scrape_interval must be at least 2 seconds when using delta profiling";
            return error("scrape_interval", message);
        }
        let longest = self.interval.saturating_sub(second);
        if self.delta_duration == DEFAULT_DELTA_DURATION {
            self.delta_duration = longest;
        } else if has_delta && self.delta_duration <= second {
            let message = "delta_profiling_duration must be larger than 1 second when using delta profiling";
            return error("delta_profiling_duration", message);
        } else if has_delta && self.delta_duration > longest {
            let message = "delta_profiling_duration must be at least 1 second smaller than scrape_interval when using delta profiling";
            return error("delta_profiling_duration", message);
        }
        Ok(self)
    }

    /// Longest time of a request for a profile of this kind.
    pub fn deadline(&self, kind: &ProfileKind) -> Duration {
        if kind.delta {
            self.timeout
                + self
                    .interval
                    .saturating_sub(Duration::from_secs(1))
                    .max(self.delta_duration)
        } else {
            self.timeout
        }
    }
}

fn params(value: &Value) -> BTreeMap<Arc<str>, Vec<Arc<str>>> {
    let Value::Object(fields) = value else {
        return BTreeMap::new();
    };
    let text = |value: &Value| match value {
        Value::String(text) => Some(text.clone()),
        _ => None,
    };
    fields
        .iter()
        .filter_map(|(name, values)| match values {
            Value::Array(values) => Some((name.clone(), values.iter().filter_map(text).collect())),
            _ => None,
        })
        .collect()
}

/// The enabled kinds, in the order of their names.
fn kinds(config: &Arguments) -> Vec<ProfileKind> {
    let mut kinds: Vec<ProfileKind> = config
        .blocks
        .iter()
        .filter(|block| block.body.bool("enabled"))
        .filter_map(|block| {
            let block_kind = block.name.strip_prefix("profile.")?;
            let (kind, name) = match (block_kind, &block.label) {
                ("custom", Some(label)) => (label.clone(), label.clone()),
                (kind, _) => (kind.into(), kind.strip_prefix("godeltaprof_").unwrap_or(kind).into()),
            };
            let delta = block.body.bool("delta");
            let is_counted = matches!(block_kind, "memory" | "mutex" | "block");
            Some(ProfileKind {
                // Asked for a time, Go gives the increase over that time itself.
                cumulative: is_counted && !delta,
                increase: is_counted || block_kind.starts_with("godeltaprof_"),
                kind,
                name,
                path: block.body.string("path"),
                delta,
            })
        })
        .collect();
    kinds.sort_by(|left, right| left.kind.cmp(&right.kind));
    kinds
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::components::common::testing::{Body, receivers, targets};
    use crate::components::pyroscope::scrape::DEFINITION;

    fn settings(body: Body) -> Result<Arc<Settings>, String> {
        let body = body.with("targets", targets(&[])).with("forward_to", receivers([]));
        ScrapeArguments::from_arguments(&body.arguments(&DEFINITION), "agent".into())
            .map(|arguments| arguments.settings)
            .map_err(|error| format!("{}: {}", error.path, error.message))
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
