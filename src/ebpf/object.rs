//! Loads the compiled BPF program. Checks the requirements in order, and the error names the first missing one.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use aya::maps::{HashOfMaps, Map, MapData, PerCpuArray, RingBuf};
use aya::programs::PerfEvent;
use aya::{Ebpf, EbpfLoader};

use crate::window::Accounts;

#[cfg(target_arch = "x86_64")]
static OBJECT: &[u8] = aya::include_bytes_aligned!("../../bpf/out/profiler.x86_64.bpf.o");
#[cfg(target_arch = "aarch64")]
static OBJECT: &[u8] = aya::include_bytes_aligned!("../../bpf/out/profiler.aarch64.bpf.o");

/// The reason why the profiler cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The kernel has no type information.
    #[error("the kernel has no BTF at /sys/kernel/btf/vmlinux (CONFIG_DEBUG_INFO_BTF): the BPF program needs it")]
    NoBtf,
    /// A capability is missing.
    #[error(
        "missing capability {0}: grant it to the process, or run as root (in Kubernetes: \
         securityContext.capabilities.add)"
    )]
    Capability(&'static str),
    /// The kernel is too old for the BPF program.
    #[error("kernel {0} is too old: 6.1 or newer is needed")]
    OldKernel(String),
    /// The kernel refused the BPF program or its maps.
    #[error("the kernel refuses the BPF program: {0}")]
    Load(String),
    /// A perf event could not be opened.
    #[error("cannot open a perf event on cpu {cpu}: {error}{}", hint(.error))]
    PerfEvent { cpu: u32, error: io::Error },
    /// The system call `openat2` does not exist or is denied. The profiler needs it to open files of other processes
    /// within the root folders of these processes.
    #[error(
        "cannot open files within the roots of processes (the system call openat2 needs Linux 5.6, and a seccomp \
         filter may deny it): {0}"
    )]
    Files(io::Error),
    /// A file of the system, or a new thread, is not available.
    #[error("{resource} is not available: {error}")]
    System { resource: &'static str, error: io::Error },
}

impl StartError {
    /// Returns true if only the BPF program is unavailable; perf events may still be allowed.
    pub(crate) fn is_of_program(&self) -> bool {
        match self {
            Self::NoBtf | Self::OldKernel(_) | Self::Load(_) => true,
            Self::Capability(name) => *name == BPF,
            Self::PerfEvent { .. } | Self::Files(_) | Self::System { .. } => false,
        }
    }
}

fn hint(error: &io::Error) -> &'static str {
    match error.raw_os_error() {
        Some(libc::EACCES | libc::EPERM) => {
            " (denied by kernel.perf_event_paranoid, a seccomp filter or a missing CAP_PERFMON)"
        }
        Some(libc::ENOENT | libc::ENOSYS) => " (the kernel is built without perf events)",
        _ => "",
    }
}

/// The capability that only the BPF program requires.
const BPF: &str = "CAP_BPF (or CAP_SYS_ADMIN)";

/// Bits of the required capabilities(7). Any bit of a row is sufficient.
const CAPABILITIES: [(&str, &[u32]); 3] = [
    // Profiling without the BPF program, by perf events alone, also requires the first two. They are reported first.
    ("CAP_PERFMON (or CAP_SYS_ADMIN)", &[38, 21]),
    ("CAP_SYS_PTRACE", &[19]),
    (BPF, &[39, 21]),
];

/// Number of words of the BPF program's state per CPU (`struct cpu`), which starts with the counters.
const CPU_WORDS: usize = 8 + 6 + 6 + 4 + 1 + 1 + 16 + 8 + 1024;

/// The parts of the loaded BPF program that the polling thread uses.
pub(crate) struct KernelSide {
    /// Records of the BPF program.
    pub ring: RingBuf<MapData>,
    scratch: PerCpuArray<MapData, [u64; CPU_WORDS]>,
    program: OwnedFd,
    /// Keeps the other parts of the object loaded.
    _bpf: Ebpf,
}

/// The kernel maps of the loaded BPF program that the worker writes.
pub(crate) struct KernelMaps {
    /// Mappings of each process, by its id.
    pub processes: HashOfMaps<MapData, u32, MapData>,
    /// Rows of the unwind table of each file, by the key of the table.
    pub tables: HashOfMaps<MapData, u32, MapData>,
}

/// Settings that are fixed once the BPF program is loaded.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LoadSettings {
    /// If true, the BPF program records kernel stacks.
    pub kernel_stacks: bool,
    /// If true, the BPF program also copies each user stack.
    pub copies: bool,
    /// Size of the ring in bytes; a power of two, at least a page.
    pub ring_bytes: u32,
}

/// Checks the requirements and loads the BPF program.
pub(crate) fn load(settings: LoadSettings) -> Result<(KernelSide, KernelMaps), StartError> {
    check_capabilities(&read("/proc/self/status")?)?;
    check_kernel(&read("/proc/sys/kernel/osrelease")?)?;
    if !Path::new("/sys/kernel/btf/vmlinux").exists() {
        return Err(StartError::NoBtf);
    }
    let (kernel_stacks, copies) = (u32::from(settings.kernel_stacks), u32::from(settings.copies));
    let mut bpf = EbpfLoader::new()
        .override_global("kernel_stacks", &kernel_stacks, true)
        .override_global("copies", &copies, true)
        .map_max_entries("ring", settings.ring_bytes)
        .load(OBJECT)
        .map_err(|error| StartError::Load(chain(&error)))?;
    let program = perf_program(&mut bpf)?;
    program.load().map_err(|error| StartError::Load(chain(&error)))?;
    let take = |bpf: &mut Ebpf, name: &'static str| -> Result<Map, StartError> {
        bpf.take_map(name)
            .ok_or_else(|| StartError::Load(format!("the object has no map {name}")))
    };
    let load_error = |error: aya::maps::MapError| StartError::Load(chain(&error));
    let program = perf_program(&mut bpf)?
        .fd()
        .map_err(|error| StartError::Load(chain(&error)))?
        .as_fd()
        .try_clone_to_owned()
        .map_err(|error| StartError::Load(error.to_string()))?;
    let maps = KernelMaps {
        processes: HashOfMaps::try_from(take(&mut bpf, "processes")?).map_err(load_error)?,
        tables: HashOfMaps::try_from(take(&mut bpf, "tables")?).map_err(load_error)?,
    };
    let side = KernelSide {
        ring: RingBuf::try_from(take(&mut bpf, "ring")?).map_err(load_error)?,
        scratch: PerCpuArray::try_from(take(&mut bpf, "scratch")?).map_err(load_error)?,
        program,
        _bpf: bpf,
    };
    Ok((side, maps))
}

impl KernelSide {
    /// Returns the BPF program, which runs at each tick of a CPU's clock.
    pub(crate) fn program(&self) -> &OwnedFd {
        &self.program
    }

    /// Returns the counters of the BPF program, summed over the CPUs (`enum counter`).
    pub(crate) fn counts(&self) -> Accounts {
        let Ok(cpus) = self.scratch.get(&0, 0) else {
            return Accounts::default();
        };
        // The kernel copies the counters in this order, with the sum `ticks` last. A tick that arrives meanwhile may
        // therefore be in the sum but not yet in one of the parts, never the reverse.
        let mut counts = Accounts::default();
        for cpu in cpus.iter() {
            let [stacks, snapshots, ring_full, idle, ignored, nanos, _, ticks, ..] = cpu;
            counts.stacks += stacks;
            counts.snapshots += snapshots;
            counts.ring_full += ring_full;
            counts.idle += idle;
            counts.ignored += ignored;
            counts.kernel_nanos += nanos;
            counts.ticks += ticks;
        }
        counts
    }
}

fn perf_program(bpf: &mut Ebpf) -> Result<&mut PerfEvent, StartError> {
    bpf.program_mut("profile")
        .and_then(|program| program.try_into().ok())
        .ok_or_else(|| StartError::Load("the object has no program called profile".to_owned()))
}

fn read(path: &'static str) -> Result<String, StartError> {
    std::fs::read_to_string(path).map_err(|error| StartError::System { resource: path, error })
}

fn check_capabilities(status: &str) -> Result<(), StartError> {
    let effective = status
        .lines()
        .find_map(|line| line.strip_prefix("CapEff:"))
        .and_then(|text| u64::from_str_radix(text.trim(), 16).ok())
        .unwrap_or(u64::MAX);
    for (name, bits) in CAPABILITIES {
        if !bits.iter().any(|bit| effective & (1 << bit) != 0) {
            return Err(StartError::Capability(name));
        }
    }
    Ok(())
}

fn check_kernel(release: &str) -> Result<(), StartError> {
    let mut numbers = release
        .split(|char: char| !char.is_ascii_digit())
        .map_while(|part| part.parse::<u32>().ok());
    let version = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    // Linux 5.17 has all BPF helpers. From 6.1 on, programs of perf events may use hash maps that are not preallocated.
    if version < (6, 1) {
        return Err(StartError::OldKernel(release.trim().to_owned()));
    }
    Ok(())
}

/// Maximum number of bytes kept from the end of an error: the last lines of the verifier's log.
const MAX_ERROR_BYTES: usize = 600;

/// Formats an error with its causes, but only the last lines of the verifier's log.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        next = cause.source();
    }
    if text.len() > MAX_ERROR_BYTES {
        let offset = (text.len() - MAX_ERROR_BYTES..text.len())
            .find(|offset| text.is_char_boundary(*offset))
            .unwrap_or(text.len());
        let first = text
            .lines()
            .next()
            .unwrap_or_default()
            .chars()
            .take(120)
            .collect::<String>();
        text = format!("{first} ... {}", &text[offset..]);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_capability_is_named() {
        assert!(check_capabilities("Name:\tx\nCapEff:\t000001ffffffffff\n").is_ok());
        let error = check_capabilities("CapEff:\t0000000000000000\n")
            .unwrap_err()
            .to_string();
        assert!(error.contains("CAP_PERFMON"), "{error}");
        let error = check_capabilities("CapEff:\t0000008000080000\n").unwrap_err();
        assert!(error.to_string().contains("CAP_PERFMON") && !error.is_of_program());
        let error = check_capabilities("CapEff:\t0000004000080000\n").unwrap_err();
        assert!(error.to_string().contains("CAP_BPF") && error.is_of_program());
    }

    #[test]
    fn the_object_for_64_bit_arm_has_the_same_parts_and_is_relocated() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../bpf/out/profiler.aarch64.bpf.o");
        let mut arm = aya_obj::Object::parse(&std::fs::read(path).unwrap()).unwrap();
        let native = aya_obj::Object::parse(OBJECT).unwrap();
        let parts = |object: &aya_obj::Object| {
            let mut names: Vec<String> = object.maps.keys().chain(object.programs.keys()).cloned().collect();
            names.sort_unstable();
            names
        };
        assert_eq!(parts(&arm), parts(&native));
        assert!(parts(&arm).iter().any(|name| name == "profile"), "{:?}", parts(&arm));
        let sections = arm.functions.keys().map(|(section, _)| *section).collect();
        let maps = arm.maps.clone();
        arm.relocate_maps(maps.iter().map(|(name, map)| (name.as_str(), 3, map)), &sections)
            .unwrap();
        arm.relocate_calls(&sections).unwrap();
    }

    #[test]
    fn an_old_kernel_is_refused() {
        assert!(check_kernel("6.1.0-18-amd64\n").is_ok());
        assert!(check_kernel("7.3.4+deb13-cloud-amd64\n").is_ok());
        assert!(matches!(check_kernel("5.19.0\n"), Err(StartError::OldKernel(_))));
        assert!(matches!(check_kernel("5.10.0-8\n"), Err(StartError::OldKernel(_))));
    }
}
