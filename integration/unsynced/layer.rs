//! A file system in user space over a [`Disk`]. It records the changes and syncs of a program in order.
//!
//! The kernel sends one call at a time. So when a write has returned, the record contains this write and all earlier
//! changes. On a slow disk, writes and syncs complete after a delay, and other calls may complete before them.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsStr;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use fuser::{
    BackgroundSession, BsdFileFlags, Config, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation,
    INodeNo, LockOwner, MountOption, OpenFlags, RenameFlags, ReplyAttr, ReplyCreate, ReplyData, ReplyDirectory,
    ReplyEmpty, ReplyEntry, ReplyOpen, ReplyStatfs, ReplyWrite, Request, TimeOrNow, WriteFlags,
};

use super::disk::{Change, TOP, Trouble};

/// Time for which the kernel may cache attributes. Caching is safe because all changes come through the kernel.
const KEPT: Duration = Duration::from_secs(1);
const GENERATION: Generation = Generation(0);
/// Block size for statfs(2), and the number of blocks, which is never exhausted.
const BLOCK: u32 = 4096;
const BLOCKS: u64 = 1 << 24;

/// The contents of the disk as programs see them, and the changes that led to them.
#[derive(Clone)]
pub(super) struct Disk(Arc<Mutex<State>>);

struct State {
    nodes: HashMap<u64, Node>,
    next: u64,
    changes: Vec<Change>,
    trouble: Trouble,
}

struct Node {
    contents: Contents,
    mode: u32,
    links: u32,
    modified: SystemTime,
}

enum Contents {
    File(Vec<u8>),
    Folder(BTreeMap<String, u64>),
}

/// The file system while it is mounted.
pub(super) struct Mounted {
    session: Option<BackgroundSession>,
}

impl Drop for Mounted {
    fn drop(&mut self) {
        if let Some(session) = self.session.take() {
            let _ = session.umount_and_join();
        }
    }
}

impl Disk {
    pub(super) fn new() -> Self {
        let top = Node::new(Contents::Folder(BTreeMap::new()), 0o700);
        Self(Arc::new(Mutex::new(State {
            nodes: HashMap::from([(TOP, top)]),
            next: TOP + 1,
            changes: Vec::new(),
            trouble: Trouble::default(),
        })))
    }

    /// Returns a disk with all of these changes, synced or not. When a process is killed, the operating system keeps
    /// its unsynced changes.
    pub(super) fn after(changes: &[Change]) -> Self {
        let disk = Self::new();
        let mut state = disk.state();
        for change in changes {
            state.take(change).unwrap();
        }
        state.changes = changes.to_vec();
        drop(state);
        disk
    }

    /// Mounts the disk at a folder, until the returned value is dropped.
    pub(super) fn mount(&self, at: &Path) -> std::io::Result<Mounted> {
        let mut config = Config::default();
        config.mount_options = vec![MountOption::FSName("alluvium-unsynced".to_owned())];
        let session = fuser::spawn_mount(self.clone(), at, &config)?;
        Ok(Mounted { session: Some(session) })
    }

    /// Returns the number of changes so far.
    pub(super) fn length(&self) -> usize {
        self.state().changes.len()
    }

    /// Returns all changes and syncs so far.
    pub(super) fn changes(&self) -> Vec<Change> {
        self.state().changes.clone()
    }

    /// Marks everything as synced.
    pub(super) fn settle(&self) {
        let mut state = self.state();
        let mut nodes: Vec<u64> = state.nodes.keys().copied().collect();
        nodes.sort_unstable();
        state
            .changes
            .extend(nodes.into_iter().map(|node| Change::Sync { node }));
    }

    /// Replaces the faults of the disk by `trouble`.
    pub(super) fn trouble(&self, trouble: Trouble) {
        self.state().trouble = trouble;
    }

    /// Returns the total size in bytes of all files that have a name.
    pub(super) fn bytes(&self) -> usize {
        self.state().bytes()
    }

    /// Returns the number of files and folders that have a name.
    pub(super) fn names(&self) -> usize {
        self.state().names()
    }

    /// Does the work at once, or after the delay of a slow disk.
    fn write_or_sync(&self, work: impl FnOnce(&mut State) + Send + 'static) {
        let slow = self.state().trouble.slow;
        if slow.is_zero() {
            return work(&mut self.state());
        }
        let disk = self.clone();
        std::thread::spawn(move || {
            std::thread::sleep(slow);
            work(&mut disk.state());
        });
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Node {
    fn new(contents: Contents, mode: u32) -> Self {
        Self {
            contents,
            mode: mode & 0o7777,
            links: 1,
            modified: SystemTime::now(),
        }
    }

    fn is_folder(&self) -> bool {
        matches!(self.contents, Contents::Folder(_))
    }
}

fn text(name: &OsStr) -> Result<String, Errno> {
    name.to_str().map(str::to_owned).ok_or(Errno::EINVAL)
}

impl State {
    fn take(&mut self, change: &Change) -> Result<(), Errno> {
        match change {
            Change::Make { node, is_folder } => {
                let made = if *is_folder {
                    Node::new(Contents::Folder(BTreeMap::new()), 0o700)
                } else {
                    Node::new(Contents::File(Vec::new()), 0o600)
                };
                self.nodes.insert(*node, Node { links: 0, ..made });
                self.next = self.next.max(node + 1);
            }
            Change::Name { folder, name, node } => {
                self.node(INodeNo(*node))?.links += 1;
                self.folder(INodeNo(*folder))?.insert(name.clone(), *node);
            }
            Change::Unname { folder, name } => {
                let node = self.folder(INodeNo(*folder))?.remove(name).ok_or(Errno::ENOENT)?;
                self.node(INodeNo(node))?.links -= 1;
            }
            Change::Rename { folder, from, to, .. } => {
                self.rename(INodeNo(*folder), OsStr::new(from), OsStr::new(to))?;
            }
            Change::Write { node, offset, bytes } => drop(self.write(INodeNo(*node), *offset, bytes.clone())?),
            Change::Length { node, length } => self.set_length(INodeNo(*node), *length)?,
            Change::Sync { .. } => {}
        }
        Ok(())
    }

    fn node(&mut self, node: INodeNo) -> Result<&mut Node, Errno> {
        self.nodes.get_mut(&node.0).ok_or(Errno::ENOENT)
    }

    fn file(&mut self, node: INodeNo) -> Result<&mut Vec<u8>, Errno> {
        let node = self.node(node)?;
        node.modified = SystemTime::now();
        match &mut node.contents {
            Contents::File(bytes) => Ok(bytes),
            Contents::Folder(_) => Err(Errno::EISDIR),
        }
    }

    fn folder(&mut self, node: INodeNo) -> Result<&mut BTreeMap<String, u64>, Errno> {
        match &mut self.node(node)?.contents {
            Contents::Folder(names) => Ok(names),
            Contents::File(_) => Err(Errno::ENOTDIR),
        }
    }

    fn named(&self) -> impl Iterator<Item = &Node> {
        self.nodes.values().filter(|node| node.links > 0)
    }

    fn bytes(&self) -> usize {
        let length = |node: &Node| match &node.contents {
            Contents::File(bytes) => bytes.len(),
            Contents::Folder(_) => 0,
        };
        self.named().map(length).sum()
    }

    fn names(&self) -> usize {
        self.named().count()
    }

    fn attributes(&mut self, node: INodeNo) -> Result<FileAttr, Errno> {
        let found = self.node(node)?;
        let size = match &found.contents {
            Contents::File(bytes) => bytes.len() as u64,
            Contents::Folder(_) => 0,
        };
        Ok(FileAttr {
            ino: node,
            size,
            blocks: size.div_ceil(512),
            atime: found.modified,
            mtime: found.modified,
            ctime: found.modified,
            crtime: found.modified,
            kind: if found.is_folder() {
                FileType::Directory
            } else {
                FileType::RegularFile
            },
            perm: found.mode as u16,
            nlink: found.links,
            uid: rustix::process::getuid().as_raw(),
            gid: rustix::process::getgid().as_raw(),
            rdev: 0,
            blksize: BLOCK,
            flags: 0,
        })
    }

    fn find(&mut self, folder: INodeNo, name: &OsStr) -> Result<FileAttr, Errno> {
        let node = *self.folder(folder)?.get(&text(name)?).ok_or(Errno::ENOENT)?;
        self.attributes(INodeNo(node))
    }

    fn make(&mut self, folder: INodeNo, name: &OsStr, contents: Contents, mode: u32) -> Result<FileAttr, Errno> {
        let name = text(name)?;
        if self.folder(folder)?.contains_key(&name) {
            return Err(Errno::EEXIST);
        }
        if self.trouble.most_names.is_some_and(|most| self.names() >= most) {
            return Err(Errno::ENOSPC);
        }
        let node = self.next;
        self.next += 1;
        let made = Node::new(contents, mode);
        let is_folder = made.is_folder();
        self.nodes.insert(node, made);
        self.folder(folder)?.insert(name.clone(), node);
        self.changes.push(Change::Make { node, is_folder });
        self.changes.push(Change::Name {
            folder: folder.0,
            name,
            node,
        });
        self.attributes(INodeNo(node))
    }

    fn link(&mut self, node: INodeNo, folder: INodeNo, name: &OsStr) -> Result<FileAttr, Errno> {
        let name = text(name)?;
        if self.folder(folder)?.contains_key(&name) {
            return Err(Errno::EEXIST);
        }
        self.node(node)?.links += 1;
        self.folder(folder)?.insert(name.clone(), node.0);
        self.changes.push(Change::Name {
            folder: folder.0,
            name,
            node: node.0,
        });
        self.attributes(node)
    }

    fn unlink(&mut self, folder: INodeNo, name: &OsStr, wants_folder: bool) -> Result<(), Errno> {
        let name = text(name)?;
        let node = *self.folder(folder)?.get(&name).ok_or(Errno::ENOENT)?;
        let found = self.node(INodeNo(node))?;
        match &found.contents {
            Contents::Folder(_) if !wants_folder => return Err(Errno::EISDIR),
            Contents::File(_) if wants_folder => return Err(Errno::ENOTDIR),
            Contents::Folder(names) if !names.is_empty() => return Err(Errno::ENOTEMPTY),
            _ => {}
        }
        found.links = found.links.saturating_sub(1);
        self.folder(folder)?.remove(&name);
        self.changes.push(Change::Unname { folder: folder.0, name });
        Ok(())
    }

    fn rename(&mut self, folder: INodeNo, from: &OsStr, to: &OsStr) -> Result<(), Errno> {
        let (from, to) = (text(from)?, text(to)?);
        let names = self.folder(folder)?;
        let node = names.remove(&from).ok_or(Errno::ENOENT)?;
        let replaced = names.insert(to.clone(), node);
        if let Some(replaced) = replaced.and_then(|replaced| self.nodes.get_mut(&replaced)) {
            replaced.links = replaced.links.saturating_sub(1);
        }
        self.changes.push(Change::Rename {
            folder: folder.0,
            from,
            to,
            node,
        });
        Ok(())
    }

    fn write(&mut self, node: INodeNo, offset: usize, bytes: Vec<u8>) -> Result<u32, Errno> {
        let end = offset + bytes.len();
        if let Some(most) = self.trouble.most_bytes {
            let grows = end.saturating_sub(self.file(node)?.len());
            if grows > 0 && self.bytes() + grows > most {
                return Err(Errno::ENOSPC);
            }
        }
        let file = self.file(node)?;
        if file.len() < end {
            file.resize(end, 0);
        }
        file[offset..end].copy_from_slice(&bytes);
        let written = bytes.len() as u32;
        self.changes.push(Change::Write {
            node: node.0,
            offset,
            bytes,
        });
        Ok(written)
    }

    fn set_length(&mut self, node: INodeNo, length: usize) -> Result<(), Errno> {
        self.file(node)?.resize(length, 0);
        self.changes.push(Change::Length { node: node.0, length });
        Ok(())
    }

    fn sync(&mut self, node: INodeNo) -> Result<(), Errno> {
        self.node(node)?;
        self.changes.push(Change::Sync { node: node.0 });
        Ok(())
    }
}

fn entry(found: Result<FileAttr, Errno>, reply: ReplyEntry) {
    match found {
        Ok(attributes) => reply.entry(&KEPT, &attributes, GENERATION),
        Err(error) => reply.error(error),
    }
}

fn empty(done: Result<(), Errno>, reply: ReplyEmpty) {
    match done {
        Ok(()) => reply.ok(),
        Err(error) => reply.error(error),
    }
}

impl Filesystem for Disk {
    fn lookup(&self, _: &Request, folder: INodeNo, name: &OsStr, reply: ReplyEntry) {
        entry(self.state().find(folder, name), reply);
    }

    fn getattr(&self, _: &Request, node: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        match self.state().attributes(node) {
            Ok(attributes) => reply.attr(&KEPT, &attributes),
            Err(error) => reply.error(error),
        }
    }

    fn setattr(
        &self,
        _: &Request,
        node: INodeNo,
        mode: Option<u32>,
        _: Option<u32>,
        _: Option<u32>,
        size: Option<u64>,
        _: Option<TimeOrNow>,
        _: Option<TimeOrNow>,
        _: Option<SystemTime>,
        _: Option<FileHandle>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let mut state = self.state();
        let changed = match size {
            Some(length) => state.set_length(node, length as usize),
            None => Ok(()),
        };
        let changed = changed.and_then(|()| {
            let found = state.node(node)?;
            found.mode = mode.map_or(found.mode, |mode| mode & 0o7777);
            state.attributes(node)
        });
        match changed {
            Ok(attributes) => reply.attr(&KEPT, &attributes),
            Err(error) => reply.error(error),
        }
    }

    fn mkdir(&self, _: &Request, folder: INodeNo, name: &OsStr, mode: u32, umask: u32, reply: ReplyEntry) {
        let made = Contents::Folder(BTreeMap::new());
        entry(self.state().make(folder, name, made, mode & !umask), reply);
    }

    fn create(&self, _: &Request, folder: INodeNo, name: &OsStr, mode: u32, umask: u32, _: i32, reply: ReplyCreate) {
        let made = Contents::File(Vec::new());
        match self.state().make(folder, name, made, mode & !umask) {
            Ok(attributes) => {
                reply.created(&KEPT, &attributes, GENERATION, FileHandle(0), FopenFlags::empty());
            }
            Err(error) => reply.error(error),
        }
    }

    fn link(&self, _: &Request, node: INodeNo, folder: INodeNo, name: &OsStr, reply: ReplyEntry) {
        entry(self.state().link(node, folder, name), reply);
    }

    fn unlink(&self, _: &Request, folder: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        empty(self.state().unlink(folder, name, false), reply);
    }

    fn rmdir(&self, _: &Request, folder: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        empty(self.state().unlink(folder, name, true), reply);
    }

    /// Renames only within one folder, because the store and the queue rename nothing between two folders.
    fn rename(
        &self,
        _: &Request,
        folder: INodeNo,
        from: &OsStr,
        to_folder: INodeNo,
        to: &OsStr,
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        let done = if folder == to_folder && flags.is_empty() {
            self.state().rename(folder, from, to)
        } else {
            Err(Errno::ENOSYS)
        };
        empty(done, reply);
    }

    fn open(&self, _: &Request, _: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        reply.opened(FileHandle(0), FopenFlags::empty());
    }

    fn read(
        &self,
        _: &Request,
        node: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        match self.state().file(node) {
            Ok(bytes) => {
                let start = (offset as usize).min(bytes.len());
                let end = (start + size as usize).min(bytes.len());
                reply.data(&bytes[start..end]);
            }
            Err(error) => reply.error(error),
        }
    }

    fn write(
        &self,
        _: &Request,
        node: INodeNo,
        _: FileHandle,
        offset: u64,
        data: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let data = data.to_vec();
        self.write_or_sync(move |state| match state.write(node, offset as usize, data) {
            Ok(written) => reply.written(written),
            Err(error) => reply.error(error),
        });
    }

    fn flush(&self, _: &Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        reply.ok();
    }

    fn fsync(&self, _: &Request, node: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        self.write_or_sync(move |state| empty(state.sync(node), reply));
    }

    fn fsyncdir(&self, _: &Request, node: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        self.write_or_sync(move |state| empty(state.sync(node), reply));
    }

    fn readdir(&self, _: &Request, node: INodeNo, _: FileHandle, offset: u64, mut reply: ReplyDirectory) {
        let mut state = self.state();
        let names: Vec<(String, u64)> = match state.folder(node) {
            Ok(names) => names.iter().map(|(name, node)| (name.clone(), *node)).collect(),
            Err(error) => return reply.error(error),
        };
        let kinds = names.into_iter().map(|(name, node)| {
            let is_folder = state.nodes.get(&node).is_some_and(Node::is_folder);
            let kind = if is_folder {
                FileType::Directory
            } else {
                FileType::RegularFile
            };
            (name, node, kind)
        });
        let own = [".", ".."].map(|name| (name.to_owned(), node.0, FileType::Directory));
        for (place, (name, node, kind)) in own.into_iter().chain(kinds).enumerate().skip(offset as usize) {
            if reply.add(INodeNo(node), place as u64 + 1, kind, name) {
                break;
            }
        }
        reply.ok();
    }

    fn statfs(&self, _: &Request, _: INodeNo, reply: ReplyStatfs) {
        reply.statfs(BLOCKS, BLOCKS, BLOCKS, BLOCKS, BLOCKS, BLOCK, 255, BLOCK);
    }
}
