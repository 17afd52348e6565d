//! What HCL spells in another way than Alloy syntax.

/// Function that stands for the operator `^`, which HCL does not have.
pub(crate) const POWER: &str = "pow";

/// True for a text that is to be read as HCL: its name ends in `.hcl`.
pub fn is_hcl(path: &str) -> bool {
    path.ends_with(".hcl")
}

/// True when blocks in the body of `block` (or at the top, for `None`) are components and the like: their last label is
/// always a label. Elsewhere a single label is a part of the name, as in `profile "process_cpu" { }`.
pub(crate) fn holds_components(outer: bool, block: &str) -> bool {
    outer && matches!(block, "declare" | "foreach" | "template")
}
