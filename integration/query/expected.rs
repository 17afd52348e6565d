//! What must come of an attack: the tables and whoever runs them know it.

/// What must come of an attack.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Expected {
    Refused,
    /// Stopped by a limit (or refused, which is as good).
    Stopped,
    /// Answered, with nothing in it that the tenant may not see.
    Harmless,
}
