//! The collector's JSON API over its controller: the one place where both are known.
//!
//! In: a controller and what the program knows of itself. Out: the values that `admin::web` serves. Modules of the remote configuration have ids that begin with `remotecfg/`.

use std::net::SocketAddr;

use bytes::Bytes;
use serde_json::{Value, json};

use crate::admin::web::{Answer, Web};
use crate::pipeline::Controller;

/// The collector as its API shows it.
pub struct CollectorWeb {
    /// What runs.
    pub controller: Controller,
    /// Name of this node.
    pub node_name: String,
    /// Where it listens.
    pub address: SocketAddr,
}

/// The module in which the remote configuration's components run.
const REMOTE: &str = "remotecfg";

impl Web for CollectorWeb {
    fn components(&self, module: &str) -> Option<Value> {
        self.controller.components(module).map(to_json)
    }

    fn remote_components(&self, module: &str) -> Option<Value> {
        // Without a remote configuration its root is there, and empty.
        let found = self.controller.components(&remote(module)).map(to_json);
        found.or_else(|| module.is_empty().then(|| json!([])))
    }

    fn component(&self, id: &str) -> Option<Value> {
        self.controller.component(id).map(to_json)
    }

    fn remote_component(&self, id: &str) -> Option<Value> {
        self.controller.component(&remote(id)).map(to_json)
    }

    /// A cluster of one, in the shape of Alloy's peers.
    fn peers(&self) -> Value {
        json!([{
            "name": self.node_name,
            "addr": self.address.to_string(),
            "isSelf": true,
            "state": "participant",
        }])
    }

    fn last_load(&self) -> Value {
        to_json(self.controller.last_load_view())
    }

    fn has_component(&self, id: &str) -> bool {
        self.controller.has_component(id)
    }

    fn serve(&self, id: &str, request: http::Request<Bytes>) -> Answer {
        self.controller.serve(id, request)
    }
}

fn remote(id: &str) -> String {
    match id {
        "" => REMOTE.to_owned(),
        id => format!("{REMOTE}/{id}"),
    }
}

fn to_json(value: impl serde::Serialize) -> Value {
    serde_json::to_value(value).unwrap_or_default()
}
