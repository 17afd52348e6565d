//! `debuginfo.v1alpha1`: uploads of files with the symbols of programs. This server accepts no such files.
//!
//! In: build ids and files. Out: a refusal of every upload, and an empty list. Collectors symbolize native functions on
//! the machine where the program runs (`symbols`). No query reads symbols, so a stored file would be of no use. If a
//! client asks whether it may upload a file, the server declines, and the client sends no file.

use std::ops::RangeInclusive;

use axum::body::Body;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, Request};

use crate::server::state::shared::ServerState;
use crate::server::state::tenant::{one_tenant, tenant};
use alluvium_admin::drain::drain;
use alluvium_wire::connect::{Code, ConnectError};
use alluvium_wire::proto::debuginfo::{
    DebuginfoService, DeleteDebuginfoRequest, DeleteDebuginfoResponse, ListDebuginfoRequest, ListDebuginfoResponse,
    ShouldInitiateUploadRequest, ShouldInitiateUploadResponse, UploadFinishedRequest, UploadFinishedResponse,
};
use alluvium_wire::service::{Call, CallResult};

/// Route for the content of a file, by plain POST.
pub(in crate::server) const UPLOAD: &str = "/debuginfo.v1alpha1.DebuginfoService/Upload/{gnu_build_id}";

/// The reason by which clients recognize a server that accepts no files. `profilecli` compares the text.
const DISABLED: &str = "DebugInfo upload disabled";

/// Number of digits of a build id.
const ID_DIGITS: RangeInclusive<usize> = 2..=40;

/// Responds like a Pyroscope server that stores no files and has uploads disabled.
#[derive(Clone)]
pub(in crate::server) struct DebugInfo;

impl DebuginfoService for DebugInfo {
    async fn should_initiate_upload(
        &self,
        call: Call<ShouldInitiateUploadRequest>,
    ) -> CallResult<ShouldInitiateUploadResponse> {
        one_tenant(&call.tenants)?;
        Ok(ShouldInitiateUploadResponse {
            should_initiate_upload: false,
            reason: DISABLED.to_owned(),
        }
        .into())
    }

    async fn upload_finished(&self, call: Call<UploadFinishedRequest>) -> CallResult<UploadFinishedResponse> {
        one_tenant(&call.tenants)?;
        let id = checked(&call.request.gnu_build_id)?;
        let message = format!("no upload of the build id `{id}` has been started");
        Err(ConnectError::new(Code::NotFound, message))
    }

    async fn list_debuginfo(&self, call: Call<ListDebuginfoRequest>) -> CallResult<ListDebuginfoResponse> {
        one_tenant(&call.tenants)?;
        Ok(ListDebuginfoResponse::default().into())
    }

    /// Deletes nothing and succeeds, because no file exists.
    async fn delete_debuginfo(&self, call: Call<DeleteDebuginfoRequest>) -> CallResult<DeleteDebuginfoResponse> {
        one_tenant(&call.tenants)?;
        checked(&call.request.gnu_build_id)?;
        Ok(DeleteDebuginfoResponse {}.into())
    }
}

/// `POST .../Upload/{gnu_build_id}`: refuses a file that the server did not request.
pub(in crate::server) async fn upload(
    State(state): State<ServerState>,
    Path(build_id): Path<String>,
    request: Request<Body>,
) -> Response {
    let refusal = refusal(&state, &build_id, request.headers());
    drain(&mut request.into_body().into_data_stream()).await;
    refusal.into_response()
}

fn refusal(state: &ServerState, build_id: &str, headers: &HeaderMap) -> ConnectError {
    let allowed = tenant(headers, &state.options).and_then(|_| checked(build_id));
    match allowed {
        Err(error) => error,
        Ok(id) => {
            let message = format!("no upload of the build id `{id}` is expected: {DISABLED}");
            ConnectError::new(Code::FailedPrecondition, message).with_status(412)
        }
    }
}

/// Returns the build id, if it is valid.
fn checked(id: &str) -> Result<&str, ConnectError> {
    if ID_DIGITS.contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Ok(id);
    }
    let message = format!(
        "a GNU build id has {} to {} hexadecimal digits",
        ID_DIGITS.start(),
        ID_DIGITS.end()
    );
    Err(ConnectError::invalid(message))
}
