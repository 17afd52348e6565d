//! The content of one request: either profiles of one tenant as a push, or a single upload for `/ingest`.
//!
//! In: the profiles of a batch. Out: parcels, with the position of each profile in the batch. The module does no I/O.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use crate::pyroscope::write::labels;
use alluvium_profile::labels::{PROFILE_NAME, SERVICE_NAME};
use alluvium_profile::upload::Upload;
use alluvium_profile::{Labels, RawProfile};

/// A label that a server derives from the name of an upload. For the name `app{label=value}`, the label has the value
/// `app`. The server sets the label only if the braces contain a `service_name`.
const APP_NAME: &str = "app_name";

/// The profiles that are sent in one request.
pub(super) struct Parcel {
    /// Positions of the profiles in the batch.
    pub indices: Vec<usize>,
    /// Tenant of the profiles, if a label names it.
    pub tenant: Option<Arc<str>>,
    /// The content of the request.
    pub content: Content,
}

/// The content of one request.
pub(super) enum Content {
    /// A push of these profiles, in the order of `indices`.
    Push(Vec<RawProfile>),
    /// An upload for `/ingest`.
    Upload {
        upload: Upload,
        /// The query, which contains the upload's name.
        query: String,
        /// Id by which a server recognizes an upload that is sent again.
        id: Arc<str>,
    },
}

/// Positions in the batch, and the profiles at these positions.
type Push = (Vec<usize>, Vec<RawProfile>);

/// Splits a batch into parcels. `tenant_label` is the label that names the tenant of a profile. If `is_split` is true,
/// each profile is a parcel.
pub(super) fn pack(profiles: &[RawProfile], tenant_label: Option<&str>, is_split: bool) -> Vec<Parcel> {
    let mut pushes: BTreeMap<Option<Arc<str>>, Push> = BTreeMap::new();
    let mut parcels = Vec::new();
    for (index, profile) in profiles.iter().enumerate() {
        let tenant = tenant_label.and_then(|label| profile.labels.get(label)).map(Arc::from);
        let sent = labels::without_tenant(&profile.labels);
        if let Some(upload) = Upload::read(&profile.pprof) {
            parcels.push(Parcel {
                indices: vec![index],
                tenant,
                content: Content::Upload {
                    query: query(&upload, &sent),
                    upload,
                    id: profile.id.clone(),
                },
            });
        } else {
            let profile = RawProfile {
                labels: sent,
                ..profile.clone()
            };
            if is_split {
                parcels.push(Parcel {
                    indices: vec![index],
                    tenant,
                    content: Content::Push(vec![profile]),
                });
            } else {
                let (indices, push) = pushes.entry(tenant).or_default();
                indices.push(index);
                push.push(profile);
            }
        }
    }
    let pushes = pushes.into_iter().map(|(tenant, (indices, push))| Parcel {
        indices,
        tenant,
        content: Content::Push(push),
    });
    parcels.extend(pushes);
    parcels
}

/// Returns the query of an upload. The labels become its parameter `name`, in the form `app{label=value}`.
fn query(upload: &Upload, labels: &Labels) -> String {
    let mut query = url::form_urlencoded::Serializer::new(String::new());
    query.append_pair("name", &name(labels));
    let name = query.finish();
    match &*upload.query {
        "" => name,
        rest => format!("{name}&{rest}"),
    }
}

/// Returns the name of an upload, `app{label=value,...}`. The server stores the text before the braces as the label
/// `service_name`, or as `app_name` if the braces contain a `service_name`. Therefore the braces omit a label
/// `service_name` or `app_name` whose value equals that text. The form has no escapes, so `_` replaces characters that
/// would end a value.
fn name(labels: &Labels) -> String {
    let service = labels.get(SERVICE_NAME).unwrap_or_default();
    let app = labels.get(PROFILE_NAME).unwrap_or(service);
    let is_written = |name: &str, value: &str| match name {
        PROFILE_NAME => false,
        SERVICE_NAME | APP_NAME => value != app,
        _ => true,
    };
    let mut text = app.to_owned();
    let mut separator = '{';
    for (name, value) in labels.iter().filter(|(name, value)| is_written(name, value)) {
        let _ = write!(text, "{separator}{name}={}", value.replace([',', '{', '}'], "_"));
        separator = ',';
    }
    if separator == ',' {
        text.push('}');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_an_upload_is_made_of_its_labels() {
        for (labels, expected) in [
            (
                &[("__name__", "shop.cpu"), ("service_name", "shop.cpu")][..],
                "shop.cpu",
            ),
            (
                &[
                    ("__name__", "shop.cpu"),
                    ("app_name", "shop.cpu"),
                    ("service_name", "cart"),
                    ("zone", "a,b}"),
                ],
                "shop.cpu{service_name=cart,zone=a_b_}",
            ),
            (&[("service_name", "cart")], "cart"),
        ] {
            assert_eq!(name(&Labels::from_pairs(labels.iter().copied())), expected);
        }
    }

    #[test]
    fn a_batch_becomes_a_push_a_tenant_and_each_upload() {
        let profile = |tenant: &str, bytes: Vec<u8>| RawProfile {
            labels: Labels::from_pairs([("__name__", "cpu"), ("__team__", tenant)]),
            id: "7b1d".into(),
            pprof: bytes.into(),
        };
        let upload = || Upload::head("format=jfr", "", "");
        let batch = [
            profile("b", vec![1]),
            profile("a", upload()),
            profile("", vec![2]),
            profile("b", vec![3]),
        ];
        let shown = |is_split: bool| {
            let parcels = pack(&batch, Some("__team__"), is_split);
            let shown = parcels.iter().map(|parcel| match &parcel.content {
                Content::Push(push) => format!("{:?} {:?} push of {}", parcel.indices, parcel.tenant, push[0].labels),
                Content::Upload { query, id, .. } => {
                    format!("{:?} {:?} {query} with the id {id}", parcel.indices, parcel.tenant)
                }
            });
            shown.collect::<Vec<String>>()
        };
        assert_eq!(
            shown(false),
            [
                r#"[1] Some("a") name=cpu&format=jfr with the id 7b1d"#,
                r#"[2] None push of {__name__="cpu"}"#,
                r#"[0, 3] Some("b") push of {__name__="cpu"}"#,
            ]
        );
        assert_eq!(
            shown(true),
            [
                r#"[0] Some("b") push of {__name__="cpu"}"#,
                r#"[1] Some("a") name=cpu&format=jfr with the id 7b1d"#,
                r#"[2] None push of {__name__="cpu"}"#,
                r#"[3] Some("b") push of {__name__="cpu"}"#,
            ]
        );
    }
}
