//! The lines of an answer that goes on for minutes, one at a time and bounded.

use bytes::{Bytes, BytesMut};

use crate::components::common::kubernetes::api::ApiError;

/// Longest line, in bytes. An object of etcd has 1.5 MiB, and is longer as JSON.
const MAX_LINE: usize = 16 << 20;

/// Reads an answer line by line.
pub(super) struct Lines {
    response: reqwest::Response,
    /// What has come and is not read yet.
    buffer: BytesMut,
    /// How much of it is known to have no end of a line.
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

    /// The next line without its end; none when the answer has ended. May be cancelled.
    pub(super) async fn next(&mut self) -> Result<Option<Bytes>, ApiError> {
        loop {
            if let Some(at) = memchr::memchr(b'\n', &self.buffer[self.searched..]) {
                let line = self.buffer.split_to(self.searched + at + 1).freeze();
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
                None => return Err(ApiError::Lost("the answer ended within a line".to_owned())),
            }
        }
    }
}
