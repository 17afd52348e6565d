//! Stack unwinding: the rules of each binary as compact tables, and a walk over a copied stack.
//!
//! In: ELF files. Out: [`Table`]s, which the BPF program and [`walk`](walk::walk) use alike. The module does not depend
//! on processes and names.

mod arm_code;
mod cfi_row;
pub mod eh_frame;
pub mod go;
pub mod packed;
pub(crate) mod row;
mod section;
pub mod walk;

pub use packed::{Line, Packed};
pub use row::Rule;
pub use row::{Arch, Row, Table};
pub use walk::Stop;
