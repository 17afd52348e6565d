//! What is promised of the PostgreSQL port for any bytes of a client.
//!
//! Used by the target `pgwire` and by `integration/fuzzing.rs`. In: bytes. Out: nothing, or a panic. Reads and writes
//! nothing.

use alluvium::server::postgres::count_messages;

/// Any bytes are messages or violate the protocol; no message takes bytes of the next one. The first byte says whether
/// they follow the startup.
pub(super) fn pgwire(data: &[u8]) {
    let Some((first, bytes)) = data.split_first() else {
        return;
    };
    let is_started = first % 2 == 1;
    let count = count_messages(bytes, is_started);
    // A message has at least a type and a length; only the look before the startup message takes nothing.
    assert!(
        count <= bytes.len() / 5 + 1,
        "{count} messages in {} bytes",
        bytes.len()
    );
}
