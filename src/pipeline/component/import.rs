//! Names of the exports of an import component. The engine reads declarations from these exports.

/// Export with the texts of an import, an object from name to text. Diagnostics refer to a text by its name.
pub const CONTENT: &str = "content";
/// Export with the folder (or URL prefix) of the texts, for `module_path`; null to use the folder of the importing
/// text.
pub const FOLDER: &str = "folder";
