//! HTTP clients of components: their arguments, requests, pages of results, and responses in JSON or text.

pub(crate) mod api_error;
pub mod client;
pub(crate) mod fetch;
pub(crate) mod json_values;
pub(crate) mod paging;
pub mod values;
pub(crate) mod web_api;
