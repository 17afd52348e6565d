//! Names of code that a runtime made: its perf map and its jitdump file.
//!
//! Files are read only when an address is asked for that is not known, or when they grew; what is known is kept a
//! process, for as long as its owner has room.

use std::collections::HashMap;
use std::fs::File;
use std::io::{Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use crate::ebpf::foreign::{Ending, Opener, Refusal, Root};
use crate::ebpf::proc::{self, ProcessKey};
use crate::ebpf::window::ProcessInfo;
use crate::symbols::bytes::Bytes;
use crate::symbols::latest::Latest;
use crate::symbols::{Ranges, jitdump, perf_map};

/// Names of all processes that make code.
#[derive(Debug)]
pub(crate) struct RunTimes {
    processes: HashMap<ProcessKey, RunTime>,
    opener: Opener,
}

#[derive(Debug, Default)]
struct RunTime {
    names: Ranges,
    /// Bytes of the perf map and of the jitdump file that were read.
    read: (u64, u64),
    /// When it was asked for last, as its owner counts.
    used: u64,
}

impl RunTimes {
    pub(crate) fn new(opener: Opener) -> Self {
        Self {
            processes: HashMap::new(),
            opener,
        }
    }

    /// The names of a process for sorted addresses, asked for at `now`.
    pub(crate) fn resolve(&mut self, process: &ProcessInfo, addresses: &[u64], now: u64) -> &Ranges {
        let known = self.processes.entry(process.key()).or_default();
        known.used = now;
        known.learn(&self.opener, process, addresses);
        &known.names
    }

    /// The processes: when each was asked for last, and bytes of its names.
    pub(crate) fn held(&self) -> impl Iterator<Item = (ProcessKey, u64, usize)> {
        self.processes
            .iter()
            .map(|(key, known)| (*key, known.used, known.names.bytes()))
    }

    /// Forgets the names of a process; they are read again when they are asked for.
    pub(crate) fn forget(&mut self, key: ProcessKey) {
        self.processes.remove(&key);
    }
}

impl RunTime {
    fn learn(&mut self, opener: &Opener, process: &ProcessInfo, addresses: &[u64]) {
        let map = open_map(opener, process);
        let dump = open_dump(opener, process);
        let length = |file: &Option<File>| {
            file.as_ref()
                .and_then(|file| file.metadata().ok())
                .map_or(0, |data| data.len())
        };
        let now = (length(&map), length(&dump));
        let is_new = addresses.iter().any(|address| self.names.find(*address).is_none());
        let shrank = now.0 < self.read.0 || now.1 < self.read.1;
        if !is_new && now == self.read {
            return;
        }
        let mut search = Latest::new(addresses);
        if let Some(mut map) = map {
            // Of what is known only what was written since can say otherwise.
            let from = if is_new || shrank { 0 } else { self.read.0 };
            let read = map
                .seek(SeekFrom::Start(from))
                .and_then(|_| perf_map::offer(map, &mut search));
            if let Err(error) = read {
                tracing::debug!(error = %error, pid = process.pid, "cannot read a perf map");
            }
        }
        if let Some(dump) = dump
            && (is_new || shrank || now.1 != self.read.1)
        {
            jitdump::offer(&Bytes::new(&dump), &mut search);
        }
        self.read = now;
        let mut found = Vec::new();
        search.finish(|address, start, end, name| found.push((address, start, end, Arc::from(name))));
        if shrank || !found.is_empty() {
            // Code that is gone and code that took its place may overlap: addresses are kept, not functions.
            for (address, _, _, name) in found {
                self.names.insert(address, address.saturating_add(1), name);
            }
        }
        for address in addresses {
            if self.names.find(*address).is_none() {
                // What has no name yet may get one when the files grow.
                self.names.insert(*address, address.saturating_add(1), Arc::from(""));
            }
        }
    }
}

/// The perf map of a process, in its world or, when it is gone, in ours, if it was written while it ran. In a folder
/// like `/tmp` everyone may have put it there.
fn open_map(opener: &Opener, process: &ProcessInfo) -> Option<File> {
    let user = user(process);
    let inside = format!("/tmp/perf-{}.map", proc::namespaced_pid(process.pid));
    if let Some(map) = opener.at(Root::Process(process.key()), &inside, Ending::File, user) {
        return Some(map);
    }
    let ours = format!("/tmp/perf-{}.map", process.pid);
    let map = opener.at(Root::Own, &ours, Ending::File, user)?;
    let written = map.metadata().ok()?.modified().ok()?;
    (written >= started(process.start)?).then_some(map)
}

/// The user of a process now, or when it was seen last.
fn user(process: &ProcessInfo) -> Option<u32> {
    let now = proc::user(process.pid);
    process.key().check().ok().and(now).or(process.user)
}

/// The wall clock at some nanoseconds after boot, half a second early.
fn started(after_boot: u64) -> Option<SystemTime> {
    let uptime = std::fs::read_to_string("/proc/uptime").ok()?;
    let seconds: f64 = uptime.split_whitespace().next()?.parse().ok()?;
    let boot = SystemTime::now().checked_sub(Duration::try_from_secs_f64(seconds).ok()?)?;
    boot.checked_add(Duration::from_nanos(after_boot))?
        .checked_sub(Duration::from_millis(500))
}

/// The jitdump file of a process: runtimes map its first page executable, to be found by it.
fn open_dump(opener: &Opener, process: &ProcessInfo) -> Option<File> {
    let line = proc::executable_mappings(process.pid).ok()?.into_iter().find(|line| {
        let name = line.path.rsplit('/').next().unwrap_or_default();
        name.starts_with("jit-") && name.ends_with(".dump")
    })?;
    let file = opener.mapped(process.key(), &line)?;
    let owner = file.metadata().ok()?.uid();
    if owner != 0 && Some(owner) != user(process) {
        opener.refuse(Refusal::Owner, &line.path);
        return None;
    }
    Some(file)
}
