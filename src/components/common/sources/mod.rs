//! Code of components that fetch a value from elsewhere, export it, and fetch it again when it may have changed.

pub(crate) mod detector;
pub(crate) mod fetch_error;
pub(crate) mod folder_watcher;
pub(crate) mod source;
