//! A process: its identity, and the files mapped in its memory.
//!
//! In: lines of `/proc/PID/maps`, and events such as new mappings and forks. Out: the file of an address. A process
//! that has ended keeps the data that was read before.

use std::sync::Arc;

use parking_lot::RwLock;

use crate::arrays::KernelMapping;
use crate::bounds::{LoggedOmissions, Omission};
use crate::files::{FileId, Files};
use crate::proc::{self, MapsLine};
use crate::window::{Frame, ProcessInfo};

/// Maximum number of mappings kept per process. The BPF program's search has 14 steps, enough for 16,383 mappings.
const MAX_MAPPINGS: usize = 16_000;
/// Maximum number of mappings that a child inherits at its fork. If the parent has more, nothing is copied, because a
/// process may have many children that no tick ever hits. The child's mappings are read when a tick hits the child.
const MAX_INHERITED_MAPPINGS: usize = 1024;

/// A process that is running, or that ended a moment ago.
pub(super) struct Process {
    pub info: Arc<ProcessInfo>,
    /// The executable mappings of the process.
    pub image: Image,
    /// False until a tick hits the process, and again when its mappings become doubtful. The BPF program gets only the
    /// mappings of active processes.
    pub active: bool,
    /// True if the mappings have changed since they were written to the kernel.
    pub is_stale: bool,
    /// True if the mappings may be wrong or missing, because events were lost or the fork copied no mappings.
    pub is_doubtful: bool,
    /// True if the BPF program has the mappings of the process.
    pub in_kernel: bool,
    /// Number of batches since the process ended, plus one; 0 while it runs.
    pub exited: u32,
    logged: LoggedOmissions,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Mapping {
    pub start: u64,
    /// End address (exclusive).
    pub end: u64,
    /// The file that is mapped at these addresses.
    pub file: FileId,
    /// Difference between an address in the process and the corresponding address in the file's tables.
    pub bias: u64,
}

/// The executable mappings of a process until it runs another program, sorted by start, without overlaps. A copied
/// stack keeps the image that was current when it was copied.
pub(super) type Image = Arc<RwLock<Vec<Mapping>>>;

impl Process {
    /// Creates a process with only its id. Does not read `/proc`.
    pub(super) fn new(pid: u32, start: u64) -> Self {
        Self {
            info: Arc::new(ProcessInfo {
                pid,
                start,
                executable: String::new(),
                comm: String::new(),
                container_id: String::new(),
                user: None,
            }),
            image: Image::default(),
            active: false,
            is_stale: false,
            is_doubtful: false,
            in_kernel: false,
            exited: 0,
            logged: LoggedOmissions::default(),
        }
    }

    /// Creates a child process with the id `pid` and otherwise the same identity. The child also has the same mappings,
    /// or is doubtful if there are too many mappings to copy.
    pub(crate) fn fork(&self, pid: u32) -> Self {
        let mut child = Self::new(pid, 0);
        child.info = Arc::new(ProcessInfo {
            pid,
            start: 0,
            ..(*self.info).clone()
        });
        let image = self.image.read();
        child.is_doubtful = image.len() > MAX_INHERITED_MAPPINGS;
        if !child.is_doubtful {
            child.image = Arc::new(RwLock::new(image.clone()));
        }
        child
    }

    /// Reads the identity of the process from `/proc`. If the process has ended, the data from events stays.
    pub(crate) fn identify(&mut self) {
        let info = Arc::make_mut(&mut self.info);
        let set = |field: &mut String, text: String| {
            if !text.is_empty() {
                *field = text;
            }
        };
        set(&mut info.executable, proc::executable(info.pid));
        set(&mut info.comm, proc::comm(info.pid));
        set(&mut info.container_id, proc::container_id(info.pid));
        info.user = proc::user(info.pid).or(info.user);
    }

    /// Replaces the mappings with the mappings in `/proc`, or keeps the old ones if the process has ended. Returns the
    /// number of mappings that are left out because the process has too many.
    pub(super) fn read(&mut self, files: &mut Files) -> u64 {
        self.is_doubtful = false;
        let lines = proc::executable_mappings(self.info.pid).unwrap_or_default();
        // The mappings are already sorted and do not overlap.
        let mappings: Vec<Mapping> = lines
            .iter()
            .take(MAX_MAPPINGS)
            .filter_map(|line| self.mapping(files, line))
            .collect();
        if !mappings.is_empty() {
            self.image = Arc::new(RwLock::new(mappings));
            self.is_stale = true;
        }
        let lost = lines.len().saturating_sub(MAX_MAPPINGS);
        if lost > 0 {
            self.count_omission(files);
        }
        lost as u64
    }

    fn count_omission(&self, files: &Files) {
        files
            .bounds()
            .count_omission(Omission::Mappings, &self.logged, &self.info.executable);
    }

    fn mapping(&self, files: &mut Files, line: &MapsLine) -> Option<Mapping> {
        if line.start >= line.end {
            return None;
        }
        let file = files.intern(self.info.key(), line);
        let bias = files
            .binary(file)
            .and_then(|binary| binary.address_of(line.offset))
            .map_or(0, |address| line.start.wrapping_sub(address));
        Some(Mapping {
            start: line.start,
            end: line.end,
            file,
            bias,
        })
    }

    /// Adds a mapping, which replaces everything that it overlaps. Returns false if the process has too many
    /// mappings.
    pub(super) fn map(&mut self, files: &mut Files, line: &MapsLine) -> bool {
        let Some(new) = self.mapping(files, line) else {
            return true;
        };
        let is_kept = insert_mapping(&mut self.image.write(), new);
        self.is_stale |= is_kept;
        if !is_kept {
            self.count_omission(files);
        }
        is_kept
    }

    /// Returns the mappings in the format of the BPF program. The first element contains their number.
    pub(crate) fn kernel_mappings(&self) -> Vec<KernelMapping> {
        let image = self.image.read();
        let mapping = |mapping: &Mapping| KernelMapping {
            start: mapping.start,
            end: mapping.end,
            bias: mapping.bias,
            table: mapping.file.table_key(),
            reserved: 0,
        };
        let header = KernelMapping::header(image.len() as u64);
        std::iter::once(header).chain(image.iter().map(mapping)).collect()
    }
}

/// Inserts a mapping, which replaces everything that it overlaps. Returns false, and changes nothing, if there would be
/// too many mappings.
fn insert_mapping(mappings: &mut Vec<Mapping>, new: Mapping) -> bool {
    // All overlapping mappings are adjacent.
    let from = mappings.partition_point(|old| old.end <= new.start);
    let to = mappings.partition_point(|old| old.start < new.end);
    if to <= from {
        if mappings.len() >= MAX_MAPPINGS {
            return false;
        }
        mappings.insert(from, new);
        return true;
    }
    let mut middle = Vec::with_capacity(3);
    if let Some(first) = mappings.get(from)
        && first.start < new.start
    {
        middle.push(Mapping {
            end: new.start,
            ..*first
        });
    }
    middle.push(new);
    if let Some(last) = mappings.get(to - 1)
        && last.end > new.end
    {
        middle.push(Mapping {
            start: new.end,
            ..*last
        });
    }
    if mappings.len() - (to - from) + middle.len() > MAX_MAPPINGS {
        return false;
    }
    mappings.splice(from..to, middle);
    true
}

/// Returns the mapping that contains an address.
pub(crate) fn mapping_at(mappings: &[Mapping], address: u64) -> Option<&Mapping> {
    let after = mappings.partition_point(|mapping| mapping.start <= address);
    let mapping = mappings.get(after.checked_sub(1)?)?;
    (address < mapping.end).then_some(mapping)
}

/// Appends kernel addresses, leaf first, as frames.
pub(crate) fn push_kernel(frames: &mut Vec<Frame>, addresses: impl Iterator<Item = u64>) {
    for (index, address) in addresses.enumerate() {
        frames.push(Frame {
            file: FileId::KERNEL,
            address: address.wrapping_sub(u64::from(index > 0)),
        });
    }
}

/// Appends user addresses, leaf first, as frames of the files that contain them.
pub(crate) fn push_user(frames: &mut Vec<Frame>, addresses: &[u64], mappings: &[Mapping]) {
    for (index, address) in addresses.iter().enumerate() {
        // A return address may be the first byte after the function, so the address of the call decides.
        let address = address.wrapping_sub(u64::from(index > 0));
        frames.push(match mapping_at(mappings, address) {
            Some(mapping) => Frame {
                file: mapping.file,
                address: address.wrapping_sub(mapping.bias),
            },
            None => Frame {
                file: FileId::UNKNOWN,
                address,
            },
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mapping(start: u64, end: u64, file: u32) -> Mapping {
        Mapping {
            start,
            end,
            file: FileId(file),
            bias: 0,
        }
    }

    #[test]
    fn a_mapping_takes_the_place_of_what_it_covers() {
        let mut mappings = Vec::new();
        for new in [
            mapping(30, 40, 1),
            mapping(10, 20, 2),
            mapping(15, 35, 3),
            mapping(20, 25, 4),
            mapping(0, 5, 5),
        ] {
            assert!(insert_mapping(&mut mappings, new));
        }
        assert_eq!(
            mappings,
            [
                mapping(0, 5, 5),
                mapping(10, 15, 2),
                mapping(15, 20, 3),
                mapping(20, 25, 4),
                mapping(25, 35, 3),
                mapping(35, 40, 1)
            ]
        );
        assert!(insert_mapping(&mut mappings, mapping(0, 100, 6)));
        assert_eq!(mappings, [mapping(0, 100, 6)]);
        assert_eq!(mapping_at(&mappings, 99).map(|entry| entry.file), Some(FileId(6)));
        assert_eq!(mapping_at(&mappings, 100), None);
    }

    #[test]
    fn a_child_of_a_process_with_many_mappings_is_read_when_it_runs() {
        let mut parent = Process::new(1, 1);
        for (mappings, copied) in [
            (MAX_INHERITED_MAPPINGS, MAX_INHERITED_MAPPINGS),
            (MAX_INHERITED_MAPPINGS + 1, 0),
        ] {
            let inherited = (0..mappings as u64)
                .map(|index| mapping(index * 10, index * 10 + 5, 1))
                .collect();
            parent.image = Arc::new(RwLock::new(inherited));
            let child = parent.fork(2);
            assert_eq!((child.image.read().len(), child.is_doubtful), (copied, copied == 0));
        }
    }

    #[test]
    fn more_mappings_than_are_kept_are_refused_and_nothing_breaks() {
        let mut mappings = Vec::new();
        for index in 0..MAX_MAPPINGS as u64 {
            assert!(insert_mapping(&mut mappings, mapping(index * 10, index * 10 + 5, 1)));
        }
        assert!(!insert_mapping(&mut mappings, mapping(u64::MAX - 9, u64::MAX, 2)));
        assert!(
            !insert_mapping(&mut mappings, mapping(1, 2, 2)),
            "it would split one in three"
        );
        assert!(insert_mapping(&mut mappings, mapping(0, 5, 2)));
        assert_eq!(mappings.len(), MAX_MAPPINGS);
    }
}
