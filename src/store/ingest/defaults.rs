//! Pyroscope's default rules for the names of profiles, and the labels to store. Rules of a tenant may change both.

use crate::store::ingest::sessions::SESSION_ID;
use crate::store::rules::relabel_rules::RelabelRules;
use alluvium_profile::Labels;
use alluvium_profile::labels::SERVICE_NAME;

/// Default of `service_name`.
const UNKNOWN_SERVICE: &str = "unknown_service";
/// Name of the service in OpenTelemetry. Sanitising makes it `service_name`.
const DOTTED_SERVICE_NAME: &str = "service.name";
/// Prefix of the profile names of godeltaprof. The default rules remove it, so that these profiles have the same names
/// as those of other profilers. The values of godeltaprof are already deltas, so `reshape` passes `__delta__=false` to
/// the rules of the tenant.
pub(super) const GODELTAPROF: &str = "godeltaprof_";

/// Applies Pyroscope's default rules to the name of a profile with this sample type. Some profilers call a CPU profile
/// `wall`.
pub(super) fn default_name<'a>(name: &'a str, sample_type: &str) -> &'a str {
    let name = name.strip_prefix(GODELTAPROF).unwrap_or(name);
    if name == "wall" && sample_type == "cpu" {
        "process_cpu"
    } else {
        name
    }
}

/// Returns the labels for the series table: without labels that start with `__`, but with a service name. If the rules
/// limit the sessions of a series, the session id stays.
pub(super) fn stored_labels(labels: &Labels, rules: Option<&RelabelRules>) -> Labels {
    let has_sessions = rules.is_some_and(|rules| rules.max_sessions().is_some());
    let is_stored = |name: &str| !name.starts_with("__") || has_sessions && name == SESSION_ID;
    with_service(&labels.filtered(is_stored), rules)
}

/// Returns the labels with a service name. If label names are sanitised, the default is `service.name`, because that
/// label becomes `service_name` after the rules.
pub(super) fn with_service(labels: &Labels, rules: Option<&RelabelRules>) -> Labels {
    if labels.get(SERVICE_NAME).is_some() {
        return labels.clone();
    }
    let dotted = labels.get(DOTTED_SERVICE_NAME);
    let service = dotted.filter(|_| rules.is_some_and(RelabelRules::sanitizes));
    labels.with(SERVICE_NAME, service.unwrap_or(UNKNOWN_SERVICE))
}
