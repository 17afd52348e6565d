//! HTTP client arguments of the AWS components.
//!
//! Names, defaults and checks are those of other HTTP clients. The components sign every request, and the signature is
//! in the header Authorization, which the other credentials would use as well. Those therefore have no effect.

use std::path::PathBuf;
use std::sync::Arc;

use crate::common::http::client::{
    Authorization, BasicAuth, HttpClientArguments, OAuth2Arguments, TlsArguments, Transport,
};
use alluvium_lang::argument_error::ArgumentError;
use alluvium_lang::attribute::Secret;
use alluvium_lang::body::arguments;
use alluvium_wire::client::ClientOptions;

arguments! {
    /// Arguments of an HTTP client whose requests are signed.
    pub(crate) struct SignedClientArguments {
        /// Bearer token to send with every request.
        #[no_effect = "requests to AWS are signed with the credentials of the account"]
        bearer_token: Option<Secret>,
        /// File with the bearer token.
        #[no_effect = "requests to AWS are signed with the credentials of the account"]
        bearer_token_file: Option<PathBuf>,
    }
    blocks {
        /// Authorization header to send.
        #[no_effect = "requests to AWS are signed with the credentials of the account"]
        authorization: Option<Authorization>,
        /// User and password to send.
        #[no_effect = "requests to AWS are signed with the credentials of the account"]
        basic_auth: Option<BasicAuth>,
        /// Token server that issues bearer tokens (OAuth 2.0 client credentials).
        #[no_effect = "requests to AWS are signed with the credentials of the account"]
        oauth2: Option<OAuth2Arguments>,
        /// TLS settings for the connection to the server.
        tls_config: Option<TlsArguments>,
    }
    shared { transport: Transport }
    check SignedClientArguments::check;
}

impl SignedClientArguments {
    /// Returns the options of the client. `user_agent` is the client's name in requests.
    pub(crate) fn options(&self, user_agent: &Arc<str>) -> ClientOptions {
        self.transport.options(user_agent, self.tls_config.as_ref())
    }

    fn check(&self) -> Result<(), ArgumentError> {
        HttpClientArguments::check_credentials([
            self.basic_auth.is_some(),
            self.authorization.is_some(),
            self.oauth2.is_some(),
            self.bearer_token.is_some(),
            self.bearer_token_file.is_some(),
        ])
    }
}
