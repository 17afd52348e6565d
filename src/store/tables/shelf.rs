//! Settings and uploaded files that users store beside their profiles, by tenant.
//!
//! In: names and bytes. Out: the same bytes, also after a crash. On a local disk an item is a file `kept/TENANT/NAME`
//! of the data folder, which is replaced atomically. In a bucket an item is an object with the name `kept/TENANT/NAME`
//! beside the tables. The program chooses the names, never a user. All operations block.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;

use crate::store::common::error::StoreError;
use crate::store::tables::bucket::Bucket;
use crate::store::tables::root::Root;
use alluvium_base::file::{replace, sync_parent};
use alluvium_profile::TenantId;

/// The folder that holds the items of all tenants.
const FOLDER: &str = "kept";

/// Stores items of tenants. Clones share the items.
#[derive(Debug, Clone)]
pub struct Shelf(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    storage: ShelfStorage,
    /// Held by [`Shelf::exclusively`] while its `work` runs.
    changing: Mutex<()>,
}

#[derive(Debug)]
enum ShelfStorage {
    Folder(PathBuf),
    Bucket(Arc<Bucket>),
}

/// The name and size of an item on the shelf.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShelfItem {
    /// Last part of the item's name, without its folder.
    pub name: String,
    /// Size of the item in bytes.
    pub size: u64,
}

impl Shelf {
    /// Creates the shelf of a data folder, or of the bucket that holds its tables.
    pub(crate) fn new(dir: &Path, root: &Root) -> Self {
        let storage = match root.bucket() {
            Some(bucket) => ShelfStorage::Bucket(bucket.clone()),
            None => ShelfStorage::Folder(dir.to_owned()),
        };
        let changing = Mutex::default();
        Self(Arc::new(Inner { storage, changing }))
    }

    /// Returns the items of a tenant in a folder, ascending by name.
    pub fn list(&self, tenant: &TenantId, folder: &str) -> Result<Vec<ShelfItem>, StoreError> {
        let path = format!("{FOLDER}/{tenant}/{folder}");
        let items = match &self.0.storage {
            ShelfStorage::Folder(dir) => list_folder(&dir.join(&path)),
            ShelfStorage::Bucket(bucket) => bucket.list(&path).map(|items| {
                let shelf_items = items.into_iter().filter_map(|object| {
                    let (_, name) = object.path.rsplit_once('/')?;
                    Some(ShelfItem {
                        name: name.to_owned(),
                        size: object.size,
                    })
                });
                shelf_items.collect()
            }),
        };
        let mut items: Vec<ShelfItem> = items.map_err(StoreError::io("list", &self.full_name(&path)))?;
        items.sort_unstable_by(|left, right| left.name.cmp(&right.name));
        Ok(items)
    }

    /// Returns the bytes of an item, or `None` if no item has the name.
    pub fn read(&self, tenant: &TenantId, name: &str) -> Result<Option<Vec<u8>>, StoreError> {
        let path = format!("{FOLDER}/{tenant}/{name}");
        let read = match &self.0.storage {
            ShelfStorage::Folder(dir) => fs::read(dir.join(&path)),
            ShelfStorage::Bucket(bucket) => bucket.read(&path).map(Vec::from),
        };
        match read {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(StoreError::io("read", &self.full_name(&path))(error)),
        }
    }

    /// Stores an item, or replaces the item of the same name. The item is durable when the function returns.
    pub fn write(&self, tenant: &TenantId, name: &str, bytes: &[u8]) -> Result<(), StoreError> {
        let path = format!("{FOLDER}/{tenant}/{name}");
        let written = match &self.0.storage {
            ShelfStorage::Folder(dir) => write_file(dir, &dir.join(&path), bytes),
            ShelfStorage::Bucket(bucket) => bucket.put(&path, bytes.to_vec()),
        };
        written.map_err(StoreError::io("write", &self.full_name(&path)))
    }

    /// Removes an item. A missing item is not an error.
    pub fn remove(&self, tenant: &TenantId, name: &str) -> Result<(), StoreError> {
        let path = format!("{FOLDER}/{tenant}/{name}");
        let removed = match &self.0.storage {
            ShelfStorage::Folder(dir) => {
                let file = dir.join(&path);
                fs::remove_file(&file).and_then(|()| sync_parent(&file))
            }
            ShelfStorage::Bucket(bucket) => bucket.remove(&path),
        };
        match removed {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(StoreError::io("remove", &self.full_name(&path))(error))
            }
            _ => Ok(()),
        }
    }

    /// Runs `work` while no other call of this function runs in this process. No such call can change an item between
    /// the reads and writes of `work`.
    pub fn exclusively<T>(&self, work: impl FnOnce() -> T) -> T {
        let _changing = self.0.changing.lock();
        work()
    }

    fn full_name(&self, path: &str) -> PathBuf {
        match &self.0.storage {
            ShelfStorage::Folder(dir) => dir.join(path),
            ShelfStorage::Bucket(bucket) => PathBuf::from(format!("{}{path}", bucket.url())),
        }
    }
}

fn list_folder(folder: &Path) -> io::Result<Vec<ShelfItem>> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut items = Vec::new();
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        // Names that start with a dot belong to files that are being written.
        if !name.starts_with('.') {
            let size = entry.metadata()?.len();
            items.push(ShelfItem { name, size });
        }
    }
    Ok(items)
}

/// Writes a file below `dir`. Missing folders are created, and are durable too.
fn write_file(dir: &Path, file: &Path, bytes: &[u8]) -> io::Result<()> {
    if let Some(folder) = file.parent()
        && !folder.exists()
    {
        fs::create_dir_all(folder)?;
        for ancestor in folder.ancestors().take_while(|ancestor| *ancestor != dir) {
            sync_parent(ancestor)?;
        }
    }
    replace(file, bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_found_again_by_its_tenant_alone() {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::from(dir.path());
        let (one, two): (TenantId, TenantId) = ("one".parse().unwrap(), "two".parse().unwrap());
        let shelf = Shelf::new(dir.path(), &root);
        assert_eq!(shelf.read(&one, "a").unwrap(), None);
        assert_eq!(shelf.list(&one, "files").unwrap(), []);
        shelf.write(&one, "files/b", b"first").unwrap();
        shelf.write(&one, "files/b", b"second").unwrap();
        shelf.write(&one, "files/a", b"").unwrap();
        let reopened = Shelf::new(dir.path(), &root);
        assert_eq!(reopened.read(&one, "files/b").unwrap().unwrap(), b"second");
        assert_eq!(reopened.read(&two, "files/b").unwrap(), None);
        let item = |name: &str, size| ShelfItem {
            name: name.to_owned(),
            size,
        };
        assert_eq!(reopened.list(&one, "files").unwrap(), [item("a", 0), item("b", 6)]);
        reopened.remove(&one, "files/b").unwrap();
        reopened.remove(&one, "files/b").unwrap();
        assert_eq!(reopened.list(&one, "files").unwrap(), [item("a", 0)]);
    }
}
