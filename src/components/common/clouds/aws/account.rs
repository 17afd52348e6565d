//! Credentials and region for requests to AWS: the arguments that all AWS components share.

use std::sync::Arc;

use crate::components::common::http::values::HttpUrl;
use crate::lang::argument_error::ArgumentError;
use crate::lang::attribute::Secret;
use crate::lang::body::arguments;

arguments! {
    /// How requests to Amazon are sent and signed.
    pub(crate) struct Account {
        /// Access key; not set, the credentials are found as Amazon's tools find them.
        access_key: Option<Arc<str>>,
        /// URL of the API instead of Amazon's.
        endpoint: Option<HttpUrl>,
        /// Profile of the credentials file.
        profile: Option<Arc<str>>,
        /// Region; not set, that of the environment, of the profile, or of the machine.
        region: Option<Arc<str>>,
        /// Role to take on before asking.
        role_arn: Option<Arc<str>>,
        /// Secret of the access key.
        secret_key: Option<Secret>,
    }
    check Account::check;
}

impl Account {
    fn check(&self) -> Result<(), ArgumentError> {
        match (&self.access_key, &self.secret_key) {
            (Some(_), None) => Err(ArgumentError::new("access_key", "access_key needs secret_key")),
            (None, Some(_)) => Err(ArgumentError::new("secret_key", "secret_key needs access_key")),
            _ => Ok(()),
        }
    }
}
