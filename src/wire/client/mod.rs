//! The HTTP client of components: TLS, proxies, redirects and credentials from plain options.
//!
//! In: [`ClientOptions`], which do not depend on the configuration language. Out: an [`HttpClient`]. The client reads
//! credentials again for every request, so that a rotated token file works without a restart. It reads certificates
//! once, when it is built. Each client gets its own TLS provider: ring with a few additions. Nothing is installed
//! process-wide. Other modules handle retries and protocols.

mod body;
mod connections;
mod error;
mod http_client;
mod oauth2;
mod options;
#[cfg(test)]
mod redirect_tests;
mod redirects;
#[cfg(test)]
mod tests;
mod tls;

pub use body::{read_beginning, read_body, read_decoded};
pub use connections::Connections;
pub use error::{BodyError, ClientError, ProviderError, RedirectError, SendError, error_chain, without_secrets};
pub use http_client::HttpClient;
pub use options::{ClientOptions, Credential, Secret};
pub use options::{OAuth2, ProxyOptions, TokenProvider};
pub use redirects::{is_host_or_subdomain, redirect_target};
pub use tls::{TlsOptions, TlsVersion};

/// A certificate or a key of [`TlsOptions`].
pub use alluvium_base::pem::Pem;
