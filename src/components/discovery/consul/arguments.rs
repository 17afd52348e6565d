//! Arguments of `discovery.consul`.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::common::discovery::consul_catalog::Catalog;
use crate::common::http::client::HttpClientArguments;
use alluvium_lang::argument_error::ArgumentError;
use alluvium_lang::body::arguments;

arguments! {
    /// Arguments of `discovery.consul`.
    pub(crate) struct ConsulArguments {
        /// If true, any Consul server may answer, not only the leader. The result can be stale.
        allow_stale: bool = true,
        /// Namespace of the services (Consul Enterprise).
        namespace: Option<Arc<str>>,
        /// Node metadata. Only services on nodes that have all these entries are discovered.
        node_meta: Option<BTreeMap<Arc<str>, Arc<str>>>,
        /// Admin partition of the services (Consul Enterprise).
        partition: Option<Arc<str>>,
    }
    shared { catalog: Catalog, client: HttpClientArguments }
    check ConsulArguments::check;
}

impl ConsulArguments {
    fn check(&self) -> Result<(), ArgumentError> {
        let client = &self.client;
        self.catalog.check_credentials(&[
            ("basic_auth", client.basic_auth.is_some()),
            ("authorization", client.authorization.is_some()),
            ("oauth2", client.oauth2.is_some()),
            ("bearer_token", client.bearer_token.is_some()),
            ("bearer_token_file", client.bearer_token_file.is_some()),
        ])
    }
}
