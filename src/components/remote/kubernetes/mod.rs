//! Components that export the values of objects in a Kubernetes cluster.

pub(crate) mod configmap;
pub(crate) mod secret;
#[cfg(test)]
mod tests;
