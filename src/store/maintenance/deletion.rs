//! Deletion of profiles by selector: the request, kept on disk until it is carried out, and the jobs that carry it out.
//!
//! A request covers what was acknowledged before it. It names the last segment of the log that it covers, so that a
//! retry after a crash deletes nothing that came later. It is written and synced first: after a crash the next start
//! finishes the deletion, so it is never left half done. Frames and labels stay until the retention of their day.

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::json;

use crate::base::file::{replace_by, sync_parent};
use crate::profile::selector::{self, Matcher};
use crate::profile::{ProfileTypeId, SeriesId, TenantId, TimeSpan};
use crate::store::StoreError;
use crate::store::fault::{Faults, Place};
use crate::store::files::FileName;
use crate::store::maintenance::input::Input;
use crate::store::maintenance::names::SeriesSet;
use crate::store::maintenance::rewrite::{Change, Job, MergedName, Selection};
use crate::store::root::Root;
use crate::store::schema::Table;
use crate::store::snapshot::FileEntry;

/// A request to delete profiles.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deletion {
    /// Only profiles of this tenant.
    pub tenant: TenantId,
    /// `{label="value"}`, optionally after the id of a profile type.
    pub selector: String,
    /// Start of the range, microseconds since 1970.
    pub from_us: i64,
    /// End of the range, exclusive.
    pub until_us: i64,
    /// Last segment of the log whose profiles are covered; `None` until the store has taken the request.
    pub segment: Option<u64>,
    /// The last covered segment of other servers on the same tables, by writer; what they have not flushed is not
    /// covered. Empty until the store has taken the request.
    pub others: BTreeMap<String, u64>,
}

/// The parts of a selector.
struct Parsed {
    profile_type: Option<ProfileTypeId>,
    matchers: Vec<Matcher>,
}

impl Deletion {
    /// A request to delete the profiles of `tenant` that `selector` selects within `span`.
    pub fn new(tenant: TenantId, selector: impl Into<String>, span: TimeSpan) -> Self {
        Self {
            tenant,
            selector: selector.into(),
            from_us: span.start,
            until_us: span.end,
            segment: None,
            others: BTreeMap::new(),
        }
    }

    /// Limits the request to what the tables have of the log up to `segment`, and of the logs of other writers.
    #[must_use]
    pub(crate) fn up_to(mut self, segment: u64, others: BTreeMap<String, u64>) -> Self {
        self.segment = Some(segment);
        self.others = others;
        self
    }

    /// Whether a file may hold profiles that were acknowledged before the request. Merged files always do: this server
    /// merges nothing before requests are carried out. Another server may, and then what it has merged since is covered
    /// too.
    pub(crate) fn covers(&self, path: &str, writer: &str) -> bool {
        match (self.segment, FileName::parse(path)) {
            (Some(last), Some(flushed)) if flushed.writer == writer => flushed.segment <= last,
            (Some(_), Some(flushed)) => self.others.get(&flushed.writer) >= Some(&flushed.segment),
            _ => true,
        }
    }

    /// Checks the selector; the error says what is wrong.
    pub fn check(&self) -> Result<(), String> {
        self.parse().map(|_| ())
    }

    fn parse(&self) -> Result<Parsed, String> {
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
        let parsed = parsed.map_err(|error| format!("the selector `{text}` cannot be read: {error}"))?;
        match parsed.matchers.iter().find(|matcher| matcher.name().starts_with("__")) {
            Some(matcher) => Err(format!(
                "the label `{}` is not stored; put the id of a profile type before the brace to choose one",
                matcher.name()
            )),
            None => Ok(parsed),
        }
    }

    /// The jobs that remove the profiles from `files`.
    pub(crate) fn jobs(&self, root: &Root, files: &[FileEntry]) -> Result<Vec<Job>, StoreError> {
        let parsed = self.parse().map_err(StoreError::Request)?;
        let own = || files.iter().filter(|file| file.tenant == self.tenant);
        let mut series = None;
        if !parsed.matchers.is_empty() {
            let mut set = SeriesSet::default();
            for file in own().filter(|file| file.table == Table::Series) {
                set.read(&mut Input::open(root, file)?)?;
            }
            let chosen = set
                .labels()
                .iter()
                .filter(|(_, labels)| parsed.matchers.iter().all(|matcher| matcher.matches(labels)));
            series = Some(Arc::new(chosen.map(|(id, _)| *id).collect::<HashSet<SeriesId>>()));
        }
        let selection = Selection {
            series,
            profile_type: parsed.profile_type,
            time: Some(TimeSpan::new(self.from_us, self.until_us)),
        };
        let jobs = own()
            .filter(|file| matches!(file.table, Table::Samples | Table::Profiles) && selection.touches(file))
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

    /// Makes the request durable; returns its file.
    pub fn write(&self, dir: &Path, faults: &Faults) -> Result<PathBuf, StoreError> {
        let folder = folder_of(dir);
        let path = folder.join(format!("{}.json", uuid::Uuid::new_v4()));
        let text = json!({
            "tenant": self.tenant.as_str(),
            "selector": self.selector,
            "from_us": self.from_us,
            "until_us": self.until_us,
            "segment": self.segment,
            "others": self.others,
        });
        let step = |operation: &mut dyn FnMut() -> io::Result<()>| faults.run(Place::RequestWrite, operation);
        let write = || {
            step(&mut || fs::create_dir_all(&folder))?;
            replace_by(&path, text.to_string().as_bytes(), &mut |one| step(one))?;
            step(&mut || sync_parent(&folder))
        };
        write().map_err(StoreError::io("write", &path))?;
        Ok(path)
    }

    /// Reads a request from its file.
    pub fn read(path: &Path) -> Result<Self, StoreError> {
        let bytes = fs::read(path).map_err(StoreError::io("read", path))?;
        let parse = || {
            let value: serde_json::Value = serde_json::from_slice(&bytes).ok()?;
            Some(Self {
                tenant: value.get("tenant")?.as_str()?.parse().ok()?,
                selector: value.get("selector")?.as_str()?.to_owned(),
                from_us: value.get("from_us")?.as_i64()?,
                until_us: value.get("until_us")?.as_i64()?,
                segment: value.get("segment").and_then(serde_json::Value::as_u64),
                others: match value.get("others") {
                    Some(others) => serde_json::from_value(others.clone()).ok()?,
                    None => BTreeMap::new(),
                },
            })
        };
        parse().ok_or_else(|| StoreError::Damaged {
            path: path.to_owned(),
            reason: "it is not a request for a deletion".to_owned(),
        })
    }
}

/// Files of the requests that are not yet carried out.
pub fn pending(dir: &Path) -> Result<Vec<PathBuf>, StoreError> {
    let folder = folder_of(dir);
    let entries = match fs::read_dir(&folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(StoreError::io("list", &folder)(error)),
    };
    let mut found = Vec::new();
    for entry in entries {
        let path = entry.map_err(StoreError::io("list", &folder))?.path();
        if path.extension().is_some_and(|end| end == "json") {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

fn folder_of(dir: &Path) -> PathBuf {
    dir.join("deletions")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_covers_what_each_server_had_flushed_and_nothing_later() {
        const OWN: &str = "0190a6a0-0000-7000-8000-000000000001";
        const OTHER: &str = "0190a6a0-0000-7000-8000-000000000002";
        const NEW: &str = "0190a6a0-0000-7000-8000-000000000003";
        let dir = tempfile::tempdir().unwrap();
        let others = BTreeMap::from([(OTHER.to_owned(), 7)]);
        let asked = Deletion::new(TenantId::anonymous(), "{}", TimeSpan::new(0, 1));
        let taken = asked.clone().up_to(4, others);
        let path = taken.write(dir.path(), &Faults::default()).unwrap();
        let read = Deletion::read(&path).unwrap();
        for (name, covered) in [
            (format!("000000000004-0-{OWN}.parquet"), true),
            (format!("000000000005-0-{OWN}.parquet"), false),
            (format!("000000000007-2-{OTHER}.parquet"), true),
            (format!("000000000008-0-{OTHER}.parquet"), false),
            (format!("000000000001-0-{NEW}.parquet"), false),
            (format!("c1-0000000001-ab-{OTHER}.parquet"), true),
        ] {
            let path = format!("samples/tenant=t/day=2026-01-01/{name}");
            assert_eq!(read.covers(&path, OWN), covered, "{name}");
            assert!(asked.covers(&path, OWN), "{name}");
        }
    }
}
