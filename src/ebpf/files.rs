//! The binaries that run, each stored once, and their unwind tables.
//!
//! A separate thread compiles a table when a stack first needs it, and [`Files::changes`] returns the table. The tables
//! are always bounded in bytes: tables that were not used recently are dropped, least recently used first. A table
//! that does not fit is left out until there is room, so that no table is compiled again and again. The names
//! of functions are in `name_cache`, because another thread looks them up.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use crate::arrays::SharedArray;
use crate::binary::Binary;
use crate::bounds::{Bounds, LoggedOmissions, Omission};
use crate::cost::CostAccount;
use crate::foreign::{MAX_OPEN_FILES, Opener};
use crate::proc::{MapsLine, ProcessKey};
use crate::rows::Rows;
use crate::trampolines;
use alluvium_unwind::{Line, Packed, Table};

/// Id of a binary. Ids below 16 stand for addresses without a known binary, such as kernel addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FileId(pub u32);

impl FileId {
    /// The kernel and its modules.
    pub(crate) const KERNEL: Self = Self(0);
    /// Memory without a file, which contains code generated at run time.
    pub(crate) const ANONYMOUS: Self = Self(1);
    /// An address in no known mapping.
    pub(crate) const UNKNOWN: Self = Self(2);
    /// A pseudo address that stands for the name of a thread.
    pub(crate) const COMM: Self = Self(3);
    /// Memory that has no file and holds CPython's [`trampolines`].
    pub(crate) const TRAMPOLINES: Self = Self(4);
    /// First id of a real file.
    const FIRST: u32 = 16;

    /// Returns the key of the binary's table in the kernel, or 0 for ids that never have a table.
    pub(crate) fn table_key(self) -> u32 {
        match self {
            Self::TRAMPOLINES => self.0,
            Self(id) if id < Self::FIRST => 0,
            Self(file) => file,
        }
    }
}

/// Maximum number of files that stay open from one window to the next. Within a window, the opener's limit applies.
const MAX_FILES: usize = 512;

pub(crate) struct Files {
    entries: HashMap<FileId, Entry>,
    by_key: HashMap<Key, FileId>,
    next: u32,
    jobs: Sender<(FileId, Arc<Binary>)>,
    compiled_tables: Receiver<(FileId, Packed)>,
    /// Maximum number of bytes of tables that are kept.
    limit: usize,
    /// True once the warning about a table without room was logged.
    is_full_reported: bool,
    bytes: usize,
    /// Number of the current window, stored with entries when they are used.
    age: u64,
    /// Changes not yet passed to the kernel side.
    changes: Vec<(FileId, TableChange)>,
    /// The table of [`FileId::TRAMPOLINES`].
    trampolines: Arc<Rows>,
    opener: Opener,
    /// Records that a file was left out in this window because there was no room for it. This limits the log to one
    /// message per window, since untrusted processes can map any number of files.
    logged: LoggedOmissions,
}

/// A change of a file's table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TableChange {
    Made(Arc<Rows>),
    /// There is no table, or no room for it. The unwinder follows frame pointers.
    Absent,
    /// The table was dropped. A stack that needs it requests it again.
    Dropped,
}

/// The means to unwind from an address of a file.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Lookup<'a> {
    Table(&'a Rows),
    FramePointers,
    /// The rules are unknown until the table is requested and compiled.
    Later,
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
    table_state: TableState,
    /// Size of the table in bytes, once it was compiled.
    table_bytes: Option<usize>,
    last_used: u64,
}

enum TableState {
    NotRequested,
    Building,
    Ready(Arc<Rows>),
    /// The file has no table, or it could not be compiled. The unwinder follows frame pointers.
    Absent,
    /// There is no room for the table at present. The unwinder follows frame pointers.
    NoRoom,
}

impl Files {
    /// Starts the thread that compiles tables. At most `limit` bytes of tables are kept.
    pub(crate) fn new(limit: usize, cost: &CostAccount, opener: Opener) -> io::Result<Self> {
        let (jobs, inbox) = channel::<(FileId, Arc<Binary>)>();
        let (outbox, compiled_tables) = channel();
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
        let trampolines = Arc::new(Rows::Own(Packed::new(Table::new(vec![trampolines::row()]))));
        Ok(Self {
            entries: HashMap::new(),
            by_key: HashMap::new(),
            next: FileId::FIRST,
            jobs,
            compiled_tables,
            limit,
            is_full_reported: false,
            bytes: 0,
            age: 0,
            changes: vec![(FileId::TRAMPOLINES, TableChange::Made(trampolines.clone()))],
            trampolines,
            opener,
            logged: LoggedOmissions::default(),
        })
    }

    /// Returns the id of the binary of a mapping, and opens a new binary through the process. If there is no room for
    /// another file, the id is [`FileId::UNKNOWN`] until the window ends.
    pub(crate) fn intern(&mut self, process: ProcessKey, line: &MapsLine) -> FileId {
        let is_vdso = line.path == "[vdso]";
        if !is_vdso && (line.inode == 0 || line.path.starts_with('[') || line.path.starts_with("//")) {
            return if trampolines::contain_trampolines(process.pid, line) {
                FileId::TRAMPOLINES
            } else {
                FileId::ANONYMOUS
            };
        }
        let key = Key {
            device: line.device,
            inode: line.inode,
            path: line.path.clone(),
        };
        if let Some(id) = self.by_key.get(&key) {
            return *id;
        }
        if !self.opener.has_room() || self.entries.len() >= MAX_OPEN_FILES {
            self.opener
                .bounds
                .count_omission(Omission::File, &self.logged, &line.path);
            return FileId::UNKNOWN;
        }
        let id = FileId(self.next);
        self.next += 1;
        self.by_key.insert(key.clone(), id);
        self.entries.insert(
            id,
            Entry {
                key,
                binary: Arc::new(Binary::open(&self.opener, process, line)),
                table_state: TableState::NotRequested,
                table_bytes: None,
                // Until the file runs, it counts as last used in the previous window, so it is closed before the files
                // that ran in this window.
                last_used: self.age.saturating_sub(1),
            },
        );
        id
    }

    /// Returns the counts of the parts omitted from files and processes.
    pub(super) fn bounds(&self) -> &Bounds {
        &self.opener.bounds
    }

    pub(crate) fn binary(&self, id: FileId) -> Option<&Arc<Binary>> {
        self.entries.get(&id).map(|entry| &entry.binary)
    }

    /// Returns the current means to unwind from addresses of a file.
    pub(crate) fn lookup(&self, id: FileId) -> Lookup<'_> {
        if id == FileId::TRAMPOLINES {
            return Lookup::Table(&self.trampolines);
        }
        match self.entries.get(&id).map(|entry| &entry.table_state) {
            Some(TableState::Ready(table)) => Lookup::Table(table),
            Some(TableState::NotRequested | TableState::Building) => Lookup::Later,
            Some(TableState::Absent | TableState::NoRoom) | None => Lookup::FramePointers,
        }
    }

    /// Requests the table of a file. Returns false if the table is still being compiled.
    pub(crate) fn request_table(&mut self, id: FileId) -> bool {
        let Some(entry) = self.entries.get_mut(&id) else {
            return true;
        };
        entry.last_used = self.age;
        match entry.table_state {
            TableState::NotRequested => {}
            TableState::Building => return false,
            TableState::Ready(_) | TableState::Absent | TableState::NoRoom => return true,
        }
        let (binary, table_bytes) = (entry.binary.clone(), entry.table_bytes);
        // If there is no room for the table, compiling it again is useless.
        let has_room = table_bytes.is_none_or(|bytes| self.has_room(bytes));
        let next = if !has_room {
            TableState::NoRoom
        } else if self.jobs.send((id, binary)).is_ok() {
            TableState::Building
        } else {
            TableState::Absent
        };
        let is_building = matches!(next, TableState::Building);
        if !is_building {
            self.changes.push((id, TableChange::Absent));
        }
        if let Some(entry) = self.entries.get_mut(&id) {
            entry.table_state = next;
        }
        !is_building
    }

    /// Marks the file as used in this window.
    pub(crate) fn mark_used(&mut self, id: FileId) {
        if let Some(entry) = self.entries.get_mut(&id) {
            entry.last_used = self.age;
        }
    }

    /// Returns the changes since the last call, in order.
    pub(crate) fn changes(&mut self) -> Vec<(FileId, TableChange)> {
        while let Ok((id, table)) = self.compiled_tables.try_recv() {
            self.insert_table(id, table);
        }
        std::mem::take(&mut self.changes)
    }

    /// Waits until a table is compiled, but at most `time`.
    pub(crate) fn wait(&mut self, time: Duration) {
        if let Ok((id, table)) = self.compiled_tables.recv_timeout(time) {
            self.insert_table(id, table);
        }
    }

    fn insert_table(&mut self, id: FileId, table: Packed) {
        let bytes = table.bytes();
        let has_room = self.make_room(bytes);
        let Some(entry) = self.entries.get_mut(&id) else {
            return;
        };
        let is_first = entry.table_bytes.replace(bytes).is_none();
        let change = if table.is_empty() {
            entry.table_state = TableState::Absent;
            TableChange::Absent
        } else if has_room {
            let table = Arc::new(Rows::Own(table));
            self.bytes += bytes;
            entry.table_state = TableState::Ready(table.clone());
            TableChange::Made(table)
        } else {
            let path = &entry.binary.path;
            // A machine that builds software has hundreds of such files, so only the first causes a warning.
            if is_first && !self.is_full_reported {
                self.is_full_reported = true;
                tracing::warn!(
                    %path, bytes, limit = self.limit,
                    "no room in the budget for an unwind table: frame pointers are followed instead; further cases \
                     are logged at level debug"
                );
            } else if is_first {
                tracing::debug!(%path, bytes, "no room for an unwind table");
            }
            entry.table_state = TableState::NoRoom;
            TableChange::Absent
        };
        self.changes.push((id, change));
    }

    /// Replaces the table in this process's memory by `lines`, which are the same table in kernel memory.
    pub(crate) fn share(&mut self, id: FileId, lines: SharedArray<Line>) {
        if let Some(entry) = self.entries.get_mut(&id)
            && matches!(entry.table_state, TableState::Ready(_))
        {
            entry.table_state = TableState::Ready(Arc::new(Rows::Kernel(lines)));
        }
    }

    /// Returns true for a table that may be dropped, because its file ran neither in this window nor in the last one.
    fn is_idle(&self, entry: &Entry) -> bool {
        matches!(entry.table_state, TableState::Ready(_)) && entry.last_used + 1 < self.age
    }

    fn has_room(&self, bytes: usize) -> bool {
        let idle = self.entries.values().filter(|entry| self.is_idle(entry));
        let idle: usize = idle.filter_map(|entry| entry.table_bytes).sum();
        (self.bytes - idle.min(self.bytes)).saturating_add(bytes) <= self.limit
    }

    /// Drops idle tables, least recently used first, until there is room for `bytes` more bytes. Returns false if there
    /// cannot be enough room.
    fn make_room(&mut self, bytes: usize) -> bool {
        if !self.has_room(bytes) {
            return false;
        }
        while self.bytes + bytes > self.limit {
            let oldest = self
                .entries
                .iter()
                .filter(|(_, entry)| self.is_idle(entry))
                .min_by_key(|(id, entry)| (entry.last_used, **id))
                .map(|(id, _)| *id);
            let Some(id) = oldest else { return false };
            self.drop_table(id);
        }
        true
    }

    fn drop_table(&mut self, id: FileId) {
        if let Some(entry) = self.entries.get_mut(&id) {
            if let TableState::Ready(table) = &entry.table_state {
                self.bytes = self.bytes.saturating_sub(table.bytes());
            }
            entry.table_state = TableState::NotRequested;
            self.changes.push((id, TableChange::Dropped));
        }
    }

    pub(crate) fn table_bytes(&self) -> usize {
        self.bytes
    }

    /// Ends a window. If too many files are open, closes the least recently used files. Returns the closed files, and
    /// [`FileId::UNKNOWN`] if a file had no room in the window.
    pub(crate) fn end_window(&mut self) -> Vec<FileId> {
        self.age += 1;
        self.allow_requests();
        let mut closed = Vec::new();
        if !std::mem::take(&mut self.logged).is_empty() {
            closed.push(FileId::UNKNOWN);
        }
        if self.entries.len() <= MAX_FILES {
            return closed;
        }
        let mut by_age: Vec<(u64, FileId)> = self.entries.iter().map(|(id, entry)| (entry.last_used, *id)).collect();
        by_age.sort_unstable();
        for (_, id) in by_age.into_iter().take(self.entries.len() - MAX_FILES) {
            if matches!(self.entries.get(&id), Some(entry) if matches!(entry.table_state, TableState::Building)) {
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

    /// Allows recently used files to request their tables again, if the tables had no room before and have room now.
    fn allow_requests(&mut self) {
        let retried_ids: Vec<FileId> = self
            .entries
            .iter()
            .filter(|(_, entry)| matches!(entry.table_state, TableState::NoRoom) && entry.last_used + 1 >= self.age)
            .filter(|(_, entry)| entry.table_bytes.is_some_and(|bytes| self.has_room(bytes)))
            .map(|(id, _)| *id)
            .collect();
        for id in retried_ids {
            self.drop_table(id);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    /// Returns the mapping of an existing file.
    fn line(path: &str) -> MapsLine {
        MapsLine::of_file(std::path::Path::new(path))
    }

    /// Requests a table, waits for it, and returns all changes.
    fn wait_for_table(files: &mut Files, id: FileId) -> Vec<(FileId, TableChange)> {
        let deadline = Instant::now() + Duration::from_mins(1);
        let mut changes = files.changes();
        while !files.request_table(id) {
            assert!(Instant::now() < deadline, "no table was compiled within a minute");
            files.wait(Duration::from_millis(50));
            changes.extend(files.changes());
        }
        changes.extend(files.changes());
        changes
    }

    fn has_table(files: &Files, id: FileId) -> bool {
        matches!(files.lookup(id), Lookup::Table(_))
    }

    #[test]
    fn tables_stay_within_their_bytes_and_the_longest_unused_goes_first() {
        let folder = tempfile::tempdir().unwrap();
        let test_program = std::env::current_exe().unwrap();
        let copies: Vec<String> = (0..3)
            .map(|index| {
                let path = folder.path().join(format!("copy{index}"));
                // `/bin/sh` is small, so its table fits.
                std::fs::copy("/bin/sh", &path).unwrap();
                path.to_string_lossy().into_owned()
            })
            .collect();
        let own_key = ProcessKey {
            pid: std::process::id(),
            start: 0,
        };
        let mut probe = Files::new(usize::MAX, &CostAccount::default(), Opener::default()).unwrap();
        let first = probe.intern(own_key, &line(&copies[0]));
        wait_for_table(&mut probe, first);
        let one = probe.table_bytes();
        assert!(one > 0);

        let mut files = Files::new(one * 2, &CostAccount::default(), Opener::default()).unwrap();
        let ids: Vec<FileId> = copies.iter().map(|path| files.intern(own_key, &line(path))).collect();
        let mut changes = Vec::new();
        for id in &ids {
            changes.extend(wait_for_table(&mut files, *id));
            assert!(files.table_bytes() <= one * 2);
            files.end_window();
        }
        assert!(changes.contains(&(ids[0], TableChange::Dropped)));
        assert!(!has_table(&files, ids[0]) && has_table(&files, ids[2]));
        // A table that never fits is left out, and nothing waits for it.
        let large_id = files.intern(own_key, &line(&test_program.to_string_lossy()));
        let changes = wait_for_table(&mut files, large_id);
        assert_eq!(changes, [(large_id, TableChange::Absent)]);
        assert!(matches!(files.lookup(large_id), Lookup::FramePointers));
        assert!(files.table_bytes() <= one * 2);
    }

    #[test]
    fn files_without_room_are_unknown_until_the_window_ends_and_those_that_ran_stay() {
        let folder = tempfile::tempdir().unwrap();
        let first = folder.path().join("first");
        std::fs::copy("/bin/sh", &first).unwrap();
        let own_key = ProcessKey {
            pid: std::process::id(),
            start: 0,
        };
        let opener = Opener::default();
        let mut files = Files::new(usize::MAX, &CostAccount::default(), opener.clone()).unwrap();
        // The same file at a new path gets a new id, like the same code in another container.
        let intern = |files: &mut Files, index: usize| {
            let path = folder.path().join(index.to_string());
            if !path.exists() {
                std::fs::hard_link(&first, &path).unwrap();
            }
            files.intern(own_key, &line(&path.to_string_lossy()))
        };
        files.end_window();
        files.end_window();
        let runs = intern(&mut files, 0);
        files.mark_used(runs);
        let mut count = 0;
        while intern(&mut files, count) != FileId::UNKNOWN {
            count += 1;
        }
        assert!(!opener.has_room() && (64..=MAX_OPEN_FILES).contains(&count), "{count}");
        assert_eq!(intern(&mut files, 0), runs, "known files are found as before");
        intern(&mut files, count + 1);
        assert_eq!(opener.bounds.omission_counts()[Omission::File as usize], 2);
        let kept_count = count.min(MAX_FILES);
        let closed = files.end_window();
        assert!(closed.contains(&FileId::UNKNOWN) && !closed.contains(&runs));
        assert_eq!(closed.len() - 1, count - kept_count);
        assert_eq!(files.entries.len(), kept_count);
        assert!(count == kept_count || intern(&mut files, count) != FileId::UNKNOWN);
        assert!(!files.end_window().contains(&FileId::UNKNOWN));
    }

    #[test]
    fn what_finds_no_room_beside_tables_in_use_is_not_made_again_until_there_is_some() {
        let folder = tempfile::tempdir().unwrap();
        let own_key = ProcessKey {
            pid: std::process::id(),
            start: 0,
        };
        let mut files = Files::new(usize::MAX, &CostAccount::default(), Opener::default()).unwrap();
        let ids: Vec<FileId> = ["first", "second"]
            .into_iter()
            .map(|name| {
                let path = folder.path().join(name);
                std::fs::copy("/bin/sh", &path).unwrap();
                files.intern(own_key, &line(&path.to_string_lossy()))
            })
            .collect();
        wait_for_table(&mut files, ids[0]);
        files.limit = files.table_bytes();
        assert_eq!(wait_for_table(&mut files, ids[1]), [(ids[1], TableChange::Absent)]);
        for _ in 0..3 {
            // Both files run in each window, so nothing changes.
            ids.iter().for_each(|id| files.mark_used(*id));
            files.end_window();
            assert_eq!(files.changes(), []);
            assert!(has_table(&files, ids[0]) && !has_table(&files, ids[1]));
        }
        // The first file does not run any more.
        for _ in 0..2 {
            files.mark_used(ids[1]);
            files.end_window();
        }
        assert_eq!(files.changes(), [(ids[1], TableChange::Dropped)]);
        let changes = wait_for_table(&mut files, ids[1]);
        assert_eq!(changes.first(), Some(&(ids[0], TableChange::Dropped)));
        assert!(has_table(&files, ids[1]) && !has_table(&files, ids[0]));
    }
}
