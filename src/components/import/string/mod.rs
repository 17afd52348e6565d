//! `import.string`: modules from a string of the configuration, often another component's export.
//!
//! In: the text. Out: that text, under the id of the import.

use std::sync::Arc;
use std::time::Duration;

use crate::components::common::source::{self, Exports, Fetch};
use crate::lang::schema::{Arguments, Attribute, Kind, Schema};
use crate::lang::value::Value;
use crate::pipeline::component::{Component, ComponentError, Context, Definition, Stability};

/// The definition of the block.
pub const DEFINITION: Definition = Definition {
    name: "import.string",
    stability: Stability::GenerallyAvailable,
    arguments: &Schema {
        attributes: &[Attribute::required(
            "content",
            Kind::OptionalSecret,
            "Text of the module.",
        )],
        blocks: &[],
    },
    exports: &[],
    validate: |_| Ok(()),
    build: Some(build),
    doc: "`import.string` makes the declarations in a string usable as `LABEL.NAME`.",
};

struct Text {
    name: String,
    content: Value,
}

fn build(context: Context, arguments: Arguments) -> Result<Arc<dyn Component>, ComponentError> {
    source::build(context, &arguments, |context, arguments| {
        Ok(Arc::new(Text {
            name: context.id.to_string(),
            content: arguments.value("content").clone(),
        }))
    })
}

impl Fetch for Text {
    fn fetch(&self) -> Result<Exports, String> {
        Ok(source::module([(self.name.clone(), self.content.clone())], None))
    }

    fn interval(&self) -> Option<Duration> {
        None
    }
}
