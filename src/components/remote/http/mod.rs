//! `remote.http`: polls a URL and exports its content.
//!
//! In: a request. Out: the export `content`, a string or a secret, without white space around it. If a response has a
//! status other than 200, the last content stays.

use std::time::Duration;

use crate::common::http::fetch::{Request, RequestArguments};
use crate::common::sources::fetch_error::FetchError;
use crate::common::sources::source;
use crate::common::sources::source::{Exports, Fetch};
use alluvium_lang::body::arguments;
use alluvium_pipeline::component::{Definition, Stability, no_metrics};

arguments! {
    /// Arguments of `remote.http`.
    pub(crate) struct HttpArguments {
        /// If true, the content is exported as a secret, which is never shown.
        is_secret: bool = false,
    }
    shared { request: RequestArguments }
}

/// The definition of the component.
pub(crate) const DEFINITION: Definition<HttpArguments> = Definition {
    name: "remote.http",
    stability: Stability::GenerallyAvailable,
    exports: &[source::CONTENT_EXPORT],
    metrics: no_metrics,
    build: Some(|context, arguments| {
        source::build(context, &arguments, |context, arguments: &HttpArguments| {
            Ok(Remote {
                request: Request::new(&arguments.request, &context.user_agent)?,
                is_secret: arguments.is_secret,
            })
        })
    }),
    doc: "`remote.http` exports the content at a URL and follows its changes.",
};

struct Remote {
    request: Request,
    is_secret: bool,
}

impl Fetch for Remote {
    fn fetch(&self) -> Result<Exports, FetchError> {
        let response = self.request.ask();
        let text = response.map_err(|error| FetchError::Remote(error.into()))?;
        Ok(source::content(text.trim(), self.is_secret.into()))
    }

    fn interval(&self) -> Option<Duration> {
        Some(self.request.interval)
    }

    fn is_spread(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests;
