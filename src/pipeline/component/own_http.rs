//! The program's own HTTP endpoints as its components reach them: in the process, without a socket.
//!
//! In: an address that stands for them (`alloy.internal:12345`) and, once they are there, who answers. Out: answers.
//! Components that fetch from targets ask here when a target has that address.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;

use crate::base::BoxFuture;

/// Answers a request to one of the program's endpoints.
pub(crate) type Answer = Arc<dyn Fn(http::Request<Bytes>) -> BoxFuture<'static, http::Response<Bytes>> + Send + Sync>;

/// The endpoints. Clones are the same; the default has no address.
#[derive(Clone, Default)]
pub struct OwnHttp(Arc<Own>);

#[derive(Default)]
struct Own {
    address: Box<str>,
    answer: OnceLock<Answer>,
}

impl OwnHttp {
    /// The endpoints at this `host:port`, which nobody answers for yet.
    pub fn new(address: &str) -> Self {
        Self(Arc::new(Own {
            address: address.to_ascii_lowercase().into(),
            answer: OnceLock::new(),
        }))
    }

    /// Says who answers; the first counts.
    pub fn set(&self, answer: Answer) {
        let _ = self.0.answer.set(answer);
    }

    /// Their `host:port`; empty for a program without them.
    pub(crate) fn address(&self) -> &str {
        &self.0.address
    }

    /// True when this is their address.
    pub(crate) fn is_at(&self, host: &str, port: Option<u16>) -> bool {
        let split = self.0.address.rsplit_once(':');
        split.is_some_and(|(own, own_port)| {
            host.eq_ignore_ascii_case(own) && port.is_some_and(|port| own_port.parse() == Ok(port))
        })
    }

    /// The answer to a request; 503 before there is one who answers.
    pub async fn ask(&self, request: http::Request<Bytes>) -> http::Response<Bytes> {
        if let Some(answer) = self.0.answer.get() {
            answer(request).await
        } else {
            let mut early = http::Response::new(Bytes::from_static(b"the endpoints are not there yet\n"));
            *early.status_mut() = http::StatusCode::SERVICE_UNAVAILABLE;
            early
        }
    }
}
