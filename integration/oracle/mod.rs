//! Every stack that the BPF program walks is walked again by `framehop`, an independent unwinder, over a copy of the
//! same registers and memory.
//!
//! In: C, C++ and Rust programs of `fixtures/ebpf`, compiled here, and programs of the system, all run under the
//! profiler with [`Settings::copies`]. Each sample has the frames that the BPF program found, and the registers and up
//! to 16 KiB of stack in which it found them. The test compares three walks: the walk of the BPF program, `framehop`
//! with the `.eh_frame` of the files in `/proc/PID/maps`, and Alluvium's walk outside the kernel. Go programs and code
//! generated at run time have no `.eh_frame`, so `framehop` cannot check them.
//!
//! The copy lacks memory above 16 KiB, pages that were never touched, and the interrupted stack if a signal handler
//! has a separate stack. In these cases, the test compares the frames up to the missing memory, and Alluvium's
//! walk outside the kernel must end there too. The test helps `framehop` in two ways. First, it marks a frame that a
//! signal interrupted: its address is that of the interrupted instruction, but `framehop` would treat it as a return
//! address. Second, it evaluates with `gimli` those unwind descriptions in `.eh_frame` that read memory, as for the
//! frame of a signal and for functions that align their stack, because `framehop` would guess there. If `framehop`
//! could only guess at some other frame, the walks must agree up to that frame, and the test then excludes the sample.
//! The test prints the number of excluded samples by the kind of the frame:
//!
//! - a frame described by a register other than the stack and frame pointers, which `framehop` does not support
//!   (`_dl_runtime_resolve`, some assembly);
//! - a frame without a description (the start of the dynamic linker, `_init`): `framehop` would follow the frame
//!   pointer;
//! - a frame at an address in no file, because the process ended or started another program before the test read its
//!   mappings.

mod image;

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use alluvium_ebpf::{Budget, Copied, Profiler, Scope, Settings};
use alluvium_unwind::walk::{Snapshot, walk};
use alluvium_unwind::{Arch, Stop};
use framehop::x86_64::{CacheX86_64, UnwindRegsX86_64};
use framehop::{FrameAddress, Unwinder};

use crate::ebpf::compile;
use crate::oracle::image::{Described, Image, Library, Maps, Registers};
use crate::program::{alone, other};

/// Ticks per second of busy time.
const HERTZ: u32 = 1999;
/// Minimum number of samples to compare in total. `SAMPLES_OF_EACH` is the minimum for each program that the test
/// names.
const SAMPLES: u64 = 10_000;
const SAMPLES_OF_EACH: u64 = 200;
/// Minimum share of the compared samples in which the walks must find equal frames.
const EQUAL: f64 = 0.999;
/// Maximum number of samples that the test may exclude because of the description of a frame, as a share of the
/// compared samples.
const LEFT_OUT: f64 = 0.01;
/// Maximum share of the samples with a frame at an address that is in no file. The test reads the mappings every 20 ms,
/// and a process may end before the next read.
const NOWHERE: f64 = 0.05;
/// Maximum number of user frames, as in the BPF program.
const DEEPEST: usize = 896;
/// Maximum size of a stack in bytes, as in Linux. An address above a copy and within this size is part of the stack. An
/// address further away is not.
const STACK: u64 = 8 << 20;
/// Timeout for all rounds. One round takes eight seconds of two CPUs.
const PATIENCE: Duration = Duration::from_mins(15);
/// Number of differing samples of a program to print.
const PRINTED: u64 = 3;

/// How a walk of `framehop` ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// At the outermost frame.
    Outermost,
    /// The walk needs memory above the copy, or memory of the stack that a signal interrupted.
    CopyEnds,
    /// The walk needs memory that is not part of the stack, so an earlier frame was wrong.
    Lost,
    /// At the maximum depth of the BPF program.
    Depth,
    /// At a frame where `framehop` could only guess.
    Guess(Described),
    Failed(framehop::Error),
}

/// Returns the frames that `framehop` finds, leaf first, and how the walk ended. The walk reads only the copy.
fn unwind(image: &mut Image, stack: &Snapshot<'_>) -> (Vec<u64>, End) {
    let mut registers = UnwindRegsX86_64::new(stack.ip, stack.sp, stack.bp);
    let mut address = FrameAddress::InstructionPointer(stack.ip);
    let mut frames = Vec::new();
    let mut is_interrupted = false;
    loop {
        frames.push(address.address());
        if frames.len() == DEEPEST {
            return (frames, End::Depth);
        }
        // The first word that the walk needs and the copy does not contain. All later frames are guesses.
        let mut outside = None;
        let is_leaf = frames.len() == 1;
        let mut read = |at: u64| {
            let offset = at.checked_sub(stack.sp).and_then(|offset| usize::try_from(offset).ok());
            let word = offset.and_then(|offset| stack.bytes.get(offset..offset.checked_add(8)?));
            if word.is_none() {
                // A leaf may have saved registers below its stack pointer, but the registers still contain these
                // values, so such a word is not needed. Later frames may be below the stack pointer of the leaf,
                // because a signal may have interrupted code on another stack.
                if at >= stack.sp || !is_leaf {
                    outside.get_or_insert(at);
                }
            }
            Some(u64::from_ne_bytes(word?.try_into().ok()?))
        };
        let at = address.address_for_lookup();
        let described = image.described(at);
        let next = match described {
            Described::Plain | Described::Outermost => {
                let mut read = |at| read(at).ok_or(());
                image
                    .unwinder
                    .unwind_frame(address, &mut registers, &mut image.cache, &mut read)
            }
            Described::Signal | Described::ByMemory => {
                let known = Registers {
                    ip: registers.ip(),
                    sp: registers.sp(),
                    bp: registers.bp(),
                };
                let caller = image.caller(at, known, &mut read);
                if let Some(caller) = caller {
                    registers = UnwindRegsX86_64::new(caller.ip, caller.sp, caller.bp);
                }
                Ok(caller.map(|caller| caller.ip))
            }
            guess => return (frames, End::Guess(guess)),
        };
        address = match next {
            _ if let Some(at) = outside => {
                // `framehop` may have cached that the description is wrong, and would guess at this address from now
                // on.
                image.cache = CacheX86_64::new();
                let is_above = (stack.sp..stack.sp.saturating_add(STACK)).contains(&at);
                let end = if is_above || is_interrupted {
                    End::CopyEnds
                } else {
                    End::Lost
                };
                return (frames, end);
            }
            Ok(Some(ip)) if described == Described::Signal => {
                is_interrupted = true;
                FrameAddress::InstructionPointer(ip)
            }
            Ok(Some(ip)) => match FrameAddress::from_return_address(ip) {
                Some(address) => address,
                None => return (frames, End::Outermost),
            },
            Ok(None) => return (frames, End::Outermost),
            Err(error) => return (frames, End::Failed(error)),
        };
    }
}

/// Results for the samples of a program.
#[derive(Debug, Clone, Default)]
struct Count {
    samples: u64,
    frames: u64,
    /// Number of samples with equal frames up to the outermost one.
    whole: u64,
    /// Number of samples with equal frames as far as the copy reaches.
    copied: u64,
    left_out: BTreeMap<Described, u64>,
    /// Number of samples in which the BPF program found other frames than `framehop`.
    differ: u64,
    /// Number of samples in which Alluvium's walk outside the kernel found other frames.
    differ_outside: u64,
}

impl Count {
    fn compared(&self) -> u64 {
        self.whole + self.copied + self.differ
    }

    fn add(&mut self, other: &Self) {
        self.samples += other.samples;
        self.frames += other.frames;
        self.whole += other.whole;
        self.copied += other.copied;
        self.differ += other.differ;
        self.differ_outside += other.differ_outside;
        for (why, count) in &other.left_out {
            *self.left_out.entry(*why).or_default() += count;
        }
    }
}

/// The copied samples, and the mappings of their processes. A process may have several sets of mappings, because it may
/// start another program.
#[derive(Default)]
struct Seen {
    maps: BTreeMap<u32, Vec<Maps>>,
    copies: Vec<Copied>,
}

impl Seen {
    fn look(&mut self, profiler: &Profiler) {
        let copies = profiler.take().unwrap().copies;
        let mut new: Vec<u32> = copies.iter().map(|copied| copied.pid).collect();
        new.sort_unstable();
        new.dedup();
        self.copies.extend(copies);
        for pid in new {
            self.maps.entry(pid).or_default();
        }
        for (pid, known) in &mut self.maps {
            if let Some(maps) = Maps::read(*pid)
                && known.last() != Some(&maps)
            {
                known.push(maps);
            }
        }
    }
}

#[derive(Default)]
struct Comparison {
    library: Library,
    counts: BTreeMap<String, Count>,
}

impl Comparison {
    fn add(&mut self, seen: &mut Seen) {
        let mut images: BTreeMap<u32, Vec<Image>> = BTreeMap::new();
        for (pid, maps) in &seen.maps {
            // Most samples belong to the last set of mappings, so it comes first.
            let of_it = maps.iter().rev().map(|maps| Image::new(maps, &mut self.library));
            images.insert(*pid, of_it.collect());
        }
        for copied in seen.copies.drain(..) {
            let stack = copied.stack();
            let images = images.get_mut(&copied.pid).map_or(&mut [][..], Vec::as_mut_slice);
            let walked = images.iter_mut().find_map(|image| {
                let (frames, end) = unwind(image, &stack);
                (end != End::Guess(Described::Nowhere)).then_some((&*image, frames, end))
            });
            let (image, frames, end) = match walked {
                Some((image, frames, end)) => (Some(image), frames, end),
                None => (None, vec![stack.ip], End::Guess(Described::Nowhere)),
            };
            self.compare(&copied, image, &frames, end);
        }
    }

    fn compare(&mut self, copied: &Copied, image: Option<&Image>, frames: &[u64], end: End) {
        let stack = copied.stack();
        let mut outside = Vec::new();
        let stop = image.map(|image| walk(Arch::X86_64, &stack, DEEPEST, |at| image.found(at), &mut outside));
        let program = image.map_or("(unknown)", |image| &image.program);
        let count = self.counts.entry(program.to_owned()).or_default();
        count.samples += 1;
        count.frames += frames.len() as u64;
        let (is_equal, is_equal_outside) = match end {
            End::Outermost => (
                copied.frames == frames && copied.stop == Stop::End,
                outside == frames && stop == Some(Stop::End),
            ),
            End::Depth => (
                copied.frames == frames && copied.stop == Stop::Depth,
                outside == frames && stop == Some(Stop::Depth),
            ),
            End::CopyEnds => (
                copied.frames.starts_with(frames),
                outside == frames && stop == Some(Stop::Read),
            ),
            End::Guess(_) => (
                copied.frames.starts_with(frames),
                image.is_none() || outside.starts_with(frames),
            ),
            End::Lost | End::Failed(_) => (false, false),
        };
        count.differ_outside += u64::from(!is_equal_outside);
        match end {
            _ if !is_equal => count.differ += 1,
            End::Guess(why) => *count.left_out.entry(why).or_default() += 1,
            End::CopyEnds => count.copied += 1,
            _ => count.whole += 1,
        }
        if (!is_equal || !is_equal_outside) && count.differ.max(count.differ_outside) <= PRINTED {
            let places = |addresses: &[u64]| -> Vec<String> {
                let place = |at: &u64| image.map_or(String::new(), |image| image.place(*at));
                addresses.iter().take(30).map(place).collect()
            };
            println!(
                "{program}: framehop {end:?} {:?}\n  kernel {:?} {:?}\n  outside {stop:?} {:?}",
                places(frames),
                copied.stop,
                places(&copied.frames),
                places(&outside)
            );
        }
    }

    fn total(&self) -> Count {
        let mut total = Count::default();
        self.counts.values().for_each(|count| total.add(count));
        total
    }

    /// Returns true if the numbers of compared samples reach their minimums.
    fn is_enough(&self, programs: &[&str]) -> bool {
        let of = |program: &&str| self.counts.get(*program).map_or(0, Count::compared);
        self.total().compared() >= SAMPLES && programs.iter().all(|program| of(program) >= SAMPLES_OF_EACH)
    }
}

fn report(name: &str, count: &Count) {
    println!(
        "oracle: {name}: {} samples, {:.1} frames each; {} equal up to the outermost frame, {} equal as far as \
         the copy reaches, {} differ ({} outside of the kernel); left out {:?}",
        count.samples,
        count.frames as f64 / count.samples.max(1) as f64,
        count.whole,
        count.copied,
        count.differ,
        count.differ_outside,
        count.left_out
    );
}

/// A shell that is profiled with all programs that it starts.
struct Shell {
    child: Child,
    folder: PathBuf,
    rounds: u32,
}

impl Shell {
    fn new(folder: &Path) -> Self {
        let child = Command::new("sh")
            .current_dir(folder)
            .env("LC_ALL", "C")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        Self {
            child,
            folder: folder.to_owned(),
            rounds: 0,
        }
    }

    /// Runs two lists of shell commands concurrently, and calls `meanwhile` repeatedly until both end.
    fn run(&mut self, lanes: [&str; 2], mut meanwhile: impl FnMut()) {
        self.rounds += 1;
        let done = self.folder.join(format!("done.{}", self.rounds));
        let script = format!("({}) &\n({}) &\nwait\n: > {}\n", lanes[0], lanes[1], done.display());
        self.child.stdin.as_mut().unwrap().write_all(script.as_bytes()).unwrap();
        let until = Instant::now() + PATIENCE;
        while !done.exists() {
            assert!(Instant::now() < until, "the programs do not end");
            assert_eq!(self.child.try_wait().unwrap(), None, "the shell ended");
            std::thread::sleep(Duration::from_millis(20));
            meanwhile();
        }
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn stacks_of_the_bpf_program_are_those_of_framehop() {
    if other("g++", &["--version"], "g++").is_none()
        || other("perl", &["--version"], "perl").is_none()
        || other("rustc", &["--version"], "Rust").is_none()
    {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("integration/fixtures/ebpf");
    compile(folder, "shares", &["-O2", "-fomit-frame-pointer"]);
    compile(folder, "frames", &["-O1", "-fomit-frame-pointer", "-DLARGEST"]);
    compile(folder, "threads", &["-O2", "-pthread", "-ldl"]);
    for arguments in [
        "gcc -O2 -shared -fPIC -o loaded.so SOURCES/loaded.c",
        "gcc -O2 -fno-omit-frame-pointer -o framed SOURCES/shares.c",
        "g++ -O2 -fomit-frame-pointer -o faults SOURCES/faults.cc",
        "rustc --edition 2024 -O -o release SOURCES/release.rs",
    ] {
        let line = arguments.replace("SOURCES", &sources.to_string_lossy());
        let mut words = line.split(' ');
        let status = Command::new(words.next().unwrap())
            .args(words)
            .current_dir(folder)
            .status();
        assert!(status.unwrap().success(), "{line}");
    }
    let lanes = [
        format!(
            "./framed 0.4; ./shares 0.4; ./faults 0.6; ./threads 0.3 ./loaded.so; g++ -O2 -o again '{}'; \
             perl -e 'for (1 .. 1000000) {{ $seen{{$_ % 999}} .= chr(65 + $_ % 26); \
             @sorted = sort values %seen unless $_ % 20000 }}'",
            sources.join("faults.cc").display()
        ),
        format!(
            "./frames 0.2; ./frames 0.2 400; ./release 0.8; seq 1 500000 | sort -k1.3 | md5sum; rustc --edition 2024 \
             -O -o twice '{}'; \
             python3 -c 'import json; [json.loads(json.dumps(list(range(1000)))) \
             for _ in range(4000)]' 2>/dev/null || true",
            sources.join("release.rs").display()
        ),
    ];
    let programs = [
        "framed", "shares", "faults", "threads", "cc1plus", "perl", "frames", "release", "sort",
    ];

    let _alone = alone();
    let mut shell = Shell::new(folder);
    let profiler = Profiler::start(Settings {
        hertz: HERTZ,
        kernel_stacks: false,
        scope: Scope::Process(shell.child.id()),
        // The profiler may use 128 MiB of the budget for copies that the test has not taken yet.
        budget: Budget::new(1 << 30),
        copies: true,
        ..Settings::default()
    })
    .unwrap();
    let mut comparison = Comparison::default();
    let until = Instant::now() + PATIENCE;
    // The profiler creates an unwind table when a stack first needs it. Therefore the first round has fewer samples and
    // hardly any of rustc, and there are at least two rounds.
    while shell.rounds < 2 || !comparison.is_enough(&programs) && Instant::now() < until {
        let mut seen = Seen::default();
        shell.run([&lanes[0], &lanes[1]], || seen.look(&profiler));
        seen.look(&profiler);
        comparison.add(&mut seen);
    }
    let accounts = profiler.finish().unwrap().accounts;
    for (program, count) in &comparison.counts {
        report(program, count);
    }
    let total = comparison.total();
    report("all", &total);
    println!(
        "oracle: the stacks of {} ticks were copied because their unwind tables did not exist yet; {} ticks were lost",
        accounts.snapshots, accounts.ring_full
    );
    assert!(
        comparison.is_enough(&programs),
        "too few samples were compared: {:?}",
        comparison.counts
    );
    let compared = total.compared() as f64;
    let undescribed = total.left_out.iter().filter(|(why, _)| **why != Described::Nowhere);
    let left_out: u64 = undescribed.map(|(_, count)| count).sum();
    let equal = 1.0 - total.differ as f64 / compared;
    let equal_outside = 1.0 - total.differ_outside as f64 / compared;
    println!(
        "oracle: {:.4} % equal in the kernel, {:.4} % outside",
        equal * 100.0,
        equal_outside * 100.0
    );
    assert!(equal >= EQUAL, "{total:?}");
    assert!(equal_outside >= EQUAL, "{total:?}");
    assert!((left_out as f64) < LEFT_OUT * compared, "{total:?}");
    let nowhere = total.left_out.get(&Described::Nowhere).copied().unwrap_or(0);
    assert!((nowhere as f64) < NOWHERE * total.samples as f64, "{total:?}");
}
