//! Recording rules of `settings.v1`. The server has no rules and accepts none.
//!
//! In: ids and rules. Out: an empty list, or an error. In Pyroscope a rule computes a metric from the profiles that it
//! selects, and sends it to a Prometheus. Alluvium does not evaluate rules, so it keeps none. Otherwise a user would
//! see a rule in the list, and would notice much later that its metric does not exist.

use crate::server::services::parameters::unimplemented;
use crate::server::state::tenant::one_tenant;
use alluvium_wire::connect::{Code, ConnectError};
use alluvium_wire::proto::settings::{
    DeleteRecordingRuleRequest, DeleteRecordingRuleResponse, GetRecordingRuleRequest, GetRecordingRuleResponse,
    ListRecordingRulesRequest, ListRecordingRulesResponse, RecordingRulesService, UpsertRecordingRuleRequest,
    UpsertRecordingRuleResponse,
};
use alluvium_wire::service::{Call, CallResult};

/// Maximum number of characters of an id in an error.
const SHOWN_CHARS: usize = 100;

/// Implements the calls without any state.
#[derive(Clone)]
pub(in crate::server) struct RecordingRules;

impl RecordingRulesService for RecordingRules {
    async fn get_recording_rule(&self, call: Call<GetRecordingRuleRequest>) -> CallResult<GetRecordingRuleResponse> {
        one_tenant(&call.tenants)?;
        Err(no_rule(&call.request.id))
    }

    async fn list_recording_rules(
        &self,
        call: Call<ListRecordingRulesRequest>,
    ) -> CallResult<ListRecordingRulesResponse> {
        one_tenant(&call.tenants)?;
        Ok(ListRecordingRulesResponse::default().into())
    }

    async fn upsert_recording_rule(
        &self,
        call: Call<UpsertRecordingRuleRequest>,
    ) -> CallResult<UpsertRecordingRuleResponse> {
        one_tenant(&call.tenants)?;
        Err(unimplemented(
            "recording rules, which this server neither evaluates nor stores",
        ))
    }

    async fn delete_recording_rule(
        &self,
        call: Call<DeleteRecordingRuleRequest>,
    ) -> CallResult<DeleteRecordingRuleResponse> {
        one_tenant(&call.tenants)?;
        Err(no_rule(&call.request.id))
    }
}

/// Returns the error of a call that names one rule.
fn no_rule(id: &str) -> ConnectError {
    let id = id.trim();
    if id.is_empty() {
        return ConnectError::invalid("the id of the recording rule is missing");
    }
    let shown: String = id.chars().take(SHOWN_CHARS).collect();
    ConnectError::new(Code::NotFound, format!("there is no recording rule `{shown}`"))
}
