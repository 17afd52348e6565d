//! Privileges that a long-running command drops at its start: capabilities that none of its parts needs, new privileges
//! for child processes, and system calls that only an attacker would make.
//!
//! In: the kind of process, and its data folder. Out: a thread that lacks these privileges, as do its child processes
//! and the threads that it starts later. The privileges are dropped before the process has a second thread. If a
//! privilege cannot be dropped, the process logs a warning and continues, because a container may not allow it to drop
//! privileges.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use rustix::io::Errno;
use rustix::process::geteuid;
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, capability_is_in_bounding_set, clear_ambient_capability_set,
    remove_capability_from_bounding_set, set_capabilities, set_no_new_privs,
};

/// Capabilities that the collector's components need. `pyroscope.ebpf` needs the first seven. `pyroscope.java` needs
/// the next three to become the user of a JVM and to signal the JVM. Receivers need the last capability to listen on a
/// low port.
const OF_COLLECTOR: CapabilitySet = CapabilitySet::BPF
    .union(CapabilitySet::PERFMON)
    .union(CapabilitySet::SYS_PTRACE)
    .union(CapabilitySet::SYSLOG)
    .union(CapabilitySet::DAC_READ_SEARCH)
    .union(CapabilitySet::CHECKPOINT_RESTORE)
    .union(CapabilitySet::IPC_LOCK)
    .union(CapabilitySet::KILL)
    .union(CapabilitySet::SETUID)
    .union(CapabilitySet::SETGID)
    .union(CapabilitySet::NET_BIND_SERVICE);
/// Replaces `BPF` and `PERFMON` in containers that grant only this capability.
const INSTEAD_OF_BPF: CapabilitySet = CapabilitySet::SYS_ADMIN;
/// Capabilities that the server needs to read certificate and users files of other owners, and to listen on a low port.
const OF_SERVER: CapabilitySet = CapabilitySet::DAC_READ_SEARCH.union(CapabilitySet::NET_BIND_SERVICE);
/// Capabilities that root needs to work in a folder of another user.
const FOR_FOREIGN_FOLDER: CapabilitySet = CapabilitySet::DAC_OVERRIDE.union(CapabilitySet::FOWNER);

/// The kinds of processes that drop privileges.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fence {
    /// The collector, alone or beside a server.
    Collector,
    /// The server without a collector beside it.
    #[cfg_attr(not(feature = "server"), expect(dead_code, reason = "this program has no server"))]
    Server,
}

impl Fence {
    /// Drops the privileges that this kind of process does not need, for this thread and all threads that it starts.
    /// `data` is the data folder, if it is known. The folder need not exist yet.
    pub(crate) fn raise(self, data: Option<&Path>) {
        if let Err(error) = self.drop_capabilities(data.is_some_and(is_own)) {
            tracing::warn!(error = %error, "cannot drop privileges: unneeded capabilities stay");
        }
        if let Err(error) = set_no_new_privs(true) {
            tracing::warn!(error = %error, "cannot drop privileges: child processes may gain new privileges");
        }
        if let Err(error) = calls::refuse() {
            tracing::warn!(error = %error, "cannot drop privileges: system calls are not filtered");
        }
    }

    /// Returns the subset of the `permitted` capabilities that the process keeps.
    fn restrict(self, permitted: CapabilitySet, owns_data: bool) -> CapabilitySet {
        let needed = match self {
            Self::Server => OF_SERVER,
            Self::Collector if permitted.contains(CapabilitySet::BPF | CapabilitySet::PERFMON) => OF_COLLECTOR,
            Self::Collector => OF_COLLECTOR | INSTEAD_OF_BPF,
        };
        if owns_data {
            permitted & needed
        } else {
            permitted & (needed | FOR_FOREIGN_FOLDER)
        }
    }

    fn drop_capabilities(self, owns_data: bool) -> Result<(), Errno> {
        let permitted = capabilities(None)?.permitted;
        let kept = self.restrict(permitted, owns_data);
        // Clears the ambient set, so that child processes inherit no capabilities.
        clear_ambient_capability_set()?;
        // The bounding set is reduced first, because that requires CAP_SETPCAP, which is dropped with the other
        // capabilities. If the process does not have CAP_SETPCAP, the bounding set remains unchanged.
        for number in 0..u64::BITS {
            let capability = CapabilitySet::from_bits_retain(1 << number);
            match capability_is_in_bounding_set(capability) {
                Ok(true) if !kept.contains(capability) => match remove_capability_from_bounding_set(capability) {
                    Ok(()) => {}
                    Err(Errno::PERM) => break,
                    Err(error) => return Err(error),
                },
                Ok(_) => {}
                // The kernel has no capabilities above this number.
                Err(_) => break,
            }
        }
        // If nothing changes, capset is not called, because a seccomp filter may forbid it, as in our systemd units.
        if permitted == kept {
            return Ok(());
        }
        set_capabilities(
            None,
            CapabilitySets {
                effective: kept,
                permitted: kept,
                inheritable: CapabilitySet::empty(),
            },
        )
    }
}

/// Returns true if a folder belongs to the user that runs this process. If the folder does not exist, the nearest
/// existing folder above it is checked.
fn is_own(folder: &Path) -> bool {
    // The last ancestor of a relative path is empty, which means the current folder.
    let non_empty = |ancestor| {
        if ancestor == Path::new("") {
            Path::new(".")
        } else {
            ancestor
        }
    };
    let first = folder
        .ancestors()
        .find_map(|ancestor| fs::metadata(non_empty(ancestor)).ok());
    first.is_some_and(|data| data.uid() == geteuid().as_raw())
}

/// System calls that fail with EPERM (seccomp(2)).
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod calls {
    use seccompiler::{BpfProgram, Error, SeccompAction, SeccompFilter, apply_filter};

    /// Calls that neither this program nor its child processes make. They change mounts, modules, the clock or the host
    /// name, inspect or change other processes, leave or enter namespaces, or have often been used to attack the
    /// kernel.
    const REFUSED: &[libc::c_long] = &[
        libc::SYS_mount,
        libc::SYS_umount2,
        libc::SYS_pivot_root,
        libc::SYS_chroot,
        libc::SYS_move_mount,
        libc::SYS_open_tree,
        libc::SYS_fsopen,
        libc::SYS_fsconfig,
        libc::SYS_fsmount,
        libc::SYS_fspick,
        libc::SYS_mount_setattr,
        libc::SYS_init_module,
        libc::SYS_finit_module,
        libc::SYS_delete_module,
        libc::SYS_kexec_load,
        libc::SYS_kexec_file_load,
        libc::SYS_reboot,
        libc::SYS_swapon,
        libc::SYS_swapoff,
        libc::SYS_settimeofday,
        libc::SYS_clock_settime,
        libc::SYS_clock_adjtime,
        libc::SYS_adjtimex,
        libc::SYS_sethostname,
        libc::SYS_setdomainname,
        libc::SYS_acct,
        libc::SYS_quotactl,
        libc::SYS_ptrace,
        libc::SYS_process_vm_readv,
        libc::SYS_process_vm_writev,
        libc::SYS_userfaultfd,
        libc::SYS_keyctl,
        libc::SYS_add_key,
        libc::SYS_request_key,
        libc::SYS_open_by_handle_at,
        libc::SYS_unshare,
        libc::SYS_setns,
        libc::SYS_personality,
        libc::SYS_vhangup,
        libc::SYS_move_pages,
        libc::SYS_migrate_pages,
        libc::SYS_io_uring_setup,
        libc::SYS_io_uring_enter,
        libc::SYS_io_uring_register,
    ];
    /// Additional calls of one architecture.
    #[cfg(target_arch = "x86_64")]
    const REFUSED_HERE: &[libc::c_long] = &[libc::SYS_iopl, libc::SYS_ioperm, libc::SYS_modify_ldt];
    #[cfg(not(target_arch = "x86_64"))]
    const REFUSED_HERE: &[libc::c_long] = &[];

    /// Installs a filter that refuses the calls in [`REFUSED`] and [`REFUSED_HERE`], for this thread and all threads
    /// that it starts.
    pub(super) fn refuse() -> Result<(), Error> {
        let calls = REFUSED.iter().chain(REFUSED_HERE);
        let filter = SeccompFilter::new(
            calls.map(|call| (*call, Vec::new())).collect(),
            SeccompAction::Allow,
            SeccompAction::Errno(libc::EPERM.cast_unsigned()),
            std::env::consts::ARCH.try_into()?,
        )?;
        apply_filter(&BpfProgram::try_from(filter)?)
    }
}

/// There is no filter for this architecture.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
mod calls {
    pub(super) fn refuse() -> Result<(), std::convert::Infallible> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_gained_and_what_no_part_needs_goes() {
        let all = CapabilitySet::from_bits_retain((1 << 41) - 1);
        let collector = Fence::Collector.restrict(all, true);
        assert!(collector.contains(CapabilitySet::BPF | CapabilitySet::KILL));
        assert!(
            !collector.intersects(CapabilitySet::SYS_ADMIN | CapabilitySet::DAC_OVERRIDE | CapabilitySet::SYS_MODULE)
        );
        assert!(
            !Fence::Server
                .restrict(all, true)
                .intersects(CapabilitySet::SYS_ADMIN | CapabilitySet::BPF | CapabilitySet::SETUID)
        );
        for fence in [Fence::Collector, Fence::Server] {
            assert_eq!(fence.restrict(CapabilitySet::empty(), true), CapabilitySet::empty());
            assert_eq!(
                fence.restrict(CapabilitySet::SYSLOG, true) - CapabilitySet::SYSLOG,
                CapabilitySet::empty()
            );
        }
    }

    #[test]
    fn a_fenced_thread_starts_programs_and_they_are_fenced_too() {
        let folder = tempfile::tempdir().unwrap();
        let fenced = std::thread::spawn(move || {
            Fence::Server.raise(Some(folder.path()));
            let run = |program: &str, arguments: &[&str]| {
                let output = std::process::Command::new(program).args(arguments).output().unwrap();
                (
                    output.status.success(),
                    String::from_utf8_lossy(&output.stderr).into_owned(),
                )
            };
            let (is_well, _) = run("true", &[]);
            assert!(is_well);
            let (is_well, error) = run("unshare", &["--user", "true"]);
            assert!(!is_well && error.contains("not permitted"), "{error}");
            capabilities(None).unwrap().permitted
        });
        let kept = fenced.join().unwrap();
        assert_eq!(kept - OF_SERVER, CapabilitySet::empty());
    }

    #[test]
    fn a_folder_to_be_made_is_ours_where_the_one_above_it_is_and_one_of_others_keeps_the_right_to_it() {
        let folder = tempfile::tempdir().unwrap();
        assert!(is_own(&folder.path().join("to/be/made")) && !folder.path().join("to").exists());
        assert_eq!(is_own(Path::new("to/be/made")), is_own(Path::new(".")));
        let all = CapabilitySet::from_bits_retain((1 << 41) - 1);
        for fence in [Fence::Collector, Fence::Server] {
            assert_eq!(
                fence.restrict(all, false) - fence.restrict(all, true),
                FOR_FOREIGN_FOLDER
            );
        }
    }

    #[test]
    fn where_only_sys_admin_is_given_it_stays_for_the_profiler() {
        let permitted = CapabilitySet::SYS_ADMIN | CapabilitySet::SYS_PTRACE | CapabilitySet::CHOWN;
        let kept = CapabilitySet::SYS_ADMIN | CapabilitySet::SYS_PTRACE;
        assert_eq!(Fence::Collector.restrict(permitted, true), kept);
        assert_eq!(Fence::Server.restrict(permitted, true), CapabilitySet::empty());
    }
}
