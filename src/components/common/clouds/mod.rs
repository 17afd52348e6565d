//! Clients and credentials of the clouds: AWS, Azure and Google.

pub(crate) mod aws;
pub(crate) mod azure_machine;
pub(crate) mod bearer;
pub(crate) mod cloud_error;
pub(crate) mod environment;
pub(crate) mod expiring;
pub(crate) mod google;
