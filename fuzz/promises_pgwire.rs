//! Promise about the PostgreSQL port for any bytes from a client.
//!
//! The target `pgwire` and `integration/fuzzing.rs` call this function. In: bytes. Out: nothing, or a panic. The
//! function reads and writes no files.

use alluvium::server::postgres::count_messages;

/// Reads messages until the bytes end or violate the protocol. There must not be more messages than the bytes can hold.
/// If the first byte is odd, the other bytes are read as if they followed the startup message.
pub(super) fn pgwire(data: &[u8]) {
    let Some((first, bytes)) = data.split_first() else {
        return;
    };
    let is_started = first % 2 == 1;
    let count = count_messages(bytes, is_started);
    // A message has at least a type and a length. Only the check for an SSL request, before the startup message, may
    // consume no bytes.
    assert!(
        count <= bytes.len() / 5 + 1,
        "{count} messages in {} bytes",
        bytes.len()
    );
}
