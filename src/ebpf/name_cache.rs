//! Names that were looked up, bounded in bytes: of the kernel, of binaries, of code that runtimes made.
//!
//! In: addresses of a binary or a process. Out: their names, looked up where they are not known. What was used longest
//! ago goes first.

use std::collections::HashMap;
use std::fs::File;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::ebpf::binary::{Binary, BinaryFunctions, Lines};
use crate::ebpf::budget::Budget;
use crate::ebpf::files::FileId;
use crate::ebpf::foreign::Opener;
use crate::ebpf::proc::ProcessKey;
use crate::ebpf::run_time::RunTimes;
use crate::symbols::{Demangle, Ranges, kernel};

/// Names that were looked up, of the kernel and of binaries, bounded in bytes; what was used longest ago goes first.
#[derive(Debug)]
pub(crate) struct NameCache {
    /// Names of the kernel's functions.
    pub kernel: KernelNames,
    /// Names that runtimes wrote for their own code.
    pub run_times: RunTimes,
    files: HashMap<FileId, FileNames>,
    budget: Budget,
    opener: Opener,
    /// Counts windows; what is used gets the present number.
    pub age: u64,
}

#[derive(Debug, Default)]
struct FileNames {
    names: Ranges,
    functions: Option<BinaryFunctions>,
    /// When lines may be looked up again; `None` when they never were.
    lines_again: Option<Instant>,
    /// Addresses that have a name without a line until then.
    without_lines: Vec<u64>,
    used: u64,
}

/// What looking up lines may take of a CPU, all files together, beside the first time for each: debug information is
/// read as a whole each time, for some hundred addresses at first and for a few that are new in later windows.
const LINES_SHARE: f64 = 0.005;
/// The longest time that a file waits for its lines.
const LINES_WAIT: Duration = Duration::from_mins(5);

impl NameCache {
    /// An empty cache within a budget, which reads files by an opener.
    pub(crate) fn new(budget: Budget, opener: Opener) -> Self {
        Self {
            kernel: KernelNames::default(),
            run_times: RunTimes::new(opener.clone()),
            files: HashMap::new(),
            budget,
            opener,
            age: 0,
        }
    }

    /// The names of a binary for `addresses`, looked up where they are not known yet.
    pub(crate) fn resolve(&mut self, id: FileId, binary: &Binary, addresses: &[u64], how: Demangle) -> &Ranges {
        let with_lines = self.files.values().filter(|file| file.lines_again.is_some()).count();
        let file = self.files.entry(id).or_default();
        file.used = self.age;
        let lines = if file.lines_again.is_none_or(|again| Instant::now() >= again) {
            for address in file.without_lines.drain(..) {
                file.names.remove(address);
            }
            Lines::Read
        } else {
            Lines::Postpone
        };
        let functions = file.functions.get_or_insert_with(|| binary.functions(&self.opener));
        let (time, without) = functions.resolve(addresses, how, &mut file.names, lines);
        file.without_lines.extend(without);
        if let Some(time) = time {
            // Each file has its part of the share.
            let wait = time
                .div_f64(LINES_SHARE)
                .saturating_mul(u32::try_from(with_lines.max(1)).unwrap_or(u32::MAX));
            file.lines_again = Some(Instant::now() + wait.min(LINES_WAIT));
        }
        &file.names
    }

    /// Looks up the names of the kernel's functions around `addresses`, those that are not known yet.
    pub(crate) fn resolve_kernel(&mut self, addresses: impl Iterator<Item = u64>) {
        let kernel = &mut self.kernel;
        kernel.used = self.age;
        if kernel.hidden {
            return;
        }
        let mut wanted: Vec<u64> = addresses.collect();
        wanted.sort_unstable();
        wanted.dedup();
        if wanted.iter().all(|address| kernel.names.find(*address).is_some()) {
            return;
        }
        if let Err(error) = kernel.resolve(&wanted) {
            tracing::warn!(error = %error, "cannot read the list of kernel symbols");
        }
        for address in wanted {
            if kernel.names.find(address).is_none() {
                kernel.names.insert(address, address.saturating_add(1), Arc::from(""));
            }
        }
    }

    /// Bytes of indexes and of names.
    pub(crate) fn bytes(&self) -> usize {
        self.index_bytes() + self.held().map(|(_, _, bytes)| bytes).sum::<usize>()
    }

    /// Bytes of what names are looked up in.
    fn index_bytes(&self) -> usize {
        self.files.values().map(FileNames::index_bytes).sum::<usize>() + self.kernel.list_bytes()
    }

    /// All names: whose they are, when they were asked for last, and their bytes.
    fn held(&self) -> impl Iterator<Item = (Holder, u64, usize)> {
        let files = self
            .files
            .iter()
            .map(|(id, file)| (Holder::File(*id), file.used, file.names.bytes()));
        let processes = self
            .run_times
            .held()
            .map(|(key, used, bytes)| (Holder::Process(key), used, bytes));
        let kernel = (Holder::Kernel, self.kernel.used, self.kernel.names.bytes());
        files.chain(processes).chain([kernel])
    }

    /// Ends a window: forgets what goes beyond the budget, what was used longest ago first.
    pub(crate) fn end_window(&mut self) {
        self.age += 1;
        let mut held: Vec<(Holder, u64, usize)> = self.held().collect();
        held.sort_unstable_by_key(|(holder, used, _)| (*used, *holder));
        let mut names: usize = held.iter().map(|(_, _, bytes)| bytes).sum();
        for (holder, _, bytes) in held {
            if names <= self.budget.names() {
                break;
            }
            names -= bytes;
            match holder {
                Holder::File(id) => {
                    if let Some(file) = self.files.get_mut(&id) {
                        file.names = Ranges::default();
                        file.without_lines.clear();
                    }
                }
                Holder::Process(key) => self.run_times.forget(key),
                Holder::Kernel => self.kernel.names = Ranges::default(),
            }
        }
        let mut indexes = self.index_bytes();
        let files = self.files.iter().map(|(id, file)| (file.used, *id));
        let mut by_age: Vec<(u64, FileId)> = files.chain([(self.kernel.used, FileId::KERNEL)]).collect();
        by_age.sort_unstable();
        for (_, id) in by_age {
            if indexes <= self.budget.indexes() {
                break;
            }
            if id == FileId::KERNEL {
                indexes -= self.kernel.list_bytes();
                self.kernel.symbols = None;
            } else if let Some(file) = self.files.get_mut(&id) {
                indexes -= file.index_bytes();
                file.functions = None;
            }
        }
        self.files
            .retain(|_, file| file.functions.is_some() || !file.names.is_empty());
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Holder {
    File(FileId),
    /// A process that makes code.
    Process(ProcessKey),
    Kernel,
}

impl FileNames {
    fn index_bytes(&self) -> usize {
        self.functions.as_ref().map_or(0, BinaryFunctions::bytes)
    }
}

/// Names of the kernel's functions.
#[derive(Debug, Default)]
pub(crate) struct KernelNames {
    /// Those that were met; an empty name for what has none.
    pub names: Ranges,
    /// All, and when they were read; `None` when they had to go or were never needed.
    symbols: Option<(kernel::Symbols, Instant)>,
    /// The list hides its addresses.
    hidden: bool,
    /// When it was asked for last.
    used: u64,
}

/// A list of this age is read again when there is something new to look up: modules come and go.
const KERNEL_LIST_AGE: Duration = Duration::from_mins(10);
/// So soon when an address lies where no function is.
const KERNEL_LIST_DOUBT: Duration = Duration::from_mins(1);
/// No function of a kernel is longer: what lies farther behind its beginning belongs to a module that came after the
/// list was read.
const KERNEL_FUNCTION: u64 = 64 << 10;

impl KernelNames {
    /// Looks up the addresses that are not among the names; all of them when the list is read again.
    fn resolve(&mut self, wanted: &[u64]) -> std::io::Result<()> {
        let doubtful = |symbols: &kernel::Symbols| {
            let mut missing = wanted.iter().filter(|address| self.names.find(**address).is_none());
            missing.any(|address| {
                let function = symbols.find(*address);
                function.is_none_or(|(start, ..)| address - start > KERNEL_FUNCTION)
            })
        };
        let is_good = self.symbols.as_ref().is_some_and(|(symbols, read)| {
            let age = read.elapsed();
            age < KERNEL_LIST_DOUBT || (age < KERNEL_LIST_AGE && !doubtful(symbols))
        });
        if !is_good {
            self.names = Ranges::default();
            if let Some(symbols) = kernel::Symbols::read(File::open("/proc/kallsyms")?)? {
                self.symbols = Some((symbols, Instant::now()));
            } else {
                self.hidden = true;
                tracing::warn!(
                    "the kernel hides its addresses (kernel.kptr_restrict, CAP_SYSLOG): kernel frames have no names"
                );
            }
        }
        if let Some((symbols, _)) = &self.symbols {
            symbols.resolve(wanted, &mut self.names);
        }
        Ok(())
    }

    fn list_bytes(&self) -> usize {
        self.symbols.as_ref().map_or(0, |(symbols, _)| symbols.bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_the_kernel_are_within_the_budget_and_the_longest_unused_goes_first() {
        let mut cache = NameCache::new(Budget::new(Budget::SMALLEST), Opener::default());
        let fill = |names: &mut Ranges| {
            for start in 0..6_000 {
                names.insert(start, start + 1, format!("a_function_of_some_length_{start}").into());
            }
            names.bytes()
        };
        let one = fill(&mut cache.kernel.names);
        assert!(one < cache.budget.names() && one * 2 > cache.budget.names(), "{one}");
        cache.end_window();
        assert_eq!(cache.bytes(), one, "all of it has room");
        let file = cache.files.entry(FileId(20)).or_default();
        file.used = 1;
        fill(&mut file.names);
        cache.end_window();
        assert!(cache.kernel.names.is_empty());
        assert_eq!(cache.bytes(), one);
    }
}
