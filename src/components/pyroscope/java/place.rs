//! Accesses folders of another process, as that process sees them and with the rights of its user.
//!
//! The process controls the content of these folders. Therefore a path is resolved within the root of the process and
//! never through a magic link. The thread that accesses a folder has only the rights of the process's user.

use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags, fstat, openat, openat2, unlinkat};
use rustix::io::Errno;
use rustix::process::{getegid, geteuid};
use rustix::thread::{Gid, Uid, set_thread_groups, set_thread_res_gid, set_thread_res_uid};

use crate::pyroscope::java::jvm::Jvm;

/// Calls `run` with the rights of the process's user, on a new thread, because Linux keeps rights per thread.
pub(super) fn as_user<T: Send>(jvm: &Jvm, run: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new()
            .name("java-attach".to_owned())
            .spawn_scoped(scope, || {
                become_user(jvm)?;
                run()
            })?;
        thread
            .join()
            .unwrap_or_else(|_| Err(io::Error::other("the thread that attaches to the process panicked")))
    })
}

fn become_user(jvm: &Jvm) -> io::Result<()> {
    let (user, group) = (Uid::from_raw(jvm.user), Gid::from_raw(jvm.group));
    if geteuid() == user && getegid() == group {
        return Ok(());
    }
    // The groups are changed first, because only root may change them.
    let changed = set_thread_groups(&[])
        .and_then(|()| set_thread_res_gid(group, group, group))
        .and_then(|()| set_thread_res_uid(user, user, user));
    changed.map_err(|_| {
        let (own_user, other_user) = (geteuid().as_raw(), jvm.user);
        let message = format!(
            "it runs as user {other_user}, the collector as user {own_user}: run the collector as root or as \
                 user {other_user}"
        );
        io::Error::new(io::ErrorKind::PermissionDenied, message)
    })
}

/// A folder of another process.
pub(super) struct ProcessFolder {
    folder: OwnedFd,
}

const WITHIN: ResolveFlags = ResolveFlags::IN_ROOT.union(ResolveFlags::NO_MAGICLINKS);
const FOLDER: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

impl ProcessFolder {
    /// Opens the folder at `path`, as the process sees it.
    pub(super) fn open(jvm: &Jvm, path: &str) -> io::Result<Self> {
        let root = openat(CWD, format!("/proc/{}/root", jvm.key.pid), FOLDER, Mode::empty())?;
        jvm.key.check()?;
        let folder = openat2(&root, path, FOLDER, Mode::empty(), WITHIN)?;
        Ok(Self { folder })
    }

    /// Writes a file and replaces an existing file of this name.
    pub(super) fn put(&self, name: &str, bytes: &[u8], mode: Mode) -> io::Result<()> {
        self.remove(name)?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = openat(&self.folder, name, flags, mode)?;
        let mut file = std::fs::File::from(file);
        let written = file.write_all(bytes);
        if written.is_err() {
            self.remove(name)?;
        }
        written
    }

    /// Reads a regular file of at most `max_bytes`.
    pub(super) fn read(&self, name: &str, max_bytes: u64) -> io::Result<Vec<u8>> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = std::fs::File::from(openat(&self.folder, name, flags, Mode::empty())?);
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Err(io::Error::other("it is not a regular file"));
        }
        let mut bytes = Vec::new();
        file.take(max_bytes + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > max_bytes {
            return Err(io::Error::other(format!("it has more than {max_bytes} bytes")));
        }
        Ok(bytes)
    }

    /// Removes a file if it exists.
    pub(super) fn remove(&self, name: &str) -> io::Result<()> {
        match unlinkat(&self.folder, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Opens the socket `name`. Returns `None` if no such file exists.
    pub(super) fn socket(&self, name: &str) -> io::Result<Option<Socket>> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let pinned = match openat(&self.folder, name, flags, Mode::empty()) {
            Ok(pinned) => pinned,
            Err(Errno::NOENT) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        if FileType::from_raw_mode(fstat(&pinned)?.st_mode) != FileType::Socket {
            return Err(io::Error::other(format!("`{name}` of the process is not a socket")));
        }
        Ok(Some(Socket(pinned)))
    }
}

/// A descriptor of a socket file. It refers to the same socket even if the process replaces the file.
pub(super) struct Socket(OwnedFd);

impl Socket {
    /// Returns the path to connect to. It is valid while this value lives.
    pub(super) fn path(&self) -> String {
        format!("/proc/self/fd/{}", self.0.as_raw_fd())
    }
}
