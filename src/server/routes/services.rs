//! The routes of all services.
//!
//! In: a [`ServerState`]. Out: the path and the handler of each call. Messages with profiles have the bounds of pushes,
//! messages about the server itself have smaller bounds, and all other messages have the bounds of queries.

use axum::routing::{MethodRouter, post};

use crate::server::calls::perform::Bounds;
use crate::server::calls::register::{Admitted, Calls};
use crate::server::routes::adhoc::AdHoc;
use crate::server::routes::otlp;
use crate::server::routes::otlp::Exporter;
use crate::server::services::about::About;
use crate::server::services::debuginfo;
use crate::server::services::debuginfo::DebugInfo;
use crate::server::services::health::Serving;
use crate::server::services::push::Pusher;
use crate::server::services::querier::Querier;
use crate::server::services::recording_rules::RecordingRules;
use crate::server::services::user_settings::UserSettings;
use crate::server::services::vcs::Vcs;
use crate::server::state::shared::ServerState;
use crate::server::state::tenant::{no_tenants, tenants};
use alluvium_wire::proto::adhocprofiles::AdHocProfileService as _;
use alluvium_wire::proto::capabilities::FeatureFlagsService;
use alluvium_wire::proto::debuginfo::DebuginfoService as _;
use alluvium_wire::proto::health::Health as _;
use alluvium_wire::proto::push::PusherService as _;
use alluvium_wire::proto::querier::QuerierService as _;
use alluvium_wire::proto::settings::{RecordingRulesService as _, SettingsService as _};
use alluvium_wire::proto::status::StatusService;
use alluvium_wire::proto::vcs::VcsService as _;
use alluvium_wire::proto::version::Version;
use alluvium_wire::weight;

/// Returns the routes of all services.
pub(in crate::server) fn routes(state: &ServerState) -> Vec<(String, MethodRouter<ServerState>)> {
    let limits = &state.options.limits;
    let about = About {
        has_prometheus: state.options.prometheus.is_some(),
        settings: state.options.settings.clone(),
    };
    let mut pushes = Calls::new(Bounds {
        limit: limits.push(),
        upgrade: None,
        weigh: weight::push,
        tenants,
    });
    Pusher(state.clone()).route(&mut pushes);
    let mut exports = Calls::new(otlp::bounds(state));
    Exporter(state.clone()).route(&mut exports);
    let mut uploads = Calls::new(Bounds {
        limit: limits.push(),
        upgrade: None,
        weigh: weight::text,
        tenants,
    });
    AdHoc(state.clone()).route(&mut Admitted {
        engine: state.engine.clone(),
        routes: &mut uploads,
    });
    let of_questions = Bounds {
        limit: limits.question(),
        upgrade: None,
        weigh: weight::question,
        tenants,
    };
    let mut of_server = Calls::new(Bounds {
        limit: limits.about_server(),
        tenants: no_tenants,
        ..of_questions
    });
    Version::route(&about, &mut of_server);
    StatusService::route(&about, &mut of_server);
    Serving(state.clone()).route(&mut of_server);
    let mut questions = Calls::new(of_questions);
    FeatureFlagsService::route(&about, &mut questions);
    RecordingRules.route(&mut questions);
    Vcs.route(&mut questions);
    DebugInfo.route(&mut questions);
    let mut admitted = Admitted {
        engine: state.engine.clone(),
        routes: &mut questions,
    };
    UserSettings(state.clone()).route(&mut admitted);
    Querier(state.clone()).route(&mut admitted);
    let all = [pushes, exports, uploads, of_server, questions];
    let mut routes: Vec<_> = all.into_iter().flat_map(Calls::into_routes).collect();
    routes.push((debuginfo::UPLOAD.to_owned(), post(debuginfo::upload)));
    routes
}
