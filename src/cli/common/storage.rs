//! Flags of the commands that use only the storage section of a server's configuration.

use std::path::PathBuf;

use clap::Args;

use crate::app::config;
use crate::app::storage::StorageSection;
use crate::store::tables::bucket::BucketOptions;

/// The configuration file and the flags that take precedence over it.
#[derive(Debug, Clone, Default, Args)]
pub struct StorageSource {
    /// The server's configuration file. Only its section `storage` is used.
    #[arg(long, visible_alias = "config.file", value_name = "FILE")]
    pub config: Option<PathBuf>,
    #[command(flatten)]
    flags: StorageSection,
}

impl StorageSource {
    /// Returns true if the configuration file or `--storage.backend` was given.
    pub(crate) fn is_given(&self) -> bool {
        self.config.is_some() || self.flags.backend.is_some()
    }

    /// Returns the bucket, if one is configured.
    pub fn bucket(&self) -> anyhow::Result<Option<BucketOptions>> {
        let file = self.config.as_deref().map(config::read).transpose()?;
        self.flags.clone().over(file.unwrap_or_default().storage).bucket()
    }
}
