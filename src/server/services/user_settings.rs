//! `settings.v1`: settings that pages keep on the server for each tenant.
//!
//! In: names and values. Out: the stored names and values. All settings of a tenant are one small JSON document on the
//! shelf. Their number and their size are limited.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::server::services::shelf::{shelf_error, with_shelf};
use crate::server::state::shared::ServerState;
use crate::server::state::tenant::one_tenant;
use crate::store::tables::shelf::Shelf;
use alluvium_profile::TenantId;
use alluvium_wire::connect::{Code, ConnectError};
use alluvium_wire::proto::settings::{
    DeleteSettingsRequest, DeleteSettingsResponse, GetSettingsRequest, GetSettingsResponse, SetSettingsRequest,
    SetSettingsResponse, Setting, SettingsService,
};
use alluvium_wire::service::{Call, CallResult};

/// Name of the document on the shelf.
const DOCUMENT: &str = "settings.json";
/// Maximum number of settings of a tenant.
const MAX_SETTINGS: usize = 1000;
/// Maximum length of a name in bytes.
const MAX_NAME_BYTES: usize = 256;
/// Maximum size of all names and values of a tenant together, in bytes.
const MAX_BYTES: usize = 1 << 20;

/// Reads and changes settings on the shelf.
#[derive(Clone)]
pub(in crate::server) struct UserSettings(pub(in crate::server) ServerState);

/// The settings of a tenant by name.
type Settings = BTreeMap<String, StoredSetting>;

#[derive(Debug, Clone, Serialize, Deserialize)]
struct StoredSetting {
    value: String,
    /// Unix time in milliseconds.
    modified_at: i64,
}

impl SettingsService for UserSettings {
    async fn get(&self, call: Call<GetSettingsRequest>) -> CallResult<GetSettingsResponse> {
        let tenant = one_tenant(&call.tenants)?;
        let settings = with_shelf(&self.0, move |shelf| read(shelf, &tenant)).await?;
        let settings = settings.into_iter().map(message).collect();
        Ok(GetSettingsResponse { settings }.into())
    }

    /// Stores a setting. If the stored setting was modified later than the given one, fails and changes nothing.
    async fn set(&self, call: Call<SetSettingsRequest>) -> CallResult<SetSettingsResponse> {
        let (tenant, request) = (one_tenant(&call.tenants)?, call.request);
        let mut new_setting = request
            .setting
            .ok_or_else(|| ConnectError::invalid("the setting is missing in the request"))?;
        if new_setting.name.is_empty() || new_setting.name.len() > MAX_NAME_BYTES {
            let message = format!("the name of a setting must be 1 to {MAX_NAME_BYTES} bytes long");
            return Err(ConnectError::invalid(message));
        }
        if new_setting.modified_at == 0 {
            new_setting.modified_at = chrono::Utc::now().timestamp_millis();
        }
        let stored = new_setting.clone();
        with_shelf(&self.0, move |shelf| {
            change(shelf, &tenant, |settings| insert(settings, stored))
        })
        .await?;
        let setting = Some(new_setting);
        Ok(SetSettingsResponse { setting }.into())
    }

    async fn delete(&self, call: Call<DeleteSettingsRequest>) -> CallResult<DeleteSettingsResponse> {
        let (tenant, name) = (one_tenant(&call.tenants)?, call.request.name);
        if name.is_empty() {
            return Err(ConnectError::invalid("the name of the setting to delete is missing"));
        }
        let remove = move |settings: &mut Settings| {
            settings.remove(&name);
            Ok(())
        };
        with_shelf(&self.0, move |shelf| change(shelf, &tenant, remove)).await?;
        Ok(DeleteSettingsResponse {}.into())
    }
}

fn message((name, stored): (String, StoredSetting)) -> Setting {
    Setting {
        name,
        value: stored.value,
        modified_at: stored.modified_at,
    }
}

fn read(shelf: &Shelf, tenant: &TenantId) -> Result<Settings, ConnectError> {
    let Some(bytes) = shelf.read(tenant, DOCUMENT).map_err(shelf_error)? else {
        return Ok(Settings::new());
    };
    serde_json::from_slice(&bytes).map_err(|error| {
        tracing::error!(tenant = %tenant, error = %error, "settings document is damaged");
        ConnectError::new(Code::Internal, "the settings document of the tenant is damaged")
    })
}

/// Changes the settings of a tenant. If `change` fails, nothing is written.
fn change(
    shelf: &Shelf,
    tenant: &TenantId,
    change: impl FnOnce(&mut Settings) -> Result<(), ConnectError>,
) -> Result<(), ConnectError> {
    shelf.exclusively(|| {
        let mut settings = read(shelf, tenant)?;
        change(&mut settings)?;
        let text = serde_json::to_vec(&settings)
            .map_err(|error| ConnectError::new(Code::Internal, format!("cannot write settings: {error}")))?;
        shelf.write(tenant, DOCUMENT, &text).map_err(shelf_error)
    })
}

fn insert(settings: &mut Settings, setting: Setting) -> Result<(), ConnectError> {
    if let Some(existing) = settings.get(&setting.name)
        && existing.modified_at > setting.modified_at
    {
        let message = format!(
            "the stored setting `{}` was modified later than the given one, at Unix millisecond {}",
            setting.name, existing.modified_at
        );
        return Err(ConnectError::new(Code::AlreadyExists, message));
    }
    let stored = StoredSetting {
        value: setting.value,
        modified_at: setting.modified_at,
    };
    settings.insert(setting.name, stored);
    let bytes: usize = settings
        .iter()
        .map(|(name, stored)| name.len() + stored.value.len())
        .sum();
    if settings.len() > MAX_SETTINGS || bytes > MAX_BYTES {
        return Err(ConnectError::invalid(format!(
            "a tenant may have {MAX_SETTINGS} settings and {MAX_BYTES} bytes in all, not {} settings and {bytes} bytes",
            settings.len()
        )));
    }
    Ok(())
}
