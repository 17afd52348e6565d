//! Reads the remaining body of a refused request.

use std::time::Duration;

use bytes::Bytes;
use futures::{Stream, StreamExt as _};

/// Maximum number of bytes to read.
const MAX_BYTES: usize = 64 << 20;
/// Time limit for reading the remaining body.
const MAX_TIME: Duration = Duration::from_secs(5);

/// Reads and drops the remaining bytes of a body, within limits. A client that sends its whole body before it reads the
/// response then receives the refusal instead of a broken connection.
pub async fn drain<Error>(body: &mut (impl Stream<Item = Result<Bytes, Error>> + Unpin)) {
    let work = async {
        let mut drained = 0;
        while let Some(Ok(chunk)) = body.next().await {
            drained += chunk.len();
            if drained > MAX_BYTES {
                break;
            }
        }
    };
    // After the time limit, nothing more can be done for this client.
    let _ = tokio::time::timeout(MAX_TIME, work).await;
}
