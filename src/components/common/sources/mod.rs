//! Components whose exports come from elsewhere and are fetched again: files, and watches on them.

pub(crate) mod detector;
pub(crate) mod folder_watcher;
pub(crate) mod source;
