//! A disk in memory that remembers every change in order, and what a machine may find on it after its power was cut.
//!
//! In: changes and syncs as a file system gets them. Out: for any moment a folder as it may lie there. What was synced
//! is there; of everything else each change is there or not, each for itself, in any order, and writes may be torn. So
//! a file may have its name and not its bytes, the second of two renames and not the first, or a hole of zeros.
//!
//! That is what POSIX allows, and more than usual file systems do. A name in a folder is durable when the folder was
//! synced, a folder's own name when the folder above it was.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::io;
use std::path::Path;
use std::time::Duration;

/// Number of the folder in which the others are.
pub(super) const TOP: u64 = 1;
/// A write is torn at a multiple of this.
const SECTOR: usize = 512;

/// What is wrong with a disk.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Trouble {
    /// Time that each write and each sync takes.
    pub slow: Duration,
    /// Bytes that all files may have; a write that would make more fails with ENOSPC.
    pub most_bytes: Option<usize>,
    /// Files and folders that may be there; one more fails with ENOSPC.
    pub most_names: Option<usize>,
}

/// A change of the disk, or a sync.
#[derive(Debug, Clone)]
pub(super) enum Change {
    /// A file or folder comes to be, without a name.
    Make {
        node: u64,
        is_folder: bool,
    },
    Write {
        node: u64,
        offset: usize,
        bytes: Vec<u8>,
    },
    /// A file is cut or grows with zeros.
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
    /// A name in a folder becomes another one, in the place of what had it.
    Rename {
        folder: u64,
        from: String,
        to: String,
        node: u64,
    },
    /// A file's bytes and length, or a folder's names, are durable.
    Sync {
        node: u64,
    },
}

/// How much of what was not synced is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Luck {
    /// Nothing that was not synced.
    None,
    /// Everything, but for a torn last write.
    All,
    /// Each change with this probability, in 256ths.
    Some(u8),
}

impl Luck {
    /// Each fourth seed finds nothing, each fourth everything.
    pub(super) fn drawn(seed: u64, random: &mut Random) -> Self {
        match seed % 4 {
            0 => Self::None,
            1 => Self::All,
            _ => Self::Some(random.next() as u8),
        }
    }
}

/// Random numbers of a seed (splitmix64).
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

/// Files and folders of a disk while its changes are gone through.
#[derive(Default)]
struct Nodes<'a> {
    files: HashMap<u64, Node<'a, Vec<u8>>>,
    folders: HashMap<u64, Node<'a, BTreeMap<String, u64>>>,
}

/// The durable state of a file or folder, and its changes since.
#[derive(Default)]
struct Node<'a, State> {
    durable: State,
    changes: Vec<&'a Change>,
}

/// What is found when the power is cut after `changes`.
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
    // In one order for every run of a seed.
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

/// Carries out a change of a file, of a write at most the first `most` bytes.
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

/// Carries out a change of a folder.
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

/// Files and folders as they are found.
#[derive(Default)]
pub(super) struct Found {
    files: HashMap<u64, Vec<u8>>,
    folders: HashMap<u64, BTreeMap<String, u64>>,
}

impl Found {
    /// Writes everything that has a name below `target`, an empty folder.
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

    /// The bytes of a file in the top folder; `None` when there is none.
    #[cfg(test)]
    fn file(&self, name: &str) -> Option<&[u8]> {
        self.files.get(self.folders[&TOP].get(name)?).map(Vec::as_slice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file that is written under one name, and gets another.
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
