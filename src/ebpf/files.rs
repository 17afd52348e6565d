//! The binaries that run: each known once, kept open so that it can be read after its process ended, with its unwind table and
//! the names that were asked for.
//!
//! Tables are compiled on a thread of their own and handed over by [`Files::ready`]; memory of tables and of names is bounded,
//! what was used longest ago goes first.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use object::Object;
use object::read::ReadCache;

use crate::ebpf::go_rows;
use crate::ebpf::proc::{self, MapsLine};
use crate::symbols::bytes::Bytes;
use crate::symbols::calls::Call;
use crate::symbols::dwarf;
use crate::symbols::elf::{self, Limited, Segment};
use crate::symbols::functions::{Functions, has_symbols};
use crate::symbols::pclntab::Pclntab;
use crate::symbols::{self, Demangle, Ranges};
use crate::unwind::{Arch, Table, eh_frame};

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
const MAX_FILES: usize = 2048;

/// Bounds of memory.
#[derive(Debug, Clone, Copy)]
pub struct Budget {
    /// Bytes of unwind tables.
    pub table_bytes: usize,
    /// Bytes of indexes of functions.
    pub index_bytes: usize,
    /// Functions whose names are kept.
    pub names: usize,
}

impl Default for Budget {
    fn default() -> Self {
        Self {
            table_bytes: 32 << 20,
            index_bytes: 16 << 20,
            names: 100_000,
        }
    }
}

/// All binaries.
pub struct Files {
    entries: HashMap<FileId, Entry>,
    by_key: HashMap<Key, FileId>,
    next: u32,
    jobs: Sender<Job>,
    done: Receiver<(FileId, Table)>,
    budget: Budget,
    /// Counts windows; what is used gets the present number.
    age: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Key {
    device: (u32, u32),
    inode: u64,
    path: String,
}

/// One binary.
pub struct Entry {
    key: Key,
    /// Path as its process sees it.
    pub path: Arc<str>,
    /// Build id in hexadecimal digits; may be empty.
    pub build_id: Arc<str>,
    /// Its code, for addresses.
    segments: Vec<Segment>,
    source: Source,
    state: TableState,
    names: Ranges,
    /// All functions, and the file that has their names: this one or its separate debug file.
    index: Option<Functions<Source>>,
    used: u64,
}

#[derive(Debug, Clone)]
enum Source {
    File(Arc<File>),
    Bytes(Arc<[u8]>),
    /// It could not be opened.
    None,
}

enum TableState {
    NotAsked,
    Building,
    Ready(Arc<Table>),
    /// It has none, or it could not be made: frame pointers are followed.
    Absent,
}

struct Job {
    file: FileId,
    source: Source,
}

impl Files {
    /// No files yet; starts the thread that compiles tables.
    pub fn new(budget: Budget) -> io::Result<Self> {
        let (jobs, inbox) = channel::<Job>();
        let (outbox, done) = channel();
        std::thread::Builder::new()
            .name("unwind-tables".to_owned())
            .spawn(move || {
                for job in inbox {
                    let table = compile(&job.source);
                    if outbox.send((job.file, table)).is_err() {
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
            budget,
            age: 0,
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
        let source = if is_vdso {
            vdso().map_or(Source::None, |bytes| Source::Bytes(bytes.into()))
        } else {
            open(pid, line).map_or(Source::None, |file| Source::File(Arc::new(file)))
        };
        let mut build_id = String::new();
        let mut segments = Vec::new();
        visit(&source, |file| {
            build_id = file.build_id();
            segments = file.segments();
        });
        let id = FileId(self.next);
        self.next += 1;
        self.by_key.insert(key.clone(), id);
        self.entries.insert(
            id,
            Entry {
                path: Arc::from(key.path.as_str()),
                key,
                build_id: build_id.into(),
                segments,
                source,
                state: TableState::NotAsked,
                names: Ranges::default(),
                index: None,
                used: self.age,
            },
        );
        id
    }

    /// A binary.
    pub fn get(&self, id: FileId) -> Option<&Entry> {
        self.entries.get(&id)
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

    /// Asks for the table of a file and tells whether there is nothing to wait for any more.
    fn want_table(&mut self, id: FileId) -> bool {
        let Some(entry) = self.entries.get_mut(&id) else {
            return true;
        };
        entry.used = self.age;
        match entry.state {
            TableState::NotAsked => {
                let job = Job {
                    file: id,
                    source: entry.source.clone(),
                };
                entry.state = match self.jobs.send(job) {
                    Ok(()) => TableState::Building,
                    Err(_) => TableState::Absent,
                };
                false
            }
            TableState::Building => false,
            TableState::Ready(_) | TableState::Absent => true,
        }
    }

    /// Tables that were finished since the last call.
    pub fn ready(&mut self) -> Vec<(FileId, Arc<Table>)> {
        let mut ready = Vec::new();
        while let Ok((id, table)) = self.done.try_recv() {
            let Some(entry) = self.entries.get_mut(&id) else {
                continue;
            };
            if table.is_empty() {
                entry.state = TableState::Absent;
            } else {
                let table = Arc::new(table);
                entry.state = TableState::Ready(table.clone());
                ready.push((id, table));
            }
        }
        ready
    }

    /// The names of a file for `addresses`, looked up where they are not known yet.
    pub fn resolve(&mut self, id: FileId, addresses: &[u64], how: Demangle) -> Option<&Ranges> {
        let age = self.age;
        let entry = self.entries.get_mut(&id)?;
        entry.used = age;
        let source = &entry.source;
        let functions = entry.index.get_or_insert_with(|| functions(source, &entry.build_id));
        functions.resolve(addresses, how, &mut entry.names, |source, missing| {
            let mut found = Vec::new();
            visit(source, |file| found = file.lines(missing, how));
            found
        });
        Some(&entry.names)
    }

    /// Bytes of all tables.
    pub fn table_bytes(&self) -> usize {
        self.entries
            .values()
            .filter_map(Entry::table)
            .map(|table| table.bytes())
            .sum()
    }

    /// Ends a window: forgets what goes beyond the budget, oldest first, and answers with the files whose tables went.
    pub fn age(&mut self) -> Vec<FileId> {
        self.age += 1;
        let mut gone = Vec::new();
        let mut by_age: Vec<(u64, FileId)> = self.entries.iter().map(|(id, entry)| (entry.used, *id)).collect();
        by_age.sort_unstable();
        let mut tables = self.table_bytes();
        let mut names: usize = self.entries.values().map(|entry| entry.names.len()).sum();
        let mut indexes: usize = self.entries.values().map(Entry::index_bytes).sum();
        let mut files = self.entries.len();
        for (used, id) in by_age {
            let over_tables = tables > self.budget.table_bytes;
            let over_indexes = indexes > self.budget.index_bytes;
            let over_names = names > self.budget.names;
            let over_files = files > MAX_FILES;
            let is_in_use = used + 1 >= self.age;
            if is_in_use || !(over_tables || over_indexes || over_names || over_files) {
                break;
            }
            let Some(entry) = self.entries.get_mut(&id) else {
                continue;
            };
            if over_tables && let TableState::Ready(table) = &entry.state {
                tables -= table.bytes();
                entry.state = TableState::NotAsked;
                gone.push(id);
            }
            if over_indexes {
                indexes -= entry.index_bytes();
                entry.index = None;
            }
            if over_names {
                names -= entry.names.len();
                entry.names = Ranges::default();
            }
            if over_files && !matches!(entry.state, TableState::Building) {
                if matches!(entry.state, TableState::Ready(_)) {
                    gone.push(id);
                }
                self.by_key.remove(&entry.key);
                self.entries.remove(&id);
                files -= 1;
            }
        }
        gone
    }
}

impl Entry {
    /// The virtual address in the file at an offset of the file.
    pub fn address_of(&self, offset: u64) -> Option<u64> {
        elf::address_of(&self.segments, offset)
    }

    fn index_bytes(&self) -> usize {
        self.index.as_ref().map_or(0, Functions::bytes)
    }

    /// The finished table.
    pub fn table(&self) -> Option<&Arc<Table>> {
        match &self.state {
            TableState::Ready(table) => Some(table),
            _ => None,
        }
    }
}

/// An ELF file from either source.
enum Elf<'a, 'b> {
    File(&'b object::File<'a, Limited<'a, Positioned>>),
    Bytes(&'b object::File<'a>),
}

impl Elf<'_, '_> {
    fn build_id(&self) -> String {
        match self {
            Self::File(file) => elf::build_id(file),
            Self::Bytes(file) => elf::build_id(file),
        }
    }

    fn segments(&self) -> Vec<Segment> {
        match self {
            Self::File(file) => elf::executable_segments(file),
            Self::Bytes(file) => elf::executable_segments(file),
        }
    }

    fn functions(&self, source: &Source) -> Functions<Source> {
        match self {
            Self::File(file) => Functions::new(file, source.clone()),
            Self::Bytes(file) => Functions::new(file, source.clone()),
        }
    }

    fn with_debug_file(&self, functions: Functions<Source>, source: &Source) -> Functions<Source> {
        match self {
            Self::File(file) => functions.with_debug_file(file, source.clone()),
            Self::Bytes(file) => functions.with_debug_file(file, source.clone()),
        }
    }

    fn lines(&self, addresses: &[u64], how: Demangle) -> Vec<(u64, Vec<Call>)> {
        match self {
            Self::File(file) => dwarf::locate(file, addresses, how, dwarf::Limits::default()),
            Self::Bytes(file) => dwarf::locate(file, addresses, how, dwarf::Limits::default()),
        }
    }

    fn has_symbols(&self) -> bool {
        match self {
            Self::File(file) => has_symbols(file),
            Self::Bytes(file) => has_symbols(file),
        }
    }

    fn go(&self, bytes: &Bytes<'_>) -> Option<Pclntab> {
        match self {
            Self::File(file) => symbols::go::find(file, bytes),
            Self::Bytes(file) => symbols::go::find(file, bytes),
        }
    }

    fn entry(&self) -> u64 {
        match self {
            Self::File(file) => file.entry(),
            Self::Bytes(file) => file.entry(),
        }
    }

    fn compile(&self) -> Result<(Table, eh_frame::Losses), eh_frame::CompileError> {
        match self {
            Self::File(file) => eh_frame::compile(file),
            Self::Bytes(file) => eh_frame::compile(file),
        }
    }
}

/// Shows the ELF file of a source, if it is one.
fn visit(source: &Source, show: impl FnOnce(&Elf<'_, '_>)) {
    match source {
        Source::File(file) => {
            let cache = ReadCache::new(Positioned {
                file: file.clone(),
                at: 0,
            });
            if let Ok(file) = object::File::parse(Limited(&cache)) {
                show(&Elf::File(&file));
            }
        }
        Source::Bytes(bytes) => {
            if let Ok(file) = object::File::parse(bytes.as_ref()) {
                show(&Elf::Bytes(&file));
            }
        }
        Source::None => {}
    }
}

/// The functions of a file, by its separate debug file when it was stripped and there is one.
fn functions(source: &Source, build_id: &str) -> Functions<Source> {
    let mut own = Functions::default();
    let mut is_stripped = false;
    visit(source, |file| {
        own = file.functions(source);
        is_stripped = !file.has_symbols();
    });
    if is_stripped
        && let Some(path) = elf::debug_file(build_id)
        && let Ok(file) = File::open(path)
    {
        let debug = Source::File(Arc::new(file));
        visit(&debug, |file| {
            own = file.with_debug_file(std::mem::take(&mut own), &debug);
        });
    }
    own
}

fn compile(source: &Source) -> Table {
    let mut table = Table::default();
    visit(source, |file| {
        match file.compile() {
            Ok((compiled, losses)) => {
                tracing::debug!(
                    rows = compiled.rows().len(),
                    functions_lost = losses.functions,
                    complex = losses.complex,
                    "unwind table compiled"
                );
                table = compiled;
            }
            Err(error) => tracing::debug!(error = %error, "no unwind table"),
        }
        let bytes = Bytes::new(source);
        if let Some((arch, go)) = Arch::native().zip(file.go(&bytes)) {
            table = go_rows::compile(arch, &go, &bytes, file.entry(), std::mem::take(&mut table));
            tracing::debug!(rows = table.rows().len(), "unwind table of Go's functions compiled");
        }
    });
    table
}

impl symbols::bytes::Source for Source {
    fn read_at(&self, offset: u64, into: &mut [u8]) -> usize {
        match self {
            Self::File(file) => symbols::bytes::Source::read_at(file.as_ref(), offset, into),
            Self::Bytes(bytes) => symbols::bytes::Source::read_at(&bytes.as_ref(), offset, into),
            Self::None => 0,
        }
    }
}

/// Opens the file of a mapping: by its path in the process's world, in ours when the process is gone already, by the mapping itself when the
/// path leads to another file.
fn open(pid: u32, line: &MapsLine) -> io::Result<File> {
    for path in [proc::path_in_root(pid, &line.path), line.path.clone().into()] {
        if let Ok(file) = File::open(path)
            && file.metadata().is_ok_and(|found| found.ino() == line.inode)
        {
            return Ok(file);
        }
    }
    File::open(format!("/proc/{pid}/map_files/{:x}-{:x}", line.start, line.end))
}

/// The image of the vDSO, which is the same in every process.
fn vdso() -> io::Result<Vec<u8>> {
    let own = std::process::id();
    let line = proc::executable_mappings(own)?
        .into_iter()
        .find(|line| line.path == "[vdso]")
        .ok_or_else(|| io::Error::other("no vdso"))?;
    let mut bytes = vec![0; usize::try_from(line.end - line.start).map_err(io::Error::other)?];
    File::open("/proc/self/mem")?.read_exact_at(&mut bytes, line.start)?;
    Ok(bytes)
}

/// A file read at a position of its own, so that threads do not disturb each other.
#[derive(Debug)]
struct Positioned {
    file: Arc<File>,
    at: u64,
}

impl Read for Positioned {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read_at(into, self.at)?;
        self.at += read as u64;
        Ok(read)
    }
}

impl Seek for Positioned {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let base = match to {
            SeekFrom::Start(at) => {
                self.at = at;
                return Ok(at);
            }
            SeekFrom::Current(offset) => self.at.checked_add_signed(offset),
            SeekFrom::End(offset) => self.file.metadata()?.len().checked_add_signed(offset),
        };
        self.at = base.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
        Ok(self.at)
    }
}
