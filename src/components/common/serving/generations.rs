//! The run loop of a component that listens: after a change of its arguments, new listeners take over while the old
//! listeners finish their requests.
//!
//! In: a function that creates the listeners for the current arguments. Out: served connections, and the health of the
//! component. The function opens no ports: `listening` opens them when the component is built or updated.

use axum::Router;
use tokio::sync::Notify;
use tokio::task::JoinSet;

use alluvium_admin::listen::Listener;
use alluvium_base::Shutdown;
use alluvium_pipeline::component::{ComponentError, HealthSender, HealthState};

/// The listeners for one set of arguments.
pub(crate) struct Generation {
    /// The listeners, each with its routes.
    pub(crate) listeners: Vec<(Listener, Router)>,
    /// The addresses of the listeners, for the health of the component.
    pub(crate) addresses: String,
}

/// Serves until the shutdown, and then until the requests in progress have finished. `changed` wakes the loop after a
/// change of the arguments. `next` creates the listeners. The loop moves each listener into a task and keeps no
/// reference to its socket, so the socket closes when the listener ends.
pub(crate) async fn serve(
    mut next: impl FnMut() -> Result<Generation, ComponentError>,
    changed: &Notify,
    health: &HealthSender,
    shutdown: Shutdown,
) -> Result<(), ComponentError> {
    let mut running = JoinSet::new();
    loop {
        let stop = shutdown.child_token();
        let Generation { listeners, addresses } = next()?;
        for (listener, router) in listeners {
            running.spawn(listener.serve(router, stop.clone()));
        }
        health(HealthState::Healthy, format!("listening on {addresses}"));
        tokio::select! {
            () = shutdown.cancelled() => {
                while running.join_next().await.is_some() {}
                return Ok(());
            }
            () = changed.notified() => stop.cancel(),
        }
        while running.try_join_next().is_some() {}
    }
}
