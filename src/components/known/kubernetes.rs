//! `discovery.kubernetes` and `discovery.kubelet`: targets from a Kubernetes API server and from the agent of one node.
//!
//! Schema and checks. Nothing is asked of a cluster here.

use crate::components::common::{checks, discovery, http_client, kubernetes_client, selectors};
use crate::lang::schema::{Arguments, Attribute, Block, Kind, Schema, attributes, blocks};
use crate::pipeline::component::{ArgumentError, Definition, Stability};

/// Roles, and the roles of the objects that their selectors may pick from (Prometheus' table).
const ROLES: [(&str, &[&str]); 6] = [
    ("node", &["node"]),
    ("pod", &["pod", "node"]),
    ("service", &["service"]),
    ("endpoints", &["pod", "service", "endpoints"]),
    ("endpointslice", &["pod", "service", "endpointslice"]),
    ("ingress", &["ingress"]),
];

/// `discovery.kubernetes`
pub const KUBERNETES: Definition = Definition {
    name: "discovery.kubernetes",
    stability: Stability::GenerallyAvailable,
    arguments: &Schema {
        attributes: attributes!(
            &[
                kubernetes_client::API_SERVER,
                kubernetes_client::KUBECONFIG_FILE,
                Attribute::required(
                    "role",
                    Kind::String,
                    "What to look for: node, pod, service, endpoints, endpointslice or ingress.",
                ),
            ],
            http_client::ATTRIBUTES
        ),
        blocks: blocks!(
            &[
                Block::implied(
                    "attach_metadata",
                    &ATTACH_METADATA,
                    "Labels of other objects that a target gets.",
                ),
                Block::implied(
                    "namespaces",
                    &NAMESPACES,
                    "Namespaces to look at; all when none is given."
                ),
                Block::many(
                    "selectors",
                    &SELECTORS,
                    "Which objects of a kind are asked for; the API server picks them.",
                ),
            ],
            http_client::BLOCKS
        ),
    },
    exports: discovery::EXPORTS,
    validate: check_kubernetes,
    build: None,
    doc: "`discovery.kubernetes` finds nodes, pods, services, endpoints or ingresses of a Kubernetes cluster and follows their changes.",
};

/// `discovery.kubelet`
pub const KUBELET: Definition = Definition {
    name: "discovery.kubelet",
    stability: Stability::GenerallyAvailable,
    arguments: &Schema {
        attributes: attributes!(
            &[
                Attribute::with_default(
                    "namespaces",
                    Kind::List(&Kind::String),
                    "[]",
                    "Namespaces to look at; all when the list is empty.",
                ),
                discovery::refresh_interval("\"5s\""),
                Attribute::with_default(
                    "url",
                    Kind::String,
                    "\"https://localhost:10250\"",
                    "URL of the kubelet."
                ),
            ],
            http_client::ATTRIBUTES
        ),
        blocks: http_client::BLOCKS,
    },
    exports: discovery::EXPORTS,
    validate: |arguments| {
        checks::http_url(arguments, "", "url")?;
        http_client::check(arguments, "")
    },
    build: None,
    doc: "`discovery.kubelet` finds the pods of one node by asking its kubelet.",
};

const ATTACH_METADATA: Schema = Schema {
    attributes: &[
        Attribute::with_default(
            "namespace",
            Kind::Bool,
            "false",
            "Labels and annotations of the namespace.",
        ),
        Attribute::with_default("node", Kind::Bool, "false", "Labels and annotations of the node."),
    ],
    blocks: &[],
};

const NAMESPACES: Schema = Schema {
    attributes: &[
        Attribute::with_default("names", Kind::List(&Kind::String), "[]", "Namespaces by name."),
        Attribute::with_default(
            "own_namespace",
            Kind::Bool,
            "false",
            "The namespace that the program runs in.",
        ),
    ],
    blocks: &[],
};

const SELECTORS: Schema = Schema {
    attributes: &[
        Attribute::optional("field", Kind::String, "Field selector: `spec.nodeName=node-1`."),
        Attribute::optional("label", Kind::String, "Label selector: `app=shop,tier in (a, b)`."),
        Attribute::required(
            "role",
            Kind::String,
            "Kind of the objects that the selector picks from.",
        ),
    ],
    blocks: &[],
};

fn check_kubernetes(arguments: &Arguments) -> Result<(), ArgumentError> {
    let roles = ROLES.map(|(role, _)| role);
    checks::choice(arguments, "", "role", &roles)?;
    let role = arguments.string("role");
    let allowed = ROLES
        .iter()
        .find(|(name, _)| *name == &*role)
        .map_or(&[][..], |(_, allowed)| allowed);
    let mut seen = Vec::new();
    for (index, selector) in arguments.blocks("selectors").enumerate() {
        let path = format!("selectors[{index}].");
        let of = selector.body.string("role");
        checks::choice(&selector.body, &path, "role", &roles)?;
        if !allowed.contains(&of.as_ref()) {
            let message = format!(
                "the role {role} has no selectors of the role {of}; it has: {}",
                allowed.join(", ")
            );
            return Err(checks::error(format!("{path}role"), message));
        }
        if seen.contains(&of) {
            let message = format!("there is a selector of the role {of} already");
            return Err(checks::error(format!("{path}role"), message));
        }
        let (label, field) = (selector.body.string("label"), selector.body.string("field"));
        selectors::check_label(&label).map_err(|wrong| checks::error(format!("{path}label"), wrong))?;
        selectors::check_field(&field).map_err(|wrong| checks::error(format!("{path}field"), wrong))?;
        seen.push(of);
    }
    kubernetes_client::check(arguments, "")
}
