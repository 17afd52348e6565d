//! `push.v1.PusherService`: accepts profiles.
//!
//! In: profiles. The service passes the valid profiles to the store. Out: an empty response, or one error that combines
//! the errors of all refused profiles. The other profiles of the call stay stored.

use crate::server::state::shared::ServerState;
use crate::server::state::tenant::one_tenant;
use alluvium_wire::proto::push::{PushRequest, PushResponse, PusherService};
use alluvium_wire::push::PushBatch;
use alluvium_wire::service::{Call, CallResult};

/// Passes pushed profiles to the store.
#[derive(Clone)]
pub(in crate::server) struct Pusher(pub(in crate::server) ServerState);

impl PusherService for Pusher {
    async fn push(&self, call: Call<PushRequest>) -> CallResult<PushResponse> {
        let tenant = one_tenant(&call.tenants)?;
        let Call { request, memory, .. } = call;
        let bytes = prost::Message::encoded_len(&request);
        let split = move || Ok((PushBatch::from_request(request)?.split(), memory));
        let ((profiles, outcome), memory) = self.0.workers.run(bytes, split).await?;
        let errors = if profiles.is_empty() {
            Vec::new()
        } else {
            self.0.append(tenant, profiles, memory).await?
        };
        outcome.finish(errors)?;
        Ok(PushResponse {}.into())
    }
}
