//! `import.string`: modules from a string in the configuration, often the export of another component.
//!
//! In: the text. Out: the same text, named after the ID of the import.

use std::time::Duration;

use crate::common::sources::fetch_error::FetchError;
use crate::common::sources::source;
use crate::common::sources::source::{Exports, Fetch};
use alluvium_lang::attribute::OptionalSecret;
use alluvium_lang::body::arguments;
use alluvium_lang::value::Value;
use alluvium_pipeline::component::{Definition, Stability, no_metrics};

arguments! {
    /// Arguments of `import.string`.
    pub(crate) struct StringArguments {
        /// Text that contains the declarations.
        content: OptionalSecret,
    }
}

/// The definition of the block.
pub(crate) const DEFINITION: Definition<StringArguments> = Definition {
    name: "import.string",
    stability: Stability::GenerallyAvailable,
    exports: &[],
    metrics: no_metrics,
    build: Some(|context, arguments| {
        source::build(context, &arguments, |context, arguments: &StringArguments| {
            Ok(Text {
                name: context.id.to_string(),
                content: arguments.content.0.clone(),
            })
        })
    }),
    doc: "`import.string` makes the declarations in a string usable as `LABEL.NAME`.",
};

struct Text {
    name: String,
    content: Value,
}

impl Fetch for Text {
    fn fetch(&self) -> Result<Exports, FetchError> {
        Ok(source::module([(self.name.clone(), self.content.clone())], None))
    }

    fn interval(&self) -> Option<Duration> {
        None
    }
}
