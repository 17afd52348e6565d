//! Pyroscope's default rules for the names of profiles, and the labels to store. Rules of a tenant may change both.

use alluvium_profile::Labels;
use alluvium_profile::labels::SERVICE_NAME;

/// Default of `service_name`.
const UNKNOWN_SERVICE: &str = "unknown_service";
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

/// Returns the labels for the series table: without labels that start with `__`, but with a service name.
pub(super) fn stored_labels(labels: &Labels) -> Labels {
    with_service(&labels.filtered(|name| !name.starts_with("__")))
}

/// Returns the labels with a service name.
pub(super) fn with_service(labels: &Labels) -> Labels {
    match labels.get(SERVICE_NAME) {
        Some(_) => labels.clone(),
        None => labels.with(SERVICE_NAME, UNKNOWN_SERVICE),
    }
}
