//! Limits on the number of file descriptors for the process, for its connections, and for untrusted files.
//!
//! Connections and files share the descriptors. A server without a free descriptor cannot write to its tables, so
//! connections may use only half of the descriptors.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Maximum to which the soft limit is raised. The process never needs more. A higher limit would slow down child
/// processes: they inherit the limit, and some programs close every descriptor up to the limit, one by one.
const MAX_SOFT_LIMIT: u64 = 1 << 16;

/// Raises the soft limit of the process to its hard limit, but to at most [`MAX_SOFT_LIMIT`]. The usual soft limit of
/// 1,024 exists for programs that call select(2), which cannot handle larger descriptors.
pub fn raise_limit() {
    let limit = getrlimit(Resource::Nofile);
    let Some(soft_limit) = raised_limit(limit) else { return };
    let raised = Rlimit {
        current: Some(soft_limit),
        maximum: limit.maximum,
    };
    if let Err(error) = setrlimit(Resource::Nofile, raised) {
        tracing::debug!(error = %error, "cannot raise the open file limit");
    }
}

/// Returns the new soft limit, or `None` if the present limit is already high enough.
fn raised_limit(limit: Rlimit) -> Option<u64> {
    let max = limit
        .maximum
        .map_or(MAX_SOFT_LIMIT, |maximum| maximum.min(MAX_SOFT_LIMIT));
    limit.current.is_some_and(|current| current < max).then_some(max)
}

/// Returns the maximum number of connections of a listener: `max`, but at most half of the process's descriptors.
pub fn connection_limit(max: usize) -> usize {
    share(max, getrlimit(Resource::Nofile).current)
}

/// Returns the maximum number of open untrusted files: `max`, but at most a quarter of the process's descriptors.
pub fn untrusted_file_limit(max: usize) -> usize {
    share(max, getrlimit(Resource::Nofile).current.map(|limit| limit / 2))
}

fn share(max: usize, limit: Option<u64>) -> usize {
    let limit = limit.and_then(|limit| usize::try_from(limit).ok());
    max.min(limit.unwrap_or(usize::MAX) / 2).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_raised_as_far_as_it_may_and_never_lowered() {
        let raised = |current, maximum| raised_limit(Rlimit { current, maximum });
        assert_eq!(raised(Some(1024), Some(4096)), Some(4096));
        assert_eq!(raised(Some(1024), Some(1 << 19)), Some(MAX_SOFT_LIMIT));
        assert_eq!(raised(Some(1024), None), Some(MAX_SOFT_LIMIT));
        assert_eq!(raised(Some(1 << 19), Some(1 << 20)), None);
        assert_eq!([raised(None, None), raised(Some(256), Some(256))], [None, None]);
    }

    #[test]
    fn connections_leave_half_of_the_descriptors_to_files() {
        assert_eq!(share(4096, Some(1024)), 512);
        assert_eq!(share(4096, Some(1 << 20)), 4096);
        assert_eq!(share(4096, None), 4096);
        assert_eq!([share(0, None), share(4096, Some(1))], [1, 1]);
    }
}
