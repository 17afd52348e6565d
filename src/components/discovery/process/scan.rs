//! Reads the wanted attributes of processes from `/proc`, see proc(5), and joins processes with containers.

use std::collections::{BTreeMap, HashMap};
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use crate::common::arguments::targets::Target;
use crate::common::discovery::identity::{CONTAINER_ID, PID, container_id};
use crate::discovery::process::arguments::ProcessLabels;
use alluvium_ebpf::proc::container_id_of;

/// Maximum number of bytes that are read from one file of a process. A limit is necessary, because a process may place
/// its command line anywhere in its memory, at any length. The value is the kernel's limit for one argument of a
/// command (MAX_ARG_STRLEN).
const MAX_TEXT: u64 = 128 << 10;

/// Returns the target of one process, or `None` if the process has ended or is a kernel thread.
pub(crate) fn target(
    proc: &Path,
    pid: u32,
    selection: &ProcessLabels,
    users: &HashMap<u32, Arc<str>>,
) -> Option<Target> {
    let folder = proc.join(pid.to_string());
    let link = |name: &str| {
        std::fs::read_link(folder.join(name))
            .ok()
            .map(|path| path.to_string_lossy().into_owned())
    };
    let text = |name: &str| {
        let mut bytes = Vec::new();
        let file = std::fs::File::open(folder.join(name)).ok()?;
        file.take(MAX_TEXT).read_to_end(&mut bytes).ok()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    };
    // Kernel threads have no executable.
    let exe = link("exe")?;
    let mut labels: Target = BTreeMap::new();
    let mut set = |name: &str, value: String| {
        if !value.is_empty() {
            labels.insert(name.into(), value.into());
        }
    };
    set(PID, pid.to_string());
    if selection.exe {
        set("__meta_process_exe", exe);
    }
    if selection.cwd {
        set("__meta_process_cwd", link("cwd").unwrap_or_default());
    }
    if selection.commandline {
        let line = text("cmdline").unwrap_or_default();
        set(
            "__meta_process_commandline",
            line.trim_end_matches('\0').replace('\0', " "),
        );
    }
    if selection.uid || selection.username {
        let uid = text("status").and_then(|status| uid_of(&status));
        if let Some(uid) = uid {
            if selection.uid {
                set("__meta_process_uid", uid.to_string());
            }
            if selection.username {
                set(
                    "__meta_process_username",
                    users.get(&uid).map(ToString::to_string).unwrap_or_default(),
                );
            }
        }
    }
    if selection.container_id || selection.cgroup_path {
        let cgroup = text("cgroup").unwrap_or_default();
        if selection.container_id {
            set(CONTAINER_ID, container_id_of(&cgroup).to_owned());
        }
        if selection.cgroup_path {
            set("__meta_process_cgroup_path", cgroup.trim_end().replace('\n', ";"));
        }
    }
    Some(labels)
}

/// Returns the real user ID from the text of `/proc/PID/status`.
fn uid_of(status: &str) -> Option<u32> {
    let line = status.lines().find_map(|line| line.strip_prefix("Uid:"))?;
    line.split_whitespace().next()?.parse().ok()
}

/// Returns the names of users by their IDs, from the text of a passwd(5) file.
pub(crate) fn users(passwd: &str) -> HashMap<u32, Arc<str>> {
    passwd
        .lines()
        .filter_map(|line| {
            let mut fields = line.split(':');
            let name = fields.next()?;
            let uid = fields.nth(1)?.parse().ok()?;
            Some((uid, Arc::from(name)))
        })
        .collect()
}

/// Adds to each process the labels of the container with the same container ID. The labels of the process take
/// precedence. A process that matches several containers becomes one target for each of them. Processes and containers
/// without a match stay unchanged, as in Alloy.
pub(crate) fn join(processes: Vec<Target>, others: &[Target]) -> Vec<Target> {
    let mut by_container: HashMap<Arc<str>, Vec<usize>> = HashMap::new();
    for (index, other) in others.iter().enumerate() {
        if let Some(id) = container_id(other) {
            by_container.entry(id).or_default().push(index);
        }
    }
    let mut matched = vec![false; others.len()];
    let mut joined = Vec::with_capacity(processes.len());
    for process in processes {
        let partners = container_id(&process).and_then(|id| by_container.get(&id));
        match partners {
            None => joined.push(process),
            Some(partners) => {
                for index in partners {
                    matched[*index] = true;
                    let mut labels = others[*index].clone();
                    labels.extend(process.iter().map(|(name, value)| (name.clone(), value.clone())));
                    joined.push(labels);
                }
            }
        }
    }
    joined.extend(
        others
            .iter()
            .zip(matched)
            .filter(|(_, matched)| !matched)
            .map(|(other, _)| other.clone()),
    );
    joined
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(pairs: &[(&str, &str)]) -> Target {
        pairs
            .iter()
            .map(|(name, value)| ((*name).into(), (*value).into()))
            .collect()
    }

    #[test]
    fn our_own_process_is_found_with_what_is_asked_for() {
        let own = std::process::id();
        let proc = Path::new("/proc");
        assert!(alluvium_ebpf::proc::pids().unwrap().contains(&own));
        let all = ProcessLabels {
            exe: true,
            cwd: true,
            commandline: true,
            container_id: true,
            username: true,
            uid: true,
            cgroup_path: true,
        };
        let labels = target(proc, own, &all, &users("root:x:0:0::/root:/bin/sh\nme:x:12:3:::\n")).unwrap();
        assert_eq!(labels[PID].as_ref(), own.to_string());
        assert!(labels["__meta_process_exe"].contains("alluvium"));
        assert!(labels.contains_key("__meta_process_cwd"));
        assert!(labels.contains_key("__meta_process_uid"));
        let no_labels = ProcessLabels {
            exe: false,
            cwd: false,
            commandline: false,
            container_id: false,
            username: false,
            uid: false,
            cgroup_path: false,
        };
        assert_eq!(target(proc, own, &no_labels, &HashMap::new()).unwrap().len(), 1);
    }

    #[test]
    fn processes_get_the_labels_of_their_container_and_the_rest_stays() {
        let processes = vec![
            labels(&[(PID, "1"), (CONTAINER_ID, "abc")]),
            labels(&[(PID, "2"), ("pod", "mine"), (CONTAINER_ID, "abc")]),
            labels(&[(PID, "3")]),
        ];
        let others = [
            labels(&[
                ("__meta_kubernetes_pod_container_id", "containerd://abc"),
                ("pod", "shop"),
            ]),
            labels(&[("__meta_docker_container_id", "def"), ("pod", "other")]),
        ];
        let joined = join(processes, &others);
        let shortened: Vec<_> = joined
            .iter()
            .map(|target| (target.get(PID).map(AsRef::as_ref), target.get("pod").map(AsRef::as_ref)))
            .collect();
        assert_eq!(
            shortened,
            [
                (Some("1"), Some("shop")),
                (Some("2"), Some("mine")),
                (Some("3"), None),
                (None, Some("other"))
            ]
        );
    }
}
