//! `profiles('TYPE{selector}', from, until)`, also called `profile`: the rows of `flat` that match a selector.

use std::sync::Arc;

use crate::query::decoded::context::Context;
use crate::query::functions::arguments::{Arguments, Usage};
use crate::query::scan::provider::TableFunction;
use crate::query::tables::flat::Flat;

const USAGE: Usage = Usage {
    text: "profiles('TYPE{selector}', from, until)",
    counts: &[3],
};

/// Returns the table function with the name `name`, one of its two names. The function reads the data of `context`.
pub(crate) fn function(name: &'static str, context: Arc<Context>) -> TableFunction {
    TableFunction {
        name,
        make: Box::new(move |args, session| {
            let args = Arguments::read(USAGE, args, session, context.purpose)?;
            Ok(Arc::new(Flat::selected(
                context.clone(),
                args.profile_type,
                args.matchers,
                args.time,
            )))
        }),
    }
}
