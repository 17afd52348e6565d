//! pprof: the protobuf format of `github.com/google/pprof/proto/profile.proto`, decoded in one pass into columns that borrow
//! from the buffer, and encoded again.

pub mod model;

pub use model::{Function, Line, Location, Mapping, Profile, SampleLabel, ValueType};
