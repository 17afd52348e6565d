//! What HCL spells in another way than Alloy syntax.

/// Function that stands for the operator `^`, which HCL does not have.
pub(crate) const POWER: &str = "pow";

/// True for a text that is to be read as HCL: its name ends in `.hcl`.
pub(crate) fn is_hcl(path: &str) -> bool {
    path.ends_with(".hcl")
}

/// Where a block stands, which says what its labels mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// Among components and the like: the last label is always a label.
    Components,
    /// In the body of a component: a single label is a part of the name, as in `profile "process_cpu" { }`.
    Arguments,
}

impl Place {
    /// The place of the blocks in the body of `block`, which stands here.
    pub(crate) fn inside(self, block: &str) -> Self {
        match block {
            "declare" | "foreach" | "template" => self,
            _ => Self::Arguments,
        }
    }
}
