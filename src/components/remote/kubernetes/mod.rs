//! Values that a Kubernetes cluster has.

pub(crate) mod configmap;
pub(crate) mod secret;
#[cfg(test)]
mod tests;
