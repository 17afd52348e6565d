//! `pyroscope.enrich`: labels of targets for profiles that match them.

use std::sync::Arc;

use crate::components::common::fanout::Receivers;
use crate::components::common::targets::Targets;
use crate::lang::attribute::NotEmpty;
use crate::lang::body::arguments;
use crate::lang::schema::{Attribute, Kind, RECEIVER};
use crate::pipeline::component::{Definition, Stability, no_metrics};

arguments! {
    /// Arguments of `pyroscope.enrich`.
    pub(crate) struct EnrichArguments {
        /// Receivers of the profiles.
        forward_to: Receivers,
        /// Labels of the target that a profile gets; not set, all.
        labels_to_copy: Option<Vec<Arc<str>>>,
        /// Label of the profile that is compared; not set, target_match_label.
        profiles_match_label: Option<Arc<str>>,
        /// Label of the target that is compared.
        target_match_label: NotEmpty<Arc<str>>,
        /// Targets whose labels are given on.
        targets: Targets,
    }
}

/// The definition of `pyroscope.enrich`.
pub(crate) const DEFINITION: Definition<EnrichArguments> = Definition {
    name: "pyroscope.enrich",
    stability: Stability::Experimental,
    exports: &[Attribute::required(
        "receiver",
        Kind::Capsule(RECEIVER),
        "Takes the profiles.",
    )],
    metrics: no_metrics,
    build: None,
    doc: "`pyroscope.enrich` gives profiles the labels of the target that they match.",
};
