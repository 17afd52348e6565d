//! Runs the configuration from a server, loaded as a whole or not at all.
//!
//! In: texts. Out: the components of one controller, and the outcome of the load.

use std::path::Path;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::app::reload::{give_back_later, show};
use crate::app::remote::endpoint::hash;
use crate::app::remote::metrics::RemoteMetrics;
use alluvium_lang::Diagnostics;
use alluvium_pipeline::Controller;

/// The controller of the remote configuration and the text that it runs.
pub(super) struct Running {
    pub(super) controller: Controller,
    /// Name of the text in diagnostics: a path in the folder of the local configuration.
    pub(super) name: Arc<str>,
    pub(super) metrics: RemoteMetrics,
    in_force: Mutex<Option<Arc<str>>>,
}

impl Running {
    /// Creates the state of a controller that runs no remote configuration yet.
    pub(super) fn new(controller: Controller, name: &Path, metrics: RemoteMetrics) -> Self {
        Self {
            controller,
            name: name.display().to_string().into(),
            metrics,
            in_force: Mutex::default(),
        }
    }

    /// Returns the text that the controller runs.
    pub(super) fn in_force(&self) -> Option<Arc<str>> {
        self.in_force.lock().clone()
    }

    /// Loads a configuration. On an error, the running configuration stays in force.
    pub(super) async fn load(&self, text: &Arc<str>) -> Result<(), Diagnostics> {
        let result = self.controller.load(vec![(self.name.clone(), text.clone())]).await;
        tokio::spawn(give_back_later());
        match result {
            Ok(warnings) => {
                show(&warnings);
                *self.in_force.lock() = Some(text.clone());
                self.metrics.in_force(Some(&hash(text)));
                Ok(())
            }
            Err(diagnostics) => {
                show(&diagnostics);
                Err(diagnostics)
            }
        }
    }

    /// Stops all components after the remote configuration was turned off.
    pub(super) async fn stop_all(&self) {
        match self.controller.load(vec![(self.name.clone(), "")]).await {
            Ok(_) => {
                *self.in_force.lock() = None;
                self.metrics.in_force(None);
                tracing::info!("remote configuration is off; its components are stopped");
            }
            // Only a stopped controller refuses an empty configuration.
            Err(error) => {
                tracing::debug!(%error, "the components of the remote configuration have already stopped");
            }
        }
    }
}
