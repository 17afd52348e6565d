//! Passes profiles to the next component: receivers, the fan-out to several receivers, and relabeling.

pub(crate) mod fanout;
pub(crate) mod receiver;
pub(crate) mod relabel;
pub(crate) mod unpacked;
