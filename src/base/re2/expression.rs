//! Compiled expressions.

use std::str::FromStr;
use std::sync::Arc;

use regex_automata::meta::{self, Regex};
use regex_automata::util::captures::Captures;
use regex_syntax::hir::{Hir, Look};

use crate::re2::error::Re2Error;
use crate::re2::flags::Flags;
use crate::re2::parser::parse;

/// Maximum size of a compiled program: 10 MiB, as in the `regex` crate.
const PROGRAM_BYTES: usize = 10 << 20;

/// A compiled expression; cheap to clone.
#[derive(Debug, Clone)]
pub struct Expression {
    text: Arc<str>,
    names: Arc<[(String, usize)]>,
    program: Regex,
}

/// The groups of a match, as texts.
pub struct Groups<'t> {
    text: &'t str,
    names: Arc<[(String, usize)]>,
    captures: Captures,
}

/// The engine that runs an expression.
#[derive(Debug, Clone, Copy)]
enum Engine {
    /// An engine without automata (DFA), for thousands of expressions that are used rarely and on short texts. A lazy
    /// DFA for each expression would take several times as much memory and compile time.
    Small,
    /// An engine with a lazy DFA. The cache of the DFA and the program may each take up to `limit` bytes.
    Fast { limit: usize },
}

impl Expression {
    /// Compiles `pattern` as Prometheus compiles relabel rules: anchored, and the dot matches line ends.
    pub fn anchored(pattern: &str) -> Result<Self, Re2Error> {
        Self::build(pattern, DOT_IS_ANY, true, Engine::Small)
    }

    /// Like [`Expression::anchored`], for a selector that compares many values. The program and the cache of its
    /// lazy DFA may each take up to `limit` bytes.
    pub fn matcher(pattern: &str, limit: usize) -> Result<Self, Re2Error> {
        Self::build(pattern, DOT_IS_ANY, true, Engine::Fast { limit })
    }

    /// Compiles `pattern` as `go tool pprof` does for whole names: anchored, and the dot matches no line end.
    pub fn whole(pattern: &str) -> Result<Self, Re2Error> {
        Self::build(pattern, Flags::default(), true, Engine::Fast { limit: PROGRAM_BYTES })
    }

    /// Compiles `pattern` to search for it anywhere in a text.
    pub fn search(pattern: &str) -> Result<Self, Re2Error> {
        Self::search_within(pattern, PROGRAM_BYTES)
    }

    /// Like [`Expression::search`]. The program and the cache of its lazy DFA may each take up to `limit` bytes.
    pub fn search_within(pattern: &str, limit: usize) -> Result<Self, Re2Error> {
        Self::build(pattern, Flags::default(), false, Engine::Fast { limit })
    }

    fn build(pattern: &str, flags: Flags, is_anchored: bool, engine: Engine) -> Result<Self, Re2Error> {
        let parsed = parse(pattern, flags)?;
        let hir = if is_anchored {
            Hir::concat(vec![Hir::look(Look::Start), parsed.hir, Hir::look(Look::End)])
        } else {
            parsed.hir
        };
        let config = meta::Config::new();
        let (config, limit) = match engine {
            Engine::Small => (config.hybrid(false).dfa(false).onepass(false), PROGRAM_BYTES),
            Engine::Fast { limit } => (config.hybrid_cache_capacity(limit), limit),
        };
        let built = meta::Builder::new()
            .configure(config.nfa_size_limit(Some(limit)))
            .build_from_hir(&hir);
        let program = built.map_err(|_| Re2Error::TooLarge { limit })?;
        Ok(Self {
            text: pattern.into(),
            names: parsed.names.into(),
            program,
        })
    }

    /// Returns the text of the expression.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns true if the text matches.
    pub fn is_match(&self, text: &str) -> bool {
        self.program.is_match(text)
    }

    /// Returns the groups of the first match, or `None` if there is no match.
    pub fn groups<'t>(&self, text: &'t str) -> Option<Groups<'t>> {
        let mut captures = self.program.create_captures();
        self.program.captures(text, &mut captures);
        captures.is_match().then(|| Groups {
            text,
            names: self.names.clone(),
            captures,
        })
    }
}

const DOT_IS_ANY: Flags = Flags {
    is_folded: false,
    is_multiline: false,
    dot_is_any: true,
    is_lazy: false,
};

impl FromStr for Expression {
    type Err = Re2Error;

    fn from_str(pattern: &str) -> Result<Self, Re2Error> {
        Self::search(pattern)
    }
}

impl Groups<'_> {
    /// Returns the text of a group, or an empty text if the group did not participate or does not exist.
    pub fn get(&self, index: usize) -> &str {
        self.group(index).unwrap_or_default()
    }

    /// Returns the text of the first group with this name that participated in the match, or an empty text if there is
    /// none.
    pub fn named(&self, name: &str) -> &str {
        let mut numbers = self.names.iter().filter(|(own, _)| own == name);
        let group = numbers.find_map(|(_, index)| self.group(*index));
        group.unwrap_or_default()
    }

    fn group(&self, index: usize) -> Option<&str> {
        self.text.get(self.captures.get_group(index)?.range())
    }
}
