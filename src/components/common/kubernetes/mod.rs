//! Kubernetes, as far as several components need it: how the API server is reached, what it is asked, and how a kind of
//! objects is followed.
//!
//! In: the arguments of a client. Out: single objects, or the events of a [`watch`]. Objects have only the fields that
//! somebody reads. Nothing here knows of targets but [`pods`] and [`followed`].

pub(crate) mod access;
pub(crate) mod api;
pub(crate) mod arguments;
mod exec;
pub(crate) mod followed;
mod kubeconfig;
mod lines;
pub(crate) mod objects;
pub(crate) mod pods;
#[cfg(test)]
pub(crate) mod testing;
pub(crate) mod values;
pub(crate) mod watch;
