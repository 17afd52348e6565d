//! The position in a queue before which every record has been handled.
//!
//! A small file stores the position. The file is replaced as a whole and not synced: after a power failure the position
//! may be older or missing. In that case no profile is lost, but some are sent again.

use std::fs;
use std::io;
use std::path::Path;

use alluvium_base::segment;

/// The position of a record: the start of the record's framing. The default position is before all records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Cursor {
    /// Number of the segment that contains the record.
    pub segment: u64,
    /// Offset in the segment's file, in bytes.
    pub offset: u64,
}

impl Cursor {
    /// Loads the position from `folder`. If the file is missing or unreadable, the position is before all records.
    pub(super) fn load(folder: &Path) -> Self {
        let Ok(contents) = segment::read(&folder.join("cursor")) else {
            return Self::default();
        };
        contents
            .records
            .first()
            .and_then(|payload| {
                Some(Self {
                    segment: u64::from_le_bytes(payload.get(..8)?.try_into().ok()?),
                    offset: u64::from_le_bytes(payload.get(8..16)?.try_into().ok()?),
                })
            })
            .unwrap_or_default()
    }

    /// Saves the position, so that a restart continues there.
    pub(super) fn save(self, folder: &Path) -> io::Result<()> {
        let mut data = segment::MAGIC.to_vec();
        segment::encode_record_parts(&[&self.segment.to_le_bytes(), &self.offset.to_le_bytes()], &mut data);
        let new = folder.join("cursor.new");
        fs::write(&new, data)?;
        fs::rename(new, folder.join("cursor"))
    }
}
