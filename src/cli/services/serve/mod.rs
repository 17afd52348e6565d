//! `alluvium serve`: runs the server.

mod args;
mod options;
#[cfg(test)]
mod tests;

use crate::app::server;
use crate::app::signals;
use options::options;

pub(crate) use args::ServeArgs;

/// Runs the server until SIGINT or SIGTERM.
pub(crate) async fn run(args: ServeArgs) -> anyhow::Result<()> {
    server::run(options(args)?, signals::shutdown_signal()?).await
}
