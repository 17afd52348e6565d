//! Opens files that other processes name: mapped files, perf maps, jitdump files, and debug files in the mount
//! namespaces of the processes.
//!
//! In: a process and a path that it controls. Out: a regular file, or nothing. Anyone who may run a program on this
//! machine controls both the path and the file, and the profiler reads it as root. A path is therefore resolved within
//! the root of its process or the root of the profiler, and through no magic link. The file is checked before it is
//! opened, and opening never blocks. Refused files are counted by reason. This module does not check the contents of
//! files.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use rustix::fs::{FileType, Mode, OFlags, ResolveFlags, Stat, fstat, fstatfs, open, openat2};
use rustix::io::Errno;

use crate::bounds::Bounds;
use crate::proc::{MapsLine, ProcessKey};
use alluvium_base::descriptors;

/// The reason why a file was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// The file is a pipe, a device, a socket, a folder, or a file of the kernel.
    NotRegular,
    /// The path leads through a magic link or a loop, or ends at a link where none is allowed.
    Link,
    /// The file belongs neither to the user of the process nor to root.
    Owner,
    /// The file is not the one that the process has mapped, or not the one that was checked.
    Exchanged,
    /// Opening the file would block, or its path changes constantly.
    Busy,
    /// Permission to open the file was denied.
    Denied,
    /// The kernel returned another error.
    Failed,
}

impl Refusal {
    /// All reasons, in the order of their numbers.
    pub const ALL: [Self; 7] = [
        Self::NotRegular,
        Self::Link,
        Self::Owner,
        Self::Exchanged,
        Self::Busy,
        Self::Denied,
        Self::Failed,
    ];

    /// Returns the name in metrics and logs.
    pub fn name(self) -> &'static str {
        match self {
            Self::NotRegular => "not_regular",
            Self::Link => "link",
            Self::Owner => "owner",
            Self::Exchanged => "exchanged",
            Self::Busy => "busy",
            Self::Denied => "denied",
            Self::Failed => "failed",
        }
    }
}

/// Number of refused files by reason, in the order of [`Refusal::ALL`].
pub type RefusalCounts = [u64; Refusal::ALL.len()];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Root {
    /// The root of a process, if it is still running.
    Process(ProcessKey),
    Own,
}

/// The kinds of files that the last component of a path may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AllowedFile {
    /// A file, or links that lead to a file within the root.
    FileOrLink,
    /// A file but no link. In folders where everyone may write, another user may have created a link.
    File,
}

/// Opens files and counts the refused files. Clones share the counts.
#[derive(Debug, Clone, Default)]
pub struct Opener {
    refused: Arc<[AtomicU64; Refusal::ALL.len()]>,
    open_files: Arc<AtomicUsize>,
    /// Counts the data that is left out because a file of a process exceeds a bound.
    pub bounds: Bounds,
}

/// A file that stays open. It counts against the limit of open files until it is dropped.
#[derive(Debug)]
pub(crate) struct OpenFile {
    pub file: File,
    count: Arc<AtomicUsize>,
}

/// Maximum number of files of processes that are open at once, if there are enough descriptors. A process has up to
/// 65,530 mappings, and each may belong to a different file.
pub(crate) const MAX_OPEN_FILES: usize = 4096;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Failure {
    /// There is no file, or the process has ended.
    Absent,
    Refused(Refusal),
}

impl Opener {
    /// Creates an opener whose counts are zero. Fails if the kernel does not have the system call `openat2` (added in
    /// Linux 5.6), or if a seccomp filter denies this call.
    pub fn new() -> io::Result<Self> {
        pin_in(Root::Own, "/", AllowedFile::File)?;
        Ok(Self::default())
    }

    /// Returns the number of refused files so far.
    pub fn refused(&self) -> RefusalCounts {
        std::array::from_fn(|index| self.refused[index].load(Ordering::Relaxed))
    }

    /// Opens the file that a process has mapped: through the mapping itself, or by its path if the process has ended
    /// or the kernel denies access to the mapping.
    pub(crate) fn open_mapped(&self, key: ProcessKey, line: &MapsLine) -> Option<File> {
        let check_mapping = |stat: &Stat, pinned: &OwnedFd| {
            if is_mapped(stat, pinned, line) {
                Ok(())
            } else {
                Err(Refusal::Exchanged)
            }
        };
        let mut refusal = None;
        let attempts: [&dyn Fn() -> io::Result<OwnedFd>; 3] = [
            &|| pin_mapping(key, line),
            &|| pin_in(Root::Process(key), &line.path, AllowedFile::FileOrLink),
            &|| pin_in(Root::Own, &line.path, AllowedFile::FileOrLink),
        ];
        for attempt in attempts {
            match attempt()
                .map_err(|error| Failure::of(&error))
                .and_then(|pinned| reopen(&pinned, check_mapping))
            {
                Ok(file) => return Some(file),
                Err(Failure::Absent) => {}
                Err(Failure::Refused(reason)) => refusal = Some(reason),
            }
        }
        if let Some(reason) = refusal {
            self.refuse(reason, &line.path);
        }
        None
    }

    /// Opens the file at a path, if it belongs to root or to `user`.
    pub(crate) fn open_at(&self, root: Root, path: &str, ending: AllowedFile, user: Option<u32>) -> Option<File> {
        let check_owner = |stat: &Stat, _: &OwnedFd| {
            if stat.st_uid == 0 || Some(stat.st_uid) == user {
                Ok(())
            } else {
                Err(Refusal::Owner)
            }
        };
        let opened = pin_in(root, path, ending)
            .map_err(|error| Failure::of(&error))
            .and_then(|pinned| reopen(&pinned, check_owner));
        match opened {
            Ok(file) => Some(file),
            Err(Failure::Absent) => None,
            Err(Failure::Refused(reason)) => {
                self.refuse(reason, path);
                None
            }
        }
    }

    /// Returns true if another file may stay open.
    pub(crate) fn has_room(&self) -> bool {
        self.open_files.load(Ordering::Relaxed) < descriptors::untrusted_file_limit(MAX_OPEN_FILES)
    }

    /// Returns the number of files that stay open at present.
    #[cfg(test)]
    pub(crate) fn open_count(&self) -> usize {
        self.open_files.load(Ordering::Relaxed)
    }

    /// Keeps a file open and counts it.
    pub(crate) fn keep_open(&self, file: File) -> OpenFile {
        self.open_files.fetch_add(1, Ordering::Relaxed);
        let count = self.open_files.clone();
        OpenFile { file, count }
    }

    /// Counts a refused file by its reason.
    pub fn refuse(&self, reason: Refusal, path: &str) {
        self.refused[reason as usize].fetch_add(1, Ordering::Relaxed);
        tracing::debug!(reason = reason.name(), path, "refused a file that a process names");
    }
}

impl Drop for OpenFile {
    fn drop(&mut self) {
        self.count.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Failure {
    fn of(error: &io::Error) -> Self {
        match Errno::from_io_error(error) {
            Some(Errno::NOENT | Errno::NOTDIR | Errno::SRCH) => Self::Absent,
            Some(Errno::LOOP | Errno::XDEV) => Self::Refused(Refusal::Link),
            Some(Errno::AGAIN) => Self::Refused(Refusal::Busy),
            Some(Errno::ACCESS | Errno::PERM) => Self::Refused(Refusal::Denied),
            _ => Self::Refused(Refusal::Failed),
        }
    }
}

/// Opens a path with `O_PATH`, which has no effect on a device and does not block on a pipe.
fn pin_in(root: Root, path: &str, ending: AllowedFile) -> io::Result<OwnedFd> {
    /// Maximum number of attempts. The kernel gives up a lookup while folders are moved.
    const MAX_ATTEMPTS: usize = 8;
    let folder = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let root = match root {
        Root::Own => open("/", folder, Mode::empty())?,
        Root::Process(key) => {
            // This function follows only this magic link, because the kernel alone decides where it leads.
            let root = open(format!("/proc/{}/root", key.pid), folder, Mode::empty())?;
            key.check()?;
            root
        }
    };
    let flags = match ending {
        AllowedFile::FileOrLink => OFlags::PATH | OFlags::CLOEXEC,
        AllowedFile::File => OFlags::PATH | OFlags::CLOEXEC | OFlags::NOFOLLOW,
    };
    let resolve_flags = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
    let mut tries = 1;
    loop {
        match openat2(&root, path, flags, Mode::empty(), resolve_flags) {
            Err(Errno::AGAIN) if tries < MAX_ATTEMPTS => tries += 1,
            done => return Ok(done?),
        }
    }
}

/// Opens the file of a mapping with `O_PATH`, even if the path of the mapping leads to a different file by now.
fn pin_mapping(key: ProcessKey, line: &MapsLine) -> io::Result<OwnedFd> {
    // Like `/proc/<pid>/root`, this path is a magic link. Following it requires CAP_CHECKPOINT_RESTORE.
    let path = format!("/proc/{}/map_files/{:x}-{:x}", key.pid, line.start, line.end);
    let pinned = open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
    key.check()?;
    Ok(pinned)
}

/// Opens the file of an `O_PATH` descriptor for reading, if it is a regular file and `check` accepts it.
fn reopen(pinned: &OwnedFd, check: impl Fn(&Stat, &OwnedFd) -> Result<(), Refusal>) -> Result<File, Failure> {
    let failed = |error: Errno| Failure::of(&error.into());
    let pinned_stat = fstat(pinned).map_err(failed)?;
    match FileType::from_raw_mode(pinned_stat.st_mode) {
        FileType::RegularFile => {}
        FileType::Symlink => return Err(Failure::Refused(Refusal::Link)),
        _ => return Err(Failure::Refused(Refusal::NotRegular)),
    }
    if is_of_kernel(pinned) {
        return Err(Failure::Refused(Refusal::NotRegular));
    }
    check(&pinned_stat, pinned).map_err(Failure::Refused)?;
    // A lease on a file blocks open(2), but not with O_NONBLOCK.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let opened = open(format!("/proc/self/fd/{}", pinned.as_raw_fd()), flags, Mode::empty()).map_err(failed)?;
    let opened_stat = fstat(&opened).map_err(failed)?;
    let identity = |stat: &Stat| {
        (
            stat.st_dev,
            stat.st_ino,
            stat.st_uid,
            FileType::from_raw_mode(stat.st_mode),
        )
    };
    if identity(&opened_stat) != identity(&pinned_stat) {
        return Err(Failure::Refused(Refusal::Exchanged));
    }
    Ok(opened.into())
}

/// Returns true for a file of a kernel file system, which only looks regular. A process with its own mount namespace
/// can mount such a file system anywhere, and root may read its files. Reading can have side effects (`kmsg` and
/// `trace_pipe` consume the data for which other readers wait), and some of the files are the memory of the kernel.
fn is_of_kernel(pinned: &OwnedFd) -> bool {
    /// `PROC`, `SYSFS`, `DEBUGFS`, `TRACEFS`, `SECURITYFS`, `CGROUP`, `CGROUP2` and `BPF_FS_MAGIC` of linux/magic.h.
    const SYSTEMS: [u32; 8] = [
        0x9fa0,
        0x6265_6572,
        0x6462_6720,
        0x7472_6163,
        0x7363_6673,
        0x27_e0eb,
        0x6367_7270,
        0xcafe_4a11,
    ];
    fstatfs(pinned).is_ok_and(|system| SYSTEMS.contains(&(system.f_type as u32)))
}

/// Returns true if this is the file of the mapping. Without this check, a process that maps a file and then replaces
/// the file could supply names for the code of all processes that run the original file.
fn is_mapped(stat: &Stat, pinned: &OwnedFd, line: &MapsLine) -> bool {
    /// `BTRFS_SUPER_MAGIC` and `OVERLAYFS_SUPER_MAGIC` of linux/magic.h: their files have other devices in stat(2)
    /// than in maps.
    const OTHER_DEVICES: [u32; 2] = [0x9123_683e, 0x794c_7630];
    let device = (rustix::fs::major(stat.st_dev), rustix::fs::minor(stat.st_dev));
    let has_other = || fstatfs(pinned).is_ok_and(|system| OTHER_DEVICES.contains(&(system.f_type as u32)));
    stat.st_ino == line.inode && (device == line.device || has_other())
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Read};
    use std::os::unix::fs::{chown, symlink};
    use std::os::unix::net::UnixListener;
    use std::path::Path;
    use std::process::{Command, Stdio};
    use std::sync::atomic::AtomicBool;
    use std::sync::mpsc::channel;
    use std::time::Duration;

    use rustix::fs::{CWD, mkfifoat};

    use super::*;

    const OWN: ProcessKey = ProcessKey { pid: 0, start: 0 };

    fn own() -> ProcessKey {
        ProcessKey {
            pid: std::process::id(),
            ..OWN
        }
    }

    fn pipe(path: &Path) {
        mkfifoat(CWD, path, Mode::from_raw_mode(0o666)).unwrap();
    }

    /// Returns the result of `run`. Fails if it blocks.
    fn without_waiting<T: Send + 'static>(run: impl FnOnce() -> T + Send + 'static) -> T {
        let (sender, receiver) = channel();
        std::thread::spawn(move || sender.send(run()));
        receiver.recv_timeout(Duration::from_mins(1)).expect("the call blocks")
    }

    fn count(opener: &Opener, reason: Refusal) -> u64 {
        assert_eq!(
            opener.refused().iter().sum::<u64>(),
            opener.refused()[reason as usize],
            "files were refused for other reasons than {}",
            reason.name()
        );
        opener.refused()[reason as usize]
    }

    fn text(file: Option<File>) -> Option<String> {
        let mut text = String::new();
        file?.read_to_string(&mut text).unwrap();
        Some(text)
    }

    #[test]
    fn what_is_no_regular_file_is_passed_over_and_nobody_waits() {
        let folder = tempfile::tempdir().unwrap();
        let path_of = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
        pipe(Path::new(&path_of("pipe")));
        let _socket = UnixListener::bind(path_of("socket")).unwrap();
        std::fs::create_dir(path_of("folder")).unwrap();
        symlink(path_of("pipe"), path_of("link")).unwrap();
        let paths = [
            path_of("pipe"),
            path_of("socket"),
            path_of("folder"),
            path_of("link"),
            "/dev/zero".to_owned(),
            "/proc/version".to_owned(),
            "/sys/kernel/notes".to_owned(),
        ];
        let opener = Opener::new().unwrap();
        let (requested, checked_paths) = (opener.clone(), paths.clone());
        without_waiting(move || {
            for path in checked_paths {
                for root in [Root::Own, Root::Process(own())] {
                    assert!(
                        requested.open_at(root, &path, AllowedFile::FileOrLink, None).is_none(),
                        "{path}"
                    );
                }
            }
        });
        assert_eq!(count(&opener, Refusal::NotRegular), 2 * paths.len() as u64);
        // A missing file is not a refusal.
        assert!(
            opener
                .open_at(Root::Own, &path_of("none"), AllowedFile::File, None)
                .is_none()
        );
        assert_eq!(count(&opener, Refusal::NotRegular), 2 * paths.len() as u64);
    }

    #[test]
    fn files_of_other_users_and_links_where_none_may_be_are_passed_over() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("perf-1.map");
        let link = folder.path().join("perf-2.map");
        std::fs::write(&path, "1 1 a\n").unwrap();
        symlink(&path, &link).unwrap();
        chown(&path, Some(4711), None).unwrap();
        let (path, link) = (path.to_str().unwrap(), link.to_str().unwrap());
        let opener = Opener::default();
        for user in [None, Some(0), Some(4712)] {
            assert!(
                opener.open_at(Root::Own, path, AllowedFile::File, user).is_none(),
                "{user:?}"
            );
        }
        assert_eq!(count(&opener, Refusal::Owner), 3);
        assert!(opener.open_at(Root::Own, path, AllowedFile::File, Some(4711)).is_some());
        assert!(
            opener
                .open_at(Root::Own, link, AllowedFile::FileOrLink, Some(4711))
                .is_some()
        );
        let opener = Opener::default();
        assert!(opener.open_at(Root::Own, link, AllowedFile::File, Some(4711)).is_none());
        // The opener refuses magic links, because they can lead out of the root.
        let magic = format!("/proc/self/root{path}");
        assert!(
            opener
                .open_at(Root::Own, &magic, AllowedFile::FileOrLink, Some(4711))
                .is_none()
        );
        assert_eq!(count(&opener, Refusal::Link), 2);
    }

    #[test]
    fn what_is_exchanged_between_the_look_and_the_opening_is_not_opened() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, "good").unwrap();
        let pinned = pin_in(Root::Own, path.to_str().unwrap(), AllowedFile::File).unwrap();
        std::fs::remove_file(&path).unwrap();
        pipe(&path);
        let file = without_waiting(move || reopen(&pinned, |_, _| Ok(())));
        assert_eq!(text(file.ok()).as_deref(), Some("good"));

        // The opener never opens the pipe, even if another thread exchanges the files as fast as it can.
        let (other, spare) = (folder.path().join("other"), folder.path().join("beside"));
        std::fs::write(&other, "good").unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let swapper = std::thread::spawn({
            let (path, stop) = (path.clone(), stop.clone());
            move || {
                while !stop.load(Ordering::Relaxed) {
                    for (from, to) in [(&path, &spare), (&other, &path), (&path, &other), (&spare, &path)] {
                        std::fs::rename(from, to).unwrap();
                    }
                }
            }
        });
        let refused_count = without_waiting(move || {
            let opener = Opener::default();
            // On a busy machine it may take long until the other thread runs.
            for round in 0..1_000_000 {
                let file = opener.open_at(Root::Own, path.to_str().unwrap(), AllowedFile::File, None);
                assert!(file.is_none_or(|file| file.metadata().unwrap().is_file()));
                if round >= 20_000 && count(&opener, Refusal::NotRegular) > 0 {
                    break;
                }
            }
            count(&opener, Refusal::NotRegular)
        });
        stop.store(true, Ordering::Relaxed);
        swapper.join().unwrap();
        assert!(refused_count > 0, "the opener never reached the pipe");
    }

    #[test]
    fn a_mapping_is_the_file_that_was_mapped_or_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lib.so");
        std::fs::write(&path, "good").unwrap();
        let line = MapsLine::of_file(&path);
        let opener = Opener::default();
        assert_eq!(text(opener.open_mapped(own(), &line)).as_deref(), Some("good"));
        // Another device may have a file with the same inode number.
        let (major, minor) = line.device;
        let other_device = MapsLine {
            device: (major, minor + 1),
            ..line.clone()
        };
        assert!(opener.open_mapped(own(), &other_device).is_none());
        let other_inode = MapsLine {
            inode: line.inode + 1,
            ..line.clone()
        };
        assert!(opener.open_mapped(own(), &other_inode).is_none());
        assert_eq!(count(&opener, Refusal::Exchanged), 2);

        // The opener reads the file that a process has mapped, whatever file is at the path by now. It does not mistake
        // a later process with the same id for this process.
        let program = folder.path().join("program");
        std::fs::copy("/bin/sleep", &program).unwrap();
        let mut child = Command::new(&program).arg("600").spawn().unwrap();
        let mapped = || {
            let lines = crate::proc::executable_mappings(child.id()).unwrap();
            lines.into_iter().find(|line| line.path == program.to_str().unwrap())
        };
        let mut line = mapped();
        while line.is_none() {
            std::thread::yield_now();
            line = mapped();
        }
        let line = line.unwrap();
        std::fs::remove_file(&program).unwrap();
        pipe(&program);
        let key = ProcessKey {
            pid: child.id(),
            start: crate::proc::start(child.id()),
        };
        let later_process = ProcessKey {
            start: key.start + 1_000_000_000,
            ..key
        };
        let opener = Opener::default();
        let lengths = without_waiting({
            let (opener, line) = (opener.clone(), line.clone());
            move || {
                [key, later_process].map(|key| {
                    opener
                        .open_mapped(key, &line)
                        .map(|file| file.metadata().unwrap().len())
                })
            }
        });
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(lengths, [Some(std::fs::metadata("/bin/sleep").unwrap().len()), None]);
        assert_eq!(count(&opener, Refusal::NotRegular), 1);
    }

    #[test]
    fn a_link_leads_to_the_file_of_its_own_world() {
        let folder = tempfile::tempdir().unwrap();
        let path_of = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
        std::fs::write(path_of("secret"), "ours").unwrap();
        let script = "mount -t tmpfs none \"$0\" && cd \"$0\" && echo theirs > secret && ln -s \"$0/secret\" link \
                      && ln -s ../../../../../../../../../../\"$0/secret\" climbing && echo ready && exec sleep 600";
        let mut child = Command::new("unshare")
            .args(["-m", "sh", "-c", script])
            .arg(folder.path())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut output = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut output)
            .unwrap();
        assert_eq!(output, "ready\n");
        let root = Root::Process(ProcessKey { pid: child.id(), ..OWN });
        let opener = Opener::default();
        let contents =
            ["link", "climbing"].map(|name| text(opener.open_at(root, &path_of(name), AllowedFile::FileOrLink, None)));
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(contents, [Some("theirs\n".to_owned()), Some("theirs\n".to_owned())]);
        assert!(
            opener
                .open_at(root, &path_of("link"), AllowedFile::FileOrLink, None)
                .is_none(),
            "a file of an ended process was opened"
        );
    }
}
