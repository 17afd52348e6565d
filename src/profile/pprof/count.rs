//! Counts the samples of a profile without decoding it. One pass over the outermost fields is enough, and nothing is
//! allocated.
//!
//! This module does not check the contents of samples.

use crate::pprof::error::DecodeError;
use crate::pprof::reader::Reader;

/// Field `sample` of the message `Profile`.
const SAMPLE: u32 = 2;

/// Returns the number of samples in an uncompressed profile.
pub fn sample_count(data: &[u8]) -> Result<usize, DecodeError> {
    let mut reader = Reader::new(data, 0);
    let mut count = 0;
    while let Some(tag) = reader.tag()? {
        count += usize::from(tag.field == SAMPLE);
        reader.skip(tag)?;
    }
    Ok(count)
}
