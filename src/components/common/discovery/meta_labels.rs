//! Labels that a discovery sets on a target: `__address__` and labels with the prefix `__meta_`.

use std::sync::Arc;

use serde_json::Value;

use crate::common::arguments::targets::Target;

/// Collects the labels of one target, or the labels that several targets of one object share.
#[derive(Clone, Debug)]
pub(crate) struct MetaLabels {
    prefix: &'static str,
    labels: Target,
}

impl MetaLabels {
    /// Creates an empty set. All label names in it begin with `prefix`, such as `__meta_consul_`.
    pub(crate) fn new(prefix: &'static str) -> Self {
        Self {
            prefix,
            labels: Target::new(),
        }
    }

    /// Sets a label to the text of a value.
    pub(crate) fn set(&mut self, name: &str, value: impl ToString) -> &mut Self {
        let name = format!("{}{name}", self.prefix);
        self.labels.insert(name.into(), value.to_string().into());
        self
    }

    /// Sets a label if there is a value.
    pub(crate) fn set_some(&mut self, name: &str, value: Option<impl ToString>) -> &mut Self {
        if let Some(value) = value {
            self.set(name, value);
        }
        self
    }

    /// Sets a label for each entry of a map. The label name consists of `name` and the key, in which `_` replaces
    /// invalid characters.
    pub(crate) fn set_each<K: AsRef<str>, V: ToString>(
        &mut self,
        name: &str,
        entries: impl IntoIterator<Item = (K, V)>,
    ) -> &mut Self {
        for (key, value) in entries {
            self.set(&format!("{name}{}", label_name(key.as_ref())), value);
        }
        self
    }

    /// Sets labels from a JSON response. Each pair of `labels` is a label name and the path of its value. Values other
    /// than text, numbers and booleans are skipped.
    pub(crate) fn set_json(&mut self, answer: &Value, labels: &[(&str, &str)]) -> &mut Self {
        for (name, path) in labels {
            match answer.pointer(path) {
                Some(Value::String(text)) => self.set(name, text),
                Some(value @ (Value::Number(_) | Value::Bool(_))) => self.set(name, value),
                _ => continue,
            };
        }
        self
    }

    /// Sets a label to a list of values, unless the list is empty. The separator precedes and follows each value.
    pub(crate) fn set_list<T: AsRef<str>>(&mut self, name: &str, separator: &str, values: &[T]) -> &mut Self {
        if values.is_empty() {
            return self;
        }
        let values: Vec<&str> = values.iter().map(AsRef::as_ref).collect();
        self.set(name, format!("{separator}{}{separator}", values.join(separator)))
    }

    /// Returns the labels without an address.
    pub(crate) fn into_target(self) -> Target {
        self.labels
    }

    /// Returns the target with these labels and an address.
    pub(crate) fn with_address(&self, address: impl Into<Arc<str>>) -> Target {
        let mut target = self.labels.clone();
        target.insert("__address__".into(), address.into());
        target
    }
}

/// Converts a text to a label name as Prometheus does: every character except ASCII letters, digits and `_` becomes
/// `_`.
pub fn label_name(text: &str) -> String {
    let keep = |char: char| if char.is_ascii_alphanumeric() { char } else { '_' };
    text.chars().map(keep).collect()
}

/// Joins host and port to an address, with brackets around an IPv6 host.
pub(crate) fn host_port(host: &str, port: impl std::fmt::Display) -> String {
    if host.contains(':') && !host.starts_with('[') {
        format!("[{host}]:{port}")
    } else {
        format!("{host}:{port}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_get_the_prefix_and_characters_that_a_label_may_have() {
        let mut labels = MetaLabels::new("__meta_x_");
        labels.set("port", 80).set_some("zone", None::<&str>);
        labels.set_each("label_", [("app.kubernetes.io/name", "shop"), ("\u{e4}", "")]);
        let target = labels.with_address(host_port("::1", 80));
        let shown: Vec<String> = target.iter().map(|(name, value)| format!("{name}={value}")).collect();
        assert_eq!(
            shown,
            [
                "__address__=[::1]:80",
                "__meta_x_label__=",
                "__meta_x_label_app_kubernetes_io_name=shop",
                "__meta_x_port=80"
            ]
        );
    }
}
