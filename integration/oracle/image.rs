//! The code in the memory of a process, for two walks of its stacks: one by `framehop`, an unwinder that is
//! independent of this project, and Alluvium's own walk outside the kernel.
//!
//! In: `/proc/PID/maps` and the ELF files that it names. Out: a `framehop` unwinder with these files as modules, the
//! way in which `.eh_frame` describes each address, and Alluvium's unwind tables. This module itself computes the
//! positions of code from the program headers. Of `alluvium_ebpf`, it uses only the parser of the lines of
//! `/proc/PID/maps`.

use std::cell::RefCell;
use std::collections::HashMap;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;

use alluvium_ebpf::proc::{MapsLine, executable_mappings};
use alluvium_unwind::{Packed, eh_frame};
use framehop::x86_64::{CacheX86_64, UnwinderX86_64};
use framehop::{ExplicitModuleSectionInfo, Module, Unwinder};
use gimli::{
    BaseAddresses, CfaRule, EhFrame, EhFrameHdr, EndianSlice, Evaluation, EvaluationResult, FrameDescriptionEntry,
    LittleEndian, Location, Register, RegisterRule, UnwindContext, UnwindExpression, UnwindSection, UnwindTableRow,
    Value, X86_64,
};
use object::{Object, ObjectSection, ObjectSegment, SegmentFlags};

/// The way in which `.eh_frame` describes the frame at an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Described {
    /// By offsets from the stack pointer or the frame pointer.
    Plain,
    /// The code to which a signal handler returns (a signal trampoline).
    Signal,
    /// An outermost frame: the return address is undefined.
    Outermost,
    /// By a register that `framehop` does not follow.
    ByRegister,
    /// By the stack pointer, the frame pointer and memory. `framehop` does not read memory to find a frame.
    ByMemory,
    /// The file has no description of the address, or the description cannot be evaluated.
    Not,
    /// The address is in no file.
    Nowhere,
}

struct Code {
    /// The executable segments: offset in the file, length in the file, and address.
    segments: Vec<(u64, u64, u64)>,
    bases: BaseAddresses,
    sections: ExplicitModuleSectionInfo<Arc<[u8]>>,
    header: Arc<[u8]>,
    frames: Arc<[u8]>,
    described: RefCell<HashMap<u64, Described>>,
    table: Packed,
}

impl Code {
    fn new(bytes: &[u8]) -> Option<Self> {
        let file = object::File::parse(bytes).ok()?;
        let range = |name: &str| {
            let section = file.section_by_name(name)?;
            Some(section.address()..section.address() + section.size())
        };
        let data = |name: &str| -> Arc<[u8]> {
            let section = file.section_by_name(name);
            let data = section.and_then(|section| section.uncompressed_data().ok());
            data.unwrap_or_default().as_ref().into()
        };
        let start = |name: &str| range(name).map_or(0, |range| range.start);
        let (header, frames) = (data(".eh_frame_hdr"), data(".eh_frame"));
        let segments = file.segments().filter(|segment| match segment.flags() {
            SegmentFlags::Elf { p_flags } => p_flags & object::elf::PF_X != 0,
            _ => false,
        });
        let segments = segments.map(|segment| {
            let (offset, length) = segment.file_range();
            (offset, length, segment.address())
        });
        Some(Self {
            segments: segments.collect(),
            bases: BaseAddresses::default()
                .set_eh_frame(start(".eh_frame"))
                .set_eh_frame_hdr(start(".eh_frame_hdr"))
                .set_text(start(".text"))
                .set_got(start(".got")),
            sections: ExplicitModuleSectionInfo {
                text_svma: range(".text"),
                got_svma: range(".got"),
                eh_frame_svma: range(".eh_frame"),
                eh_frame: Some(frames.clone()),
                eh_frame_hdr_svma: range(".eh_frame_hdr"),
                eh_frame_hdr: Some(header.clone()),
                ..Default::default()
            },
            header,
            frames,
            described: RefCell::default(),
            table: Packed::new(eh_frame::compile(&file).ok()?.0),
        })
    }

    /// Returns the difference between memory and file addresses for a mapping.
    fn bias(&self, line: &MapsLine) -> Option<u64> {
        const PAGE: u64 = 4095;
        let lies = |(offset, length, _): &&(u64, u64, u64)| (offset & !PAGE..offset + length).contains(&line.offset);
        let (offset, _, address) = self.segments.iter().find(lies)?;
        Some(
            line.start
                .wrapping_sub(address.wrapping_sub(*offset).wrapping_add(line.offset)),
        )
    }

    fn described(&self, address: u64) -> Described {
        let known = self.described.borrow().get(&address).copied();
        known.unwrap_or_else(|| {
            let found = self.look(address).unwrap_or(Described::Not);
            self.described.borrow_mut().insert(address, found);
            found
        })
    }

    fn look(&self, address: u64) -> Option<Described> {
        self.with_row(address, |frames, fde, row| {
            if fde.cie().is_signal_trampoline() {
                return Some(Described::Signal);
            }
            match row.register(X86_64::RA) {
                Some(RegisterRule::Offset(-8)) => {}
                None | Some(RegisterRule::Undefined) => return Some(Described::Outermost),
                Some(_) => return Some(Described::ByRegister),
            }
            if let Some(RegisterRule::Register(register)) = row.register(X86_64::RBP)
                && !is_followed(register)
            {
                return Some(Described::ByRegister);
            }
            let expression = match row.cfa() {
                CfaRule::RegisterAndOffset { register, .. } if is_followed(*register) => return Some(Described::Plain),
                CfaRule::RegisterAndOffset { .. } => return Some(Described::ByRegister),
                CfaRule::Expression(expression) => expression.get(frames).ok()?,
            };
            // The result depends only on which registers the expression reads, and on whether it reads memory. The
            // values do not matter, so every read returns the same number.
            let (mut reads, mut is_known) = (false, true);
            evaluate(
                expression.evaluation(fde.cie().encoding()),
                |register| {
                    is_known &= is_followed(register);
                    Some(1 << 20)
                },
                |_| {
                    reads = true;
                    Some(1 << 20)
                },
            )?;
            Some(match (is_known, reads) {
                (false, _) => Described::ByRegister,
                (true, true) => Described::ByMemory,
                (true, false) => Described::Plain,
            })
        })
    }

    /// Passes the `.eh_frame` row of an address to a function.
    fn with_row<T>(
        &self,
        address: u64,
        show: impl FnOnce(&EhFrame<Bytes<'_>>, &FrameDescriptionEntry<Bytes<'_>>, &UnwindTableRow<usize>) -> Option<T>,
    ) -> Option<T> {
        let mut frames = EhFrame::new(&self.frames, LittleEndian);
        frames.set_address_size(8);
        let header = EhFrameHdr::new(&self.header, LittleEndian).parse(&self.bases, 8).ok()?;
        let fde = header
            .table()?
            .fde_for_address(&frames, &self.bases, address, EhFrame::cie_from_offset)
            .ok()?;
        let mut context = UnwindContext::new();
        let row = fde
            .unwind_info_for_address(&frames, &self.bases, &mut context, address)
            .ok()?;
        show(&frames, &fde, row)
    }

    /// Computes the caller's registers from `.eh_frame` and memory, for descriptions that `framehop` cannot evaluate.
    fn caller(
        &self,
        address: u64,
        registers: Registers,
        read: &mut impl FnMut(u64) -> Option<u64>,
    ) -> Option<Registers> {
        self.with_row(address, |frames, fde, row| {
            let value = |register| match register {
                X86_64::RSP => Some(registers.sp),
                X86_64::RBP => Some(registers.bp),
                X86_64::RA => Some(registers.ip),
                _ => None,
            };
            let compute = |expression: &UnwindExpression<usize>, read: &mut dyn FnMut(u64) -> Option<u64>| {
                let expression = expression.get(frames).ok()?;
                evaluate(expression.evaluation(fde.cie().encoding()), value, read)
            };
            let sp = match row.cfa() {
                CfaRule::RegisterAndOffset { register, offset } => value(*register)?.checked_add_signed(*offset)?,
                CfaRule::Expression(expression) => compute(expression, read)?,
            };
            let mut restored = |register| match row.register(register) {
                Some(RegisterRule::Offset(offset)) => read(sp.checked_add_signed(offset)?),
                Some(RegisterRule::Expression(expression)) => {
                    let at = compute(&expression, read)?;
                    read(at)
                }
                None | Some(RegisterRule::SameValue) if register != X86_64::RA => value(register),
                _ => None,
            };
            Some(Registers {
                ip: restored(X86_64::RA)?,
                bp: restored(X86_64::RBP)?,
                sp,
            })
        })
    }
}

type Bytes<'a> = EndianSlice<'a, LittleEndian>;

/// The registers that the walks follow.
#[derive(Debug, Clone, Copy)]
pub(super) struct Registers {
    pub ip: u64,
    pub sp: u64,
    pub bp: u64,
}

fn is_followed(register: Register) -> bool {
    [X86_64::RSP, X86_64::RBP, X86_64::RA].contains(&register)
}

/// Evaluates an expression.
fn evaluate(
    mut evaluation: Evaluation<Bytes<'_>>,
    mut register: impl FnMut(Register) -> Option<u64>,
    mut read: impl FnMut(u64) -> Option<u64>,
) -> Option<u64> {
    let mut result = evaluation.evaluate().ok()?;
    loop {
        result = match result {
            EvaluationResult::Complete => break,
            EvaluationResult::RequiresRegister { register: asked, .. } => {
                evaluation.resume_with_register(Value::Generic(register(asked)?)).ok()?
            }
            EvaluationResult::RequiresMemory { address, size: 8, .. } => {
                evaluation.resume_with_memory(Value::Generic(read(address)?)).ok()?
            }
            _ => return None,
        };
    }
    match evaluation.as_result().last()?.location {
        Location::Address { address } => Some(address),
        _ => None,
    }
}

/// The code of files by path and inode; `None` for a file that cannot be read or is not ELF, or whose call frame
/// information cannot be compiled.
#[derive(Default)]
pub(super) struct Library(HashMap<(String, u64), Option<Rc<Code>>>);

impl Library {
    fn code(&mut self, line: &MapsLine) -> Option<Rc<Code>> {
        let key = (line.path.clone(), line.inode);
        let read = || {
            let bytes = if line.path == "[vdso]" {
                vdso()
            } else if line.path.starts_with('/') {
                std::fs::read(&line.path).ok()
            } else {
                None
            };
            Code::new(&bytes?).map(Rc::new)
        };
        self.0.entry(key).or_insert_with(read).clone()
    }
}

/// Returns the vDSO, which is the same in all processes.
fn vdso() -> Option<Vec<u8>> {
    let lines = executable_mappings(std::process::id()).ok()?;
    let line = lines.iter().find(|line| line.path == "[vdso]")?;
    let mut bytes = vec![0; usize::try_from(line.end - line.start).ok()?];
    let memory = std::fs::File::open("/proc/self/mem").ok()?;
    memory.read_exact_at(&mut bytes, line.start).ok()?;
    Some(bytes)
}

struct Placed {
    start: u64,
    end: u64,
    bias: u64,
    code: Rc<Code>,
}

/// Program and mappings of a process at one moment.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Maps {
    program: PathBuf,
    lines: Vec<MapsLine>,
}

impl Maps {
    /// Reads the program and the mappings of a process. Returns `None` if the process is gone.
    pub(super) fn read(pid: u32) -> Option<Self> {
        Some(Self {
            program: std::fs::read_link(format!("/proc/{pid}/exe")).ok()?,
            lines: executable_mappings(pid).ok().filter(|lines| !lines.is_empty())?,
        })
    }
}

/// The executable code of a process.
pub(super) struct Image {
    pub program: String,
    placed: Vec<Placed>,
    pub unwinder: UnwinderX86_64<Arc<[u8]>>,
    /// Cache that the unwinder uses.
    pub cache: CacheX86_64,
}

impl Image {
    /// Reads the files of the mappings.
    pub(super) fn new(maps: &Maps, library: &mut Library) -> Self {
        let name = maps.program.file_name().unwrap_or_default();
        let mut image = Self {
            program: name.to_string_lossy().into_owned(),
            placed: Vec::new(),
            unwinder: UnwinderX86_64::new(),
            cache: CacheX86_64::new(),
        };
        for line in &maps.lines {
            let Some(code) = library.code(line) else { continue };
            let Some(bias) = code.bias(line) else { continue };
            let module = Module::new(line.path.clone(), line.start..line.end, bias, code.sections.clone());
            image.unwinder.add_module(module);
            image.placed.push(Placed {
                start: line.start,
                end: line.end,
                bias,
                code,
            });
        }
        image
    }

    fn at(&self, address: u64) -> Option<(&Code, u64)> {
        let placed = self
            .placed
            .iter()
            .find(|placed| (placed.start..placed.end).contains(&address))?;
        Some((&placed.code, address.wrapping_sub(placed.bias)))
    }

    /// Returns the way in which `.eh_frame` describes the frame at an address.
    pub(super) fn described(&self, address: u64) -> Described {
        self.at(address)
            .map_or(Described::Nowhere, |(code, address)| code.described(address))
    }

    /// Returns the caller's registers for code whose description reads memory.
    pub(super) fn caller(
        &self,
        address: u64,
        registers: Registers,
        mut read: impl FnMut(u64) -> Option<u64>,
    ) -> Option<Registers> {
        let (code, address) = self.at(address)?;
        code.caller(address, registers, &mut read)
    }

    /// Returns Alluvium's own rule for an address, as the profiler finds it.
    pub(super) fn found(&self, address: u64) -> alluvium_unwind::walk::RuleLookup {
        use alluvium_unwind::walk::RuleLookup;
        let Some((code, address)) = self.at(address) else {
            return RuleLookup::NoMapping;
        };
        if code.table.is_empty() {
            return RuleLookup::FramePointers;
        }
        let pc = u32::try_from(address).unwrap_or(u32::MAX);
        code.table.find(pc).map_or(RuleLookup::NoMapping, RuleLookup::Row)
    }

    /// Returns an address as text for a report: as an address of the ELF file that is mapped there, or unchanged if no
    /// file is mapped there.
    pub(super) fn place(&self, address: u64) -> String {
        let Some((_, relative)) = self.at(address) else {
            return format!("{address:#x}");
        };
        format!("{relative:#x}")
    }
}
