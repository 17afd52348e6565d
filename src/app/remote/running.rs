//! The configuration from a server that runs: loaded as a whole or not at all.
//!
//! In: texts. Out: components of one controller; what became of the text.

use std::path::Path;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::app::reload::{give_back_later, show};
use crate::app::remote::endpoint::hash;
use crate::app::remote::metrics::RemoteMetrics;
use crate::lang::Diagnostics;
use crate::pipeline::Controller;

/// The controller of the configuration, and the text that it runs.
pub(super) struct Running {
    pub(super) controller: Controller,
    /// What the text is called in diagnostics; its folder is that of the file's configuration.
    pub(super) name: Arc<str>,
    pub(super) metrics: RemoteMetrics,
    in_force: Mutex<Option<Arc<str>>>,
}

impl Running {
    /// A controller that runs nothing yet.
    pub(super) fn new(controller: Controller, name: &Path, metrics: RemoteMetrics) -> Self {
        Self {
            controller,
            name: name.display().to_string().into(),
            metrics,
            in_force: Mutex::default(),
        }
    }

    /// The text that the controller runs.
    pub(super) fn in_force(&self) -> Option<Arc<str>> {
        self.in_force.lock().clone()
    }

    /// Loads a configuration. When it is refused nothing has changed.
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

    /// Stops what runs: nobody asks for it any more.
    pub(super) async fn stop_all(&self) {
        match self.controller.load(vec![(self.name.clone(), "")]).await {
            Ok(_) => {
                *self.in_force.lock() = None;
                self.metrics.in_force(None);
                tracing::info!("there is no configuration from a server any more; its components are stopped");
            }
            // Only a controller that has stopped refuses to run nothing.
            Err(error) => {
                tracing::debug!(%error, "components of the configuration from the server were stopped before");
            }
        }
    }
}
