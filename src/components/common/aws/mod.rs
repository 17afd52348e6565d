//! Amazon's services: who asks, requests with signatures, and what several components ask for.

pub(crate) mod account;
pub(crate) mod client;
mod credentials;
pub(crate) mod ec2;
pub(crate) mod lightsail;
mod metadata;
mod profiles;
#[cfg(test)]
pub(crate) mod testing;
