//! Finds source files by the paths in a profile, as `go tool pprof` finds them.
//!
//! In: a path, perhaps of another machine. Out: the content of the file, or pprof's message if it does not exist.

use std::io;
use std::io::{ErrorKind, Read};

use alluvium_profile::report::{SourcePaths, clean, folders};

/// Maximum number of bytes to read of a source file.
const MAX_BYTES: u64 = 64 << 20;

/// The reason why a source file cannot be read. The texts are those of pprof.
#[derive(Debug, thiserror::Error)]
pub(in crate::cli) enum SourceFileError {
    #[error("open {path}: {source}")]
    Open { path: String, source: OpenError },
    #[error("could not find file {path} on path {search}")]
    NotFound { path: String, search: String },
}

/// The reason why a file cannot be opened.
#[derive(Debug, thiserror::Error)]
pub(in crate::cli) enum OpenError {
    #[error("{}", reason(.0))]
    File(#[from] io::Error),
    #[error("not a regular file")]
    NotRegular,
}

/// Reads the file at `path`, which a profile names. An absolute path is used unchanged; a relative path is looked up in
/// the search folders and their parents.
pub(in crate::cli) fn read(path: &str, paths: &SourcePaths) -> Result<Vec<u8>, SourceFileError> {
    let path = paths.trimmed(path);
    if path.starts_with('/') {
        return open(path).map_err(|source| SourceFileError::Open {
            path: path.to_owned(),
            source,
        });
    }
    for folder in folders(&paths.search) {
        let mut folder = folder.to_owned();
        loop {
            let file = match folder.as_str() {
                "" => clean(path).into_owned(),
                folder => clean(&format!("{folder}/{path}")).into_owned(),
            };
            if let Ok(content) = open(&file) {
                return Ok(content);
            }
            let above = above(&folder);
            if above == folder {
                break;
            }
            folder = above;
        }
    }
    Err(SourceFileError::NotFound {
        path: path.to_owned(),
        search: paths.search.clone(),
    })
}

/// Returns the parent folder of a path, as Go's `filepath.Dir` does.
fn above(path: &str) -> String {
    let end = path.rfind('/').map_or(0, |slash| slash + 1);
    clean(&path[..end]).into_owned()
}

/// Returns the content of a file, or no bytes for a folder. Devices and pipes are not opened, because reading them
/// might not end.
fn open(path: &str) -> Result<Vec<u8>, OpenError> {
    let kind = std::fs::metadata(path)?;
    if kind.is_dir() {
        return Ok(Vec::new());
    }
    if !kind.is_file() {
        return Err(OpenError::NotRegular);
    }
    let mut content = Vec::new();
    let file = std::fs::File::open(path)?;
    file.take(MAX_BYTES).read_to_end(&mut content)?;
    Ok(content)
}

/// Returns the text of an error in Go's wording.
fn reason(error: &io::Error) -> String {
    match error.kind() {
        ErrorKind::NotFound => "no such file or directory".to_owned(),
        ErrorKind::PermissionDenied => "permission denied".to_owned(),
        _ => {
            let text = error.to_string().to_lowercase();
            text.split(" (os error").next().unwrap_or_default().to_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_found_in_the_folders_and_above_them_or_the_error_is_that_of_pprof() {
        let scratch = tempfile::tempdir().unwrap();
        let root = scratch.path().to_str().unwrap();
        std::fs::create_dir_all(format!("{root}/shop/cart")).unwrap();
        std::fs::write(format!("{root}/shop/cart/a.go"), "a").unwrap();
        let read = |path: &str, search: &str, trim: &str| {
            let paths = SourcePaths {
                search: search.replace('~', root),
                trim: trim.to_owned(),
            };
            read(path, &paths).map_err(|error| error.to_string())
        };
        let content = Ok(b"a".to_vec());
        assert_eq!(read("cart/a.go", "/nowhere:~/shop", ""), content);
        assert_eq!(read("cart/a.go", "~/shop/cart", ""), content);
        assert_eq!(read("/build/shop/cart/a.go", "~/shop", ""), content);
        assert_eq!(read("/build/cart/a.go", "~/shop", "/build"), content);
        assert_eq!(read("cart", "~/shop", ""), Ok(Vec::new()));
        assert_eq!(
            read("/none/a.go", "/nowhere", ""),
            Err("open /none/a.go: no such file or directory".to_owned())
        );
        assert_eq!(
            read("b.go", "/nowhere", ""),
            Err("could not find file b.go on path /nowhere".to_owned())
        );
        assert_eq!(
            read("/dev/zero", "", ""),
            Err("open /dev/zero: not a regular file".to_owned())
        );
    }

    #[test]
    fn the_folder_above_is_that_of_go() {
        for (path, expected) in [
            ("/a/b", "/a"),
            ("/a", "/"),
            ("/", "/"),
            ("a", "."),
            (".", "."),
            ("", "."),
        ] {
            assert_eq!(above(path), expected, "{path}");
        }
    }
}
