//! A file from which processes run code. It is opened once and kept open, so that the profiler can read it after the
//! process that mapped it has ended.
//!
//! In: a line of a process's mappings. Out: the build id, code segments, unwind table and functions of the file. The
//! file is read in pieces and never mapped, so that a file that shrinks meanwhile causes an error and not a signal.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::sync::Arc;
use std::time::{Duration, Instant};

use object::Object;

use crate::bounds::{Bounds, LoggedOmissions, Omission};
use crate::foreign::{AllowedFile, OpenFile, Opener, Root};
use crate::go_rows;
use crate::proc::{self, MapsLine, ProcessKey};
use alluvium_symbols::bytes::Bytes;
use alluvium_symbols::calls::Call;
use alluvium_symbols::elf::{self, Cache, Head, Limited, Segment};
use alluvium_symbols::functions::{Functions, has_symbols};
use alluvium_symbols::pclntab::Pclntab;
use alluvium_symbols::separate::{self, Link};
use alluvium_symbols::{Demangle, Ranges, dwarf};
use alluvium_unwind::{Arch, Packed, Table, eh_frame};

#[derive(Debug)]
pub struct Binary {
    /// Path of the file as the process that mapped it sees it.
    pub path: Arc<str>,
    /// Build id in hexadecimal digits; may be empty.
    pub build_id: Arc<str>,
    /// Executable segments, which convert file offsets to addresses.
    segments: Vec<Segment>,
    source: Source,
    /// The first process that was seen with the file. Its mount namespace may contain the debug file.
    key: ProcessKey,
    /// Owner of the file. A debug file must belong to this owner or to root.
    user: Option<u32>,
    /// Counts the parts that are left out because of a bound.
    bounds: Bounds,
    logged: LoggedOmissions,
}

/// Source of the bytes of a file.
#[derive(Debug, Clone)]
enum Source {
    File(Arc<OpenFile>),
    Bytes(Arc<[u8]>),
    /// The file could not be opened.
    None,
}

impl Binary {
    /// Opens the file of a mapping. If that fails, the binary has neither functions nor an unwind table.
    pub fn open(opener: &Opener, key: ProcessKey, line: &MapsLine) -> Self {
        let source = if line.path == "[vdso]" {
            vdso().map_or(Source::None, |bytes| Source::Bytes(bytes.into()))
        } else {
            let file = opener.open_mapped(key, line);
            file.map_or(Source::None, |file| Source::File(Arc::new(opener.keep_open(file))))
        };
        let user = match &source {
            Source::File(open_file) => open_file.file.metadata().ok().map(|data| data.uid()),
            Source::Bytes(_) | Source::None => None,
        };
        let (head, is_cut) = head(&source);
        let binary = Self {
            path: Arc::from(line.path.as_str()),
            build_id: head.build_id.into(),
            segments: head.segments,
            source,
            key,
            user,
            bounds: opener.bounds.clone(),
            logged: LoggedOmissions::default(),
        };
        if is_cut {
            binary.count_omission(Omission::Part);
        }
        binary
    }

    /// Counts that a part of the file was left out because of a bound.
    pub(crate) fn count_omission(&self, omission: Omission) {
        self.bounds.count_omission(omission, &self.logged, &self.path);
    }

    /// Passes the ELF file of a source (the binary, its debug file or its packed symbols) to `show`. Returns the number
    /// of bytes read.
    fn with_elf(&self, source: &Source, show: impl FnOnce(&Elf<'_, '_>)) -> u64 {
        let (read, is_cut) = with_elf(source, show);
        if is_cut {
            self.count_omission(Omission::Part);
        }
        read
    }

    /// Converts an offset in the file to the virtual address in the file.
    pub(crate) fn address_of(&self, offset: u64) -> Option<u64> {
        elf::address_of(&self.segments, offset)
    }

    /// Compiles the unwind table. The table is empty if the file has no unwind information.
    pub fn compile(&self) -> Packed {
        let mut table = Table::default();
        self.with_elf(&self.source, |file| {
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
                Err(error) => {
                    tracing::debug!(error = %error, "cannot compile an unwind table");
                    if error.is_excess() {
                        self.count_omission(Omission::Table);
                    }
                }
            }
            let bytes = Bytes::new(&self.source);
            if let Some((arch, go)) = Arch::native().zip(file.go(&bytes)) {
                table = go_rows::compile(arch, &go, &bytes, file.entry(), std::mem::take(&mut table));
                tracing::debug!(rows = table.rows().len(), "unwind table of Go's functions compiled");
            }
        });
        Packed::new(table)
    }

    /// Reads the functions. For a stripped file, adds the functions of its separate debug file, or of the symbols that
    /// are packed in the file itself.
    pub fn functions(&self, opener: &Opener) -> BinaryFunctions {
        let mut functions = Functions::default();
        let mut stripped = None;
        let mut read = self.with_elf(&self.source, |file| {
            functions = file.functions(&self.source);
            if !file.has_symbols() {
                stripped = Some((file.link(), file.packed()));
            }
        });
        if let Some((link, packed)) = stripped {
            functions = self.with_stripped(opener, functions, link.as_ref(), packed, &mut read);
        }
        if functions.is_cut() {
            self.count_omission(Omission::Names);
        }
        BinaryFunctions { functions, read }
    }

    /// Adds the functions that were stripped from the file.
    fn with_stripped(
        &self,
        opener: &Opener,
        mut functions: Functions<Source>,
        link: Option<&Link>,
        packed: Option<Vec<u8>>,
        read: &mut u64,
    ) -> Functions<Source> {
        if let Some(debug) = self.debug_file(opener, link, read) {
            *read += self.with_elf(&debug, |file| {
                functions = file.with_debug_file(std::mem::take(&mut functions), &debug);
            });
        } else if let Some(unpacked) = packed.and_then(|packed| separate::unpack(&packed)) {
            let symbols = Source::Bytes(unpacked.into());
            *read += alluvium_symbols::bytes::Source::held_bytes(&symbols) as u64;
            self.with_elf(&symbols, |file| {
                functions = file.with_packed(std::mem::take(&mut functions), &symbols);
            });
        }
        functions
    }

    /// Opens the separate debug file, from the mount namespace of the process or of the profiler. The names in it are
    /// used for all processes that run this binary, so the debug file must belong to the binary's owner or to root.
    fn debug_file(&self, opener: &Opener, link: Option<&Link>, read: &mut u64) -> Option<Source> {
        if !opener.has_room() {
            self.count_omission(Omission::File);
            return None;
        }
        let candidates = separate::debug_file_paths(&self.build_id, link, &self.path);
        let mut paths = candidates
            .iter()
            .flat_map(|path| [Root::Process(self.key), Root::Own].map(|root| (root, path)));
        paths.find_map(|(root, path)| {
            let file = opener.open_at(root, path, AllowedFile::FileOrLink, self.user)?;
            let source = Source::File(Arc::new(opener.keep_open(file)));
            self.is_debug_file(&source, link, read).then_some(source)
        })
    }

    /// Returns true if the debug file was made together with this binary.
    fn is_debug_file(&self, source: &Source, link: Option<&Link>, read: &mut u64) -> bool {
        let (Head { build_id, .. }, _) = head(source);
        if build_id.is_empty() || self.build_id.is_empty() {
            return link.is_some_and(|link| separate::checksum(source, read) == Some(link.checksum));
        }
        *build_id == *self.build_id
    }
}

/// The functions of a binary and of its separate debug file.
#[derive(Debug)]
pub struct BinaryFunctions {
    functions: Functions<Source>,
    /// Number of bytes of files that were read to index the functions.
    pub read: u64,
}

/// Limits for looking up lines and inlined calls, because debug information is expensive to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LineLimits {
    /// Remaining number of steps through debug information. If it is 0, the look-up of lines is postponed.
    pub steps: usize,
    /// Duration of the last look-up; `None` if there was none.
    pub time: Option<Duration>,
}

impl BinaryFunctions {
    /// Looks up the sorted `addresses`, except the addresses that `names` already contains. Returns the addresses whose
    /// lines were postponed.
    pub fn resolve(&self, addresses: &[u64], mode: Demangle, names: &mut Ranges, lines: &mut LineLimits) -> Vec<u64> {
        self.functions.resolve(addresses, mode, names, |source, missing| {
            if lines.steps == 0 {
                return None;
            }
            let started = Instant::now();
            let usual = dwarf::Limits::default();
            let max = usual.steps.min(lines.steps);
            let mut limits = dwarf::Limits { steps: max, ..usual };
            let mut calls = Vec::new();
            with_elf(source, |file| calls = file.lines(missing, mode, &mut limits));
            lines.steps -= max.saturating_sub(limits.steps);
            lines.time = Some(started.elapsed());
            Some(calls)
        })
    }

    /// Returns the size of the indexes of functions and of unpacked symbols, in bytes.
    pub fn bytes(&self) -> usize {
        self.functions.bytes()
    }
}

impl alluvium_symbols::bytes::Source for Source {
    fn read_at(&self, offset: u64, into: &mut [u8]) -> usize {
        match self {
            Self::File(open_file) => alluvium_symbols::bytes::Source::read_at(&open_file.file, offset, into),
            Self::Bytes(bytes) => alluvium_symbols::bytes::Source::read_at(&bytes.as_ref(), offset, into),
            Self::None => 0,
        }
    }

    fn held_bytes(&self) -> usize {
        match self {
            Self::Bytes(bytes) => bytes.len(),
            Self::File(_) | Self::None => 0,
        }
    }
}

/// An ELF file from either kind of source.
enum Elf<'a, 'b> {
    File(&'b object::File<'a, Limited<'a, PositionedFile>>),
    Bytes(&'b object::File<'a>),
}

impl Elf<'_, '_> {
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

    fn with_packed(&self, functions: Functions<Source>, source: &Source) -> Functions<Source> {
        match self {
            Self::File(file) => functions.with_packed(file, source.clone()),
            Self::Bytes(file) => functions.with_packed(file, source.clone()),
        }
    }

    fn link(&self) -> Option<Link> {
        match self {
            Self::File(file) => separate::link(file),
            Self::Bytes(file) => separate::link(file),
        }
    }

    fn packed(&self) -> Option<Vec<u8>> {
        match self {
            Self::File(file) => separate::packed(file),
            Self::Bytes(file) => separate::packed(file),
        }
    }

    fn lines(&self, addresses: &[u64], mode: Demangle, limits: &mut dwarf::Limits) -> Vec<(u64, Vec<Call>)> {
        match self {
            Self::File(file) => dwarf::locate(file, addresses, mode, limits),
            Self::Bytes(file) => dwarf::locate(file, addresses, mode, limits),
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
            Self::File(file) => alluvium_symbols::go::find(file, bytes),
            Self::Bytes(file) => alluvium_symbols::go::find(file, bytes),
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

/// Passes a source to `show` if it is an ELF file. Returns the number of bytes read, and whether a bound prevented
/// reading more.
fn with_elf(source: &Source, show: impl FnOnce(&Elf<'_, '_>)) -> (u64, bool) {
    match source {
        Source::File(open_file) => {
            let cache = Cache::new(PositionedFile::new(open_file));
            if let Ok(file) = object::File::parse(Limited(&cache)) {
                show(&Elf::File(&file));
            }
            return (cache.read(), cache.is_cut());
        }
        Source::Bytes(bytes) => {
            if let Ok(file) = object::File::parse(bytes.as_ref()) {
                show(&Elf::Bytes(&file));
            }
        }
        Source::None => {}
    }
    (0, false)
}

/// Returns the head of a source (build id and segments), and whether a bound prevented reading more. If the source is
/// not an ELF file, the head is empty.
fn head(source: &Source) -> (Head, bool) {
    match source {
        Source::File(open_file) => {
            let cache = Cache::of_head(PositionedFile::new(open_file));
            let head = Head::read(Limited(&cache)).unwrap_or_default();
            let is_cut = head.is_cut || cache.is_cut();
            (head, is_cut)
        }
        Source::Bytes(bytes) => (Head::read(bytes.as_ref()).unwrap_or_default(), false),
        Source::None => (Head::default(), false),
    }
}

/// Reads the image of the vDSO, which is the same in every process.
fn vdso() -> io::Result<Vec<u8>> {
    let pid = std::process::id();
    let line = proc::executable_mappings(pid)?
        .into_iter()
        .find(|line| line.path == "[vdso]")
        .ok_or_else(|| io::Error::other("this process has no vdso"))?;
    let mut bytes = vec![0; usize::try_from(line.end - line.start).map_err(io::Error::other)?];
    File::open("/proc/self/mem")?.read_exact_at(&mut bytes, line.start)?;
    Ok(bytes)
}

/// A file with its own read position, so that threads do not disturb each other.
#[derive(Debug)]
struct PositionedFile {
    open_file: Arc<OpenFile>,
    position: u64,
}

impl PositionedFile {
    fn new(open_file: &Arc<OpenFile>) -> Self {
        let open_file = open_file.clone();
        Self { open_file, position: 0 }
    }
}

impl Read for PositionedFile {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.open_file.file.read_at(into, self.position)?;
        self.position += read as u64;
        Ok(read)
    }
}

impl Seek for PositionedFile {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let base = match to {
            SeekFrom::Start(position) => {
                self.position = position;
                return Ok(position);
            }
            SeekFrom::Current(offset) => self.position.checked_add_signed(offset),
            SeekFrom::End(offset) => self.open_file.file.metadata()?.len().checked_add_signed(offset),
        };
        self.position = base.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
        Ok(self.position)
    }
}
