//! The rest of a request body that was refused.

use std::time::Duration;

use bytes::Bytes;
use futures::{Stream, StreamExt as _};

/// How much of it is read, in bytes.
const MAX_BYTES: usize = 64 << 20;
/// Longest time for reading it.
const MAX_TIME: Duration = Duration::from_secs(5);

/// Reads and drops what a client still sends, within bounds: a client that sends all before it reads gets to read the
/// refusal, where a connection closed in the middle of its body would only break.
pub(crate) async fn drain<Error>(body: &mut (impl Stream<Item = Result<Bytes, Error>> + Unpin)) {
    let work = async {
        let mut drained = 0;
        while let Some(Ok(chunk)) = body.next().await {
            drained += chunk.len();
            if drained > MAX_BYTES {
                break;
            }
        }
    };
    // At the end of the time there is nothing left to do for this client.
    let _ = tokio::time::timeout(MAX_TIME, work).await;
}
