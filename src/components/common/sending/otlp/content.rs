//! Encodes queued profiles as the body of an export request.
//!
//! In: queued profiles, which are pprof or uploads of `/ingest` in any supported format. Out: an encoded request, and
//! the profiles that it cannot contain. This code blocks, so it must run on a thread that may block.

use bytes::Bytes;
use prost::Message as _;

use alluvium_profile::decoded::Columns;
use alluvium_profile::labels::{PROFILE_NAME, SERVICE_NAME};
use alluvium_profile::pprof::{self, DecodeError, GzipError};
use alluvium_profile::upload::Upload;
use alluvium_profile::{Labels, RawProfile, SinkError, SinkErrorKind};
use alluvium_wire::connect::{Compression, CompressionError, ConnectError};
use alluvium_wire::ingest::{self, IngestQuery, Opening, ReadError};
use alluvium_wire::otlp::{Exported, to_request};
use alluvium_wire::refusals::Refused;

/// Maximum uncompressed size of a profile, in bytes.
const MAX_PROFILE_BYTES: usize = 64 << 20;

/// A request that can be sent.
pub(super) struct Content {
    /// The request, encoded as protobuf.
    pub body: Bytes,
    /// Number of queued profiles in the request. A queued upload can become several profiles of the request.
    pub profiles: usize,
    /// For each series that Pyroscope makes of the request, the index of its queued profile in the batch. Empty if the
    /// series are not known.
    pub series: Vec<usize>,
    /// Queued profiles that cannot be sent, by their indices in the batch.
    pub refused: Vec<Refused>,
}

/// The reason why a profile cannot be part of a request.
#[derive(Debug, thiserror::Error)]
enum OpenError {
    #[error(transparent)]
    Gzip(#[from] GzipError),
    #[error(transparent)]
    Profile(#[from] DecodeError),
    /// The content or the query of an upload is invalid.
    #[error(transparent)]
    Upload(#[from] ConnectError),
    #[error(transparent)]
    Compression(#[from] CompressionError),
    #[error("the upload is larger than {MAX_PROFILE_BYTES} bytes")]
    LargeUpload,
    #[error("the profile is larger than {MAX_PROFILE_BYTES} bytes")]
    LargeProfile,
}

/// A profile after it has been decoded.
struct Opened {
    labels: Labels,
    columns: Columns,
}

/// Builds the request for a batch.
pub(super) fn content(profiles: &[RawProfile]) -> Content {
    let mut refused = Vec::new();
    let mut opened: Vec<(usize, &RawProfile, Vec<Opened>)> = Vec::new();
    for (index, profile) in profiles.iter().enumerate() {
        match open(profile) {
            Ok(columns) => opened.push((index, profile, columns)),
            Err(error) => refused.push(Refused {
                index,
                error: Some(SinkError::new(SinkErrorKind::Invalid, error.to_string())),
            }),
        }
    }
    let exported = opened.iter().flat_map(|(index, profile, opened)| {
        let exported = exported(profile, opened);
        exported.map(|exported| (*index, exported))
    });
    let (indices, exported): (Vec<usize>, Vec<Exported<'_>>) = exported.unzip();
    let written = to_request(&exported);
    let series = written.series().into_iter();
    Content {
        series: series
            .map(|source| indices.get(source).copied())
            .collect::<Option<_>>()
            .unwrap_or_default(),
        body: written.request.encode_to_vec().into(),
        profiles: opened.len(),
        refused,
    }
}

/// Returns the profiles to export for a queued profile. `opened` contains several if the queued profile is an upload of
/// a format with several profiles.
fn exported<'a>(profile: &'a RawProfile, opened: &'a [Opened]) -> impl Iterator<Item = Exported<'a>> {
    let type_count = |opened: &Opened| opened.columns.get().sample_types.len();
    let part_count: usize = opened.iter().map(type_count).sum();
    opened.iter().scan(0, move |next_part, opened| {
        let first_part = *next_part;
        *next_part += type_count(opened);
        Some(Exported {
            labels: &opened.labels,
            id: &profile.id,
            first_part,
            part_count,
            profile: opened.columns.get(),
        })
    })
}

fn open(profile: &RawProfile) -> Result<Vec<Opened>, OpenError> {
    if let Some(upload) = Upload::read(&profile.pprof) {
        return open_upload(&profile.labels, &upload);
    }
    let plain = pprof::gunzip(&profile.pprof, MAX_PROFILE_BYTES)?;
    let columns = Columns::read(plain, |plain| pprof::decode(plain))?;
    Ok(vec![Opened {
        labels: profile.labels.clone(),
        columns,
    }])
}

/// Decodes an upload as a server does. Relabel rules may have changed the labels since the upload arrived, so the
/// profiles get `labels` instead of the upload's own. Only the profile name comes from the content of the upload.
fn open_upload(labels: &Labels, upload: &Upload) -> Result<Vec<Opened>, OpenError> {
    let app = labels
        .get(PROFILE_NAME)
        .or(labels.get(SERVICE_NAME))
        .unwrap_or("unknown");
    let mut query = url::form_urlencoded::Serializer::new(String::new());
    query.append_pair("name", app);
    let query = format!("{}&{}", query.finish(), upload.query);
    let query = IngestQuery::parse(&query, 0)?;
    let is_packed = |body: &[u8]| ingest::is_packed(&query, &upload.content_type, body);
    let compression = Compression::of_name(&upload.content_encoding)?.or_packed(&upload.body, is_packed);
    let body = compression.open(&upload.body, MAX_PROFILE_BYTES)?;
    let body = body.ok_or(OpenError::LargeUpload)?;
    let read = ingest::Upload::new(&query, &upload.content_type, body.into())
        .map_err(ReadError::from)
        .and_then(|upload| upload.read(&query, Opening::AtMost(MAX_PROFILE_BYTES)));
    let profiles = read.map_err(|error| match error {
        ReadError::Refused(error) => OpenError::Upload(error),
        ReadError::LargerThanAnnounced => OpenError::LargeProfile,
    })?;
    let opened = profiles.into_iter().map(|profile| Opened {
        labels: labels.with(PROFILE_NAME, profile.labels.get(PROFILE_NAME).unwrap_or_default()),
        columns: profile.columns,
    });
    Ok(opened.collect())
}
