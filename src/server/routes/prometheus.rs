//! `/api/v1/prometheus/query_range`: range queries of the configured Prometheus.
//!
//! In: a GET with parameters in its URL. Out: the response of the configured Prometheus, or an error in the same form
//! as on all routes.

use axum::extract::{RawQuery, State};
use axum::response::{IntoResponse, Response};
use http::HeaderMap;

use crate::server::bodies::sending::{EncodedResponse, respond};
use crate::server::prometheus::client::REQUEST_TIMEOUT;
use crate::server::prometheus::range_query::RangeQuery;
use crate::server::services::parameters::unimplemented;
use crate::server::state::shared::ServerState;
use crate::server::state::tenant::tenants;
use alluvium_base::encoding::accepts;

/// Path of the route below the root or the prefix.
pub(in crate::server) const PATH: &str = "/api/v1/prometheus/query_range";

/// `GET /api/v1/prometheus/query_range`: sends a range query to the configured server.
pub(in crate::server) async fn query_range(
    State(state): State<ServerState>,
    headers: HeaderMap,
    RawQuery(query): RawQuery,
) -> Response {
    let response = async {
        let tenants = tenants(&headers, &state.options)?;
        let Some(prometheus) = &state.options.prometheus else {
            return Err(unimplemented(
                "metrics beside profiles, because no Prometheus is configured (`--prometheus-url`)",
            ));
        };
        let range_query = RangeQuery::parse(&query.unwrap_or_default())?;
        let tenants = state.options.multi_tenant.then_some(&tenants);
        let body = prometheus.query(&range_query, tenants).await?;
        let pack = if accepts(&headers, "gzip") {
            EncodedResponse::packed
        } else {
            EncodedResponse::plain
        };
        let written = state.write(body.len(), move || Ok(pack(body))).await?;
        respond(&state.answers, REQUEST_TIMEOUT, "application/json", written)
    };
    response.await.unwrap_or_else(IntoResponse::into_response)
}
