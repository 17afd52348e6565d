//! `import.http`: modules from a URL that is polled.
//!
//! In: a request. Out: the body of the response, named after the ID of the import. Imported modules must not import
//! files, because a server must not choose which files of this machine are read.

use std::time::Duration;

use crate::common::http::fetch;
use crate::common::http::fetch::{Request, RequestArguments};
use crate::common::sources::fetch_error::FetchError;
use crate::common::sources::source;
use crate::common::sources::source::{Exports, Fetch};
use alluvium_lang::value::Value;
use alluvium_pipeline::component::{Definition, Stability, no_metrics};

/// The definition of the block.
pub(crate) const DEFINITION: Definition<RequestArguments> = Definition {
    name: "import.http",
    stability: Stability::GenerallyAvailable,
    exports: &[],
    metrics: no_metrics,
    build: Some(|context, arguments| {
        source::build(context, &*arguments, |context, arguments| {
            Ok(Remote {
                name: context.id.to_string(),
                request: Request::new(arguments, &context.user_agent)?,
            })
        })
    }),
    doc: "`import.http` makes the declarations at a URL usable as `LABEL.NAME`.",
};

struct Remote {
    name: String,
    request: Request,
}

impl Fetch for Remote {
    fn fetch(&self) -> Result<Exports, FetchError> {
        let response = self.request.ask();
        let text = Value::string(response.map_err(|error| FetchError::Remote(error.into()))?);
        let folder = fetch::folder(&self.request.url);
        Ok(source::module([(self.name.clone(), text)], Some(folder)))
    }

    fn interval(&self) -> Option<Duration> {
        Some(self.request.interval)
    }

    fn is_spread(&self) -> bool {
        true
    }
}
