//! Finds async-profiler's library on this machine.
//!
//! In: the argument `dist`, or nothing. Out: the bytes of the library and a name for its copy. Since version 3, one
//! build of the library serves both glibc and musl.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Name of the library in every package.
const NAME: &str = "libasyncProfiler.so";
/// Folders in which packages install the library: Debian's and Ubuntu's `libasync-profiler-jni`, other packages, and
/// async-profiler's own archive.
const PACKAGES: [&str; 7] = [
    "/usr/lib/jni",
    "/usr/lib64",
    "/usr/lib",
    "/usr/local/lib",
    "/opt/async-profiler/lib",
    "/usr/lib/x86_64-linux-gnu/jni",
    "/usr/lib/aarch64-linux-gnu/jni",
];
/// Size limit of the library file. The library has about 600 KB, so a larger file is something else.
const MAX_BYTES: u64 = 64 << 20;

/// async-profiler's library for this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Library {
    /// Name of the copy that the JVM loads. It contains a hash of the bytes: a JVM identifies a loaded library by its
    /// name, so a library with other bytes needs another name.
    pub name: String,
    pub bytes: Arc<[u8]>,
}

/// The reason why the library cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum LibraryError {
    #[error("there is no {NAME} in `{}` or in its folder `lib`", .0.display())]
    Missing(PathBuf),
    #[error("cannot read `{}`: {source}", path.display())]
    File { path: PathBuf, source: io::Error },
    #[error("`{}` has {length} bytes, but a library has at most {MAX_BYTES}", path.display())]
    TooLong { path: PathBuf, length: u64 },
    /// The file is not an ELF file.
    #[error("`{}` is not a library", .0.display())]
    NotALibrary(PathBuf),
}

/// Reads the library from the folder `lib` in `dist`, from the folder `dist`, or from the file `dist`.
pub(super) fn of_dist(dist: &str) -> Result<Library, LibraryError> {
    let dist = Path::new(dist);
    let candidates = [dist.join("lib").join(NAME), dist.join(NAME), dist.to_owned()];
    let path = candidates.iter().find(|candidate| candidate.is_file());
    let path = path.ok_or_else(|| LibraryError::Missing(dist.to_owned()))?;
    read(path)
}

/// Reads the library of an installed package. Returns `None` if no such package is installed.
pub(super) fn of_system() -> Option<Result<Library, LibraryError>> {
    let candidates = PACKAGES.iter().map(|folder| PathBuf::from(folder).join(NAME));
    let mut installed = candidates.filter(|candidate| candidate.is_file());
    installed.next().map(|path| read(&path))
}

fn read(path: &Path) -> Result<Library, LibraryError> {
    let owned = || path.to_owned();
    let failed = |source: io::Error| LibraryError::File { path: owned(), source };
    let length = std::fs::metadata(path).map_err(failed)?.len();
    if length > MAX_BYTES {
        return Err(LibraryError::TooLong { path: owned(), length });
    }
    let bytes = std::fs::read(path).map_err(failed)?;
    if !bytes.starts_with(b"\x7fELF") {
        return Err(LibraryError::NotALibrary(owned()));
    }
    let hash = xxhash_rust::xxh3::xxh3_64(&bytes);
    Ok(Library {
        name: format!("alluvium-{hash:016x}-{NAME}"),
        bytes: bytes.into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_library_is_found_in_a_distribution_in_a_folder_or_by_its_path() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
        let dist = folder.path().to_str().unwrap();
        let refused = || of_dist(dist).unwrap_err().to_string();
        assert!(refused().contains("there is no libasyncProfiler.so"));
        std::fs::write(path(NAME), b"text").unwrap();
        assert!(refused().contains("is not a library"));
        std::fs::write(path(NAME), b"\x7fELF1").unwrap();
        let library = of_dist(dist).unwrap();
        assert_eq!(of_dist(&path(NAME)).unwrap(), library);
        std::fs::create_dir(path("lib")).unwrap();
        std::fs::write(path("lib/libasyncProfiler.so"), b"\x7fELF2").unwrap();
        let other = of_dist(dist).unwrap();
        assert_ne!(other.name, library.name);
        assert_eq!(other.bytes.as_ref(), b"\x7fELF2");
    }
}
