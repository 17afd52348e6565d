//! `import.http`: modules from a URL, asked for again and again.
//!
//! In: a request. Out: the body of its answer, under the URL. What it holds may not import files: a server must not choose files of this machine.

use std::sync::Arc;
use std::time::Duration;

use crate::components::common::http_fetch::{self, Request};
use crate::components::common::source::{self, Exports, Fetch};
use crate::lang::schema::{Arguments, Schema};
use crate::lang::value::Value;
use crate::pipeline::component::{Component, ComponentError, Context, Definition, Stability};

/// The definition of the block.
pub const DEFINITION: Definition = Definition {
    name: "import.http",
    stability: Stability::GenerallyAvailable,
    arguments: &Schema {
        attributes: &[
            http_fetch::BODY,
            http_fetch::HEADERS,
            http_fetch::METHOD,
            http_fetch::POLL_FREQUENCY,
            http_fetch::POLL_TIMEOUT,
            http_fetch::URL,
        ],
        blocks: &[http_fetch::CLIENT],
    },
    exports: &[],
    validate: http_fetch::check,
    build: Some(build),
    doc: "`import.http` makes the declarations at a URL usable as `LABEL.NAME`.",
};

struct Remote {
    name: String,
    request: Request,
}

fn build(context: Context, arguments: Arguments) -> Result<Arc<dyn Component>, ComponentError> {
    source::build(context, &arguments, |context, arguments| {
        Ok(Arc::new(Remote {
            name: context.id.to_string(),
            request: Request::new(arguments, &context.user_agent)?,
        }))
    })
}

impl Fetch for Remote {
    fn fetch(&self) -> Result<Exports, String> {
        let text = Value::string(self.request.ask()?);
        let folder = http_fetch::folder(&self.request.url);
        Ok(source::module([(self.name.clone(), text)], Some(folder)))
    }

    fn interval(&self) -> Option<Duration> {
        Some(self.request.frequency)
    }
}
