//! The kernel maps that the BPF program reads: mappings of processes, unwind tables of files, and ignored processes.
//!
//! In: the state of the worker. Out: entries of the kernel maps. Without a BPF program (perf events only), it
//! writes nothing, and remembers ignored processes only until the next write.

use std::collections::{HashMap, HashSet};

use aya::maps::MapData;

use crate::arrays::{KernelMapping, SharedArray, array, shared_array};
use crate::files::{FileId, TableChange};
use crate::object::KernelMaps;
use crate::process::Process;
use alluvium_unwind::Line;

pub(crate) struct KernelSide {
    /// `None` if there is no BPF program.
    maps: Option<KernelMaps>,
    /// Processes to ignore that are not written to the kernel maps yet.
    pending_ignored: HashSet<u32>,
    /// Processes that the BPF program ignores.
    ignored: HashSet<u32>,
    /// Ids that were ignored and belong to other processes by now.
    pending_restored: Vec<u32>,
    /// The mappings entry that all ignored processes share.
    ignored_map: Option<MapData>,
    /// The empty table that all files without rows share.
    no_rows: Option<MapData>,
}

impl KernelSide {
    /// Creates a kernel side that has written nothing yet.
    pub(super) fn new(maps: Option<KernelMaps>) -> Self {
        Self {
            maps,
            pending_ignored: HashSet::new(),
            ignored: HashSet::new(),
            pending_restored: Vec::new(),
            ignored_map: None,
            no_rows: None,
        }
    }

    /// Ignores a process from the next write on.
    pub(super) fn ignore(&mut self, pid: u32) {
        self.pending_ignored.insert(pid);
    }

    /// Returns true for a process that is ignored, or that the next write will ignore.
    pub(crate) fn is_ignored(&self, pid: u32) -> bool {
        self.pending_ignored.contains(&pid) || self.ignored.contains(&pid)
    }

    /// Stops ignoring `pid`, because the process has ended or the id belongs to another process now.
    pub(crate) fn end_ignoring(&mut self, pid: u32) {
        self.pending_ignored.remove(&pid);
        if self.ignored.remove(&pid) {
            self.pending_restored.push(pid);
        }
    }

    /// Writes changed unwind tables. Returns the written tables, as memory that is shared with the kernel.
    pub(crate) fn write_tables(&mut self, changes: Vec<(FileId, TableChange)>) -> Vec<(FileId, SharedArray<Line>)> {
        let mut in_kernel = Vec::new();
        let Some(maps) = &mut self.maps else {
            return in_kernel;
        };
        for (id, change) in changes {
            let key = id.table_key();
            if change == TableChange::Dropped {
                // The table may have no entry.
                let _ = maps.tables.remove(&key);
                continue;
            }
            if let TableChange::Made(table) = &change {
                let written = shared_array("rows", table.lines()).and_then(|(map, rows)| {
                    let inserted = maps.tables.insert(key, &map, 0);
                    inserted.map(|()| rows).map_err(std::io::Error::other)
                });
                match written {
                    Ok(rows) => {
                        in_kernel.push((id, rows));
                        continue;
                    }
                    Err(error) => {
                        let bytes = table.bytes();
                        tracing::warn!(error = %error, bytes, "cannot write an unwind table to the kernel");
                    }
                }
            }
            if self.no_rows.is_none() {
                let empty_line: Line = Default::default();
                self.no_rows = array("rows", &[empty_line]).ok();
            }
            if let Some(rows) = &self.no_rows {
                // If this fails, the BPF program continues to copy stacks.
                let _ = maps.tables.insert(key, rows, 0);
            }
        }
        in_kernel
    }

    /// Writes the ignored processes, and the mappings of each process if they have changed.
    #[expect(
        clippy::iter_over_hash_type,
        reason = "each process has its own entry in the kernel maps"
    )]
    pub(crate) fn write_processes(&mut self, processes: &mut HashMap<u32, Process>) {
        let restored_pids = std::mem::take(&mut self.pending_restored);
        let ignored_pids = std::mem::take(&mut self.pending_ignored);
        let Some(maps) = &mut self.maps else {
            return;
        };
        for pid in restored_pids {
            // The entry is missing if it was removed at the end of an earlier process with the same id.
            let _ = maps.processes.remove(&pid);
        }
        if !ignored_pids.is_empty() && self.ignored_map.is_none() {
            self.ignored_map = array("mappings", &[KernelMapping::header(KernelMapping::IGNORED)]).ok();
        }
        for pid in ignored_pids {
            // If this fails, the worker drops the ticks of the process itself.
            if let Some(map) = &self.ignored_map
                && maps.processes.insert(pid, map, 0).is_ok()
            {
                self.ignored.insert(pid);
            }
        }
        for (pid, process) in processes {
            if !process.active || !process.is_stale || process.exited > 0 || process.image.read().is_empty() {
                continue;
            }
            let written = array("mappings", &process.kernel_mappings())
                .and_then(|map| maps.processes.insert(pid, &map, 0).map_err(std::io::Error::other));
            process.is_stale = false;
            match written {
                Ok(()) => process.in_kernel = true,
                // The BPF program continues to send snapshots of the process.
                Err(error) => {
                    tracing::debug!(error = %error, pid, "cannot write the mappings of a process for the BPF program");
                }
            }
        }
    }

    /// Removes the entry of a process that ended.
    pub(crate) fn remove_process(&mut self, pid: u32) {
        if let Some(maps) = &mut self.maps {
            // The end of an earlier process with the same id may have removed the entry.
            let _ = maps.processes.remove(&pid);
        }
    }
}
