//! AWS: account arguments, signed requests, and calls that several components make.

pub(crate) mod account;
pub(crate) mod client;
mod credentials;
pub(crate) mod ec2;
pub(crate) mod lightsail;
mod metadata;
mod profiles;
pub(crate) mod signed_client;
#[cfg(test)]
pub(crate) mod testing;
