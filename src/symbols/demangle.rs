//! Demangles linker names: Rust (both manglings) and C++ (Itanium ABI).

use std::borrow::Cow;
use std::fmt::{self, Write};

/// Maximum length of a readable name in bytes. A part of a mangled name may refer to another part twice, and that
/// part to a third, so names can grow exponentially.
const MAX_BYTES: usize = 64 << 10;

/// The level of detail of names. A Rust name stays mangled for [`Demangle::None`], and is shown in full otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Demangle {
    /// The mangled name, as the symbol table contains it.
    None,
    /// The name without parameters and template arguments.
    Simplified,
    /// The name with template arguments, but without parameters.
    #[default]
    Templates,
    Full,
}

impl Demangle {
    pub fn parse(text: &str) -> Option<Self> {
        Some(match text {
            "none" => Self::None,
            "simplified" => Self::Simplified,
            "templates" => Self::Templates,
            "full" => Self::Full,
            _ => return None,
        })
    }
}

/// Returns the readable form of `name`, or `name` itself if it is not mangled.
pub(crate) fn demangle(name: &str, mode: Demangle) -> Cow<'_, str> {
    if mode == Demangle::None {
        return Cow::Borrowed(name);
    }
    if let Ok(rust) = rustc_demangle::try_demangle(name) {
        let mut text = Bounded::default();
        return match write!(text, "{rust:#}") {
            Ok(()) => Cow::Owned(text.0),
            Err(_) => Cow::Borrowed(name),
        };
    }
    if !name.starts_with("_Z") {
        return Cow::Borrowed(name);
    }
    // Suffixes of parts that the compiler split off or cloned: foo.cold, foo.isra.0
    let (plain, suffix) = match name.find('.') {
        Some(offset) => name.split_at(offset),
        None => (name, ""),
    };
    let Ok(symbol) = cpp_demangle::Symbol::new(plain) else {
        return Cow::Borrowed(name);
    };
    let mut options = cpp_demangle::DemangleOptions::new().recursion_limit(160);
    if mode != Demangle::Full {
        options = options.no_params().no_return_type();
    }
    let mut text = Bounded::default();
    if symbol.structured_demangle(&mut text, &options).is_err() {
        return Cow::Borrowed(name);
    }
    let mut text = if mode == Demangle::Simplified {
        without_templates(&text.0)
    } else {
        text.0
    };
    text.push_str(suffix);
    Cow::Owned(text)
}

/// A text buffer whose writes fail beyond [`MAX_BYTES`].
#[derive(Default)]
struct Bounded(String);

impl Write for Bounded {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        if self.0.len() + part.len() > MAX_BYTES {
            return Err(fmt::Error);
        }
        self.0.push_str(part);
        Ok(())
    }
}

/// Removes the text between angle brackets, but keeps operators such as `operator<<` and `operator->`.
fn without_templates(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    let mut depth = 0_usize;
    let mut rest = name;
    while let Some(next) = rest.chars().next() {
        if depth == 0 && rest.starts_with("operator") {
            let symbols = rest["operator".len()..]
                .find(|char: char| !"<>=-!+*/%^&|~,".contains(char))
                .map_or(rest.len(), |length| length + "operator".len());
            out.push_str(&rest[..symbols]);
            rest = &rest[symbols..];
            continue;
        }
        match next {
            '<' => depth += 1,
            '>' => depth = depth.saturating_sub(1),
            _ if depth == 0 => out.push(next),
            _ => {}
        }
        rest = &rest[next.len_utf8()..];
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_rust_and_cpp_become_readable() {
        let rust = "_ZN4core3fmt9Formatter9write_str17h0123456789abcdefE";
        assert_eq!(demangle(rust, Demangle::Templates), "core::fmt::Formatter::write_str");
        assert_eq!(demangle(rust, Demangle::None), rust);
        let cpp = "_ZNSt6vectorIiSaIiEE9push_backERKi";
        assert_eq!(
            demangle(cpp, Demangle::Full),
            "std::vector<int, std::allocator<int> >::push_back(int const&)"
        );
        assert_eq!(
            demangle(cpp, Demangle::Templates),
            "std::vector<int, std::allocator<int> >::push_back"
        );
        assert_eq!(demangle(cpp, Demangle::Simplified), "std::vector::push_back");
        assert_eq!(demangle("main", Demangle::Full), "main");
        assert_eq!(demangle("_Znonsense", Demangle::Full), "_Znonsense");
        assert_eq!(without_templates("a<b<c>>::operator<<"), "a::operator<<");
    }

    #[test]
    fn a_name_whose_parts_double_stays_as_it_is() {
        // Each argument is a pair of two copies of the preceding argument.
        let name = |arguments: u32| {
            let pairs = (1..arguments).map(|before| {
                let before = char::from_digit(before, 36).unwrap().to_ascii_uppercase();
                format!("S0_IS{before}_S{before}_E")
            });
            format!("_Z1fISt4pairIiiE{}Evv", pairs.collect::<String>())
        };
        assert!(demangle(&name(2), Demangle::Full).contains("std::pair<std::pair<int, int>, std::pair<int, int> >"));
        assert_eq!(demangle(&name(24), Demangle::Full), name(24));
    }
}
