//! The table of routes, with the authentication and the right that each route requires.
//!
//! In: the method and the template of a route, without the prefix. Out: a [`Need`]. A route that is not in the table
//! requires an administrator of the whole server. So a new route is closed until somebody adds it to the table. The
//! table does not apply to the files of the web page, because the router serves them without a route.

use http::Method;

use crate::server::access::identity::Right;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Need {
    Nothing,
    Identity,
    /// A right for the tenant of the request.
    Right(Right),
    /// A right that covers all tenants together.
    Server(Right),
}

const READ: Need = Need::Right(Right::Read);
const WRITE: Need = Need::Right(Right::Write);

/// Routes and their needs. A route that ends with `*` stands for all routes with that prefix. The first matching entry
/// applies.
const TABLE: [(&str, Need); 58] = [
    // Health of the server, for load balancers and probes.
    ("/ready", Need::Nothing),
    ("/grpc.health.v1.Health/Check", Need::Nothing),
    ("/-/ready", Need::Nothing),
    ("/-/healthy", Need::Nothing),
    // Login, logout, and the caller's own identity.
    ("/api/v1/login", Need::Nothing),
    ("/api/v1/logout", Need::Nothing),
    ("/api/v1/session", Need::Nothing),
    // Version and features of the server.
    ("/version.v1.Version/Version", Need::Identity),
    ("/capabilities.v1.FeatureFlagsService/GetFeatureFlags", Need::Identity),
    ("/api/v1/status/buildinfo", Need::Identity),
    ("/status.v1.StatusService/GetBuildInfo", Need::Identity),
    ("/api/0/version", Need::Identity),
    // Pushes of profiles.
    ("/push.v1.PusherService/Push", WRITE),
    ("/ingest", WRITE),
    ("/pyroscope/ingest", WRITE),
    ("/v1development/profiles", WRITE),
    (
        "/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export",
        WRITE,
    ),
    // Queries.
    ("/querier.v1.QuerierService/*", READ),
    ("/pyroscope/render", READ),
    ("/pyroscope/render-diff", READ),
    ("/pyroscope/label-values", READ),
    ("/api/0/profiles/*", READ),
    ("/api/0/services", READ),
    ("/api/0/*", Need::Identity),
    ("/api/v1/sql", READ),
    ("/api/v1/tenant_limits", READ),
    ("/api/v1/adhoc", READ),
    ("/api/v1/prometheus/query_range", READ),
    ("/api/v1/status/storage", READ),
    ("/api/v1/status/senders", READ),
    // Settings and files that users keep beside their profiles.
    ("/adhocprofiles.v1.AdHocProfileService/Upload", WRITE),
    ("/adhocprofiles.v1.AdHocProfileService/*", READ),
    ("/settings.v1.SettingsService/Get", READ),
    ("/settings.v1.SettingsService/Set", WRITE),
    ("/settings.v1.SettingsService/Delete", WRITE),
    ("/settings.v1.RecordingRulesService/GetRecordingRule", READ),
    ("/settings.v1.RecordingRulesService/ListRecordingRules", READ),
    ("/settings.v1.RecordingRulesService/UpsertRecordingRule", WRITE),
    ("/settings.v1.RecordingRulesService/DeleteRecordingRule", WRITE),
    ("/vcs.v1.VCSService/*", READ),
    ("/debuginfo.v1alpha1.DebuginfoService/ListDebuginfo", READ),
    ("/debuginfo.v1alpha1.DebuginfoService/ShouldInitiateUpload", WRITE),
    ("/debuginfo.v1alpha1.DebuginfoService/Upload/*", WRITE),
    ("/debuginfo.v1alpha1.DebuginfoService/UploadFinished", WRITE),
    ("/debuginfo.v1alpha1.DebuginfoService/DeleteDebuginfo", WRITE),
    // Data about the process, which serves all tenants.
    ("/metrics", Need::Server(Right::Read)),
    ("/debug/pprof*", Need::Server(Right::Read)),
    ("/api/v1/status/config*", Need::Server(Right::Read)),
    ("/status.v1.StatusService/GetConfig", Need::Server(Right::Read)),
    ("/status.v1.StatusService/GetDiffConfig", Need::Server(Right::Read)),
    ("/status.v1.StatusService/GetDefaultConfig", Need::Server(Right::Read)),
    // The collector of `alluvium demo`, which runs in the same process as the server.
    ("/api/v0/web/*", Need::Server(Right::Read)),
    ("/api/v0/*", Need::Server(Right::Admin)),
    ("/-/reload", Need::Server(Right::Admin)),
    ("/-/support", Need::Server(Right::Admin)),
    // Operations that cannot be undone, or that affect all tenants.
    ("/api/v1/admin/delete", Need::Right(Right::Admin)),
    ("/api/v1/admin/*", Need::Server(Right::Admin)),
    ("/flush", Need::Server(Right::Admin)),
];

/// The only route whose methods have different needs. GET lists profiles, and POST stores one.
const PROFILES: &str = "/api/0/profiles";

pub(super) fn need(method: &Method, route: &str) -> Need {
    named(method, route).unwrap_or(Need::Server(Right::Admin))
}

/// Returns the need of a route, if the table contains the route.
fn named(method: &Method, route: &str) -> Option<Need> {
    if route == PROFILES {
        return Some(if *method == Method::POST { WRITE } else { READ });
    }
    let fits = |pattern: &str| match pattern.strip_suffix('*') {
        Some(start) => route.starts_with(start),
        None => route == pattern,
    };
    TABLE.iter().find(|(pattern, _)| fits(pattern)).map(|(_, need)| *need)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_has_decided_about_needs_an_admin_of_the_server() {
        assert_eq!(need(&Method::GET, "/api/v2/new"), Need::Server(Right::Admin));
        assert_eq!(
            need(&Method::POST, "/settings.v1.SettingsService/New"),
            Need::Server(Right::Admin)
        );
        assert_eq!(
            need(&Method::POST, "/debuginfo.v1alpha1.DebuginfoService/New"),
            Need::Server(Right::Admin)
        );
    }

    #[test]
    fn a_call_needs_what_its_plain_route_does() {
        for (call, route) in [
            ("GetBuildInfo", "buildinfo"),
            ("GetConfig", "config"),
            ("GetDiffConfig", "config/diff"),
            ("GetDefaultConfig", "config/default"),
        ] {
            let call = need(&Method::POST, &format!("/status.v1.StatusService/{call}"));
            assert_eq!(call, need(&Method::GET, &format!("/api/v1/status/{route}")), "{route}");
        }
    }

    #[test]
    fn profiles_are_listed_by_readers_and_brought_by_writers() {
        assert_eq!(need(&Method::GET, PROFILES), READ);
        assert_eq!(need(&Method::POST, PROFILES), WRITE);
        assert_eq!(need(&Method::GET, "/ready"), Need::Nothing);
        assert_eq!(need(&Method::GET, "/ready/../flush"), Need::Server(Right::Admin));
    }
}
