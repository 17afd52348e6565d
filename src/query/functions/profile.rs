//! `profile('TYPE{selector}', from, until)`: the rows of `flat` that a selector chooses.

use std::sync::Arc;

use crate::query::engine::Context;
use crate::query::flat::Flat;
use crate::query::functions::arguments::Arguments;
use crate::query::provider::Called;

const USAGE: &str = "profile('TYPE{selector}', from, until)";

/// The function over the data of a query.
pub(crate) fn function(context: Arc<Context>) -> Called {
    Called {
        name: "profile",
        make: Box::new(move |args, session| {
            let args = Arguments::read(USAGE, args, session, false, context.describing)?;
            Ok(Arc::new(Flat::selected(
                context.clone(),
                args.profile_type,
                args.matchers,
                args.time,
            )))
        }),
    }
}
