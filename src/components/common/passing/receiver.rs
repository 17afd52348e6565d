//! The receiver that a component exports. An update of the component does not replace the receiver, so components that
//! refer to it need no update. The receiver does not keep its component alive. After the component has ended, the
//! receiver refuses profiles with [`SinkErrorKind::Gone`].

use std::sync::{Arc, Weak};

use alluvium_base::BoxFuture;
use alluvium_lang::schema::RECEIVER;
use alluvium_lang::value::{Capsule, Value};
use alluvium_profile::sink::Receiver;
use alluvium_profile::{ProfileSink, RawProfile, RefusedProfile, SinkError, SinkErrorKind};

/// A component that accepts profiles.
pub(crate) trait TakesProfiles: Send + Sync + 'static {
    /// Accepts a batch and returns the refused profiles, as [`ProfileSink::append`] does.
    fn take(self: Arc<Self>, profiles: Vec<RawProfile>) -> BoxFuture<'static, Vec<RefusedProfile>>;
}

/// Returns the receiver of the component with this id, as the value to export.
pub(crate) fn export<T: TakesProfiles>(id: &Arc<str>, component: Weak<T>) -> Value {
    let receiver: Receiver = Arc::new(Exported {
        id: id.clone(),
        component,
    });
    Value::Capsule(Capsule::new(RECEIVER, receiver))
}

struct Exported<T> {
    id: Arc<str>,
    component: Weak<T>,
}

impl<T: TakesProfiles> ProfileSink for Exported<T> {
    fn append(&self, profiles: Vec<RawProfile>) -> BoxFuture<'_, Vec<RefusedProfile>> {
        if let Some(component) = self.component.upgrade() {
            component.take(profiles)
        } else {
            let error = SinkError::new(SinkErrorKind::Gone, format!("the component {} has ended", self.id));
            Box::pin(async move { error.for_all(profiles.len()) })
        }
    }

    fn component_id(&self) -> &str {
        &self.id
    }
}
