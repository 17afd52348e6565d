//! Frames of stacks, each stored once and numbered.

use hashbrown::HashTable;
use xxhash_rust::xxh3::xxh3_64;

use crate::store::head::intern::TextId;

/// One call of a stack. Its names are numbers in a [`Texts`](crate::store::head::Texts).
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Frame {
    pub(crate) function: TextId,
    pub(crate) file: TextId,
    pub(crate) line: i64,
    pub(crate) mapping: TextId,
    /// Build id of the binary.
    pub(crate) build_id: TextId,
    /// Address if the function is unknown, otherwise 0. Stacks that differ only in the addresses of known functions are
    /// the same stack.
    pub(crate) address: u64,
    /// True if the frame is inlined into the next frame of the stack.
    pub(crate) inlined: bool,
    /// Line at which the function starts, or 0 if unknown. Stacks that differ only in this line are the same stack.
    pub(crate) start_line: i32,
}

/// Distinct frames, numbered from 0 in the order of their arrival.
#[derive(Default)]
pub(crate) struct Frames {
    all: Vec<Frame>,
    table: HashTable<u32>,
}

impl Frames {
    /// Returns the frame with this number.
    pub(crate) fn get(&self, index: u32) -> &Frame {
        &self.all[index as usize]
    }

    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    /// Returns the estimated memory in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.all.capacity() * size_of::<Frame>() + self.table.capacity() * 5
    }

    /// Returns the number of a frame. If the frame is new, adds it.
    pub(crate) fn insert(&mut self, frame: Frame) -> u32 {
        let all = &self.all;
        let hash = frame.hash();
        if let Some(entry) = self.table.find(hash, |index| all[*index as usize] == frame) {
            return *entry;
        }
        let index = self.all.len() as u32;
        self.all.push(frame);
        let all = &self.all;
        self.table
            .insert_unique(hash, index, |index| all[*index as usize].hash());
        index
    }
}

impl Frame {
    fn hash(&self) -> u64 {
        let mut bytes = [0; 37];
        bytes[..4].copy_from_slice(&self.function.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.file.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.line.to_le_bytes());
        bytes[16..20].copy_from_slice(&self.mapping.to_le_bytes());
        bytes[20..24].copy_from_slice(&self.build_id.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.address.to_le_bytes());
        bytes[32] = u8::from(self.inlined);
        bytes[33..].copy_from_slice(&self.start_line.to_le_bytes());
        xxh3_64(&bytes)
    }
}
