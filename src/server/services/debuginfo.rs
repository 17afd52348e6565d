//! `debuginfo.v1alpha1`: files with the symbols of programs, which this server does not take.
//!
//! In: build ids and files. Out: that no upload is wanted, and that there is nothing. Collectors name native functions
//! where the programs run (`symbols`); no question looks for symbols, so a file that is kept would serve nobody. A
//! client that asks first is told so and sends nothing.

use std::ops::RangeInclusive;

use axum::body::Body;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, Request};

use crate::admin::drain::drain;
use crate::server::state::shared::ServerState;
use crate::server::state::tenant::{one_tenant, tenant};
use crate::wire::connect::{Code, ConnectError};
use crate::wire::proto::debuginfo::{
    DebuginfoService, DeleteDebuginfoRequest, DeleteDebuginfoResponse, ListDebuginfoRequest, ListDebuginfoResponse,
    ShouldInitiateUploadRequest, ShouldInitiateUploadResponse, UploadFinishedRequest, UploadFinishedResponse,
};
use crate::wire::service::{Call, CallResult};

/// Route of the file itself, a plain POST.
pub(in crate::server) const UPLOAD: &str = "/debuginfo.v1alpha1.DebuginfoService/Upload/{gnu_build_id}";

/// The reason by which clients know a server that takes no files; `profilecli` compares it.
const DISABLED: &str = "DebugInfo upload disabled";

/// Number of digits of a build id.
const ID_DIGITS: RangeInclusive<usize> = 2..=40;

/// Answers as a Pyroscope to which no file was uploaded and that takes none.
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
        let message = format!("no upload of the build id `{id}` was begun");
        Err(ConnectError::new(Code::NotFound, message))
    }

    async fn list_debuginfo(&self, call: Call<ListDebuginfoRequest>) -> CallResult<ListDebuginfoResponse> {
        one_tenant(&call.tenants)?;
        Ok(ListDebuginfoResponse::default().into())
    }

    /// What is not there is deleted.
    async fn delete_debuginfo(&self, call: Call<DeleteDebuginfoRequest>) -> CallResult<DeleteDebuginfoResponse> {
        one_tenant(&call.tenants)?;
        checked(&call.request.gnu_build_id)?;
        Ok(DeleteDebuginfoResponse {}.into())
    }
}

/// `POST .../Upload/{gnu_build_id}`: a file that nobody asked for.
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
            let message = format!("no upload of the build id `{id}` is awaited: {DISABLED}");
            ConnectError::new(Code::FailedPrecondition, message).with_status(412)
        }
    }
}

/// A build id, if it is one.
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
