//! Passes profiles to the next component: receivers, the fan-out to several of them, and relabelling on the way.

pub(crate) mod fanout;
pub(crate) mod receiver;
pub(crate) mod relabel;
pub(crate) mod unpacked;
