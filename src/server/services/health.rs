//! `grpc.health.v1`: whether the server is ready, for load balancers and probes that speak gRPC.
//!
//! In: the name of a service. The name is ignored, because all services of the port become ready at the same time. Out:
//! the state that `/ready` reports.

use crate::server::state::shared::ServerState;
use alluvium_wire::proto::health::{Health, HealthCheckRequest, HealthCheckResponse, ServingStatus};
use alluvium_wire::service::{Call, CallResult};

/// Reports the readiness of the server.
#[derive(Clone)]
pub(in crate::server) struct Serving(pub(in crate::server) ServerState);

impl Health for Serving {
    async fn check(&self, _call: Call<HealthCheckRequest>) -> CallResult<HealthCheckResponse> {
        let status = match self.0.not_ready() {
            None => ServingStatus::Serving,
            Some(_) => ServingStatus::NotServing,
        };
        Ok(HealthCheckResponse { status: status.into() }.into())
    }
}
