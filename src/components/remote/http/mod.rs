//! `remote.http`: the answer of a URL, asked for again and again.
//!
//! In: a request. Out: the export `content`, a string or a secret, without white space around it. An answer that is not 200 leaves the last content.

use std::sync::Arc;
use std::time::Duration;

use crate::components::common::http_fetch::{self, Request};
use crate::components::common::source::{self, Exports, Fetch};
use crate::lang::schema::{Arguments, Schema};
use crate::pipeline::component::{Component, ComponentError, Context, Definition, Stability};

/// The definition of the component.
pub const DEFINITION: Definition = Definition {
    name: "remote.http",
    stability: Stability::GenerallyAvailable,
    arguments: &Schema {
        attributes: &[
            http_fetch::BODY,
            http_fetch::HEADERS,
            source::IS_SECRET,
            http_fetch::METHOD,
            http_fetch::POLL_FREQUENCY,
            http_fetch::POLL_TIMEOUT,
            http_fetch::URL,
        ],
        blocks: &[http_fetch::CLIENT],
    },
    exports: &[source::CONTENT_EXPORT],
    validate: http_fetch::check,
    build: Some(build),
    doc: "`remote.http` asks a URL for a value and follows its changes.",
};

struct Remote {
    request: Request,
    is_secret: bool,
}

fn build(context: Context, arguments: Arguments) -> Result<Arc<dyn Component>, ComponentError> {
    source::build(context, &arguments, |context, arguments| {
        Ok(Arc::new(Remote {
            request: Request::new(arguments, &context.user_agent)?,
            is_secret: arguments.bool("is_secret"),
        }))
    })
}

impl Fetch for Remote {
    fn fetch(&self) -> Result<Exports, String> {
        let text = self.request.ask()?;
        Ok(source::content(text.trim(), self.is_secret))
    }

    fn interval(&self) -> Option<Duration> {
        Some(self.request.frequency)
    }
}

#[cfg(test)]
mod tests;
