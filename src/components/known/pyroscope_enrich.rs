//! `pyroscope.enrich`: labels of targets for profiles that match them.
//!
//! Schema and checks.

use crate::components::common::checks;
use crate::lang::schema::{Attribute, Kind, RECEIVER, RECEIVERS, Schema, TARGETS};
use crate::pipeline::component::{Definition, Stability};

/// `pyroscope.enrich`
pub const DEFINITION: Definition = Definition {
    name: "pyroscope.enrich",
    stability: Stability::Experimental,
    arguments: &Schema {
        attributes: &[
            Attribute::required("forward_to", RECEIVERS, "Receivers of the profiles."),
            Attribute::optional(
                "labels_to_copy",
                Kind::List(&Kind::String),
                "Labels of the target that a profile gets; not set, all.",
            ),
            Attribute::optional(
                "profiles_match_label",
                Kind::String,
                "Label of the profile that is compared; not set, target_match_label.",
            ),
            Attribute::required(
                "target_match_label",
                Kind::String,
                "Label of the target that is compared.",
            ),
            Attribute::required("targets", TARGETS, "Targets whose labels are given on."),
        ],
        blocks: &[],
    },
    exports: &[Attribute::required(
        "receiver",
        Kind::Capsule(RECEIVER),
        "Takes the profiles.",
    )],
    validate: |arguments| checks::not_empty(arguments, "", "target_match_label"),
    build: None,
    doc: "`pyroscope.enrich` gives profiles the labels of the target that they match.",
};
