//! Expected outcomes of attacks, shared by the tables of attacks and the tests that run them.

/// Expected outcome of an attack.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Expected {
    Refused,
    /// Stopped by a limit. A refusal is equally good.
    Stopped,
    /// Answered, without data that the tenant must not see.
    Harmless,
}
