//! `remote.kubernetes.configmap`: the values of a ConfigMap.
//!
//! The component does not read the field `binaryData`, which contains the values that are not text.

use crate::common::kubernetes::objects::ConfigMap;
use crate::common::kubernetes::values::{self, Values, ValuesArguments};
use alluvium_lang::value::Value;
use alluvium_pipeline::component::Definition;

/// The definition of the component.
pub(crate) const DEFINITION: Definition<ValuesArguments> = values::definition::<ConfigMap>(
    "remote.kubernetes.configmap",
    "`remote.kubernetes.configmap` reads a ConfigMap and follows its changes.",
);

impl Values for ConfigMap {
    fn values(self) -> (Vec<(String, Value)>, Vec<String>) {
        let text = |(key, text): (String, String)| (key, Value::string(text));
        (self.data.into_iter().map(text).collect(), Vec::new())
    }
}
