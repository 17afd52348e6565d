//! `collector.v1`: how a collector gets its configuration from a server. This is the client side.
//!
//! In: a [`Caller`] of the server. Out: the server's answers. No state is kept between calls, and the configuration is
//! not interpreted.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use crate::wire::call::{CallError, Caller};
use crate::wire::proto::collector::{
    GetConfigRequest, GetConfigResponse, RegisterCollectorRequest, RegisterCollectorResponse, RemoteConfigStatus,
    RemoteConfigStatuses, UnregisterCollectorRequest, UnregisterCollectorResponse,
};

/// The identity of a collector for the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Identity {
    /// Id of the collector; never empty.
    pub id: Arc<str>,
    /// Name of the collector for people.
    pub name: Arc<str>,
    /// Attributes by which the server chooses a configuration.
    pub attributes: BTreeMap<Arc<str>, Arc<str>>,
}

/// Status of the configuration that the server sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Status {
    /// The configuration runs.
    Applied,
    /// The configuration does not run, and why.
    Failed(String),
}

/// The server's answer to a request for the configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Answer {
    /// The configuration of the given hash is still current.
    NotModified,
    /// A configuration to run.
    Config {
        /// Text of the configuration.
        content: String,
        /// Hash to send with the next request, so that the server need not send the same again; may be empty.
        hash: String,
    },
}

/// Registers the collector; repeated when the identity changes.
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

/// Removes the registration of the collector.
pub(crate) async fn unregister(caller: &Caller, id: &str) -> Result<(), CallError> {
    let request = UnregisterCollectorRequest { id: id.to_owned() };
    let route = "collector.v1.CollectorService/UnregisterCollector";
    let UnregisterCollectorResponse {} = caller.call(route, &request).await?;
    Ok(())
}

/// Requests the configuration. `hash` is that of the last answer, empty for none; `status` is set only when it differs
/// from the last one sent.
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
