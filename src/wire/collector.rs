//! Client side of `collector.v1`, with which a collector requests its configuration from a server.
//!
//! In: a [`Caller`] of the server. Out: the server's responses. The module keeps no state between calls and does not
//! interpret the configuration.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use crate::call::{CallError, Caller};
use crate::proto::collector::{
    GetConfigRequest, GetConfigResponse, RegisterCollectorRequest, RegisterCollectorResponse, RemoteConfigStatus,
    RemoteConfigStatuses, UnregisterCollectorRequest, UnregisterCollectorResponse,
};

/// The identity that a collector presents to the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// Id of the collector; never empty.
    pub id: Arc<str>,
    /// Name of the collector that users see.
    pub name: Arc<str>,
    /// Attributes by which the server chooses a configuration.
    pub attributes: BTreeMap<Arc<str>, Arc<str>>,
}

/// Status of the configuration that the server sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Status {
    /// The configuration runs.
    Applied,
    /// The configuration does not run, for this reason.
    Failed(String),
}

/// The server's response to a request for the configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// The configuration with the hash in the request is still current.
    NotModified,
    /// A configuration to run.
    Config {
        /// Text of the configuration.
        content: String,
        /// Hash to send with the next request, so that the server need not send the same text again. May be empty.
        hash: String,
    },
}

/// Registers the collector. The caller repeats this when the identity changes.
pub async fn register(caller: &Caller, identity: &Identity) -> Result<(), CallError> {
    let request = RegisterCollectorRequest {
        id: identity.id.to_string(),
        name: identity.name.to_string(),
        local_attributes: attributes(identity),
        ..RegisterCollectorRequest::default()
    };
    let route = "collector.v1.CollectorService/RegisterCollector";
    let RegisterCollectorResponse {} = caller.call(route, &request).await?;
    Ok(())
}

/// Removes the registration of the collector.
pub async fn unregister(caller: &Caller, id: &str) -> Result<(), CallError> {
    let request = UnregisterCollectorRequest { id: id.to_owned() };
    let route = "collector.v1.CollectorService/UnregisterCollector";
    let UnregisterCollectorResponse {} = caller.call(route, &request).await?;
    Ok(())
}

/// Requests the configuration. `hash` is the hash from the last response, or empty if there is none. `status` is set
/// only when it differs from the last status sent.
pub async fn get_config(
    caller: &Caller,
    identity: &Identity,
    hash: &str,
    status: Option<&Status>,
) -> Result<Answer, CallError> {
    let status = status.map(|status| match status {
        Status::Applied => (RemoteConfigStatuses::Applied, String::new()),
        Status::Failed(message) => (RemoteConfigStatuses::Failed, message.clone()),
    });
    let request = GetConfigRequest {
        id: identity.id.to_string(),
        hash: hash.to_owned(),
        local_attributes: attributes(identity),
        remote_config_status: status.map(|(status, error_message)| RemoteConfigStatus {
            status: status.into(),
            error_message,
        }),
        ..GetConfigRequest::default()
    };
    let route = "collector.v1.CollectorService/GetConfig";
    let answer: GetConfigResponse = caller.call(route, &request).await?;
    if answer.not_modified {
        return Ok(Answer::NotModified);
    }
    Ok(Answer::Config {
        content: answer.content,
        hash: answer.hash,
    })
}

fn attributes(identity: &Identity) -> HashMap<String, String> {
    let pairs = identity.attributes.iter();
    pairs.map(|(key, value)| (key.to_string(), value.to_string())).collect()
}
