//! Implements the collector's JSON API on top of its controllers.
//!
//! In: controllers, the cluster, and the name and address of the collector. Out: the values that `admin::web` serves.
//! Modules of the remote configuration have ids that begin with `remotecfg/`.

use std::net::SocketAddr;

use bytes::Bytes;
use serde_json::{Value, json};

use crate::app::remote::MODULE;
use alluvium_admin::web::{Answer, Web};
use alluvium_cluster::{Cluster, Part, View};
use alluvium_pipeline::Controller;

/// The collector's data for its API.
pub(crate) struct CollectorWeb {
    pub controllers: Controllers,
    pub node_name: String,
    pub address: SocketAddr,
    /// The collectors that share targets with this collector.
    pub cluster: Cluster,
}

/// The controllers that run components. Clones share the controllers.
#[derive(Clone)]
pub(crate) struct Controllers {
    pub own: Controller,
    /// Controller of the remote configuration, if the program supports one.
    pub remote: Option<Controller>,
}

impl Controllers {
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Controller> {
        std::iter::once(&self.own).chain(&self.remote)
    }

    /// Returns the controller that runs the component or module with this full id.
    pub(crate) fn controller(&self, id: &str) -> &Controller {
        match (&self.remote, id.split('/').next()) {
            (Some(remote), Some(MODULE)) => remote,
            _ => &self.own,
        }
    }
}

impl From<Controller> for Controllers {
    fn from(own: Controller) -> Self {
        Self { own, remote: None }
    }
}

impl Web for CollectorWeb {
    fn components(&self, module: &str) -> Option<Value> {
        self.controllers.controller(module).components(module).map(to_json)
    }

    fn remote_components(&self, module: &str) -> Option<Value> {
        // If there is no remote configuration, its root module is still returned, without components.
        let id = remote(module);
        let components = self.controllers.controller(&id).components(&id).map(to_json);
        components.or_else(|| module.is_empty().then(|| json!([])))
    }

    fn component(&self, id: &str) -> Option<Value> {
        self.controllers.controller(id).component(id).map(to_json)
    }

    fn remote_component(&self, id: &str) -> Option<Value> {
        let id = remote(id);
        self.controllers.controller(&id).component(&id).map(to_json)
    }

    /// Returns the members of the cluster in the form of Alloy's peers. A collector that runs alone is the only peer.
    fn peers(&self) -> Value {
        match self.cluster.view() {
            Some(view) => peers(&view),
            None => json!([peer(&self.node_name, self.address, true, Part::Participant)]),
        }
    }

    fn last_load(&self) -> Value {
        to_json(self.controllers.own.last_load_view())
    }

    fn has_component(&self, id: &str) -> bool {
        self.controllers.controller(id).has_component(id)
    }

    fn serve(&self, id: &str, request: http::Request<Bytes>) -> Answer {
        self.controllers.controller(id).serve(id, request)
    }
}

fn peers(view: &View) -> Value {
    let peers = view.members.iter().map(|member| {
        let is_self = *member == view.own;
        // Other members do not announce their state, so they count as participants.
        let part = if is_self { view.part } else { Part::Participant };
        peer(&member.name, member.address, is_self, part)
    });
    peers.collect()
}

fn peer(name: &str, address: SocketAddr, is_self: bool, part: Part) -> Value {
    json!({
        "name": name,
        "addr": address.to_string(),
        "isSelf": is_self,
        "state": part.name(),
    })
}

fn remote(id: &str) -> String {
    match id {
        "" => MODULE.to_owned(),
        id => format!("{MODULE}/{id}"),
    }
}

fn to_json(value: impl serde::Serialize) -> Value {
    serde_json::to_value(value).unwrap_or_default()
}
