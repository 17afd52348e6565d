//! Protobuf messages, generated from the files under `proto/`.
//!
//! `integration/protos.rs` generates and checks them; never edit them by hand. The JSON form is protobuf's: camelCase
//! names, and 64-bit integers as strings. Unknown fields are ignored, and unknown enum names become the default,
//! because clients may be newer than the server.
#![allow(clippy::all, clippy::unwrap_used, reason = "generated")]
#![allow(unused_qualifications, reason = "generated")]

#[rustfmt::skip]
pub mod adhocprofiles;
#[rustfmt::skip]
pub mod capabilities;
#[rustfmt::skip]
pub mod collector;
#[rustfmt::skip]
pub mod debuginfo;
#[rustfmt::skip]
pub mod google;
#[rustfmt::skip]
pub mod health;
#[rustfmt::skip]
pub mod push;
#[rustfmt::skip]
pub mod querier;
#[rustfmt::skip]
pub mod settings;
#[rustfmt::skip]
pub mod status;
#[rustfmt::skip]
pub mod types;
#[rustfmt::skip]
pub mod vcs;
#[rustfmt::skip]
pub mod version;
