//! Turns signals into a shutdown token: the first SIGINT or SIGTERM starts a graceful stop, and the second signal ends
//! the process at once.

use tokio::signal::unix::{SignalKind, signal};

use alluvium_base::Shutdown;

/// Returns a token that the first SIGINT or SIGTERM cancels. At the second signal, the process exits with code 130.
pub(crate) fn shutdown_signal() -> anyhow::Result<Shutdown> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let token = Shutdown::new();
    let cancelled = token.clone();
    tokio::spawn(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        tracing::info!("stopping; a second signal ends the process at once");
        cancelled.cancel();
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        std::process::exit(130);
    });
    Ok(token)
}
