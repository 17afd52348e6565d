//! Reads the profile files that users pass to commands. If `perf record` wrote a file, the module runs `perf script`,
//! which converts the file to text. Only `perf`, on a machine with the profiled programs, can map the addresses to
//! names.

use std::path::Path;
use std::process::Stdio;

use anyhow::{Context, bail};
use bytes::Bytes;
use tokio::fs::File;
use tokio::io::AsyncReadExt;
use tokio::process::Command;

/// First bytes of a file of `perf record`.
const PERF_DATA: &[u8] = b"PERFILE2";

/// Reads the file at `path`. Fails if it exceeds `max_bytes`. For a file of `perf record`, returns the text of `perf
/// script`; the limit then applies to this text, and the file may be larger.
pub(in crate::cli) async fn read(path: &Path, max_bytes: usize) -> anyhow::Result<Bytes> {
    let file = File::open(path).await.context("cannot read the file")?;
    let mut content = Vec::new();
    let mut start = file.take(PERF_DATA.len() as u64);
    start.read_to_end(&mut content).await.context("cannot read the file")?;
    if content == PERF_DATA {
        return perf_script("perf", path, max_bytes).await;
    }
    let mut rest = start.into_inner().take((max_bytes as u64).saturating_add(1));
    rest.read_to_end(&mut content).await.context("cannot read the file")?;
    if content.len() > max_bytes {
        bail!("the file exceeds {max_bytes} bytes");
    }
    Ok(content.into())
}

/// Returns the output of `perf script` for a file.
async fn perf_script(program: &str, path: &Path, max_bytes: usize) -> anyhow::Result<Bytes> {
    let mut child = Command::new(program)
        .args(["script", "--no-inline", "-i"])
        .arg(path)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .context("this is a file of `perf record`, but `perf script`, which converts it to text, cannot be started")?;
    let (Some(stdout), Some(mut stderr)) = (child.stdout.take(), child.stderr.take()) else {
        bail!("`perf script` has no output");
    };
    // Both pipes are read concurrently, because `perf` would block if one of them were full.
    let errors = tokio::spawn(async move {
        let mut errors = Vec::new();
        let _ = stderr.read_to_end(&mut errors).await;
        errors
    });
    let mut text = Vec::new();
    let limit = (max_bytes as u64).saturating_add(1);
    stdout
        .take(limit)
        .read_to_end(&mut text)
        .await
        .context("cannot read the output of `perf script`")?;
    if text.len() > max_bytes {
        bail!("the output of `perf script` exceeds {max_bytes} bytes");
    }
    let status = child.wait().await.context("cannot wait for `perf script`")?;
    if !status.success() {
        let errors = errors.await.unwrap_or_default();
        let errors = String::from_utf8_lossy(&errors);
        bail!("`perf script` cannot read the file: {}", errors.trim());
    }
    Ok(text.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_file_is_read_up_to_the_limit() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("folded");
        std::fs::write(&path, "main 1\nwork 2\n").unwrap();
        assert_eq!(read(&path, 14).await.unwrap(), "main 1\nwork 2\n");
        let error = read(&path, 13).await.unwrap_err().to_string();
        assert_eq!(error, "the file exceeds 13 bytes");
        std::fs::write(&path, "main").unwrap();
        assert_eq!(read(&path, 4).await.unwrap(), "main");
        // An endless file is read only up to the limit.
        let error = read(Path::new("/dev/zero"), 100).await.unwrap_err().to_string();
        assert_eq!(error, "the file exceeds 100 bytes");
    }

    #[tokio::test]
    async fn without_perf_a_file_of_it_is_an_error_that_says_so() {
        let error = perf_script("no-such-program", Path::new("x"), 9).await.unwrap_err();
        assert!(
            format!("{error:#}").starts_with("this is a file of `perf record`"),
            "{error:#}"
        );
    }

    #[tokio::test]
    async fn output_is_bounded_and_a_failure_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("script");
        std::fs::write(&path, "x").unwrap();
        // `true` prints nothing, `false` fails, and `echo` prints its arguments.
        assert_eq!(perf_script("true", &path, 9).await.unwrap(), "");
        let error = perf_script("false", &path, 9).await.unwrap_err().to_string();
        assert!(error.starts_with("`perf script` cannot read the file"), "{error}");
        let error = perf_script("echo", &path, 9).await.unwrap_err().to_string();
        assert_eq!(error, "the output of `perf script` exceeds 9 bytes");
    }
}
