//! The changes of a disk in order, and the possible contents of that disk after a power cut.
//!
//! In: changes and syncs as a file system receives them. Out: for any moment, a possible state of a folder. It contains
//! all synced changes. Each other change survives or is lost, independently of the others and of their order, and
//! writes may be torn. So a file may have its name but not its bytes, the second of two renames but not the first, or a
//! hole of zeros.
//!
//! POSIX allows all these states. Usual file systems allow fewer. A name in a folder is durable when the folder is
//! synced; a folder's own name is durable when its parent folder is synced.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::io;
use std::path::Path;
use std::time::Duration;

/// Number of the root folder.
pub(super) const TOP: u64 = 1;
/// A write is torn at a multiple of this number of bytes.
const SECTOR: usize = 512;

/// Faults that a disk has.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Trouble {
    /// Time that each write and each sync takes.
    pub slow: Duration,
    /// Maximum total size of all files in bytes. A write beyond it fails with ENOSPC.
    pub most_bytes: Option<usize>,
    /// Maximum number of files and folders. One more fails with ENOSPC.
    pub most_names: Option<usize>,
}

/// A change of the disk, or a sync.
#[derive(Debug, Clone)]
pub(super) enum Change {
    /// A file or folder is created, without a name.
    Make {
        node: u64,
        is_folder: bool,
    },
    Write {
        node: u64,
        offset: usize,
        bytes: Vec<u8>,
    },
    /// A file is truncated or extended with zeros.
    Length {
        node: u64,
        length: usize,
    },
    Name {
        folder: u64,
        name: String,
        node: u64,
    },
    Unname {
        folder: u64,
        name: String,
    },
    /// A file or folder gets another name in the same folder. If that name exists, its entry is replaced.
    Rename {
        folder: u64,
        from: String,
        to: String,
        node: u64,
    },
    /// The bytes and the length of a file, or the names of a folder, become durable.
    Sync {
        node: u64,
    },
}

/// The unsynced changes that survive a power cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Luck {
    /// No unsynced change survives.
    None,
    /// Every unsynced change survives, but the last write of a file may be torn.
    All,
    /// Each unsynced change survives with the probability (n + 1) / 256, where n is this value.
    Some(u8),
}

impl Luck {
    /// Selects the changes that survive: none for one seed in four, all for another one in four, otherwise some.
    pub(super) fn drawn(seed: u64, random: &mut Random) -> Self {
        match seed % 4 {
            0 => Self::None,
            1 => Self::All,
            _ => Self::Some(random.next() as u8),
        }
    }
}

/// A generator of random numbers from a seed (splitmix64).
pub(super) struct Random(pub u64);

impl Random {
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }

    pub(super) fn below(&mut self, end: usize) -> usize {
        (self.next() % end.max(1) as u64) as usize
    }
}

/// Files and folders of a disk while its changes are replayed.
#[derive(Default)]
struct Nodes<'a> {
    files: HashMap<u64, Node<'a, Vec<u8>>>,
    folders: HashMap<u64, Node<'a, BTreeMap<String, u64>>>,
}

/// Durable state of a file or folder, and its later changes.
#[derive(Default)]
struct Node<'a, State> {
    durable: State,
    changes: Vec<&'a Change>,
}

/// Returns the contents of the disk when the power is cut after `changes`.
pub(super) fn found(changes: &[Change], luck: Luck, random: &mut Random) -> Found {
    let mut nodes = Nodes::default();
    nodes.folders.insert(TOP, Node::default());
    for change in changes {
        nodes.take(change);
    }
    let mut is_kept = |_: &Change| match luck {
        Luck::None => false,
        Luck::All => true,
        Luck::Some(probability) => random.next() as u8 <= probability,
    };
    let mut found = Found::default();
    // Sorts files and folders, so that every run with the same seed has the same result.
    let (mut files, mut folders): (Vec<_>, Vec<_>) =
        (nodes.files.into_iter().collect(), nodes.folders.into_iter().collect());
    files.sort_unstable_by_key(|(node, _)| *node);
    folders.sort_unstable_by_key(|(node, _)| *node);
    let mut torn = Vec::new();
    for (node, mut file) in files {
        let kept: Vec<&Change> = file.changes.into_iter().filter(|change| is_kept(change)).collect();
        if let Some((last, before)) = kept.split_last() {
            before.iter().for_each(|change| write(&mut file.durable, change, None));
            torn.push((node, *last));
        }
        found.files.insert(node, file.durable);
    }
    for (node, mut folder) in folders {
        let kept = folder.changes.into_iter().filter(|change| is_kept(change));
        kept.for_each(|change| name(&mut folder.durable, change));
        found.folders.insert(node, folder.durable);
    }
    for (node, last) in torn {
        let sectors = random.below(8);
        let is_whole = random.next().is_multiple_of(2);
        if let Some(file) = found.files.get_mut(&node) {
            write(file, last, (!is_whole).then_some(sectors * SECTOR));
        }
    }
    found
}

impl<'a> Nodes<'a> {
    fn take(&mut self, change: &'a Change) {
        match change {
            Change::Make { node, is_folder: true } => drop(self.folders.insert(*node, Node::default())),
            Change::Make { node, is_folder: false } => drop(self.files.insert(*node, Node::default())),
            Change::Write { node, .. } | Change::Length { node, .. } => {
                self.files.get_mut(node).unwrap().changes.push(change);
            }
            Change::Name { folder, .. } | Change::Unname { folder, .. } | Change::Rename { folder, .. } => {
                self.folders.get_mut(folder).unwrap().changes.push(change);
            }
            Change::Sync { node } => {
                if let Some(file) = self.files.get_mut(node) {
                    let changes = std::mem::take(&mut file.changes);
                    changes.iter().for_each(|change| write(&mut file.durable, change, None));
                }
                if let Some(folder) = self.folders.get_mut(node) {
                    let changes = std::mem::take(&mut folder.changes);
                    changes.iter().for_each(|change| name(&mut folder.durable, change));
                }
            }
        }
    }
}

/// Applies a change to a file. Applies at most the first `most` bytes of a write.
fn write(file: &mut Vec<u8>, change: &Change, most: Option<usize>) {
    match change {
        Change::Write { offset, bytes, .. } => {
            let bytes = &bytes[..bytes.len().min(most.unwrap_or(usize::MAX))];
            if file.len() < offset + bytes.len() {
                file.resize(offset + bytes.len(), 0);
            }
            file[*offset..offset + bytes.len()].copy_from_slice(bytes);
        }
        Change::Length { length, .. } => file.resize(*length, 0),
        _ => {}
    }
}

/// Applies a change to a folder.
fn name(folder: &mut BTreeMap<String, u64>, change: &Change) {
    match change {
        Change::Name { name, node, .. } => drop(folder.insert(name.clone(), *node)),
        Change::Unname { name, .. } => drop(folder.remove(name)),
        Change::Rename { from, to, node, .. } => {
            if folder.get(from) == Some(node) {
                folder.remove(from);
            }
            folder.insert(to.clone(), *node);
        }
        _ => {}
    }
}

/// Files and folders after a power cut.
#[derive(Default)]
pub(super) struct Found {
    files: HashMap<u64, Vec<u8>>,
    folders: HashMap<u64, BTreeMap<String, u64>>,
}

impl Found {
    /// Writes all files and folders that have a name into `target`, an empty folder.
    pub(super) fn write(&self, target: &Path) -> io::Result<()> {
        self.write_folder(TOP, target)
    }

    fn write_folder(&self, folder: u64, target: &Path) -> io::Result<()> {
        for (name, node) in self.folders.get(&folder).into_iter().flatten() {
            let path = target.join(name);
            if let Some(bytes) = self.files.get(node) {
                fs::write(path, bytes)?;
            } else {
                fs::create_dir(&path)?;
                self.write_folder(*node, &path)?;
            }
        }
        Ok(())
    }

    /// Returns the bytes of a file in the root folder, or `None` if the file does not exist.
    #[cfg(test)]
    fn file(&self, name: &str) -> Option<&[u8]> {
        self.files.get(self.folders[&TOP].get(name)?).map(Vec::as_slice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the changes of a program that writes a file under one name and then renames it.
    fn replaced(syncs_file: bool, syncs_folder: bool) -> Vec<Change> {
        let named = |name: &str| name.to_owned();
        let mut changes = vec![
            Change::Make {
                node: 2,
                is_folder: false,
            },
            Change::Name {
                folder: TOP,
                name: named("new"),
                node: 2,
            },
            Change::Write {
                node: 2,
                offset: 0,
                bytes: vec![7; 2000],
            },
        ];
        changes.extend(syncs_file.then_some(Change::Sync { node: 2 }));
        changes.push(Change::Rename {
            folder: TOP,
            from: named("new"),
            to: named("file"),
            node: 2,
        });
        changes.extend(syncs_folder.then_some(Change::Sync { node: TOP }));
        changes
    }

    #[test]
    fn what_was_synced_is_always_found() {
        for seed in 0..200 {
            for luck in [Luck::None, Luck::All, Luck::Some(128)] {
                let found = found(&replaced(true, true), luck, &mut Random(seed));
                assert_eq!(found.file("file"), Some([7; 2000].as_slice()));
                assert_eq!(found.file("new"), None);
            }
        }
    }

    #[test]
    fn without_a_sync_of_the_file_its_name_may_have_other_bytes() {
        let outcome = |seed| {
            let found = found(&replaced(false, true), Luck::Some(128), &mut Random(seed));
            found.file("file").map(<[u8]>::len).unwrap()
        };
        let lengths: std::collections::BTreeSet<usize> = (0..200).map(outcome).collect();
        assert!(
            lengths.contains(&0) && lengths.contains(&512) && lengths.contains(&2000),
            "{lengths:?}"
        );
    }

    #[test]
    fn without_a_sync_of_the_folder_a_name_may_be_missing() {
        let outcome = |seed| {
            found(&replaced(true, false), Luck::Some(128), &mut Random(seed))
                .file("file")
                .is_some()
        };
        assert!((0..200).any(outcome) && !(0..200).all(outcome));
    }
}
