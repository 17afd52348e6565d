//! What the component of an import exports: the engine reads declarations from it.

/// Export of an import: its texts, an object from name to text. Diagnostics call a text by its name.
pub(crate) const CONTENT: &str = "content";
/// Export of an import: the folder (or the start of the URL) of its texts, for `module_path`; null for that of the text
/// which imports.
pub(crate) const FOLDER: &str = "folder";
