//! Attributes of samples and mappings, and the labels that a series gets from the attributes of its resource and scope.
//!
//! As in Pyroscope, only texts, integers and lists with a single text or integer are used, and the first attribute with
//! a name wins. Characters that are not allowed in label names are replaced by `_`.

use std::borrow::Cow;
use std::sync::Arc;

use alluvium_profile::Labels;
use alluvium_profile::labels::{PROFILE_NAME, SERVICE_NAME};

/// Name of the attribute with the service's name.
pub(super) const SERVICE: &str = "service.name";

/// Name of the attribute with the build id of a mapping.
pub(super) const BUILD_ID: &str = "process.executable.build_id.gnu";

/// Name of the attribute whose value names the service if [`SERVICE`] is missing.
const EXECUTABLE: &str = "process.executable.name";

/// Name of a service if no attribute provides one.
const UNKNOWN_SERVICE: &str = "unknown_service";

/// An attribute whose name is a valid label name.
pub(super) struct Attribute<'m> {
    /// Name of the attribute; empty if the attribute is not used.
    pub name: Cow<'m, str>,
    /// Value of the attribute, if its kind is supported.
    pub value: Value<'m>,
    /// Unit of a number; may be empty.
    pub unit: &'m str,
}

/// The value of an attribute.
#[derive(Clone, Copy)]
pub(super) enum Value<'m> {
    /// No value, or a value of an unsupported kind.
    None,
    /// A text, which may be empty.
    Text(&'m str),
    /// Integer from `int_value`.
    Number(i64),
}

impl<'m> Attribute<'m> {
    /// Attribute without name and value.
    pub(super) const NONE: Self = Self {
        name: Cow::Borrowed(""),
        value: Value::None,
        unit: "",
    };

    /// Creates an attribute. Returns [`Attribute::NONE`] for a private name, which begins with `__`.
    pub(super) fn new(name: &'m str, value: Value<'m>, unit: &'m str) -> Self {
        if name.starts_with("__") {
            return Self::NONE;
        }
        let name = label_name(name);
        Self { name, value, unit }
    }

    /// Returns the length in bytes of the name, and of the value if it is a text.
    pub(super) fn text_bytes(&self) -> usize {
        let value = match self.value {
            Value::Text(text) => text.len(),
            Value::Number(_) | Value::None => 0,
        };
        self.name.len() + value
    }
}

/// Replaces each character that is not a letter, digit, dot or underscore by `_`.
fn label_name(name: &str) -> Cow<'_, str> {
    let is_plain = |character: char| character.is_ascii_alphanumeric() || matches!(character, '_' | '.');
    if name.chars().all(is_plain) {
        return Cow::Borrowed(name);
    }
    let plain = |character| if is_plain(character) { character } else { '_' };
    Cow::Owned(name.chars().map(plain).collect())
}

/// Labels that all profiles of a scope share.
#[derive(Debug, Default)]
pub(super) struct Common {
    /// Names and values of the labels, in the order of the request.
    pairs: Vec<(Arc<str>, Arc<str>)>,
    service: Option<Arc<str>>,
    executable: Option<Arc<str>>,
}

impl Common {
    /// Adds an attribute. The attributes of the resource must be added before those of the scope.
    pub(super) fn add(&mut self, attribute: &Attribute<'_>) {
        let value: Arc<str> = match attribute.value {
            Value::Text(text) if !text.is_empty() => text.into(),
            Value::Number(number) => number.to_string().into(),
            _ => return,
        };
        match &*attribute.name {
            "" => return,
            // This attribute becomes the label `service_name`.
            SERVICE => {
                self.service.get_or_insert(value);
                return;
            }
            EXECUTABLE => {
                self.executable.get_or_insert_with(|| value.clone());
            }
            _ => {}
        }
        self.pairs.push((attribute.name.as_ref().into(), value));
    }

    /// Returns the number of attributes that become labels.
    pub(super) fn len(&self) -> usize {
        self.pairs.len()
    }

    /// Returns the service of samples that name none.
    pub(super) fn service(&self) -> Cow<'_, str> {
        match (&self.service, &self.executable) {
            (Some(service), _) => Cow::Borrowed(service),
            (None, Some(executable)) => Cow::Owned(format!("{UNKNOWN_SERVICE}:{executable}")),
            (None, None) => Cow::Borrowed(UNKNOWN_SERVICE),
        }
    }

    /// Returns the labels of a profile with this name. `service` is the service that the profile's samples name.
    pub(super) fn labels(&self, name: &str, service: Option<&str>) -> Labels {
        let common_service = self.service();
        let service = service.unwrap_or(&common_service);
        let own_labels = [
            (PROFILE_NAME, name),
            (SERVICE_NAME, service),
            ("__delta__", "false"),
            ("__otel__", "true"),
        ];
        let own_labels = own_labels.map(|(name, value)| (Arc::from(name), Arc::from(value)));
        // `from_pairs` keeps the last of several labels with one name. The order is reversed: the first wins.
        Labels::from_pairs(self.pairs.iter().rev().cloned().chain(own_labels))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn common(attributes: &[(&str, Value<'_>)]) -> Common {
        let mut common = Common::default();
        for (name, value) in attributes {
            common.add(&Attribute::new(name, *value, ""));
        }
        common
    }

    #[test]
    fn the_first_of_a_name_wins_and_names_are_made_plain() {
        let common = common(&[
            ("k8s.pod/na me", Value::Text("one")),
            ("k8s.pod_na_me", Value::Text("two")),
            ("process.pid", Value::Number(-7)),
            ("__name__", Value::Text("mine")),
            ("service_name", Value::Text("mine")),
            ("none", Value::None),
            ("empty", Value::Text("")),
        ]);
        assert_eq!(
            common.labels("cpu", Some("shop")).to_string(),
            r#"{__delta__="false", __name__="cpu", __otel__="true", k8s.pod_na_me="one", process.pid="-7", "#
                .to_owned()
                + r#"service_name="shop"}"#
        );
    }

    #[test]
    fn the_service_is_that_of_the_samples_then_the_resource_then_the_program() {
        let service = |attributes: &[(&str, Value<'_>)], own_service: Option<&str>| {
            let labels = common(attributes).labels("cpu", own_service);
            labels.get("service_name").unwrap_or_default().to_owned()
        };
        let named = ("service.name", Value::Text("cart"));
        let program = ("process.executable.name", Value::Text("java"));
        assert_eq!(service(&[program, named], Some("shop")), "shop");
        assert_eq!(service(&[program, named], None), "cart");
        assert_eq!(service(&[program], None), "unknown_service:java");
        assert_eq!(service(&[], None), "unknown_service");
        assert!(common(&[named]).labels("cpu", None).get("service.name").is_none());
    }
}
