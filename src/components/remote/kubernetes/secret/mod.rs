//! `remote.kubernetes.secret`: the values of a Secret, as secrets.
//!
//! The component skips a value that is not text, such as a key store, and logs a warning.

use base64::Engine as _;

use crate::common::kubernetes::objects::Secret;
use crate::common::kubernetes::values::{self, Values, ValuesArguments};
use alluvium_lang::value::Value;
use alluvium_pipeline::component::Definition;

/// The definition of the component.
pub(crate) const DEFINITION: Definition<ValuesArguments> = values::definition::<Secret>(
    "remote.kubernetes.secret",
    "`remote.kubernetes.secret` reads a Secret and follows its changes.",
);

impl Values for Secret {
    fn values(self) -> (Vec<(String, Value)>, Vec<String>) {
        let (mut texts, mut others) = (Vec::new(), Vec::new());
        for (key, encoded) in self.data {
            let bytes = base64::engine::general_purpose::STANDARD.decode(encoded).ok();
            match bytes.and_then(|bytes| String::from_utf8(bytes).ok()) {
                Some(text) => texts.push((key, Value::Secret(text.into()))),
                None => others.push(key),
            }
        }
        (texts, others)
    }
}
