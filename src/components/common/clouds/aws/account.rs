//! Credentials and region for requests to AWS: the arguments that all AWS components share.

use std::sync::Arc;

use crate::common::http::values::HttpUrl;
use alluvium_lang::argument_error::ArgumentError;
use alluvium_lang::attribute::Secret;
use alluvium_lang::body::arguments;

arguments! {
    /// The AWS account that sends the requests: credentials, region and endpoint.
    pub(crate) struct Account {
        /// Access key. Defaults to the credentials that AWS tools would find.
        access_key: Option<Arc<str>>,
        /// URL of the API. Defaults to the URL of the AWS service.
        endpoint: Option<HttpUrl>,
        /// Profile of the AWS credentials file.
        profile: Option<Arc<str>>,
        /// AWS region. Defaults to the region in the environment, in the profile, or in the instance metadata.
        region: Option<Arc<str>>,
        /// ARN of a role to assume before requests are sent.
        role_arn: Option<Arc<str>>,
        /// Secret key that belongs to the access key.
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
