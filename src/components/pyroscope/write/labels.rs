//! Decides which labels of a profile are kept in the queue, and which are sent.

use std::collections::BTreeMap;
use std::sync::Arc;

use alluvium_profile::upload::Upload;
use alluvium_profile::{Labels, RawProfile, SinkError, SinkErrorKind, TenantId};

/// The arguments of the component that concern labels.
#[derive(Clone, Debug, Default)]
pub(super) struct LabelPolicy {
    /// Labels that are set on every profile.
    pub external: BTreeMap<Arc<str>, Arc<str>>,
    /// Names of the labels that the endpoints use as `tenant_label`.
    pub tenants: Vec<Arc<str>>,
}

impl LabelPolicy {
    /// Prepares a profile for the queue: removes reserved labels, adds external labels, and checks names and tenants.
    pub(super) fn prepare(&self, profile: RawProfile) -> Result<RawProfile, SinkError> {
        let invalid = |message: String| Err(SinkError::new(SinkErrorKind::Invalid, message));
        let is_upload = Upload::is_in(&profile.pprof);
        let is_tenant = |name: &str| self.tenants.iter().any(|tenant| &**tenant == name);
        let kept = profile
            .labels
            .filtered(|name| is_sent(name) || is_tenant(name) || is_upload && name == "__session_id__");
        let labels = if self.external.is_empty() {
            kept
        } else {
            kept.with_all(&self.external)
        };
        if labels.is_empty() {
            return invalid("the profile has no labels".to_owned());
        }
        if let Some((name, _)) = labels.iter().find(|(name, _)| !is_label_name(name)) {
            return invalid(format!(
                "label name `{name}` is invalid: letters, digits, `_` and `.` are allowed"
            ));
        }
        for name in &self.tenants {
            let tenant = labels.get(name).map(str::parse::<TenantId>).transpose();
            if let Err(error) = tenant {
                return invalid(format!("label `{name}`: {error}"));
            }
        }
        let id = if profile.id.is_empty() {
            uuid::Uuid::new_v4().to_string().into()
        } else {
            profile.id
        };
        Ok(RawProfile { labels, id, ..profile })
    }
}

/// Returns the labels to send: the labels in the queue, without reserved labels that only name the tenant.
pub(super) fn without_tenant(labels: &Labels) -> Labels {
    let is_kept = |name: &str| is_sent(name) || name == "__session_id__";
    if labels.iter().all(|(name, _)| is_kept(name)) {
        return labels.clone();
    }
    labels.filtered(is_kept)
}

/// Returns true for a label name that a server accepts: letters, digits, underscores and dots.
pub(super) fn is_label_name(name: &str) -> bool {
    !name.is_empty()
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.'))
}

fn is_sent(name: &str) -> bool {
    !name.starts_with("__") || matches!(name, "__name__" | "__delta__")
}
