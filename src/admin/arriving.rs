//! Aborts a slow request body if the port has reached its limit of connections and another connection waits for a
//! slot.
//!
//! In: the body of a request, and the connections of the port. Out: the bytes of the body, or an error for a slow body.
//! Without this rule, a few hundred clients that announce a body and send a byte now and then would block all other
//! clients until the time limit for bodies. In the server, the module `pace` also refuses a slow body if other requests
//! wait for the memory that the body holds.

use std::error::Error;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use tokio::time::{Instant, Sleep};

use crate::connections::Connections;

/// A body is slow if fewer bytes than this arrive in [`SLOW_TIME`].
const SLOW_BYTES: usize = 16 << 10;
const SLOW_TIME: Duration = Duration::from_secs(1);

/// Body of a request while it arrives.
pub(super) struct Arriving<B> {
    body: B,
    slots: Arc<Connections>,
    /// Bytes that have arrived since the timer was set.
    bytes: usize,
    /// Timer until the next check whether the body is slow. `None` until the reader has to wait for the first time.
    timer: Option<Pin<Box<Sleep>>>,
    /// Moment at which the reader received a frame. `None` while the reader waits for the next frame.
    away_since: Option<Instant>,
    /// Time that the reader spent processing since the timer was set.
    away: Duration,
}

impl<B> Arriving<B> {
    /// Wraps a body that arrives on one of the connections in `slots`.
    pub(super) fn new(body: B, slots: Arc<Connections>) -> Self {
        Self {
            body,
            slots,
            bytes: 0,
            timer: None,
            away_since: None,
            away: Duration::ZERO,
        }
    }

    /// Waits until the body is slow and another connection waits for a slot. Time in which the reader does not poll
    /// the body does not count.
    fn poll_slow(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let timer = self
            .timer
            .get_or_insert_with(|| Box::pin(tokio::time::sleep(SLOW_TIME)));
        loop {
            ready!(timer.as_mut().poll(context));
            let away = std::mem::take(&mut self.away);
            if away > Duration::ZERO {
                let deadline = timer.deadline() + away;
                timer.as_mut().reset(deadline);
                continue;
            }
            if self.bytes < SLOW_BYTES && self.slots.are_wanted() {
                return Poll::Ready(());
            }
            self.bytes = 0;
            timer.as_mut().reset(Instant::now() + SLOW_TIME);
        }
    }
}

impl<B: Body<Data = Bytes, Error: Into<Box<dyn Error + Send + Sync>>> + Unpin> Body for Arriving<B> {
    type Data = Bytes;
    type Error = Box<dyn Error + Send + Sync>;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        if let Some(start) = self.away_since.take() {
            self.away += start.elapsed();
        }
        if let Poll::Ready(frame) = Pin::new(&mut self.body).poll_frame(context) {
            if let Some(Ok(frame)) = &frame {
                self.bytes += frame.data_ref().map_or(0, Bytes::len);
            }
            self.away_since = Some(Instant::now());
            return Poll::Ready(frame.map(|frame| frame.map_err(Into::into)));
        }
        ready!(self.poll_slow(context));
        let message = "the body arrived slowly while other connections waited for a slot: try again";
        Poll::Ready(Some(Err(io::Error::new(io::ErrorKind::TimedOut, message).into())))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use futures::StreamExt as _;
    use http_body_util::{BodyExt as _, StreamBody};

    use super::*;

    /// Returns a body that takes two seconds: ten times a second it sends this many bytes.
    fn body(bytes: usize) -> impl Body<Data = Bytes, Error = Infallible> + Unpin {
        let chunks = futures::stream::iter(0..20).then(move |_| async move {
            tokio::time::sleep(Duration::from_millis(100)).await;
            Ok(Frame::data(Bytes::from(vec![0; bytes])))
        });
        StreamBody::new(Box::pin(chunks))
    }

    async fn received(bytes: usize, slots: &Arc<Connections>) -> Result<usize, String> {
        let collected = Arriving::new(body(bytes), slots.clone()).collect().await;
        collected
            .map(|body| body.to_bytes().len())
            .map_err(|error| error.to_string())
    }

    #[tokio::test]
    async fn a_slow_body_gives_way_to_a_connection_that_waits_for_a_place_and_a_fast_one_does_not() {
        let slots = Connections::new(1, None);
        let slot = slots.slot().await;
        let _request = slot.requests().begin();
        assert_eq!(received(10, &slots).await, Ok(200));
        let mut next = std::pin::pin!(slots.slot());
        assert!(futures::poll!(next.as_mut()).is_pending());
        assert_eq!(received(SLOW_BYTES, &slots).await, Ok(20 * SLOW_BYTES));
        let error = received(10, &slots).await.unwrap_err();
        assert!(error.contains("other connections waited"), "{error}");
    }

    #[tokio::test]
    async fn a_body_whose_reader_came_late_is_not_slow() {
        let slots = Connections::new(1, None);
        let slot = slots.slot().await;
        let _request = slot.requests().begin();
        let mut next = std::pin::pin!(slots.slot());
        assert!(futures::poll!(next.as_mut()).is_pending());
        let mut arriving = Arriving::new(body(10), slots.clone());
        for _ in 0..3 {
            assert!(arriving.frame().await.unwrap().is_ok());
            tokio::time::sleep(SLOW_TIME).await;
        }
        assert!(arriving.collect().await.is_err());
    }
}
