//! Identity of a target: its process, its container, and the name of its service.

use std::sync::Arc;

use crate::common::arguments::targets::Target;
use alluvium_profile::labels::SERVICE_NAME;

/// Label with the id of a target's process.
pub(crate) const PID: &str = "__process_pid__";
/// Label with the id of a container.
pub(crate) const CONTAINER_ID: &str = "__container_id__";

/// Returns the container id of a target, from the first label that contains one. The prefix of the runtime
/// (`containerd://`) is removed.
pub(crate) fn container_id(labels: &Target) -> Option<Arc<str>> {
    [
        CONTAINER_ID,
        "__meta_kubernetes_pod_container_id",
        "__meta_docker_container_id",
        "__meta_dockerswarm_task_container_id",
    ]
    .iter()
    .find_map(|name| labels.get(*name).filter(|value| !value.is_empty()))
    .map(|value| match value.split_once("://") {
        Some((_, id)) => id.into(),
        None => value.clone(),
    })
}

/// Returns the service name of a target, from the first label that contains one, in Alloy's order. If the name is built
/// from the Kubernetes namespace and container, it starts with `prefix`.
pub(crate) fn service_name(labels: &Target, prefix: &str) -> String {
    let get = |name: &str| labels.get(name).filter(|value| !value.is_empty());
    if let Some(name) = get(SERVICE_NAME).or_else(|| get("__meta_kubernetes_pod_annotation_pyroscope_io_service_name"))
    {
        return name.to_string();
    }
    if let (Some(namespace), Some(container)) = (
        get("__meta_kubernetes_namespace"),
        get("__meta_kubernetes_pod_container_name"),
    ) {
        return format!("{prefix}{namespace}/{container}");
    }
    if let Some(name) = get("__meta_docker_container_name") {
        return name.trim_start_matches('/').to_owned();
    }
    get("__meta_dockerswarm_container_label_service_name")
        .or_else(|| get("__meta_dockerswarm_service_name"))
        .map_or_else(|| "unspecified".to_owned(), ToString::to_string)
}
