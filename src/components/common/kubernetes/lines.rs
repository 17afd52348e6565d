//! Reads a long-running response line by line, with a maximum line length.

use bytes::{Bytes, BytesMut};

use crate::common::kubernetes::api::{ApiError, LostError};

/// Maximum length of a line in bytes. An object in etcd has up to 1.5 MiB, and its JSON is longer.
const MAX_LINE: usize = 16 << 20;

/// Splits a response into lines as it arrives.
pub(super) struct Lines {
    response: reqwest::Response,
    /// Bytes that have arrived and have not been read.
    buffer: BytesMut,
    /// Length of the start of `buffer` that contains no line end.
    searched: usize,
}

impl Lines {
    pub(super) fn new(response: reqwest::Response) -> Self {
        Self {
            response,
            buffer: BytesMut::new(),
            searched: 0,
        }
    }

    /// Returns the next line without its line end; `None` at the end of the response. If the future is cancelled, no
    /// data is lost.
    pub(super) async fn next(&mut self) -> Result<Option<Bytes>, ApiError> {
        loop {
            if let Some(length) = memchr::memchr(b'\n', &self.buffer[self.searched..]) {
                let line = self.buffer.split_to(self.searched + length + 1).freeze();
                self.searched = 0;
                return Ok(Some(line.slice(..line.len() - 1)));
            }
            self.searched = self.buffer.len();
            if self.searched > MAX_LINE {
                return Err(ApiError::TooLong(MAX_LINE));
            }
            match self.response.chunk().await.map_err(ApiError::lost)? {
                Some(chunk) => self.buffer.extend_from_slice(&chunk),
                None if self.buffer.is_empty() => return Ok(None),
                None => return Err(LostError::TruncatedLine.into()),
            }
        }
    }
}
