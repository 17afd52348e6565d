//! Arguments of `discovery.scaleway`.

use std::path::PathBuf;
use std::sync::Arc;

use crate::components::common::arguments::checks;
use crate::components::common::http::client::{TlsArguments, Transport};
use crate::components::common::http::values::HttpUrl;
use crate::lang::argument_error::ArgumentError;
use crate::lang::attribute::{Interval, NotEmpty, Secret, choices};
use crate::lang::body::arguments;

arguments! {
    /// Arguments of `discovery.scaleway`.
    pub(crate) struct ScalewayArguments {
        /// Access key of the project; requests need the secret key only.
        access_key: NotEmpty<Arc<str>>,
        /// URL of the API, for tests and proxies.
        api_url: HttpUrl = "https://api.scaleway.com",
        /// Part of the name that a server must have.
        name_filter: Option<Arc<str>>,
        /// Port in the addresses of the targets.
        port: i64 = 80,
        /// Id of the project of the servers.
        project_id: NotEmpty<Arc<str>>,
        /// Time from one look at the targets to the next.
        refresh_interval: Interval = "60s",
        /// What to look for: instance or baremetal.
        role: Role,
        /// Secret of the access key.
        secret_key: Option<Secret>,
        /// File with the secret of the access key; read for every look.
        secret_key_file: Option<PathBuf>,
        /// Tags that a server must have, all of them.
        tags_filter: Option<Vec<Arc<str>>>,
        /// Zone that the servers are in.
        zone: NotEmpty<Arc<str>> = "fr-par-1",
    }
    blocks {
        /// Certificates of client and server.
        tls_config: Option<TlsArguments>,
    }
    shared { transport: Transport }
    check ScalewayArguments::check;
}

choices! {
    /// What is looked for at Scaleway.
    pub(crate) enum Role {
        Instance = "instance",
        BareMetal = "baremetal",
    }
}

impl ScalewayArguments {
    fn check(&self) -> Result<(), ArgumentError> {
        checks::exactly_one(&[
            ("secret_key", self.secret_key.is_some()),
            ("secret_key_file", self.secret_key_file.is_some()),
        ])
    }
}
