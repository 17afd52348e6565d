//! A remote configuration server, prepared from the settings of the `remotecfg` block.
//!
//! In: settings, the storage path. Out: identity, client, and the path of the cached configuration.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use sha2::{Digest, Sha256};
use url::Url;

use crate::app::remote::seed;
use alluvium_base::file::replace;
use alluvium_components::common::http::client::client_options;
use alluvium_components::common::http::values::http_url;
use alluvium_lang::argument_error::ArgumentError;
use alluvium_pipeline::check::settings::remote::RemoteSettings;
use alluvium_wire::client::HttpClient;
use alluvium_wire::collector::Identity;

/// Id of the module that contains the remote components, and name of the folder for cached configurations below the
/// storage path.
pub const MODULE: &str = "remotecfg";

/// A remote configuration server and the client for it.
pub(super) struct Endpoint {
    pub(super) settings: RemoteSettings,
    pub(super) identity: Identity,
    pub(super) base: Url,
    pub(super) client: HttpClient,
    /// File with the last valid configuration of this server.
    cache: PathBuf,
}

impl Endpoint {
    /// Reads certificates and builds the client, without connecting.
    pub(super) fn prepare(
        settings: &RemoteSettings,
        storage: &Path,
        user_agent: &Arc<str>,
    ) -> Result<Self, ArgumentError> {
        let error = |path: &str, message: String| ArgumentError {
            path: path.to_owned(),
            message,
        };
        let base = http_url(&settings.url).map_err(|failed| error("url", failed.to_string()))?;
        let options = client_options(&settings.client, user_agent).map_err(|errors| {
            let first = errors.0.into_iter().next();
            first.unwrap_or_else(|| error("", "invalid arguments".to_owned()))
        })?;
        let client = HttpClient::new(&options).map_err(|failed| error("", failed.to_string()))?;
        let id = if settings.id.is_empty() {
            seed::id(storage)
                .map_err(|failed| error("id", format!("cannot store an id under the storage path: {failed}")))?
                .into()
        } else {
            settings.id.clone()
        };
        let mut attributes = settings.attributes.clone();
        attributes.insert("collector.os".into(), std::env::consts::OS.into());
        attributes.insert(
            "collector.version".into(),
            concat!("v", env!("CARGO_PKG_VERSION")).into(),
        );
        let identity = Identity {
            id,
            name: settings.name.clone(),
            attributes,
        };
        let cache = storage.join(MODULE).join(format!("{}.alloy", key(&identity, settings)));
        Ok(Self {
            settings: settings.clone(),
            identity,
            base,
            client,
            cache,
        })
    }

    /// Reads the last valid configuration of this server from the cache.
    pub(super) async fn read_cache(&self) -> std::io::Result<Arc<str>> {
        tokio::fs::read_to_string(&self.cache).await.map(Arc::from)
    }

    /// Caches a configuration for the next start.
    pub(super) async fn write_cache(&self, text: Arc<str>) {
        let path = self.cache.clone();
        let written = tokio::task::spawn_blocking(move || {
            path.parent().map_or(Ok(()), std::fs::create_dir_all)?;
            replace(&path, text.as_bytes())
        });
        let written = written.await.unwrap_or_else(|error| Err(std::io::Error::other(error)));
        if let Err(error) = written {
            tracing::error!(%error, "cannot cache the remote configuration on disk");
        }
    }
}

/// Returns the name of the cache file without its extension. Each combination of server, collector and attributes
/// has its own file.
fn key(identity: &Identity, settings: &RemoteSettings) -> String {
    let mut text = format!("{}\0{}\0{}", settings.url, identity.id, identity.name);
    for (key, value) in &settings.attributes {
        text.push_str(&format!("\0{key}\0{value}"));
    }
    hash(&text)
}

/// Returns the first 8 bytes of the SHA-256 of a text as hexadecimal digits, which are enough to distinguish texts.
pub(super) fn hash(text: &str) -> String {
    let digest = Sha256::digest(text.as_bytes());
    digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}
