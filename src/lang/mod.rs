//! Configuration text to values: Alloy's syntax. Never fails as a whole (it returns what it understood and the
//! diagnostics), does no I/O, knows nothing of components beyond their [`schema`].

pub mod schema;
pub mod value;
