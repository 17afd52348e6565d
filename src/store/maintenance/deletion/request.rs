//! Deletion of profiles by selector: the request, which is kept on disk until it is carried out, and the jobs that
//! carry it out.
//!
//! A request covers the profiles that were acknowledged before it. The store first flushes its memory. The request then
//! lists the live files that may hold selected profiles, so that a retry, however late, deletes no later profile. The
//! list cannot be longer than the list of live files, which the server holds in memory anyway. Until the request is
//! carried out, no other job of this server rewrites the listed files. The request is written and synced before any
//! file is rewritten. So after a crash the next start finishes the deletion, and no deletion stays half done. Frames
//! and labels stay until retention deletes their day.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value, json};
use xxhash_rust::xxh3::xxh3_64;

use crate::store::common::error::StoreError;
use crate::store::common::fault::{FaultPoint, Faults};
use crate::store::common::schema::Table;
use crate::store::flush::files::FileName;
use crate::store::maintenance::deletion::deletion_error::DeletionError;
use crate::store::maintenance::merge::input::Input;
use crate::store::maintenance::merge::rewrite::{Change, Job, MergedName, Selection};
use crate::store::maintenance::merge::series::each_series;
use crate::store::tables::root::Root;
use crate::store::tables::snapshot::FileEntry;
use alluvium_base::file::{replace_by, sync_parent};
use alluvium_profile::selector::{self, Matcher};
use alluvium_profile::{ProfileTypeId, TenantId, TimeSpan};

/// Key of the checksum in a request.
const CHECKSUM: &str = "xxh3";
/// Key of the field [`Deletion::mixed`]. If the field is `None`, the request does not contain the key.
const MIXED: &str = "mixed";
/// All keys of a request except its checksum.
const KEYS: [&str; 8] = [
    "tenant", "selector", "from_us", "until_us", "segment", "others", "files", MIXED,
];

/// Returns the folder of a file. The path of the folder contains the table, the tenant and the day.
pub(crate) fn folder_of(path: &str) -> Option<&str> {
    path.rsplit_once('/').map(|(folder, _)| folder)
}

/// Returns true if a server other than `writer`, or another program, has merged the file.
pub(crate) fn is_foreign(path: &str, writer: &str) -> bool {
    FileName::parse(path).is_none() && !MergedName::is_written_by(path, writer)
}

/// A request to delete profiles.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deletion {
    /// Tenant whose profiles are deleted.
    pub tenant: TenantId,
    /// Selector of the profiles, `{label="value"}`, optionally after the id of a profile type.
    pub selector: String,
    /// Start of the range, in microseconds since 1970.
    pub from_us: i64,
    /// End of the range, exclusive, in microseconds since 1970.
    pub until_us: i64,
    /// Last segment of the log that the request covers. `None` until the store has accepted the request.
    pub segment: Option<u64>,
    /// Last covered segment of each other server on the same tables, by writer. It is empty unless an earlier version
    /// has accepted the request.
    pub others: BTreeMap<String, u64>,
    /// Paths of the covered files. `None` until the store has accepted the request, and in requests that an earlier
    /// version has accepted.
    pub files: Option<BTreeSet<String>>,
    /// A file that another server may have merged from covered files and files from after the request. It is recorded
    /// here when a different deletion replaces it: in the new files, covered and later rows cannot be distinguished.
    pub mixed: Option<String>,
}

/// The parts of a selector.
struct Parsed {
    profile_type: Option<ProfileTypeId>,
    matchers: Vec<Matcher>,
}

impl Deletion {
    /// Creates a request to delete the profiles of `tenant` that `selector` selects within `span`.
    pub fn new(tenant: TenantId, selector: impl Into<String>, span: TimeSpan) -> Self {
        Self {
            tenant,
            selector: selector.into(),
            from_us: span.start,
            until_us: span.end,
            segment: None,
            others: BTreeMap::new(),
            files: None,
            mixed: None,
        }
    }

    /// Limits the request to the live files that may hold selected profiles. The tables contain the log up to
    /// `segment`. Fails if samples at an edge of the range are summed over an interval that the edge would split.
    pub(crate) fn limit_to_live(mut self, segment: u64, live: &[FileEntry]) -> Result<Self, StoreError> {
        let selection = self.selection()?;
        self.check_edges(&selection, live)?;
        let touched = live.iter().filter(|file| self.may_touch(&selection, file));
        let files = touched.map(|file| file.path.clone()).collect();
        self.segment = Some(segment);
        self.files = Some(files);
        Ok(self)
    }

    /// Refuses a range that begins or ends within an interval over which samples are summed, because the rows of an
    /// interval are deleted as a whole or not at all.
    fn check_edges(&self, selection: &Selection, live: &[FileEntry]) -> Result<(), StoreError> {
        let at_any_time = Selection {
            time: None,
            ..selection.clone()
        };
        let may_be_summed = |file: &&FileEntry| file.table == Table::Samples && self.may_touch(&at_any_time, file);
        for edge in [self.from_us, self.until_us] {
            let intervals = live
                .iter()
                .filter(may_be_summed)
                .filter_map(|file| summed_around(file, edge));
            let Some(span) = intervals.max_by_key(|span| span.end - span.start) else {
                continue;
            };
            let [edge, start, end] = [edge, span.start, span.end].map(|micros| {
                let time = chrono::DateTime::from_timestamp_micros(micros).unwrap_or_default();
                time.to_rfc3339_opts(chrono::SecondsFormat::AutoSi, true)
            });
            return Err(StoreError::Request(format!(
                "the range begins or ends at {edge}, and the samples from {start} to {end} are summed: choose one of \
                    these two times"
            )));
        }
        Ok(())
    }

    /// If the request covers the file `removed`, makes the request cover the files in `added`, which replace that file.
    /// If `removed` may hold covered and later rows, records the file in `mixed` instead. Returns true if the request
    /// has changed.
    pub(crate) fn transfer(&mut self, removed: &FileEntry, added: &[String], live: &[FileEntry], writer: &str) -> bool {
        let is_touched = self
            .selection()
            .is_ok_and(|selection| self.may_touch(&selection, removed));
        if is_touched && self.may_be_mixed(&removed.path, &paths_of(live), writer) {
            self.mixed = Some(removed.path.clone());
            return true;
        }
        match &mut self.files {
            Some(files) if files.contains(&removed.path) => {
                files.extend(added.iter().cloned());
                true
            }
            _ => false,
        }
    }

    /// Returns the live files that the request covers. If covered and later rows cannot be distinguished, returns the
    /// reason as an error, and the caller must delete nothing.
    pub(crate) fn covered_files(&self, live: &[FileEntry], writer: &str) -> Result<Vec<FileEntry>, DeletionError> {
        let selection = self.selection()?;
        let touched = live.iter().filter(|file| self.may_touch(&selection, file));
        let touched: Vec<&FileEntry> = touched.collect();
        let is_merged = |file: &&&FileEntry| FileName::parse(&file.path).is_none();
        let Some(files) = &self.files else {
            if self.segment.is_some()
                && let Some(merged) = touched.iter().find(is_merged)
            {
                return Err(DeletionError::Merged(merged.path.clone()));
            }
            let covered = touched.iter().filter(|file| self.holds(file, writer));
            return Ok(covered.map(|file| (*file).clone()).collect());
        };
        let paths = paths_of(live);
        let mut touched_paths = touched.iter().map(|file| &file.path);
        let mixed = touched_paths.find(|path| self.may_be_mixed(path, &paths, writer));
        if let Some(mixed) = self.mixed.as_ref().or(mixed) {
            return Err(DeletionError::Mixed(mixed.clone()));
        }
        let covered = touched.iter().filter(|file| files.contains(&file.path));
        Ok(covered.map(|file| (*file).clone()).collect())
    }

    /// Returns true if another server may have merged the file from covered and later files. While the request waits,
    /// this server does not rewrite covered files, but another server cannot see the request.
    fn may_be_mixed(&self, path: &str, live: &HashSet<&str>, writer: &str) -> bool {
        let Some(files) = &self.files else {
            return false;
        };
        let mut removed = files.iter().filter(|covered| !live.contains(covered.as_str()));
        let folder = folder_of(path);
        is_foreign(path, writer) && !files.contains(path) && removed.any(|covered| folder_of(covered) == folder)
    }

    /// Returns the folders of the covered files, live or not.
    pub(crate) fn folders(&self) -> impl Iterator<Item = &str> {
        self.files.iter().flatten().filter_map(|path| folder_of(path))
    }

    /// Returns true if the request covers a live file. Such a file holds only profiles from before the request, and
    /// other jobs must not rewrite it.
    pub(crate) fn holds(&self, file: &FileEntry, writer: &str) -> bool {
        if let Some(files) = &self.files {
            return files.contains(&file.path);
        }
        let rows = matches!(file.table, Table::Samples | Table::Profiles);
        if file.tenant != self.tenant || !rows {
            return false;
        }
        match (self.segment, FileName::parse(&file.path)) {
            (Some(last), Some(flushed)) if flushed.writer == writer => flushed.segment <= last,
            (Some(_), Some(flushed)) => self.others.get(&flushed.writer) >= Some(&flushed.segment),
            (Some(_), None) => false,
            (None, _) => true,
        }
    }

    /// Returns true if this request makes `earlier` unnecessary: the tenant and the selector are the same, and the
    /// range of `earlier` lies within the range of this request.
    pub(crate) fn repeats(&self, earlier: &Self) -> bool {
        (&self.tenant, self.selector.trim()) == (&earlier.tenant, earlier.selector.trim())
            && self.from_us <= earlier.from_us
            && earlier.until_us <= self.until_us
    }

    fn may_touch(&self, selection: &Selection, file: &FileEntry) -> bool {
        file.tenant == self.tenant && matches!(file.table, Table::Samples | Table::Profiles) && selection.touches(file)
    }

    /// Returns a selection by the profile type and the range of the request. It selects all series.
    fn selection(&self) -> Result<Selection, DeletionError> {
        Ok(Selection {
            series: None,
            profile_type: self.parse()?.profile_type,
            time: Some(TimeSpan::new(self.from_us, self.until_us)),
        })
    }

    /// Checks the selector of the request.
    pub fn check(&self) -> Result<(), DeletionError> {
        self.parse().map(|_| ())
    }

    fn parse(&self) -> Result<Parsed, DeletionError> {
        let text = self.selector.trim();
        let parsed = if text.starts_with('{') {
            selector::parse(text).map(|matchers| Parsed {
                profile_type: None,
                matchers,
            })
        } else {
            selector::parse_query(text).map(|(profile_type, matchers)| Parsed {
                profile_type: Some((&profile_type).into()),
                matchers,
            })
        };
        let parsed = parsed.map_err(|source| DeletionError::Selector {
            selector: text.to_owned(),
            source,
        })?;
        match parsed.matchers.iter().find(|matcher| matcher.name().starts_with("__")) {
            Some(matcher) => Err(DeletionError::Label(matcher.name().to_owned())),
            None => Ok(parsed),
        }
    }

    /// Returns the jobs that remove the profiles from the files in `covered`. Finds the selected series in the series
    /// files among `live`.
    pub(crate) fn jobs(&self, root: &Root, live: &[FileEntry], covered: &[FileEntry]) -> Result<Vec<Job>, StoreError> {
        let parsed = self.parse()?;
        let mut selection = self.selection()?;
        let days: HashSet<i32> = covered.iter().map(|file| file.day).collect();
        let names =
            |file: &&FileEntry| file.table == Table::Series && file.tenant == self.tenant && days.contains(&file.day);
        if !parsed.matchers.is_empty() {
            let mut series_ids = HashSet::new();
            for file in live.iter().filter(names) {
                each_series(&mut Input::open(root, file)?, |id, labels| {
                    if parsed.matchers.iter().all(|matcher| matcher.matches(&labels)) {
                        series_ids.insert(id);
                    }
                })?;
            }
            selection.series = Some(Arc::new(series_ids));
        }
        let jobs = covered
            .iter()
            .filter(|file| self.may_touch(&selection, file))
            .map(|file| {
                let name = MergedName::of(&file.path);
                Job {
                    table: file.table,
                    tenant: file.tenant.clone(),
                    day: file.day,
                    inputs: vec![file.clone()],
                    change: Change {
                        drop: Some(selection.clone()),
                        interval_us: 0,
                    },
                    level: name.level,
                    resolution: name.resolution,
                    by_hour: false,
                    by_type: false,
                    reason: "delete",
                }
            });
        Ok(jobs.collect())
    }

    /// Writes the request to a new file, durably, and returns the path.
    pub fn write(&self, dir: &Path, faults: &Faults) -> Result<PathBuf, StoreError> {
        let folder = requests_of(dir);
        let path = folder.join(format!("{}.json", uuid::Uuid::new_v4()));
        let step = |operation: &mut dyn FnMut() -> io::Result<()>| faults.run(FaultPoint::RequestWrite, operation);
        step(&mut || fs::create_dir_all(&folder)).map_err(StoreError::io("write", &path))?;
        self.replace(&path, faults)?;
        step(&mut || sync_parent(&folder)).map_err(StoreError::io("write", &path))?;
        Ok(path)
    }

    /// Replaces the request in its file. The file is durable when the function returns.
    pub(crate) fn replace(&self, path: &Path, faults: &Faults) -> Result<(), StoreError> {
        let mut request = json!({
            "tenant": self.tenant.as_str(),
            "selector": self.selector,
            "from_us": self.from_us,
            "until_us": self.until_us,
            "segment": self.segment,
            "others": self.others,
            "files": self.files,
        });
        if let Some(mixed) = &self.mixed {
            request[MIXED] = mixed.as_str().into();
        }
        request[CHECKSUM] = checksum_of(&request).into();
        let mut run = |operation: &mut dyn FnMut() -> io::Result<()>| faults.run(FaultPoint::RequestWrite, operation);
        replace_by(path, request.to_string().as_bytes(), &mut run).map_err(StoreError::io("write", path))
    }

    /// Reads a request from its file.
    pub fn read(path: &Path) -> Result<Self, StoreError> {
        let bytes = fs::read(path).map_err(StoreError::io("read", path))?;
        Self::parse_request(&bytes).ok_or_else(|| StoreError::Damaged {
            path: path.to_owned(),
            reason: "it is not a request for a deletion".to_owned(),
        })
    }

    fn parse_request(bytes: &[u8]) -> Option<Self> {
        let mut value: Value = serde_json::from_slice(bytes).ok()?;
        let request = value.as_object_mut()?;
        // Earlier versions wrote neither a list of files nor a checksum. A request with a list must have a checksum, so
        // that a flipped bit in a key does not make the request look like a request of an earlier version.
        let checksum = request.remove(CHECKSUM);
        let is_known = |key: &String| KEYS.contains(&key.as_str()) && (checksum.is_some() || key != "files");
        if !request.keys().all(is_known) {
            return None;
        }
        if checksum.is_some_and(|checksum| checksum != checksum_of(&value)) {
            return None;
        }
        Some(Self {
            tenant: value.get("tenant")?.as_str()?.parse().ok()?,
            selector: value.get("selector")?.as_str()?.to_owned(),
            from_us: value.get("from_us")?.as_i64()?,
            until_us: value.get("until_us")?.as_i64()?,
            segment: value.get("segment").and_then(Value::as_u64),
            others: match value.get("others") {
                Some(others) => serde_json::from_value(others.clone()).ok()?,
                None => BTreeMap::new(),
            },
            files: match value.get("files") {
                Some(files) => serde_json::from_value(files.clone()).ok()?,
                None => None,
            },
            mixed: match value.get(MIXED) {
                Some(mixed) => Some(mixed.as_str()?.to_owned()),
                None => None,
            },
        })
    }
}

/// Returns the interval around `time` over which samples of a file are summed. Returns `None` if an interval begins at
/// `time`, or if the file has no summed samples around `time`.
fn summed_around(file: &FileEntry, time: i64) -> Option<TimeSpan> {
    let interval = i64::from(MergedName::of(&file.path).resolution) * 1_000_000;
    let remainder = time.checked_rem_euclid(interval).filter(|remainder| *remainder > 0)?;
    let start = time.checked_sub(remainder)?;
    let has_interval = file.time.is_none_or(|bounds| bounds.contains(&start));
    has_interval.then(|| TimeSpan::new(start, start.saturating_add(interval)))
}

fn paths_of(files: &[FileEntry]) -> HashSet<&str> {
    files.iter().map(|file| file.path.as_str()).collect()
}

/// Returns the XXH3 of a request without its checksum, as 16 hexadecimal digits.
fn checksum_of(request: &Value) -> String {
    format!("{:016x}", xxh3_64(request.to_string().as_bytes()))
}

/// Returns the files of the requests that are not carried out yet.
pub fn pending(dir: &Path) -> Result<Vec<PathBuf>, StoreError> {
    let folder = requests_of(dir);
    let entries = match fs::read_dir(&folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(StoreError::io("list", &folder)(error)),
    };
    let mut paths = Vec::new();
    for entry in entries {
        let path = entry.map_err(StoreError::io("list", &folder))?.path();
        if path.extension().is_some_and(|end| end == "json") {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}

fn requests_of(dir: &Path) -> PathBuf {
    dir.join("deletions")
}

#[cfg(test)]
mod tests {
    use super::*;
    use alluvium_testing::tenant_id;

    const OWN: &str = "0190a6a0-0000-7000-8000-000000000001";
    const OTHER: &str = "0190a6a0-0000-7000-8000-000000000002";
    const NEW: &str = "0190a6a0-0000-7000-8000-000000000003";

    fn file(name: &str) -> FileEntry {
        FileEntry {
            table: Table::Samples,
            path: format!("samples/tenant=t/day=2026-01-01/{name}.parquet"),
            size: 10,
            rows: 1,
            tenant: tenant_id("t"),
            day: 20_454,
            time: None,
            profile_type: None,
            series: None,
            checksum: None,
        }
    }

    fn full_deletion() -> Deletion {
        Deletion::new(tenant_id("t"), "{}", TimeSpan::ALL)
    }

    fn names(files: &[FileEntry]) -> Vec<&str> {
        files
            .iter()
            .map(|file| crate::store::flush::files::name_of(&file.path))
            .collect()
    }

    #[test]
    fn a_request_covers_the_files_of_its_moment_and_what_takes_their_place() {
        let dir = tempfile::tempdir().unwrap();
        let before = [
            file(&format!("000000000004-0-{OWN}")),
            file(&format!("c1-0-aa-{OWN}")),
            file(&format!("c1-0-bb-{OTHER}")),
        ];
        let later = [file(&format!("000000000004-1-{OWN}")), file(&format!("c1-0-cc-{OWN}"))];
        let path = full_deletion()
            .limit_to_live(4, &before)
            .unwrap()
            .write(dir.path(), &Faults::default())
            .unwrap();
        let mut read = Deletion::read(&path).unwrap();
        let live: Vec<FileEntry> = before.iter().chain(&later).cloned().collect();
        assert_eq!(names(&read.covered_files(&live, OWN).unwrap()), names(&before));
        // Files that retention has removed do not matter.
        assert_eq!(
            names(&read.covered_files(&live[1..], OWN).unwrap()),
            names(&before[1..])
        );
        assert!(read.covered_files(&later, OWN).unwrap().is_empty());
        assert!(read.transfer(&before[1], &[later[1].path.clone()], &live, OWN));
        assert!(!read.transfer(&file("another"), &[later[0].path.clone()], &live, OWN));
        read.replace(&path, &Faults::default()).unwrap();
        let read = Deletion::read(&path).unwrap();
        assert_eq!(names(&read.covered_files(&later, OWN).unwrap()), names(&later[1..]));
        assert_eq!(pending(dir.path()).unwrap(), [path]);
    }

    #[test]
    fn what_another_server_has_merged_is_not_told_from_what_came_later() {
        let request = full_deletion()
            .limit_to_live(4, &[file(&format!("000000000004-0-{OWN}"))])
            .unwrap();
        let merged = [file(&format!("c1-0-aa-{OTHER}"))];
        let error = request.covered_files(&merged, OWN).unwrap_err().to_string();
        assert!(error.contains(&merged[0].path), "{error}");
        // A file of another day has no rows of the covered file.
        let mut other_day = merged.clone();
        other_day[0].path = other_day[0].path.replace("2026-01-01", "2026-01-02");
        assert!(request.covered_files(&other_day, OWN).unwrap().is_empty());
        // If another request has rewritten the merged file, the request records the file, also after a restart.
        let dir = tempfile::tempdir().unwrap();
        let mut other = request.clone();
        let rewritten = [file(&format!("c1-0-bb-{OWN}"))];
        assert!(!other.transfer(&other_day[0], &[rewritten[0].path.clone()], &other_day, OWN));
        assert!(other.transfer(&merged[0], &[rewritten[0].path.clone()], &merged, OWN));
        let path = other.write(dir.path(), &Faults::default()).unwrap();
        let error = Deletion::read(&path)
            .unwrap()
            .covered_files(&rewritten, OWN)
            .unwrap_err()
            .to_string();
        assert!(error.contains(&merged[0].path), "{error}");
    }

    #[test]
    fn a_request_of_an_earlier_version_covers_flushed_files_and_no_merged_one() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.json");
        let text = format!(
            r#"{{"tenant":"t","selector":"{{}}","from_us":0,"until_us":9,"segment":4,"others":{{"{OTHER}":7}}}}"#
        );
        fs::write(&path, text).unwrap();
        let read = Deletion::read(&path).unwrap();
        let mut live = Vec::new();
        for (name, covered) in [
            (format!("000000000004-0-{OWN}"), true),
            (format!("000000000005-0-{OWN}"), false),
            (format!("000000000007-2-{OTHER}"), true),
            (format!("000000000008-0-{OTHER}"), false),
            (format!("000000000001-0-{NEW}"), false),
        ] {
            assert_eq!(read.holds(&file(&name), OWN), covered, "{name}");
            live.push(file(&name));
        }
        assert_eq!(read.covered_files(&live, OWN).unwrap().len(), 2);
        live.push(file(&format!("c1-0-ab-{OWN}")));
        assert!(
            read.covered_files(&live, OWN)
                .unwrap_err()
                .to_string()
                .contains("c1-0-ab")
        );
    }

    #[test]
    fn no_flipped_bit_of_a_request_makes_another_request() {
        let dir = tempfile::tempdir().unwrap();
        let selector = r#"cpu:a:b:c:d{service_name="cart"}"#;
        let requested = Deletion::new(tenant_id("t"), selector, TimeSpan::new(12, 345));
        let request = requested.limit_to_live(4, &[file("a"), file("b")]).unwrap();
        let path = request.write(dir.path(), &Faults::default()).unwrap();
        let bytes = fs::read(&path).unwrap();
        for bit in 0..bytes.len() * 8 {
            let mut bytes = bytes.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            let read = Deletion::parse_request(&bytes);
            assert!(read.is_none_or(|read| read == request), "bit {bit}");
        }
    }
}
