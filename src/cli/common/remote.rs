//! Flags and helpers that all client commands share: the server, the tenant, and the selection of profiles.
//!
//! In: flags. Out: a [`Caller`] for the server, and a validated query.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::Args;
use url::Url;

use crate::cli::common::time;
use crate::cli::common::time::RangeArgs;
use alluvium_profile::ProfileType;
use alluvium_profile::selector::{self, Matcher};
use alluvium_wire::call::{CallError, Caller};
use alluvium_wire::client::{ClientOptions, Credential, HttpClient, Pem, Secret};
use alluvium_wire::querier::{QuerierClient, Selection};

/// Short names of the most common profile types, and the names of Go's `net/http/pprof`, which conprof and profefe use.
const SHORT_TYPES: [(&str, &str); 12] = [
    ("cpu", "process_cpu:cpu:nanoseconds:cpu:nanoseconds"),
    ("wall", "wall:wall:nanoseconds:wall:nanoseconds"),
    ("inuse", "memory:inuse_space:bytes:space:bytes"),
    ("alloc", "memory:alloc_space:bytes:space:bytes"),
    ("goroutines", "goroutine:goroutine:count:goroutine:count"),
    ("mutex", "mutex:delay:nanoseconds:contentions:count"),
    ("block", "block:delay:nanoseconds:contentions:count"),
    ("profile", "process_cpu:cpu:nanoseconds:cpu:nanoseconds"),
    ("heap", "memory:inuse_space:bytes:space:bytes"),
    ("allocs", "memory:alloc_space:bytes:space:bytes"),
    ("goroutine", "goroutine:goroutine:count:goroutine:count"),
    ("threadcreate", "threadcreate:threadcreate:count:threadcreate:count"),
];

/// Label that contains the path of a profile in older versions of conprof. The path ends in Go's name of the profile
/// type.
const PATH_LABEL: &str = "profile_path";

/// Flags for the server that a command queries.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Server")]
pub struct ServerArgs {
    /// URL of the server, with its path prefix if it has one.
    #[arg(
        long,
        value_name = "URL",
        default_value = "http://localhost:4040",
        env = "ALLUVIUM_URL"
    )]
    pub url: String,
    /// Tenant of the request (`X-Scope-OrgID`). A single-tenant server needs none.
    #[arg(long, value_name = "ID", env = "ALLUVIUM_TENANT")]
    pub tenant: Option<String>,
    /// Bearer token of the server, or of a proxy in front of it.
    #[arg(long, value_name = "TOKEN", env = "ALLUVIUM_TOKEN", hide_env_values = true)]
    pub token: Option<String>,
    /// File with the bearer token; --token takes precedence. Other users can see a token that is given with --token in
    /// the list of processes, but not a token in a file.
    #[arg(long, value_name = "FILE", env = "ALLUVIUM_TOKEN_FILE")]
    pub token_file: Option<PathBuf>,
    /// PEM file of the certificate authorities to trust, instead of the system's authorities.
    #[arg(long, value_name = "FILE", env = "ALLUVIUM_CA")]
    pub ca: Option<PathBuf>,
}

/// Parses the URL of a server. `flag` names the flag for the error.
pub(crate) fn base_url(flag: &str, text: &str) -> anyhow::Result<Url> {
    // `localhost:4040` parses as a URL with the scheme `localhost`, so report the missing scheme.
    match Url::parse(text) {
        Ok(url) if matches!(url.scheme(), "http" | "https") && url.has_host() => Ok(url),
        _ => bail!("{flag} `{text}` must start with http:// or https://"),
    }
}

/// Returns the options of the HTTP clients of commands, without credentials. Proxies come from the environment.
pub(crate) fn client_options(ca: Option<&Path>) -> ClientOptions {
    let mut options = ClientOptions::new(concat!("alluvium/", env!("CARGO_PKG_VERSION")).into());
    options.proxy.from_environment = true;
    options.tls.ca = ca.map(|path| Pem::File(path.to_owned()));
    options
}

impl ServerArgs {
    pub fn base(&self) -> anyhow::Result<Url> {
        base_url("--url", &self.url)
    }

    /// Returns an HTTP client with the credentials. Proxies come from the environment.
    pub fn http(&self) -> anyhow::Result<HttpClient> {
        let mut options = client_options(self.ca.as_deref());
        let text = self.token.as_deref().map(|token| Secret::Text(token.into()));
        if let Some(credentials) = text.or_else(|| self.token_file.clone().map(Secret::File)) {
            options.credential = Credential::Authorization {
                scheme: "Bearer".into(),
                credentials,
            };
        }
        Ok(HttpClient::new(&options)?)
    }

    /// Returns a caller of the server's services.
    pub async fn caller(&self) -> anyhow::Result<Caller> {
        let http = self.http()?;
        let caller = Caller::new(http.client().clone(), self.base()?).with_headers(http.headers().await?);
        Ok(match &self.tenant {
            Some(tenant) => caller.with_tenant(tenant),
            None => caller,
        })
    }

    /// Returns a client of the server's querier service.
    pub(crate) async fn querier(&self) -> anyhow::Result<QuerierClient> {
        Ok(QuerierClient::new(self.caller().await?))
    }
}

/// Converts a failed call into an error of a command. The text already contains the causes, so they are not attached.
pub(crate) fn call_error(error: CallError) -> anyhow::Error {
    anyhow::anyhow!("{error}")
}

/// Flags that select profiles and a time range.
#[derive(Debug, Clone, Args)]
pub struct QueryArgs {
    /// Profiles: `TYPE{label="value", ...}`, or `{...}` with --type. TYPE is a five-part id such as
    /// process_cpu:cpu:nanoseconds:cpu:nanoseconds, or one of cpu, wall, inuse, alloc, goroutines, mutex, block, or the
    /// name that Go uses, such as heap. Without TYPE, a label profile_path="/debug/pprof/heap" determines the type.
    #[arg(value_name = "SELECTOR")]
    pub selector: Option<String>,
    /// Profile type, if SELECTOR names no profile type.
    #[arg(long = "type", value_name = "TYPE")]
    pub profile_type: Option<String>,
    #[command(flatten)]
    pub range: RangeArgs,
}

/// A validated selection of profiles and a time range.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    pub profile_type: ProfileType,
    /// Conditions on the labels.
    pub matchers: Vec<Matcher>,
    /// First millisecond of the range.
    pub start_ms: i64,
    /// First millisecond after the range.
    pub end_ms: i64,
}

impl QueryArgs {
    /// Splits the selector into the profile type, which may be empty, and the conditions after it.
    fn parts(&self) -> anyhow::Result<(&str, Vec<Matcher>)> {
        let text = self.selector.as_deref().unwrap_or_default().trim();
        let open = text.find('{').unwrap_or(text.len());
        let (in_selector, conditions) = text.split_at(open);
        let matchers = match conditions {
            "" => Vec::new(),
            conditions => selector::parse(conditions).map_err(|mut error| {
                error.position += open;
                error
            })?,
        };
        Ok((in_selector, matchers))
    }

    /// Returns true if the flags name a profile type.
    pub(crate) fn has_type(&self) -> anyhow::Result<bool> {
        let (in_selector, mut matchers) = self.parts()?;
        Ok(!in_selector.trim().is_empty() || self.profile_type.is_some() || take_path(&mut matchers).is_some())
    }

    pub fn question(&self, now_ms: i64) -> anyhow::Result<Question> {
        let (start_ms, end_ms) = self.range.range(now_ms)?;
        let (in_selector, mut matchers) = self.parts()?;
        let by_path;
        let id = match (in_selector.trim(), &self.profile_type) {
            ("", Some(id)) => id.trim(),
            ("", None) => {
                by_path = take_path(&mut matchers);
                by_path
                    .as_deref()
                    .context("no profile type is given: write TYPE{...} or add --type, for example --type cpu")?
            }
            (id, None) => id,
            (id, Some(_)) => bail!("the profile type is given twice: `{id}` in the selector and --type"),
        };
        let short_type = SHORT_TYPES.iter().find(|(short_type, _)| *short_type == id);
        let profile_type = short_type
            .map_or(id, |(_, full)| full)
            .parse()
            .with_context(|| format!("`{id}` is neither a profile type nor a short name"))?;
        Ok(Question {
            profile_type,
            matchers,
            start_ms,
            end_ms,
        })
    }
}

/// Removes the condition on [`PATH_LABEL`] and returns the last part of its path.
fn take_path(matchers: &mut Vec<Matcher>) -> Option<String> {
    // A condition such as `profile_path!="..."` does not match its own value, so it does not determine the path.
    let index = matchers
        .iter()
        .position(|matcher| matcher.name() == PATH_LABEL && matcher.matches_value(matcher.value()))?;
    let path = matchers.remove(index);
    path.value().rsplit('/').next().map(str::to_owned)
}

impl Question {
    pub fn selection(&self) -> Selection {
        Selection {
            profile_type: self.profile_type.to_string(),
            selector: selector::format(&self.matchers),
            start_ms: self.start_ms,
            end_ms: self.end_ms,
        }
    }

    /// Returns the error for a result without samples.
    pub(crate) fn nothing_found(&self) -> anyhow::Error {
        anyhow::anyhow!(
            "no samples of {}{} from {} until {}",
            self.profile_type,
            selector::format(&self.matchers),
            time::format(self.start_ms),
            time::format(self.end_ms)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(selector: &str, profile_type: Option<&str>) -> QueryArgs {
        QueryArgs {
            selector: Some(selector.to_owned()),
            profile_type: profile_type.map(str::to_owned),
            range: RangeArgs {
                from: "now-1h".to_owned(),
                until: "now".to_owned(),
            },
        }
    }

    fn question(selector: &str, profile_type: Option<&str>) -> anyhow::Result<Question> {
        args(selector, profile_type).question(1_700_000_000_000)
    }

    #[test]
    fn a_type_is_named_in_three_places() {
        assert!(args("cpu{a=\"b\"}", None).has_type().unwrap());
        assert!(args("{}", Some("cpu")).has_type().unwrap());
        assert!(args("{profile_path=\"/debug/pprof/heap\"}", None).has_type().unwrap());
        assert!(!args(" {a=\"b\"}", None).has_type().unwrap());
        assert!(args("{a}", None).has_type().is_err());
    }

    #[test]
    fn the_type_may_stand_in_the_selector_or_beside_it() {
        let id = "process_cpu:cpu:nanoseconds:cpu:nanoseconds";
        let expected = question(&format!(r#"{id}{{service_name="shop"}}"#), None).unwrap();
        assert_eq!(expected.selection().selector, r#"{service_name="shop"}"#);
        assert_eq!(expected.selection().profile_type, id);
        assert_eq!(expected.end_ms - expected.start_ms, 3_600_000);
        for (selector, profile_type) in [
            (r#"cpu{service_name="shop"}"#, None),
            (r#"{service_name="shop"}"#, Some("cpu")),
            (r#" {service_name="shop"}"#, Some(id)),
        ] {
            assert_eq!(question(selector, profile_type).unwrap(), expected, "{selector}");
        }
        assert_eq!(question("cpu", None).unwrap().matchers, []);
    }

    #[test]
    fn selectors_of_conprof_are_understood() {
        let expected = question(r#"memory:inuse_space:bytes:space:bytes{job="x"}"#, None).unwrap();
        for selector in [
            r#"heap{job="x"}"#,
            r#"{job="x", profile_path="/debug/pprof/heap"}"#,
            r#"{profile_path="/app/debug/pprof/heap", job="x"}"#,
        ] {
            assert_eq!(question(selector, None).unwrap(), expected, "{selector}");
        }
        let cpu = question(r#"{profile_path="/debug/pprof/profile"}"#, None).unwrap();
        assert_eq!(cpu, question("cpu", None).unwrap());
        // If a type is given, the path is an ordinary label.
        let matchers = question(r#"cpu{profile_path="/debug/pprof/heap"}"#, None)
            .unwrap()
            .matchers;
        assert_eq!(matchers.len(), 1);
        for (selector, message) in [
            (
                r#"{job="x", profile_path!="/debug/pprof/heap"}"#,
                "no profile type is given",
            ),
            (
                r#"{profile_path="/debug/pprof/trace"}"#,
                "`trace` is neither a profile type",
            ),
        ] {
            let error = format!("{:#}", question(selector, None).unwrap_err());
            assert!(error.contains(message), "{error}");
        }
    }

    #[test]
    fn wrong_questions_say_what_is_wrong() {
        for (selector, profile_type, message) in [
            ("{}", None, "no profile type is given"),
            ("cpu{}", Some("cpu"), "given twice"),
            ("cpus{}", None, "`cpus` is neither a profile type"),
            ("cpu{a}", None, "invalid selector at byte 5: expected one of"),
        ] {
            let error = format!("{:#}", question(selector, profile_type).unwrap_err());
            assert!(error.contains(message), "{error}");
        }
        for (_, full) in SHORT_TYPES {
            assert_eq!(full.parse::<ProfileType>().unwrap().to_string(), full);
        }
    }

    #[test]
    fn a_url_needs_its_scheme() {
        let base = |url: &str| {
            let args = ServerArgs {
                url: url.to_owned(),
                tenant: None,
                token: None,
                token_file: None,
                ca: None,
            };
            args.base()
        };
        assert!(base("https://host/profile").is_ok());
        assert!(base("localhost:4040").unwrap_err().to_string().contains("http://"));
    }
}
