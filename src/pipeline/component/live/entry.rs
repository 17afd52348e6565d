//! Entries of live debugging, and their formats: text like Alloy's, and JSON for the web page.
//!
//! A component creates an entry on the data path, so the entry only shares existing data. Everything costly
//! (formatting, reading a profile) happens in this file, when the entry is written for a watcher.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use serde_json::{Value as Json, json};

use alluvium_profile::labels::PROFILE_NAME;
use alluvium_profile::{Labels, RawProfile, pprof};

/// An entry with its time and its component.
#[derive(Debug, Clone)]
pub struct TimedEntry {
    /// Time at which the component sent the entry.
    pub time: SystemTime,
    /// Id of the component that sent the entry.
    pub component: Arc<str>,
    /// The event in the component.
    pub entry: Arc<Entry>,
}

/// The labels of a target, by name.
pub type LabelSet = BTreeMap<Arc<str>, Arc<str>>;

/// Maximum transmitted size of a profile whose samples are counted, in bytes.
const MAX_COUNTED_BYTES: usize = 256 << 10;
/// Maximum uncompressed size of a profile whose samples are counted, in bytes.
const MAX_UNCOMPRESSED_BYTES: usize = 4 << 20;

/// The kind of labels that relabel rules were applied to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Relabeled {
    /// Labels of a discovered target.
    Target,
    /// Labels of the series of a profile.
    Profile,
}

/// An event in a component.
#[derive(Debug)]
pub enum Entry {
    /// A target that the component exports.
    Target(LabelSet),
    /// Relabel rules were applied to labels.
    Relabel {
        /// The kind of the labels.
        of: Relabeled,
        /// The labels before the first rule.
        before: LabelSet,
        /// The effect of each rule that changed the labels.
        steps: Vec<Step>,
        /// The labels after the last rule; `None` if a rule dropped them.
        after: Option<LabelSet>,
    },
    /// A profile passed through the component.
    Profile(ProfileFacts),
    /// A target was scraped for one profile.
    Scrape {
        /// URL of the scrape request.
        url: String,
        /// Type of the profile, such as `process_cpu`.
        profile: Arc<str>,
        /// Duration of the request.
        duration: Duration,
        /// Result of the request, with a reason.
        outcome: Outcome,
        /// Size of the response body in bytes; 0 if there was none.
        bytes: usize,
    },
    /// A batch was sent to an endpoint.
    Write {
        /// URL of the endpoint, as configured.
        endpoint: Arc<str>,
        /// Number of profiles in the batch.
        profiles: usize,
        /// Size of the pprof data in the batch, in bytes.
        bytes: usize,
        /// Duration of the request.
        duration: Duration,
        /// Result of the request, with a reason.
        outcome: Outcome,
    },
}

/// Facts about a profile in transit.
#[derive(Debug)]
pub struct ProfileFacts {
    /// The labels of the profile's series.
    pub labels: Labels,
    /// Size of the pprof data as transmitted, in bytes.
    pub bytes: usize,
    /// The pprof data, shared; `None` if the profile is large.
    pprof: Option<Bytes>,
}

/// Result of a scrape or of sending a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// Success, with a word such as `forwarded`.
    Good(&'static str),
    /// Failure, with a word and the reason.
    Bad(&'static str, String),
}

/// Effect of one relabel rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// Index of the rule, from 0.
    pub rule: usize,
    /// Action of the rule, as written.
    pub action: &'static str,
    /// The change to the labels.
    pub change: Change,
}

/// A change of a set of labels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// The labels were dropped.
    Dropped,
    /// Some labels were set to new values, or removed.
    Changed {
        /// Names and new values of the labels that were set, sorted by name.
        set: Vec<(Arc<str>, Arc<str>)>,
        /// Names of the removed labels, sorted.
        removed: Vec<Arc<str>>,
    },
}

impl ProfileFacts {
    /// Collects the facts about `profile`.
    pub fn of(profile: &RawProfile) -> Self {
        Self {
            labels: profile.labels.clone(),
            bytes: profile.pprof.len(),
            pprof: (profile.pprof.len() <= MAX_COUNTED_BYTES).then(|| profile.pprof.clone()),
        }
    }

    /// Number of samples in the profile, if counting is cheap.
    pub fn samples(&self) -> Option<usize> {
        let plain = pprof::gunzip(self.pprof.as_ref()?, MAX_UNCOMPRESSED_BYTES).ok()?;
        pprof::sample_count(&plain).ok()
    }

    /// Returns the label `__name__`, such as `process_cpu`.
    pub fn profile_type(&self) -> &str {
        self.labels.get(PROFILE_NAME).unwrap_or_default()
    }
}

impl Change {
    /// Returns the change from `before` to `after`; `None` if they are equal.
    pub fn between(before: &LabelSet, after: &LabelSet) -> Option<Self> {
        let set: Vec<_> = after
            .iter()
            .filter(|(name, value)| before.get(*name) != Some(*value))
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        let removed: Vec<_> = before
            .keys()
            .filter(|name| !after.contains_key(*name))
            .cloned()
            .collect();
        (!set.is_empty() || !removed.is_empty()).then_some(Self::Changed { set, removed })
    }
}

impl Entry {
    /// Approximate number of bytes that the entry keeps alive.
    pub(super) fn weight(&self) -> usize {
        // Label names and values are shared with the data and do not count. The set takes about 100 bytes per label.
        let labels = |labels: &LabelSet| labels.len() * 100;
        64 + match self {
            Self::Target(set) => labels(set),
            Self::Relabel { before, after, .. } => labels(before) + after.as_ref().map_or(0, labels),
            Self::Profile(facts) => facts.labels.len() * 100 + facts.pprof.as_ref().map_or(0, Bytes::len),
            Self::Scrape { url, .. } => url.len(),
            Self::Write { .. } => 0,
        }
    }

    fn kind(&self) -> &'static str {
        match self {
            Self::Target(_) => "target",
            Self::Relabel { .. } => "relabel",
            Self::Profile(_) => "profile",
            Self::Scrape { .. } => "scrape",
            Self::Write { .. } => "write",
        }
    }

    /// Formats the entry as one line, as Alloy does.
    pub fn text(&self) -> String {
        match self {
            Self::Target(labels) => set_text(labels),
            Self::Relabel {
                before, steps, after, ..
            } => {
                let mut text = set_text(before);
                text.push_str(" => ");
                match after {
                    Some(after) => text.push_str(&set_text(after)),
                    None => text.push_str("dropped"),
                }
                for step in steps {
                    let _ = write!(
                        text,
                        "; rule {} ({}) {}",
                        step.rule + 1,
                        step.action,
                        change_text(&step.change)
                    );
                }
                text
            }
            Self::Profile(facts) => {
                let mut text = format!("{} {} bytes", facts.labels, facts.bytes);
                if let Some(samples) = facts.samples() {
                    let _ = write!(text, ", {samples} samples");
                }
                text
            }
            Self::Scrape {
                url,
                profile,
                duration,
                outcome,
                bytes,
            } => format!(
                "{profile} from {url}: {}, {bytes} bytes in {}",
                outcome_text(outcome),
                seconds(*duration)
            ),
            Self::Write {
                endpoint,
                profiles,
                bytes,
                duration,
                outcome,
            } => format!(
                "{profiles} profiles ({bytes} bytes) to {endpoint}: {} in {}",
                outcome_text(outcome),
                seconds(*duration)
            ),
        }
    }

    fn fields(&self) -> Json {
        match self {
            Self::Target(labels) => json!({ "labels": set_json(labels) }),
            Self::Relabel {
                of,
                before,
                steps,
                after,
            } => json!({
                "of": match of {
                    Relabeled::Target => "target",
                    Relabeled::Profile => "profile",
                },
                "before": set_json(before),
                "after": after.as_ref().map(set_json),
                "steps": steps.iter().map(step_json).collect::<Vec<_>>(),
            }),
            Self::Profile(facts) => json!({
                "labels": facts.labels.iter().collect::<BTreeMap<_, _>>(),
                "profileType": facts.profile_type(),
                "bytes": facts.bytes,
                "samples": facts.samples(),
            }),
            Self::Scrape {
                url,
                profile,
                duration,
                outcome,
                bytes,
            } => with_outcome(
                json!({ "url": url, "profileType": &**profile, "bytes": bytes, "seconds": duration.as_secs_f64() }),
                outcome,
            ),
            Self::Write {
                endpoint,
                profiles,
                bytes,
                duration,
                outcome,
            } => with_outcome(
                json!({ "endpoint": &**endpoint, "profiles": profiles, "bytes": bytes,
                "seconds": duration.as_secs_f64() }),
                outcome,
            ),
        }
    }
}

impl TimedEntry {
    pub(super) fn now(component: Arc<str>, entry: Entry) -> Self {
        Self {
            time: SystemTime::now(),
            component,
            entry: Arc::new(entry),
        }
    }

    /// Formats the entry as a JSON object: `time`, `component`, `kind` and the fields of the kind.
    pub fn json(&self) -> Json {
        let mut object = self.entry.fields();
        if let Some(fields) = object.as_object_mut() {
            let time = chrono::DateTime::<chrono::Utc>::from(self.time);
            fields.insert(
                "time".to_owned(),
                time.to_rfc3339_opts(chrono::SecondsFormat::Millis, true).into(),
            );
            fields.insert("component".to_owned(), (&*self.component).into());
            fields.insert("kind".to_owned(), self.entry.kind().into());
        }
        object
    }
}

fn set_json(labels: &LabelSet) -> Json {
    let fields = labels
        .iter()
        .map(|(name, value)| (name.to_string(), Json::from(&**value)));
    Json::Object(fields.collect())
}

fn step_json(step: &Step) -> Json {
    let mut json = json!({ "rule": step.rule, "action": step.action, "dropped": step.change == Change::Dropped });
    if let (Change::Changed { set, removed }, Some(fields)) = (&step.change, json.as_object_mut()) {
        fields.insert("set".to_owned(), set_json(&set.iter().cloned().collect()));
        fields.insert(
            "removed".to_owned(),
            removed.iter().map(|name| Json::from(&**name)).collect(),
        );
    }
    json
}

fn with_outcome(mut object: Json, outcome: &Outcome) -> Json {
    if let Some(fields) = object.as_object_mut() {
        let (ok, word, error) = match outcome {
            Outcome::Good(word) => (true, word, Json::Null),
            Outcome::Bad(word, error) => (false, word, error.as_str().into()),
        };
        fields.insert("ok".to_owned(), ok.into());
        fields.insert("outcome".to_owned(), (*word).into());
        fields.insert("error".to_owned(), error);
    }
    object
}

fn outcome_text(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Good(word) => (*word).to_owned(),
        Outcome::Bad(word, error) => format!("{word} ({error})"),
    }
}

fn change_text(change: &Change) -> String {
    match change {
        Change::Dropped => "dropped it".to_owned(),
        Change::Changed { set, removed } => {
            let set = set.iter().map(|(name, value)| format!("{name}={value:?}"));
            let removed = removed.iter().map(|name| format!("-{name}"));
            set.chain(removed).collect::<Vec<_>>().join(" ")
        }
    }
}

/// Formats labels as `{a="1", b="2"}`, including empty values.
fn set_text(labels: &LabelSet) -> String {
    let pairs: Vec<String> = labels.iter().map(|(name, value)| format!("{name}={value:?}")).collect();
    format!("{{{}}}", pairs.join(", "))
}

fn seconds(duration: Duration) -> String {
    format!("{:.3}s", duration.as_secs_f64())
}
