//! Finds out whether a process is a JVM to which the collector can attach.
//!
//! In: a process id. Out: the ids of the process in the collector's PID namespace and in its own PID namespace, and its
//! user and group.

use std::io::{self, Read};

use alluvium_ebpf::proc::{self, ProcessKey};

/// A running HotSpot virtual machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Jvm {
    pub key: ProcessKey,
    /// Process id in the process's innermost namespace. The names of the attach files contain this id.
    pub own_pid: u32,
    /// Ids of the user and the group that the process runs as.
    pub user: u32,
    pub group: u32,
}

/// The reason why the collector cannot attach to a process.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum NoJvm {
    /// There is no such process.
    #[error("process {0} is gone")]
    Ended(u32),
    /// The process runs a program other than a JVM.
    #[error("process {0} is not a Java virtual machine")]
    Other(u32),
    /// The process runs a JVM other than HotSpot.
    #[error("process {0} is an OpenJ9 virtual machine: only HotSpot is supported")]
    OpenJ9(u32),
    /// The process has no handler for SIGQUIT, so the signal that starts an attach would end it.
    #[error("process {0} does not catch SIGQUIT: its virtual machine is starting, or was started with -Xrs")]
    Deaf(u32),
    /// The kernel does not permit the inspection of the process.
    #[error("cannot inspect process {pid}: {reason}")]
    Hidden {
        /// The process that was inspected.
        pid: u32,
        /// The error of the kernel.
        reason: String,
    },
}

impl Jvm {
    /// Inspects the mappings and the status of a process.
    pub(super) fn find(pid: u32) -> Result<Self, NoJvm> {
        let start = proc::start(pid);
        if start == 0 {
            return Err(NoJvm::Ended(pid));
        }
        let hidden = |error: io::Error| match error.kind() {
            io::ErrorKind::NotFound => NoJvm::Ended(pid),
            _ => NoJvm::Hidden {
                pid,
                reason: error.to_string(),
            },
        };
        let mappings = proc::executable_mappings(pid).map_err(hidden)?;
        let maps = |name: &str| mappings.iter().any(|line| line.path.rsplit('/').next() == Some(name));
        if !maps("libjvm.so") {
            return Err(NoJvm::Other(pid));
        }
        if mappings.iter().any(|line| line.path.contains("/libj9vm")) {
            return Err(NoJvm::OpenJ9(pid));
        }
        let status = read_status(pid).map_err(hidden)?;
        let (Some(user), Some(group)) = (effective(&status, "Uid:"), effective(&status, "Gid:")) else {
            return Err(NoJvm::Ended(pid));
        };
        if !catches_quit(&status) {
            return Err(NoJvm::Deaf(pid));
        }
        Ok(Self {
            key: ProcessKey { pid, start },
            own_pid: proc::namespaced_pid(pid),
            user,
            group,
        })
    }
}

fn read_status(pid: u32) -> io::Result<String> {
    /// Size limit of a status file in bytes, larger than any real file, even with long lists of groups and processors.
    const MAX_STATUS: u64 = 64 << 10;
    let mut bytes = Vec::new();
    std::fs::File::open(format!("/proc/{pid}/status"))?
        .take(MAX_STATUS)
        .read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Returns the effective id in the line that begins with `line`. The line has four ids: real, effective, saved and file
/// system.
fn effective(status: &str, line: &str) -> Option<u32> {
    let ids = status.lines().find_map(|text| text.strip_prefix(line))?;
    ids.split_whitespace().nth(1)?.parse().ok()
}

/// Returns true if the process has a handler for SIGQUIT, signal number 3. Without a handler, SIGQUIT ends the process.
fn catches_quit(status: &str) -> bool {
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    let mask = caught.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask & (1 << 2) != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_would_end_by_the_signal_is_not_asked() {
        let status = "Uid:\t1\t2\t3\t4\nGid:\t5\t6\t7\t8\nSigCgt:\t0000000181005ccf\n";
        assert_eq!(
            (effective(status, "Uid:"), effective(status, "Gid:")),
            (Some(2), Some(6))
        );
        assert!(catches_quit(status));
        assert!(!catches_quit("SigCgt:\t0000000181005ccb\n"));
        assert!(!catches_quit(""));
    }

    #[test]
    fn other_programs_are_no_virtual_machines() {
        let own = std::process::id();
        assert_eq!(Jvm::find(own), Err(NoJvm::Other(own)));
        assert_eq!(Jvm::find(u32::MAX), Err(NoJvm::Ended(u32::MAX)));
    }
}
