//! Code that several components use for Kubernetes: the connection to the API server, requests, and watches of the
//! objects of a kind.
//!
//! In: the arguments of a client. Out: single objects, or the events of a [`watch`]. Objects contain only the fields
//! that components read. Only [`pods`] and [`followed`] build targets.

pub(crate) mod access;
pub(crate) mod api;
pub(crate) mod arguments;
mod exec;
pub(crate) mod followed;
mod kubeconfig;
mod lines;
pub(crate) mod objects;
pub(crate) mod pods;
mod selectors;
#[cfg(test)]
pub(crate) mod testing;
pub(crate) mod values;
pub(crate) mod watch;
