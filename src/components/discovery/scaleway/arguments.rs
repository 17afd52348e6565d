//! Arguments of `discovery.scaleway`.

use std::path::PathBuf;
use std::sync::Arc;

use crate::common::arguments::checks;
use crate::common::http::client::{TlsArguments, Transport};
use crate::common::http::values::{HttpUrl, check_header_secret};
use alluvium_lang::argument_error::ArgumentError;
use alluvium_lang::attribute::{Interval, NotEmpty, Secret, choices};
use alluvium_lang::body::arguments;

arguments! {
    /// Arguments of `discovery.scaleway`.
    pub(crate) struct ScalewayArguments {
        /// Access key of the project. It must be set, but requests use only the secret key.
        access_key: NotEmpty<Arc<str>>,
        /// URL of the API. Set it only for a proxy or a test.
        api_url: HttpUrl = "https://api.scaleway.com",
        /// Text that the name of a server must contain.
        name_filter: Option<Arc<str>>,
        /// Port in the address of each target.
        port: i64 = 80,
        /// ID of the project that the servers belong to.
        project_id: NotEmpty<Arc<str>>,
        /// Time between two refreshes of the targets.
        refresh_interval: Interval = "60s",
        /// Kind of targets to discover: `instance` or `baremetal`.
        role: Role,
        /// Secret key that belongs to the access key.
        secret_key: Option<Secret>,
        /// File with the secret key. It is read at every refresh.
        secret_key_file: Option<PathBuf>,
        /// Tags of the servers to discover. A server must have all of them.
        tags_filter: Option<Vec<Arc<str>>>,
        /// Zone that the servers run in.
        zone: NotEmpty<Arc<str>> = "fr-par-1",
    }
    blocks {
        /// TLS settings of connections to the API.
        tls_config: Option<TlsArguments>,
    }
    shared { transport: Transport }
    check ScalewayArguments::check;
}

choices! {
    /// The kind of Scaleway server to discover.
    pub(crate) enum Role {
        Instance = "instance",
        BareMetal = "baremetal",
    }
}

impl ScalewayArguments {
    fn check(&self) -> Result<(), ArgumentError> {
        check_header_secret("secret_key", self.secret_key.as_ref())?;
        checks::exactly_one(&[
            ("secret_key", self.secret_key.is_some()),
            ("secret_key_file", self.secret_key_file.is_some()),
        ])
    }
}
