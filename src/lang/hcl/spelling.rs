//! Differences in spelling between HCL and Alloy syntax.

/// Function that replaces the operator `^`, which HCL does not have.
pub(crate) const POWER_FUNCTION: &str = "pow";

/// True for a text that must be read as HCL: its name ends in `.hcl`.
pub fn is_hcl(path: &str) -> bool {
    path.ends_with(".hcl")
}

/// Context of a block, which decides the meaning of its labels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BlockContext {
    /// The block is at the level of components. Its last HCL label is its label in Alloy syntax, and the other HCL
    /// labels are parts of its name.
    Components,
    /// The block is in the body of a component. A single HCL label is a part of its name, as in
    /// `profile "process_cpu" { }`.
    Arguments,
}

impl BlockContext {
    /// Returns the context inside a block. The block is in the context `self`, and its name is `block`.
    pub(crate) fn inner(self, block: &str) -> Self {
        match block {
            "declare" | "foreach" | "template" => self,
            _ => Self::Arguments,
        }
    }
}
