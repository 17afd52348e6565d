//! Parses sizes in bytes from flags and configuration files.

use anyhow::{Context, bail};

/// Parses a number of bytes, with or without a unit: `512MiB`, `2GiB`, `100MB`.
pub(crate) fn bytes(name: &str, text: &str) -> anyhow::Result<usize> {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let unit: usize = match text[digits..].trim() {
        "" | "B" => 1,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        "kB" | "KB" => 1000,
        "MB" => 1_000_000,
        "GB" => 1_000_000_000,
        other => bail!("{name}: `{other}` is not a unit of bytes; use KiB, MiB, GiB, kB, MB or GB"),
    };
    let number: usize = text[..digits]
        .parse()
        .with_context(|| format!("{name}: `{text}` is not a size; write for example 512MiB"))?;
    number
        .checked_mul(unit)
        .with_context(|| format!("{name}: `{text}` is too large"))
}

#[cfg(test)]
mod tests {
    use super::bytes;

    #[test]
    fn what_is_no_size_or_too_large_is_refused() {
        assert_eq!(bytes("x", "512MiB").unwrap(), 512 << 20);
        assert!(bytes("x", "5 apples").is_err() && bytes("x", "99999999999GiB").is_err());
    }
}
