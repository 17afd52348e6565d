//! `collector.v1`: how a collector gets its configuration from a server. The calling side.
//!
//! In: a [`Caller`] of the server. Out: what the server says. Keeps nothing between calls and knows nothing of what a
//! configuration means.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use crate::wire::call::{CallError, Caller};
use crate::wire::proto::collector::{
    GetConfigRequest, GetConfigResponse, RegisterCollectorRequest, RegisterCollectorResponse, RemoteConfigStatus,
    RemoteConfigStatuses, UnregisterCollectorRequest, UnregisterCollectorResponse,
};

/// The collector that asks for its configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Identity {
    /// Id of the collector; never empty.
    pub id: Arc<str>,
    /// Name of the collector for people.
    pub name: Arc<str>,
    /// What the server chooses by.
    pub attributes: BTreeMap<Arc<str>, Arc<str>>,
}

/// What became of the configuration that the server sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Status {
    /// The configuration runs.
    Applied,
    /// The configuration does not run, and why.
    Failed(String),
}

/// What a server answers to who asks for a configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Answer {
    /// What came with this hash is still right.
    NotModified,
    /// A configuration to run.
    Config {
        /// Text of the configuration.
        content: String,
        /// What to send next time, so that the same does not come again; may be empty.
        hash: String,
    },
}

/// Tells the server who we are; again when that is another.
pub(crate) async fn register(caller: &Caller, identity: &Identity) -> Result<(), CallError> {
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

/// Tells the server that we are gone.
pub(crate) async fn unregister(caller: &Caller, id: &str) -> Result<(), CallError> {
    let request = UnregisterCollectorRequest { id: id.to_owned() };
    let route = "collector.v1.CollectorService/UnregisterCollector";
    let UnregisterCollectorResponse {} = caller.call(route, &request).await?;
    Ok(())
}

/// Asks for the configuration. `hash` is that of the last answer, empty for none; `status` only when it is another than
/// the last one sent.
pub(crate) async fn get_config(
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
