//! Reads information about processes from `/proc` (proc(5)): executable mappings, program, container.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};

/// Maximum number of bytes read from a list of mappings: 65,530 mappings, the default maximum of a process, with
/// paths of 500 bytes.
const MAX_MAPS: u64 = 32 << 20;
/// Maximum number of bytes read from any other file.
const MAX_TEXT: u64 = 64 << 10;

/// Identity of a process. Ids are reused, but start times are not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ProcessKey {
    pub pid: u32,
    /// Start on CLOCK_BOOTTIME in nanoseconds; 0 if unknown.
    pub start: u64,
}

impl ProcessKey {
    /// Fails if the process has ended. On success, every file below `/proc/PID` that the caller has already opened
    /// belongs to this process.
    pub fn check(self) -> io::Result<()> {
        let current_start = start(self.pid);
        // `/proc` has a resolution of a hundredth of a second.
        if current_start == 0 || (self.start != 0 && current_start / TICK != self.start / TICK) {
            return Err(rustix::io::Errno::SRCH.into());
        }
        Ok(())
    }
}

/// Nanoseconds of the time unit of `/proc/PID/stat`. USER_HZ is 100 on all supported systems.
const TICK: u64 = 10_000_000;

/// Returns the ids of all processes.
pub fn pids() -> io::Result<Vec<u32>> {
    Ok(std::fs::read_dir("/proc")?
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .collect())
}

/// An executable mapping from a line of `/proc/PID/maps`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MapsLine {
    pub start: u64,
    /// End address (exclusive).
    pub end: u64,
    pub offset: u64,
    /// Device, as major and minor number.
    pub device: (u32, u32),
    /// Inode; 0 if there is no file.
    pub inode: u64,
    /// Path as the process sees it, or a name such as `[vdso]`; may be empty.
    pub path: String,
}

#[cfg(test)]
impl MapsLine {
    /// Creates the line of `/proc/PID/maps` for a process that has mapped the first page of this file.
    pub(crate) fn of_file(path: &std::path::Path) -> Self {
        use std::os::unix::fs::MetadataExt;

        let data = std::fs::metadata(path).unwrap();
        Self {
            start: 0x1000,
            end: 0x2000,
            offset: 0,
            device: (rustix::fs::major(data.dev()), rustix::fs::minor(data.dev())),
            inode: data.ino(),
            path: path.to_str().unwrap().to_owned(),
        }
    }
}

/// Returns the executable mappings of a process, sorted by address.
pub fn executable_mappings(pid: u32) -> io::Result<Vec<MapsLine>> {
    parse_maps(BufReader::new(File::open(format!("/proc/{pid}/maps"))?.take(MAX_MAPS)))
}

fn parse_maps(mut maps: impl BufRead) -> io::Result<Vec<MapsLine>> {
    let mut lines = Vec::new();
    let mut line = Vec::new();
    while maps.read_until(b'\n', &mut line)? > 0 {
        let text = String::from_utf8_lossy(&line);
        lines.extend(parse_line(text.trim_end_matches('\n')));
        line.clear();
    }
    Ok(lines)
}

/// Reads a text file of a process, at most [`MAX_TEXT`] bytes. Invalid UTF-8 is replaced, because a process can give
/// itself any name.
fn text(pid: u32, name: &str) -> io::Result<String> {
    let mut bytes = Vec::new();
    File::open(format!("/proc/{pid}/{name}"))?
        .take(MAX_TEXT)
        .read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn parse_line(line: &str) -> Option<MapsLine> {
    let mut parts = line.splitn(6, ' ');
    let (start, end) = parts.next()?.split_once('-')?;
    if parts.next()?.as_bytes().get(2) != Some(&b'x') {
        return None;
    }
    let hex = |text: &str| u64::from_str_radix(text, 16).ok();
    let offset = hex(parts.next()?)?;
    let (major, minor) = parts.next()?.split_once(':')?;
    let inode = parts.next()?.parse().ok()?;
    let path = parts.next().unwrap_or_default().trim_start();
    Some(MapsLine {
        start: hex(start)?,
        end: hex(end)?,
        offset,
        device: (
            u32::from_str_radix(major, 16).ok()?,
            u32::from_str_radix(minor, 16).ok()?,
        ),
        inode,
        path: path.strip_suffix(" (deleted)").unwrap_or(path).to_owned(),
    })
}

/// Returns the path of the program. It is empty for kernel threads and if it cannot be read.
pub fn executable(pid: u32) -> String {
    std::fs::read_link(format!("/proc/{pid}/exe"))
        .map(|path| {
            let path = path.to_string_lossy();
            path.strip_suffix(" (deleted)").unwrap_or(&path).to_owned()
        })
        .unwrap_or_default()
}

/// Returns the id of the parent process, or `None` if the process has ended.
pub fn parent(pid: u32) -> Option<u32> {
    let stat = text(pid, "stat").ok()?;
    // The name, in parentheses, may contain any characters.
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_whitespace().nth(1)?.parse().ok()
}

/// Returns the name of the main thread.
pub(crate) fn comm(pid: u32) -> String {
    text(pid, "comm")
        .map(|text| text.trim_end().to_owned())
        .unwrap_or_default()
}

/// Returns the start of a process on CLOCK_BOOTTIME in nanoseconds, with a resolution of a hundredth of a second.
/// Returns 0 if the process has ended.
pub fn start(pid: u32) -> u64 {
    let read = || {
        let text = text(pid, "stat").ok()?;
        // The name in the second field may contain any characters. The third field follows its last parenthesis.
        let (_, rest) = text.rsplit_once(')')?;
        let ticks: u64 = rest.split_whitespace().nth(19)?.parse().ok()?;
        ticks.checked_mul(TICK)
    };
    read().unwrap_or(0)
}

/// Returns the id of the container in which a process runs, from any line of its cgroup file. The id is empty without
/// a container.
pub(crate) fn container_id(pid: u32) -> String {
    text(pid, "cgroup")
        .map(|text| container_id_of(&text).to_owned())
        .unwrap_or_default()
}

/// Returns the container id in the first line of a cgroup file that contains one. If the line contains several ids,
/// returns the last, innermost id. An id is 64 hexadecimal digits between other characters (`/docker/ID`,
/// `cri-containerd-ID.scope`, `/kubepods/.../ID`).
pub fn container_id_of(cgroup: &str) -> &str {
    for line in cgroup.lines() {
        let container_id = line
            .rsplit(|char: char| !char.is_ascii_hexdigit())
            .find(|part| part.len() == 64);
        if let Some(id) = container_id {
            return id;
        }
    }
    ""
}

/// Returns the id of a process in its own namespace. In a container, this id differs from `pid`, the id on the host.
/// The name of a perf map contains this id. If the id cannot be read, returns `pid`.
pub fn namespaced_pid(pid: u32) -> u32 {
    let read = || {
        let status = text(pid, "status").ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("NSpid:"))?;
        line.split_whitespace().next_back()?.parse().ok()
    };
    read().unwrap_or(pid)
}

/// Returns the user that owns the files that a process creates (its file system user id), or `None` if the process
/// has ended.
pub fn user(pid: u32) -> Option<u32> {
    let status = text(pid, "status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("Uid:"))?;
    line.split_whitespace().nth(3)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn executable_lines_are_read_with_spaces_and_deleted_marks() {
        let text = "00400000-00452000 r-xp 00001000 08:02 173521                             /usr/bin/my prog\n\
                    00651000-00652000 r--p 00051000 08:02 173521                             /usr/bin/my prog\n\
                    7f0000000000-7f0000001000 rwxp 00000000 00:00 0 \n\
                    7fff1000-7fff2000 r-xp 00000000 00:00 0                                  [vdso]\n\
                    7fff3000-7fff4000 r-xp 00000000 00:1a 12                                 /memfd:x (deleted)\n";
        let lines = parse_maps(text.as_bytes()).unwrap();
        let columns: Vec<_> = lines
            .iter()
            .map(|line| (line.start, line.inode, line.path.as_str()))
            .collect();
        assert_eq!(
            columns,
            [
                (0x40_0000, 173_521, "/usr/bin/my prog"),
                (0x7f00_0000_0000, 0, ""),
                (0x7fff_1000, 0, "[vdso]"),
                (0x7fff_3000, 12, "/memfd:x")
            ]
        );
        assert_eq!(lines[3].device, (0, 0x1a));
    }

    #[test]
    fn a_process_is_told_apart_from_a_later_one_with_its_id() {
        let pid = std::process::id();
        let start = start(pid);
        let key = |start| ProcessKey { pid, start };
        assert!(start > 0);
        assert!(key(start + TICK / 2).check().is_ok() && key(0).check().is_ok());
        assert!(key(start - TICK).check().is_err());
        let missing_process = ProcessKey {
            pid: u32::MAX,
            start: 0,
        };
        assert!(missing_process.check().is_err());
    }

    #[test]
    fn every_form_of_a_container_id_is_found() {
        let id = "0123456789abcdef".repeat(4);
        for line in [
            format!("12:pids:/docker/{id}"),
            format!("0::/system.slice/docker-{id}.scope"),
            format!("0::/kubepods.slice/kubepods-pod1.slice/cri-containerd-{id}.scope"),
            format!("4:cpu:/\n3:memory:/kubepods/besteffort/pod12/{id}\n0::/"),
        ] {
            assert_eq!(container_id_of(&line), id, "{line}");
        }
        assert_eq!(container_id_of("0::/user.slice/user-1000.slice"), "");
    }
}
