//! The binaries that run, each known once, and their unwind tables.
//!
//! Tables are compiled on a thread of their own and handed over by [`Files::ready`]. Their bytes are bounded at every moment: what was used longest
//! ago goes first, and what does not fit at all is left out. Names are not here but in `names`, for another thread looks them up.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use crate::ebpf::binary::Binary;
use crate::ebpf::cost::Cost;
use crate::ebpf::proc::MapsLine;
use crate::unwind::Table;

/// A binary, or one of the places that have none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FileId(pub u32);

impl FileId {
    /// The kernel and its modules.
    pub const KERNEL: Self = Self(0);
    /// Memory without a file: code made at run time.
    pub const ANONYMOUS: Self = Self(1);
    /// No mapping that is known.
    pub const UNKNOWN: Self = Self(2);
    /// The name of a thread, not an address.
    pub const COMM: Self = Self(3);
    /// First id of a real file; also the key of its table in the kernel.
    const FIRST: u32 = 16;
}

/// How many files are kept open at most.
const MAX_FILES: usize = 512;

/// All binaries.
pub struct Files {
    entries: HashMap<FileId, Entry>,
    by_key: HashMap<Key, FileId>,
    next: u32,
    jobs: Sender<(FileId, Arc<Binary>)>,
    done: Receiver<(FileId, Table)>,
    /// Bytes of rows at most.
    limit: usize,
    /// Bytes of rows.
    bytes: usize,
    /// Counts windows; what is used gets the present number.
    age: u64,
    /// Files whose tables were thrown away and are to be taken from the kernel.
    gone: Vec<FileId>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Key {
    device: (u32, u32),
    inode: u64,
    path: String,
}

struct Entry {
    key: Key,
    binary: Arc<Binary>,
    state: TableState,
    used: u64,
}

enum TableState {
    NotAsked,
    Building,
    Ready(Arc<Table>),
    /// It has none, it could not be made, or there is no room: frame pointers are followed.
    Absent,
}

impl Files {
    /// No files yet; starts the thread that compiles tables, of which `limit` bytes of rows are kept.
    pub fn new(limit: usize, cost: &Cost) -> io::Result<Self> {
        let (jobs, inbox) = channel::<(FileId, Arc<Binary>)>();
        let (outbox, done) = channel();
        let cost = cost.clone();
        std::thread::Builder::new()
            .name("unwind-tables".to_owned())
            .spawn(move || {
                let cost = cost.thread();
                for (file, binary) in inbox {
                    let table = binary.compile();
                    cost.note();
                    if outbox.send((file, table)).is_err() {
                        return;
                    }
                }
            })?;
        Ok(Self {
            entries: HashMap::new(),
            by_key: HashMap::new(),
            next: FileId::FIRST,
            jobs,
            done,
            limit,
            bytes: 0,
            age: 0,
            gone: Vec::new(),
        })
    }

    /// The binary of a mapping; opened through the process at its first sight.
    pub fn intern(&mut self, pid: u32, line: &MapsLine) -> FileId {
        let is_vdso = line.path == "[vdso]";
        if !is_vdso && (line.inode == 0 || line.path.starts_with('[') || line.path.starts_with("//")) {
            return FileId::ANONYMOUS;
        }
        let key = Key {
            device: line.device,
            inode: line.inode,
            path: line.path.clone(),
        };
        if let Some(id) = self.by_key.get(&key) {
            return *id;
        }
        let id = FileId(self.next);
        self.next += 1;
        self.by_key.insert(key.clone(), id);
        self.entries.insert(
            id,
            Entry {
                key,
                binary: Arc::new(Binary::open(pid, line)),
                state: TableState::NotAsked,
                used: self.age,
            },
        );
        id
    }

    /// A binary.
    pub fn binary(&self, id: FileId) -> Option<&Arc<Binary>> {
        self.entries.get(&id).map(|entry| &entry.binary)
    }

    /// The finished table of a binary.
    pub fn table(&self, id: FileId) -> Option<&Arc<Table>> {
        match &self.entries.get(&id)?.state {
            TableState::Ready(table) => Some(table),
            _ => None,
        }
    }

    /// Asks for the tables of some files and tells whether there is nothing to wait for any more.
    pub fn want_tables(&mut self, files: impl Iterator<Item = FileId>) -> bool {
        let mut ready = true;
        for file in files {
            // Every one is asked for, whatever the others answer.
            ready &= self.want_table(file);
        }
        ready
    }

    fn want_table(&mut self, id: FileId) -> bool {
        let Some(entry) = self.entries.get_mut(&id) else {
            return true;
        };
        entry.used = self.age;
        match entry.state {
            TableState::NotAsked => {
                entry.state = match self.jobs.send((id, entry.binary.clone())) {
                    Ok(()) => TableState::Building,
                    Err(_) => TableState::Absent,
                };
                false
            }
            TableState::Building => false,
            TableState::Ready(_) | TableState::Absent => true,
        }
    }

    /// Notes that code of a file ran.
    pub fn used(&mut self, id: FileId) {
        if let Some(entry) = self.entries.get_mut(&id) {
            entry.used = self.age;
        }
    }

    /// Tables that were finished since the last call and have room.
    pub fn ready(&mut self) -> Vec<(FileId, Arc<Table>)> {
        let mut ready = Vec::new();
        while let Ok((id, table)) = self.done.try_recv() {
            let fits = self.make_room(table.bytes());
            let Some(entry) = self.entries.get_mut(&id) else {
                continue;
            };
            if table.is_empty() {
                entry.state = TableState::Absent;
            } else if fits {
                let table = Arc::new(table);
                self.bytes += table.bytes();
                entry.state = TableState::Ready(table.clone());
                ready.push((id, table));
            } else {
                tracing::warn!(
                    path = %entry.binary.path, bytes = table.bytes(), limit = self.limit,
                    "the budget has no room for an unwind table, frame pointers are followed instead"
                );
                entry.state = TableState::Absent;
            }
        }
        ready
    }

    /// Throws away tables, the longest unused first, until so many bytes fit. Answers false when they never will.
    fn make_room(&mut self, wanted: usize) -> bool {
        if wanted > self.limit {
            return false;
        }
        while self.bytes + wanted > self.limit {
            let oldest = self
                .entries
                .iter()
                .filter(|(_, entry)| matches!(entry.state, TableState::Ready(_)))
                .min_by_key(|(id, entry)| (entry.used, **id))
                .map(|(id, _)| *id);
            let Some(id) = oldest else { return false };
            self.drop_table(id);
        }
        true
    }

    fn drop_table(&mut self, id: FileId) {
        if let Some(entry) = self.entries.get_mut(&id)
            && let TableState::Ready(table) = &entry.state
        {
            self.bytes = self.bytes.saturating_sub(table.bytes());
            entry.state = TableState::NotAsked;
            self.gone.push(id);
        }
    }

    /// Bytes of the rows of all tables.
    pub fn table_bytes(&self) -> usize {
        self.bytes
    }

    /// Files whose tables were thrown away since the last call.
    pub fn gone(&mut self) -> Vec<FileId> {
        std::mem::take(&mut self.gone)
    }

    /// Ends a window: closes files that did not run for long when there are too many, and answers with them.
    pub fn age(&mut self) -> Vec<FileId> {
        self.age += 1;
        let mut closed = Vec::new();
        if self.entries.len() <= MAX_FILES {
            return closed;
        }
        let mut by_age: Vec<(u64, FileId)> = self.entries.iter().map(|(id, entry)| (entry.used, *id)).collect();
        by_age.sort_unstable();
        for (_, id) in by_age.into_iter().take(self.entries.len() - MAX_FILES) {
            if matches!(self.entries.get(&id), Some(entry) if matches!(entry.state, TableState::Building)) {
                continue;
            }
            self.drop_table(id);
            if let Some(entry) = self.entries.remove(&id) {
                self.by_key.remove(&entry.key);
                closed.push(id);
            }
        }
        closed
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    /// The mapping of a file that exists.
    fn line(path: &str) -> MapsLine {
        use std::os::unix::fs::MetadataExt;
        MapsLine {
            start: 0x1000,
            end: 0x2000,
            offset: 0,
            device: (1, 1),
            inode: std::fs::metadata(path).unwrap().ino(),
            path: path.to_owned(),
        }
    }

    fn wait_for_table(files: &mut Files, id: FileId) -> Vec<(FileId, Arc<Table>)> {
        let until = Instant::now() + Duration::from_secs(60);
        let mut found = Vec::new();
        while !files.want_tables([id].into_iter()) {
            assert!(Instant::now() < until, "no table");
            std::thread::sleep(Duration::from_millis(5));
            found.extend(files.ready());
        }
        found
    }

    #[test]
    fn tables_stay_within_their_bytes_and_the_longest_unused_goes_first() {
        let folder = tempfile::tempdir().unwrap();
        let own = std::env::current_exe().unwrap();
        let copies: Vec<String> = (0..3)
            .map(|index| {
                let path = folder.path().join(format!("copy{index}"));
                // `/bin/sh` is small.
                std::fs::copy("/bin/sh", &path).unwrap();
                path.to_string_lossy().into_owned()
            })
            .collect();
        let pid = std::process::id();
        let mut probe = Files::new(usize::MAX, &Cost::default()).unwrap();
        let first = probe.intern(pid, &line(&copies[0]));
        wait_for_table(&mut probe, first);
        let one = probe.table_bytes();
        assert!(one > 0);

        let mut files = Files::new(one * 2, &Cost::default()).unwrap();
        let ids: Vec<FileId> = copies.iter().map(|path| files.intern(pid, &line(path))).collect();
        for id in &ids {
            wait_for_table(&mut files, *id);
            assert!(files.table_bytes() <= one * 2);
            files.age();
        }
        assert_eq!(files.gone(), [ids[0]]);
        assert!(files.table(ids[0]).is_none() && files.table(ids[2]).is_some());
        // One that never fits is left out, and nobody waits for it.
        let large = files.intern(pid, &line(&own.to_string_lossy()));
        wait_for_table(&mut files, large);
        assert!(files.table(large).is_none());
        assert!(files.table_bytes() <= one * 2);
    }
}
