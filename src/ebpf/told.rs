//! What the program is told: mappings of processes, tables of files, and whom to pass over.
//!
//! In: what the worker knows. Out: entries of the kernel's maps. Where there is no program (perf events alone) it only remembers whom to pass over.

use std::collections::{HashMap, HashSet};

use aya::maps::MapData;

use crate::ebpf::arrays::{KernelMapping, Shared, array, shared};
use crate::ebpf::files::{Change, FileId};
use crate::ebpf::object::KernelMaps;
use crate::ebpf::process::Process;
use crate::unwind::Line;

/// What the program knows.
pub struct Told {
    /// Maps of the program; `None` when there is none.
    kernel: Option<KernelMaps>,
    /// Processes that it is to pass over from now on.
    ignored: HashSet<u32>,
    /// Processes that it passes over.
    passed_over: HashSet<u32>,
    /// Processes that it shall not pass over any more.
    unignored: Vec<u32>,
    /// The mappings that say so, shared by all of them.
    ignored_map: Option<MapData>,
    /// The table that says that there is none, shared by all files without.
    no_rows: Option<MapData>,
}

impl Told {
    /// A program that was told nothing yet.
    pub fn new(kernel: Option<KernelMaps>) -> Self {
        Self {
            kernel,
            ignored: HashSet::new(),
            passed_over: HashSet::new(),
            unignored: Vec::new(),
            ignored_map: None,
            no_rows: None,
        }
    }

    /// The process is to be passed over.
    pub fn ignore(&mut self, pid: u32) {
        self.ignored.insert(pid);
    }

    /// True for one that is passed over, or is to be.
    pub fn is_ignored(&self, pid: u32) -> bool {
        self.ignored.contains(&pid) || self.passed_over.contains(&pid)
    }

    /// The id belongs to another process from now on.
    pub fn end_ignoring(&mut self, pid: u32) {
        self.ignored.remove(&pid);
        if self.passed_over.remove(&pid) {
            self.unignored.push(pid);
        }
    }

    /// Tells what became of tables. Answers with those that lie in the kernel now.
    pub fn tables(&mut self, changes: Vec<(FileId, Change)>) -> Vec<(FileId, Shared<Line>)> {
        let mut in_kernel = Vec::new();
        let Some(kernel) = &mut self.kernel else {
            return in_kernel;
        };
        for (id, change) in changes {
            let key = id.table_key();
            if change == Change::Gone {
                // It may not have had one.
                let _ = kernel.tables.remove(&key);
                continue;
            }
            if let Change::Made(table) = &change {
                let told = shared("rows", table.lines()).and_then(|(map, rows)| {
                    let inserted = kernel.tables.insert(key, &map, 0);
                    inserted.map(|()| rows).map_err(std::io::Error::other)
                });
                match told {
                    Ok(rows) => {
                        in_kernel.push((id, rows));
                        continue;
                    }
                    Err(error) => {
                        let bytes = table.bytes();
                        tracing::warn!(error = %error, bytes, "cannot hand an unwind table to the kernel");
                    }
                }
            }
            if self.no_rows.is_none() {
                let none: Line = Default::default();
                self.no_rows = array("rows", &[none]).ok();
            }
            if let Some(rows) = &self.no_rows {
                // Without it the program goes on copying stacks.
                let _ = kernel.tables.insert(key, rows, 0);
            }
        }
        in_kernel
    }

    /// Tells whom to pass over, and the mappings of processes that changed.
    pub fn processes(&mut self, processes: &mut HashMap<u32, Process>) {
        let unignored = std::mem::take(&mut self.unignored);
        let ignored_now = std::mem::take(&mut self.ignored);
        let Some(kernel) = &mut self.kernel else {
            return;
        };
        for pid in unignored {
            // It is not there when the id was given to a process that was told meanwhile.
            let _ = kernel.processes.remove(&pid);
        }
        if !ignored_now.is_empty() && self.ignored_map.is_none() {
            self.ignored_map = array("mappings", &[KernelMapping::header(KernelMapping::IGNORED)]).ok();
        }
        for pid in ignored_now {
            // Whoever cannot be told to be passed over is sorted out outside, at each tick.
            if let Some(map) = &self.ignored_map
                && kernel.processes.insert(pid, map, 0).is_ok()
            {
                self.passed_over.insert(pid);
            }
        }
        for (pid, process) in processes {
            if !process.active || !process.stale || process.exited > 0 || process.image.read().is_empty() {
                continue;
            }
            let told = array("mappings", &process.kernel_mappings())
                .and_then(|map| kernel.processes.insert(pid, &map, 0).map_err(std::io::Error::other));
            process.stale = false;
            match told {
                Ok(()) => process.told = true,
                // The program goes on sending snapshots of it.
                Err(error) => {
                    tracing::debug!(error = %error, pid, "cannot tell the program the mappings of a process");
                }
            }
        }
    }

    /// The process ended.
    pub fn forget(&mut self, pid: u32) {
        if let Some(kernel) = &mut self.kernel {
            // It may have been removed with an earlier life of the id.
            let _ = kernel.processes.remove(&pid);
        }
    }
}
