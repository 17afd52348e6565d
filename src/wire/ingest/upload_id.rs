//! The id of an upload, in a header of its request.
//!
//! `pyroscope.write` sends the same id with every attempt, so that a server stores an upload once that arrives twice.
//! Other servers ignore the header.

use std::sync::Arc;

use http::{HeaderMap, HeaderValue};

use crate::connect::ConnectError;
use alluvium_profile::DecodedProfile;

/// Name of the header, in lower case.
const UPLOAD_ID_HEADER: &str = "x-alluvium-upload-id";
/// Maximum length of an id in bytes. `pyroscope.write` sends UUIDs of 36 bytes.
const MAX_ID_BYTES: usize = 128;

/// Returns the id in the headers of an upload, or an empty id if there is none. An id that is too long or not printable
/// ASCII is an error.
pub fn upload_id(headers: &HeaderMap) -> Result<Arc<str>, ConnectError> {
    let Some(value) = headers.get(UPLOAD_ID_HEADER) else {
        return Ok("".into());
    };
    match value.to_str() {
        Ok(id) if id.len() <= MAX_ID_BYTES => Ok(id.into()),
        Ok(id) => Err(ConnectError::invalid(format!(
            "{UPLOAD_ID_HEADER}: the id has {} bytes, the limit is {MAX_ID_BYTES}",
            id.len()
        ))),
        Err(_) => Err(ConnectError::invalid(format!(
            "{UPLOAD_ID_HEADER}: the id contains characters that are not printable ASCII"
        ))),
    }
}

/// Adds the id to the headers of an upload. Omits an id that [`upload_id`] would not accept.
pub fn set_upload_id(headers: &mut HeaderMap, id: &str) {
    if (1..=MAX_ID_BYTES).contains(&id.len())
        && let Ok(value) = HeaderValue::from_str(id)
    {
        headers.insert(UPLOAD_ID_HEADER, value);
    }
}

/// Sets the ids of the profiles of an upload. The first profile has the upload's id, and further profiles have the id
/// with their index, because equal profiles of one upload are not repeats of each other.
pub fn set_profile_ids(profiles: &mut [DecodedProfile], upload_id: &Arc<str>) {
    if upload_id.is_empty() {
        return;
    }
    for (index, profile) in profiles.iter_mut().enumerate() {
        profile.id = match index {
            0 => upload_id.clone(),
            _ => format!("{upload_id}-{index}").into(),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_survives_the_way_through_the_headers() {
        for id in ["", "7b1d", "a b", &"x".repeat(MAX_ID_BYTES)] {
            let mut headers = HeaderMap::new();
            set_upload_id(&mut headers, id);
            assert_eq!(headers.len(), usize::from(!id.is_empty()));
            assert_eq!(&*upload_id(&headers).unwrap(), id);
        }
    }

    #[test]
    fn an_id_that_no_server_accepts_is_not_sent_and_is_refused() {
        for (id, reason) in [
            (
                "x".repeat(MAX_ID_BYTES + 1).into_bytes(),
                "x-alluvium-upload-id: the id has 129 bytes, the limit is 128",
            ),
            (
                vec![0xff],
                "x-alluvium-upload-id: the id contains characters that are not printable ASCII",
            ),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(UPLOAD_ID_HEADER, HeaderValue::from_bytes(&id).unwrap());
            let error = upload_id(&headers).unwrap_err();
            assert_eq!((error.status, error.message.as_str()), (400, reason));
        }
        let mut headers = HeaderMap::new();
        set_upload_id(&mut headers, &"x".repeat(MAX_ID_BYTES + 1));
        set_upload_id(&mut headers, "a\nb");
        assert!(headers.is_empty());
    }
}
