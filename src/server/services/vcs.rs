//! `vcs.v1`: source code from GitHub. This server has no connection to GitHub.
//!
//! In: calls of Grafana's pages. Out: errors with the codes that Pyroscope uses while its GitHub app is not configured,
//! except for `github_login`. The error of `github_app` tells the pages to offer no source code. The calls that follow
//! a login need a session, which no client has.

use alluvium_wire::connect::{Code, ConnectError};
use alluvium_wire::proto::vcs::{
    GetCommitRequest, GetCommitResponse, GetCommitsRequest, GetCommitsResponse, GetFileRequest, GetFileResponse,
    GithubAppRequest, GithubAppResponse, GithubLoginRequest, GithubLoginResponse, GithubRefreshRequest,
    GithubRefreshResponse, VcsService,
};
use alluvium_wire::service::{Call, CallResult};

/// Refuses every call with a specific error.
#[derive(Clone)]
pub(in crate::server) struct Vcs;

impl VcsService for Vcs {
    async fn github_app(&self, _call: Call<GithubAppRequest>) -> CallResult<GithubAppResponse> {
        Err(vcs_unavailable())
    }

    /// Returns `unimplemented`. Pyroscope returns `internal`, but that code would count as a failure of this server.
    async fn github_login(&self, _call: Call<GithubLoginRequest>) -> CallResult<GithubLoginResponse> {
        Err(vcs_unavailable())
    }

    async fn github_refresh(&self, _call: Call<GithubRefreshRequest>) -> CallResult<GithubRefreshResponse> {
        Err(no_session())
    }

    async fn get_file(&self, _call: Call<GetFileRequest>) -> CallResult<GetFileResponse> {
        Err(no_session())
    }

    async fn get_commit(&self, _call: Call<GetCommitRequest>) -> CallResult<GetCommitResponse> {
        Err(no_session())
    }

    async fn get_commits(&self, _call: Call<GetCommitsRequest>) -> CallResult<GetCommitsResponse> {
        Err(no_session())
    }
}

fn vcs_unavailable() -> ConnectError {
    ConnectError::new(Code::Unimplemented, "this server has no GitHub app")
}

fn no_session() -> ConnectError {
    let message = "there is no session with GitHub: this server has no GitHub app";
    ConnectError::new(Code::Unauthenticated, message)
}
