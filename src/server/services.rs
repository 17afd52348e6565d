//! The small services beside `push.v1` and `querier.v1`, as routes.
//!
//! In: a [`ServerState`]. Out: path and handler of each call. Their messages have the bounds of questions, and
//! those with files the bounds of pushes.

use axum::routing::MethodRouter;

use crate::server::ServerState;
use crate::server::about::About;
use crate::server::adhoc::AdHoc;
use crate::server::calls::{Admitted, Calls};
use crate::server::perform::Bounds;
use crate::server::user_settings::UserSettings;
use crate::wire::proto::adhocprofiles::AdHocProfileService as _;
use crate::wire::proto::capabilities::FeatureFlagsService;
use crate::wire::proto::settings::SettingsService as _;
use crate::wire::proto::version::Version;
use crate::wire::weight;

/// The routes of all small services.
pub(super) fn routes(state: &ServerState) -> Vec<(String, MethodRouter<ServerState>)> {
    let mut calls = Calls::new(Bounds {
        limit: state.options.limits.question(),
        weigh: weight::question,
    });
    let about = About {
        has_prometheus: state.options.prometheus.is_some(),
    };
    Version::route(&about, &mut calls);
    FeatureFlagsService::route(&about, &mut calls);
    UserSettings(state.clone()).route(&mut Admitted {
        engine: state.engine.clone(),
        routes: &mut calls,
    });
    let mut uploads = Calls::new(Bounds {
        limit: state.options.limits.push(),
        weigh: weight::text,
    });
    AdHoc(state.clone()).route(&mut Admitted {
        engine: state.engine.clone(),
        routes: &mut uploads,
    });
    let mut routes = calls.into_routes();
    routes.extend(uploads.into_routes());
    routes
}
