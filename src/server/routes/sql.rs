//! `POST /api/v1/sql`: runs a query and streams its rows.
//!
//! In: text or JSON. Out: JSON, CSV, Arrow, Parquet or pprof, written by `query::output::format`. If an error occurs
//! before the first row, the response is an ordinary error. A later error breaks the connection, so that no client
//! mistakes a partial response for a complete one.

use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures::stream::{self, BoxStream};
use futures::{StreamExt, TryStreamExt};
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderValue, Request};

use crate::query::QueryError;
use crate::query::output::format::{Format, encode};
use crate::server::state::shared::ServerState;
use crate::server::state::tenant::tenants;
use alluvium_wire::connect::{CallHeaders, Code, ConnectError};
use alluvium_wire::sql::{self, SqlFormat};

/// `POST /api/v1/sql`: streams rows while the query runs.
pub(in crate::server) async fn sql(State(state): State<ServerState>, request: Request<Body>) -> Response {
    run(state, request).await.unwrap_or_else(IntoResponse::into_response)
}

async fn run(state: ServerState, request: Request<Body>) -> Result<Response, ConnectError> {
    let (parts, body) = request.into_parts();
    let tenants = tenants(&parts.headers, &state.options)?;
    let sql_format = SqlFormat::wanted(parts.uri.query(), &parts.headers)?;
    let timeout = CallHeaders::timeout(&parts.headers)?;
    let limit = state.options.limits.question();
    let body = state.intake.read(&parts.headers, body, limit).await?;
    let query = sql::read_query(&parts.headers, &body.bytes)?;
    drop(body);
    let format = match sql_format {
        SqlFormat::Json => Format::Json,
        SqlFormat::Csv => Format::Csv,
        SqlFormat::Arrow => Format::Arrow,
        SqlFormat::Parquet => Format::Parquet,
        SqlFormat::Pprof => Format::Pprof,
    };
    let started = async {
        let result = state.engine.sql(&tenants, &query).await?;
        first_rows(encode(result, format)).await
    };
    let rows = match timeout {
        None => started.await?,
        Some(timeout) => tokio::time::timeout(timeout, started)
            .await
            .map_err(|_| ConnectError::new(Code::DeadlineExceeded, "the query exceeded the caller's timeout"))??,
    };
    let rows = rows.inspect_err(|error| tracing::warn!(error = %error, "sql response aborted"));
    let mut response = Body::from_stream(rows).into_response();
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(sql_format.content_type()));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}

/// Waits for the first chunk, so that an error before the first chunk becomes an ordinary error response.
async fn first_rows(
    mut chunks: BoxStream<'static, Result<Bytes, QueryError>>,
) -> Result<BoxStream<'static, Result<Bytes, QueryError>>, ConnectError> {
    Ok(match chunks.next().await.transpose()? {
        None => chunks,
        Some(first) => stream::once(async { Ok(first) }).chain(chunks).boxed(),
    })
}
