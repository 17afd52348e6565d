//! The default id of this collector. It is generated once and stored in the same file as in Alloy, so that a collector
//! that takes over Alloy's storage folder keeps its id.

use std::io;
use std::path::Path;
use std::time::SystemTime;

use serde_json::json;
use uuid::Uuid;

use alluvium_base::file::replace;

/// Name of the file, the same as Alloy's.
const FILE: &str = "alloy_seed.json";

/// Reads the id under `storage`. If the id is missing or cannot be read, generates and stores a new id.
pub(super) fn id(storage: &Path) -> io::Result<String> {
    let path = storage.join(FILE);
    if let Ok(bytes) = std::fs::read(&path) {
        let stored = serde_json::from_slice::<serde_json::Value>(&bytes).ok();
        let stored = stored.as_ref().and_then(|seed| seed["UID"].as_str());
        if let Some(id) = stored.filter(|id| !id.is_empty()) {
            return Ok(id.to_owned());
        }
        tracing::warn!(path = %path.display(), "the file contains no collector id; generating a new one");
    }
    let id = Uuid::new_v4().to_string();
    let created = chrono::DateTime::<chrono::Utc>::from(SystemTime::now());
    let seed = json!({
        "UID": id,
        "created_at": created.to_rfc3339_opts(chrono::SecondsFormat::Nanos, true),
        "version": concat!("v", env!("CARGO_PKG_VERSION")),
    });
    std::fs::create_dir_all(storage)?;
    replace(&path, seed.to_string().as_bytes())?;
    Ok(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_id_is_made_once_and_one_of_alloys_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let first = id(folder.path()).unwrap();
        assert_eq!(first.len(), 36);
        assert_eq!(id(folder.path()).unwrap(), first);
        let alloys = r#"{"UID":"u","created_at":"2026-01-01T00:00:00Z","version":"v1"}"#;
        std::fs::write(folder.path().join(FILE), alloys).unwrap();
        assert_eq!(id(folder.path()).unwrap(), "u");
        std::fs::write(folder.path().join(FILE), "{").unwrap();
        assert_ne!(id(folder.path()).unwrap(), "u");
    }
}
