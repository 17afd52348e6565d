//! Generated from `proto/vcs/v1/vcs.proto` by `UPDATE_EXPECT=1 cargo test --test integration protos`: do not edit.

#[derive(Clone, Copy, PartialEq, Eq, Hash, ::prost::Message)]
pub struct GithubAppRequest {}
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct GithubAppResponse {
    #[prost(string, tag = "1")]
    pub client_id: ::prost::alloc::string::String,
    #[prost(string, tag = "2")]
    pub callback_url: ::prost::alloc::string::String,
}
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct GithubLoginRequest {
    #[prost(string, tag = "1")]
    pub authorization_code: ::prost::alloc::string::String,
}
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct GithubLoginResponse {
    #[prost(string, tag = "1")]
    pub cookie: ::prost::alloc::string::String,
    #[prost(string, tag = "2")]
    pub token: ::prost::alloc::string::String,
    /// Unix time in milliseconds.
    #[prost(int64, tag = "3")]
    pub token_expires_at: i64,
    #[prost(int64, tag = "4")]
    pub refresh_token_expires_at: i64,
}
#[derive(Clone, Copy, PartialEq, Eq, Hash, ::prost::Message)]
pub struct GithubRefreshRequest {}
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct GithubRefreshResponse {
    #[prost(string, tag = "1")]
    pub cookie: ::prost::alloc::string::String,
    #[prost(string, tag = "2")]
    pub token: ::prost::alloc::string::String,
    /// Unix time in milliseconds.
    #[prost(int64, tag = "3")]
    pub token_expires_at: i64,
    #[prost(int64, tag = "4")]
    pub refresh_token_expires_at: i64,
}
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct GetFileRequest {
    #[prost(string, tag = "1")]
    pub repository_url: ::prost::alloc::string::String,
    #[prost(string, tag = "2")]
    pub r#ref: ::prost::alloc::string::String,
    /// As the profile has it.
    #[prost(string, tag = "3")]
    pub local_path: ::prost::alloc::string::String,
    #[prost(string, tag = "4")]
    pub root_path: ::prost::alloc::string::String,
    #[prost(string, tag = "5")]
    pub function_name: ::prost::alloc::string::String,
}
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct GetFileResponse {
    /// In base64.
    #[prost(string, tag = "1")]
    pub content: ::prost::alloc::string::String,
    #[prost(string, tag = "2")]
    pub url: ::prost::alloc::string::String,
}
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct GetCommitRequest {
    #[prost(string, tag = "1")]
    pub repository_url: ::prost::alloc::string::String,
    #[prost(string, tag = "2")]
    pub r#ref: ::prost::alloc::string::String,
}
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct GetCommitResponse {
    #[prost(string, tag = "1")]
    pub message: ::prost::alloc::string::String,
    #[prost(message, optional, tag = "2")]
    pub author: ::core::option::Option<CommitAuthor>,
    #[prost(string, tag = "3")]
    pub date: ::prost::alloc::string::String,
    #[prost(string, tag = "4")]
    pub sha: ::prost::alloc::string::String,
    #[prost(string, tag = "5")]
    pub url: ::prost::alloc::string::String,
}
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct CommitAuthor {
    #[prost(string, tag = "1")]
    pub login: ::prost::alloc::string::String,
    #[prost(string, tag = "2")]
    pub avatar_url: ::prost::alloc::string::String,
}
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct CommitInfo {
    #[prost(string, tag = "1")]
    pub message: ::prost::alloc::string::String,
    #[prost(message, optional, tag = "2")]
    pub author: ::core::option::Option<CommitAuthor>,
    #[prost(string, tag = "3")]
    pub date: ::prost::alloc::string::String,
    #[prost(string, tag = "4")]
    pub sha: ::prost::alloc::string::String,
    #[prost(string, tag = "5")]
    pub url: ::prost::alloc::string::String,
}
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct GetCommitsRequest {
    #[prost(string, tag = "1")]
    pub repository_url: ::prost::alloc::string::String,
    #[prost(string, repeated, tag = "2")]
    pub refs: ::prost::alloc::vec::Vec<::prost::alloc::string::String>,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct GetCommitsResponse {
    #[prost(message, repeated, tag = "1")]
    pub commits: ::prost::alloc::vec::Vec<CommitInfo>,
}
/// The calls of `vcs.v1.VCSService`.
pub trait VcsService: Clone + Send + Sync + 'static {
    fn github_app(
        &self,
        call: crate::service::Call<GithubAppRequest>,
    ) -> impl Future<Output = crate::service::CallResult<GithubAppResponse>> + Send;
    fn github_login(
        &self,
        call: crate::service::Call<GithubLoginRequest>,
    ) -> impl Future<Output = crate::service::CallResult<GithubLoginResponse>> + Send;
    fn github_refresh(
        &self,
        call: crate::service::Call<GithubRefreshRequest>,
    ) -> impl Future<Output = crate::service::CallResult<GithubRefreshResponse>> + Send;
    fn get_file(
        &self,
        call: crate::service::Call<GetFileRequest>,
    ) -> impl Future<Output = crate::service::CallResult<GetFileResponse>> + Send;
    fn get_commit(
        &self,
        call: crate::service::Call<GetCommitRequest>,
    ) -> impl Future<Output = crate::service::CallResult<GetCommitResponse>> + Send;
    fn get_commits(
        &self,
        call: crate::service::Call<GetCommitsRequest>,
    ) -> impl Future<Output = crate::service::CallResult<GetCommitsResponse>> + Send;
    fn route(&self, routes: &mut impl crate::service::Routes) {
        let service = self.clone();
        routes
            .unary(
                "vcs.v1.VCSService/GithubApp",
                move |call| {
                    let service = service.clone();
                    async move { service.github_app(call).await }
                },
            );
        let service = self.clone();
        routes
            .unary(
                "vcs.v1.VCSService/GithubLogin",
                move |call| {
                    let service = service.clone();
                    async move { service.github_login(call).await }
                },
            );
        let service = self.clone();
        routes
            .unary(
                "vcs.v1.VCSService/GithubRefresh",
                move |call| {
                    let service = service.clone();
                    async move { service.github_refresh(call).await }
                },
            );
        let service = self.clone();
        routes
            .unary(
                "vcs.v1.VCSService/GetFile",
                move |call| {
                    let service = service.clone();
                    async move { service.get_file(call).await }
                },
            );
        let service = self.clone();
        routes
            .unary(
                "vcs.v1.VCSService/GetCommit",
                move |call| {
                    let service = service.clone();
                    async move { service.get_commit(call).await }
                },
            );
        let service = self.clone();
        routes
            .unary(
                "vcs.v1.VCSService/GetCommits",
                move |call| {
                    let service = service.clone();
                    async move { service.get_commits(call).await }
                },
            );
    }
}

impl crate::json::ToJson for GithubAppRequest {
    fn write(&self, out: &mut crate::json::Writer) {
        out.message(|_| {});
    }
}

impl crate::json::Fields for GithubAppRequest {
    const NAMES: &'static [[&'static str; 2]] = &[];

    fn read_field<'de, A: serde::de::MapAccess<'de>>(&mut self, index: usize, _: &mut A) -> Result<(), A::Error> {
        match index {
            _ => Ok(()),
        }
    }
}

impl crate::json::ToJson for GithubAppResponse {
    fn write(&self, out: &mut crate::json::Writer) {
        out.message(|out| {
            out.field("clientID", &self.client_id);
            out.field("callbackURL", &self.callback_url);
        });
    }
}

impl crate::json::ToJson for GithubLoginRequest {
    fn write(&self, out: &mut crate::json::Writer) {
        out.message(|out| {
            out.field("authorizationCode", &self.authorization_code);
        });
    }
}

impl crate::json::Fields for GithubLoginRequest {
    const NAMES: &'static [[&'static str; 2]] = &[["authorizationCode", "authorizationCode"]];

    fn read_field<'de, A: serde::de::MapAccess<'de>>(&mut self, index: usize, map: &mut A) -> Result<(), A::Error> {
        match index {
            0 => map.next_value_seed(crate::json::Field(&mut self.authorization_code)),
            _ => Ok(()),
        }
    }
}

impl crate::json::ToJson for GithubLoginResponse {
    fn write(&self, out: &mut crate::json::Writer) {
        out.message(|out| {
            out.field("cookie", &self.cookie);
            out.field("token", &self.token);
            out.field("tokenExpiresAt", &self.token_expires_at);
            out.field("refreshTokenExpiresAt", &self.refresh_token_expires_at);
        });
    }
}

impl crate::json::ToJson for GithubRefreshRequest {
    fn write(&self, out: &mut crate::json::Writer) {
        out.message(|_| {});
    }
}

impl crate::json::Fields for GithubRefreshRequest {
    const NAMES: &'static [[&'static str; 2]] = &[];

    fn read_field<'de, A: serde::de::MapAccess<'de>>(&mut self, index: usize, _: &mut A) -> Result<(), A::Error> {
        match index {
            _ => Ok(()),
        }
    }
}

impl crate::json::ToJson for GithubRefreshResponse {
    fn write(&self, out: &mut crate::json::Writer) {
        out.message(|out| {
            out.field("cookie", &self.cookie);
            out.field("token", &self.token);
            out.field("tokenExpiresAt", &self.token_expires_at);
            out.field("refreshTokenExpiresAt", &self.refresh_token_expires_at);
        });
    }
}

impl crate::json::ToJson for GetFileRequest {
    fn write(&self, out: &mut crate::json::Writer) {
        out.message(|out| {
            out.field("repositoryURL", &self.repository_url);
            out.field("ref", &self.r#ref);
            out.field("localPath", &self.local_path);
            out.field("rootPath", &self.root_path);
            out.field("functionName", &self.function_name);
        });
    }
}

impl crate::json::Fields for GetFileRequest {
    const NAMES: &'static [[&'static str; 2]] = &[["repositoryURL", "repositoryURL"], ["ref", "ref"], ["localPath", "localPath"], ["rootPath", "rootPath"], ["functionName", "functionName"]];

    fn read_field<'de, A: serde::de::MapAccess<'de>>(&mut self, index: usize, map: &mut A) -> Result<(), A::Error> {
        match index {
            0 => map.next_value_seed(crate::json::Field(&mut self.repository_url)),
            1 => map.next_value_seed(crate::json::Field(&mut self.r#ref)),
            2 => map.next_value_seed(crate::json::Field(&mut self.local_path)),
            3 => map.next_value_seed(crate::json::Field(&mut self.root_path)),
            4 => map.next_value_seed(crate::json::Field(&mut self.function_name)),
            _ => Ok(()),
        }
    }
}

impl crate::json::ToJson for GetFileResponse {
    fn write(&self, out: &mut crate::json::Writer) {
        out.message(|out| {
            out.field("content", &self.content);
            out.field("URL", &self.url);
        });
    }
}

impl crate::json::ToJson for GetCommitRequest {
    fn write(&self, out: &mut crate::json::Writer) {
        out.message(|out| {
            out.field("repositoryURL", &self.repository_url);
            out.field("ref", &self.r#ref);
        });
    }
}

impl crate::json::Fields for GetCommitRequest {
    const NAMES: &'static [[&'static str; 2]] = &[["repositoryURL", "repositoryURL"], ["ref", "ref"]];

    fn read_field<'de, A: serde::de::MapAccess<'de>>(&mut self, index: usize, map: &mut A) -> Result<(), A::Error> {
        match index {
            0 => map.next_value_seed(crate::json::Field(&mut self.repository_url)),
            1 => map.next_value_seed(crate::json::Field(&mut self.r#ref)),
            _ => Ok(()),
        }
    }
}

impl crate::json::ToJson for GetCommitResponse {
    fn write(&self, out: &mut crate::json::Writer) {
        out.message(|out| {
            out.field("message", &self.message);
            out.field("author", &self.author);
            out.field("date", &self.date);
            out.field("sha", &self.sha);
            out.field("URL", &self.url);
        });
    }
}

impl crate::json::ToJson for CommitAuthor {
    fn write(&self, out: &mut crate::json::Writer) {
        out.message(|out| {
            out.field("login", &self.login);
            out.field("avatarURL", &self.avatar_url);
        });
    }
}

impl crate::json::ToJson for CommitInfo {
    fn write(&self, out: &mut crate::json::Writer) {
        out.message(|out| {
            out.field("message", &self.message);
            out.field("author", &self.author);
            out.field("date", &self.date);
            out.field("sha", &self.sha);
            out.field("URL", &self.url);
        });
    }
}

impl crate::json::ToJson for GetCommitsRequest {
    fn write(&self, out: &mut crate::json::Writer) {
        out.message(|out| {
            out.field("repositoryUrl", &self.repository_url);
            out.field("refs", &self.refs);
        });
    }
}

impl crate::json::Fields for GetCommitsRequest {
    const NAMES: &'static [[&'static str; 2]] = &[["repositoryUrl", "repository_url"], ["refs", "refs"]];

    fn read_field<'de, A: serde::de::MapAccess<'de>>(&mut self, index: usize, map: &mut A) -> Result<(), A::Error> {
        match index {
            0 => map.next_value_seed(crate::json::Field(&mut self.repository_url)),
            1 => map.next_value_seed(crate::json::Field(&mut self.refs)),
            _ => Ok(()),
        }
    }
}

impl crate::json::ToJson for GetCommitsResponse {
    fn write(&self, out: &mut crate::json::Writer) {
        out.message(|out| {
            out.field("commits", &self.commits);
        });
    }
}
