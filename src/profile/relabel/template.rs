//! Replacement texts, parsed like Go's `Regexp.Expand`.

use std::sync::Arc;

use alluvium_base::re2::Groups;

/// A replacement text, parsed once into its parts.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Template {
    parts: Vec<Part>,
}

#[derive(Debug, Clone, PartialEq)]
enum Part {
    Text(Arc<str>),
    Group(usize),
    Named(Arc<str>),
}

impl Template {
    /// Parses `text` like Go's `Regexp.Expand`: `$$` is a dollar sign. In `$name`, the name is the longest run of
    /// letters, digits and underscores. A dollar sign that does not begin a reference is kept.
    pub(crate) fn new(text: &str) -> Self {
        let mut parts = Vec::new();
        let mut literal = String::new();
        let mut rest = text;
        while let Some(dollar) = rest.find('$') {
            literal.push_str(&rest[..dollar]);
            rest = &rest[dollar + 1..];
            if let Some(after) = rest.strip_prefix('$') {
                literal.push('$');
                rest = after;
                continue;
            }
            let Some((name, after)) = reference(rest) else {
                literal.push('$');
                continue;
            };
            if !literal.is_empty() {
                parts.push(Part::Text(std::mem::take(&mut literal).into()));
            }
            parts.push(match name.parse::<usize>() {
                Ok(index) => Part::Group(index),
                Err(_) => Part::Named(name.into()),
            });
            rest = after;
        }
        literal.push_str(rest);
        if !literal.is_empty() {
            parts.push(Part::Text(literal.into()));
        }
        Self { parts }
    }

    /// Returns the text with every reference replaced by its group. A group that did not participate in the match or
    /// does not exist is empty.
    pub(crate) fn expand(&self, groups: &Groups<'_>) -> String {
        let mut out = String::new();
        for part in &self.parts {
            match part {
                Part::Text(text) => out.push_str(text),
                Part::Group(index) => out.push_str(groups.get(*index)),
                Part::Named(name) => out.push_str(groups.named(name)),
            }
        }
        out
    }

    /// Expands the template for `(.*)`, whose only group is the whole text.
    pub(crate) fn expand_everything(&self, input: &str) -> String {
        let part = |part: &Part| match part {
            Part::Text(text) => text.to_string(),
            Part::Group(0 | 1) => input.to_owned(),
            Part::Group(_) | Part::Named(_) => String::new(),
        };
        self.parts.iter().map(part).collect()
    }

    /// Returns true for `$0` and `$1`. If the expression is `(.*)`, both are the whole text unchanged.
    pub(crate) fn is_everything(&self) -> bool {
        matches!(self.parts.as_slice(), [Part::Group(0 | 1)])
    }

    /// Returns the text of the template if it refers to no group. All callers share the text.
    pub(crate) fn as_literal(&self) -> Option<Arc<str>> {
        match self.parts.as_slice() {
            [] => Some(Arc::default()),
            [Part::Text(text)] => Some(text.clone()),
            _ => None,
        }
    }
}

/// Splits off the name after a dollar sign. Returns the name and the remaining text.
fn reference(rest: &str) -> Option<(&str, &str)> {
    let is_name = |character: char| character == '_' || character.is_alphanumeric();
    if let Some(body) = rest.strip_prefix('{') {
        let (name, after) = body.split_once('}')?;
        return (!name.is_empty() && name.chars().all(is_name)).then_some((name, after));
    }
    let end = rest.find(|character| !is_name(character)).unwrap_or(rest.len());
    (end > 0).then(|| rest.split_at(end))
}

#[cfg(test)]
mod tests {
    use super::*;
    use alluvium_base::re2::Expression;

    #[test]
    fn references_expand_as_in_go() {
        let expression = Expression::anchored("(?P<name>a+)(b)?(c)").unwrap();
        let groups = expression.groups("aac").unwrap();
        let expand = |text: &str| Template::new(text).expand(&groups);
        assert_eq!(expand("$1-$3"), "aa-c");
        assert_eq!(expand("${1}x$2"), "aax");
        assert_eq!(expand("$1x"), "");
        assert_eq!(expand("${name}"), "aa");
        assert_eq!(expand("$$1 costs 5$"), "$1 costs 5$");
        assert_eq!(expand("${1-"), "${1-");
        assert_eq!(Template::new("plain").as_literal().as_deref(), Some("plain"));
        assert_eq!(Template::new("$1").as_literal(), None);
    }
}
