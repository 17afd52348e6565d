//! Credentials that expire: requested once, and used until shortly before they expire.

use std::time::{Duration, SystemTime};

/// Credentials are renewed this long before they expire, so that they do not expire in transit.
const RENEW_BEFORE: Duration = Duration::from_mins(2);

/// Caches credentials until shortly before they expire.
#[derive(Debug)]
pub(crate) struct Expiring<T>(tokio::sync::Mutex<Option<Lasting<T>>>);

/// Credentials and their expiration time.
#[derive(Clone, Debug)]
pub(crate) struct Lasting<T> {
    /// The credentials themselves.
    pub(crate) value: T,
    /// Time at which the credentials expire; `None` if they do not expire.
    pub(crate) ends: Option<SystemTime>,
}

impl<T> Lasting<T> {
    /// Returns credentials that do not expire.
    pub(crate) fn forever(value: T) -> Self {
        Self { value, ends: None }
    }
}

impl<T> Default for Expiring<T> {
    fn default() -> Self {
        Self(tokio::sync::Mutex::new(None))
    }
}

impl<T: Clone> Expiring<T> {
    /// Returns valid credentials. If no valid credentials are cached, awaits `renew` first. Concurrent callers wait for
    /// the same renewal instead of starting their own.
    pub(crate) async fn get<E>(&self, renew: impl Future<Output = Result<Lasting<T>, E>>) -> Result<T, E> {
        let mut held = self.0.lock().await;
        let earliest_end = SystemTime::now() + RENEW_BEFORE;
        if let Some(lasting) = held
            .as_ref()
            .filter(|held| held.ends.is_none_or(|ends| earliest_end < ends))
        {
            return Ok(lasting.value.clone());
        }
        let renewed = renew.await?;
        let value = renewed.value.clone();
        *held = Some(renewed);
        Ok(value)
    }

    /// Discards the credentials, because a server may have refused them. The next use requests new credentials.
    pub(crate) async fn forget(&self) {
        *self.0.lock().await = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn for_seconds(value: &str, seconds: u64) -> Result<Lasting<&str>, String> {
        let ends = Some(SystemTime::now() + Duration::from_secs(seconds));
        Ok(Lasting { value, ends })
    }

    #[tokio::test]
    async fn what_lasts_is_kept_and_what_ends_soon_or_was_refused_is_renewed() {
        let cache = Expiring::default();
        let lasting = async || cache.get(async { for_seconds("short", 60) }).await.unwrap();
        assert_eq!(lasting().await, "short");
        assert_eq!(cache.get(async { for_seconds("long", 3600) }).await.unwrap(), "long");
        assert_eq!(lasting().await, "long");
        cache.forget().await;
        assert_eq!(lasting().await, "short");
    }
}
