//! Names of the exports of an import, from which the engine reads declarations.

/// Export of an import: its texts, an object from name to text. Diagnostics call a text by its name.
pub(crate) const CONTENT: &str = "content";
/// Export with the folder (or URL prefix) of the texts, for `module_path`; null to use that of the importing text.
pub(crate) const FOLDER: &str = "folder";
