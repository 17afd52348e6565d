//! The parser: from text to the intermediate form of `regex-syntax`.
//!
//! The parser uses an explicit stack, as Go's does, so that deep nesting does not use up the stack of the thread. A
//! repetition applies to the item on top of this stack: in `a(?i)*`, for example, it applies to `a`.

use regex_syntax::hir::{Capture, Class, ClassUnicode, Hir, Look, Repetition};

use crate::re2::class::{bracketed, escaped, range};
use crate::re2::error::{Re2Error, SyntaxError};
use crate::re2::escape::escape;
use crate::re2::flags::{Flags, Special, special};
use crate::re2::repeat::{Counts, MAX_COUNT, counts};

/// Maximum height of the syntax tree. Go allows 1,000, but the compiler of `regex-automata` is recursive, so a higher
/// tree could use up the stack of the thread.
pub(super) const MAX_HEIGHT: u32 = 250;

/// A parsed expression with the names of its groups.
pub(super) struct Parsed {
    pub(super) hir: Hir,
    /// Names of groups with their numbers. A name may occur several times.
    pub(super) names: Vec<(String, usize)>,
}

/// Parses an expression. `flags` are in force at its beginning.
pub(super) fn parse(text: &str, flags: Flags) -> Result<Parsed, Re2Error> {
    let mut parser = Parser {
        text,
        position: 0,
        flags,
        stack: Vec::new(),
        groups: 0,
        names: Vec::new(),
    };
    parser.run()?;
    Ok(Parsed {
        hir: parser.end()?,
        names: parser.names,
    })
}

struct Parser<'a> {
    text: &'a str,
    /// Number of bytes read so far.
    position: usize,
    flags: Flags,
    stack: Vec<Item>,
    groups: u32,
    names: Vec<(String, usize)>,
}

enum Item {
    Node(Node),
    /// An open group: the flags that were in force before it, and its number if it has one.
    Open(Flags, Option<u32>),
    Bar,
}

/// A part of the expression.
struct Node {
    hir: Hir,
    height: u32,
    /// Largest product of the counts of nested repetitions.
    count: u32,
}

impl Node {
    fn leaf(hir: Hir) -> Self {
        Self {
            hir,
            height: 1,
            count: 1,
        }
    }

    /// Joins nodes. Fails if the height of the result exceeds [`MAX_HEIGHT`].
    fn of(mut nodes: Vec<Self>, join: fn(Vec<Hir>) -> Hir) -> Result<Self, Re2Error> {
        if nodes.len() == 1
            && let Some(node) = nodes.pop()
        {
            return Ok(node);
        }
        let height = 1 + nodes.iter().map(|node| node.height).max().unwrap_or(0);
        let count = nodes.iter().map(|node| node.count).max().unwrap_or(1);
        let hir = join(nodes.into_iter().map(|node| node.hir).collect());
        Self { hir, height, count }.checked()
    }

    fn checked(self) -> Result<Self, Re2Error> {
        if self.height > MAX_HEIGHT {
            return Err(SyntaxError::TooDeep.in_part(""));
        }
        Ok(self)
    }
}

impl<'a> Parser<'a> {
    fn rest(&self) -> &'a str {
        self.text.get(self.position..).unwrap_or_default()
    }

    fn run(&mut self) -> Result<(), Re2Error> {
        // Start of the preceding repetition, if it ends where the next item begins.
        let mut last_repeat: Option<usize> = None;
        while let Some(letter) = self.rest().chars().next() {
            let start = self.position;
            let mut is_repeat = false;
            match letter {
                '(' => self.open()?,
                '|' => {
                    self.stack.push(Item::Bar);
                    self.position += 1;
                }
                ')' => {
                    self.close()?;
                    self.position += 1;
                }
                '^' | '$' => self.anchor(letter),
                '.' => {
                    let dot = if self.flags.dot_is_any {
                        range(0, 0x10_ffff, false)
                    } else {
                        let mut line_end = range(0x0a, 0x0a, false);
                        line_end.negate();
                        line_end
                    };
                    self.class(dot, 1);
                }
                '[' => {
                    let (class, length) = bracketed(self.rest(), self.flags.is_folded)?;
                    self.class(class, length);
                }
                '*' | '+' | '?' | '{' => match counts(self.rest())? {
                    Some((counts, length)) => {
                        self.repeat(counts, length, last_repeat)?;
                        is_repeat = true;
                    }
                    None => self.literal(u32::from(letter), 1),
                },
                '\\' => self.backslash()?,
                _ => self.literal(u32::from(letter), letter.len_utf8()),
            }
            last_repeat = is_repeat.then_some(start);
        }
        Ok(())
    }

    fn push(&mut self, hir: Hir) {
        self.stack.push(Item::Node(Node::leaf(hir)));
    }

    fn class(&mut self, class: ClassUnicode, length: usize) {
        self.push(Hir::class(Class::Unicode(class)));
        self.position += length;
    }

    fn literal(&mut self, code: u32, length: usize) {
        match char::from_u32(code).filter(|_| !self.flags.is_folded) {
            Some(letter) => {
                self.push(Hir::literal(letter.to_string().into_bytes()));
                self.position += length;
            }
            None => self.class(range(code, code, self.flags.is_folded), length),
        }
    }

    fn look(&mut self, look: Look, length: usize) {
        self.push(Hir::look(look));
        self.position += length;
    }

    fn anchor(&mut self, letter: char) {
        let look = match (letter, self.flags.is_multiline) {
            ('^', true) => Look::StartLF,
            ('^', false) => Look::Start,
            (_, true) => Look::EndLF,
            (_, false) => Look::End,
        };
        self.look(look, 1);
    }

    fn backslash(&mut self) -> Result<(), Re2Error> {
        let rest = self.rest();
        match rest.as_bytes().get(1) {
            Some(b'A') => self.look(Look::Start, 2),
            Some(b'z') => self.look(Look::End, 2),
            Some(b'b') => self.look(Look::WordAscii, 2),
            Some(b'B') => self.look(Look::WordAsciiNegate, 2),
            Some(b'Q') => {
                self.position += 2;
                let (quoted, end) = match self.rest().find("\\E") {
                    Some(end) => (self.rest().get(..end).unwrap_or_default(), 2),
                    None => (self.rest(), 0),
                };
                for letter in quoted.chars() {
                    self.literal(u32::from(letter), letter.len_utf8());
                }
                self.position += end;
            }
            _ => {
                if let Some((class, length)) = escaped(rest, self.flags.is_folded)? {
                    self.class(class, length);
                } else {
                    let (code, length) = escape(rest)?;
                    self.literal(code, length);
                }
            }
        }
        Ok(())
    }

    fn open(&mut self) -> Result<(), Re2Error> {
        let number = if self.rest().starts_with("(?") {
            let (construct, length) = special(self.rest(), self.flags)?;
            self.position += length;
            match construct {
                Special::Named(name) => {
                    self.groups += 1;
                    self.names.push((name.to_owned(), self.groups as usize));
                    self.groups
                }
                Special::Set(flags) => {
                    self.flags = flags;
                    return Ok(());
                }
                Special::Group(flags) => {
                    self.stack.push(Item::Open(self.flags, None));
                    self.flags = flags;
                    return Ok(());
                }
            }
        } else {
            self.position += 1;
            self.groups += 1;
            self.groups
        };
        self.stack.push(Item::Open(self.flags, Some(number)));
        Ok(())
    }

    /// Ends a group at its closing parenthesis.
    fn close(&mut self) -> Result<(), Re2Error> {
        let node = self.alternatives()?;
        let Some(Item::Open(flags, number)) = self.stack.pop() else {
            return Err(SyntaxError::UnexpectedParenthesis.in_part(self.text));
        };
        self.flags = flags;
        let node = match number {
            None => node,
            Some(index) => Node {
                hir: Hir::capture(Capture {
                    index,
                    name: None,
                    sub: Box::new(node.hir),
                }),
                height: node.height + 1,
                ..node
            }
            .checked()?,
        };
        self.stack.push(Item::Node(node));
        Ok(())
    }

    /// Pops all items above the innermost open group off the stack, and joins them into one node.
    fn alternatives(&mut self) -> Result<Node, Re2Error> {
        let start = self.stack.iter().rposition(|item| matches!(item, Item::Open(..)));
        let mut branches = Vec::new();
        let mut parts = Vec::new();
        for item in self.stack.drain(start.map_or(0, |open| open + 1)..) {
            match item {
                Item::Node(node) => parts.push(node),
                Item::Open(..) => {}
                Item::Bar => branches.push(Node::of(std::mem::take(&mut parts), Hir::concat)?),
            }
        }
        branches.push(Node::of(parts, Hir::concat)?);
        Node::of(branches, Hir::alternation)
    }

    fn repeat(&mut self, counts: Counts, length: usize, last: Option<usize>) -> Result<(), Re2Error> {
        let start = self.position;
        let Counts { min, max, is_counted } = counts;
        self.position += length;
        let is_lazy = self.rest().starts_with('?');
        self.position += usize::from(is_lazy);
        let part = |from: usize, to: usize| self.text.get(from..to).unwrap_or_default();
        if let Some(last) = last {
            return Err(SyntaxError::NestedRepetition.in_part(part(last, self.position)));
        }
        let Some(Item::Node(node)) = self.stack.pop() else {
            return Err(SyntaxError::MissingArgument.in_part(part(start, self.position)));
        };
        let times = max.unwrap_or(min);
        let count = match (is_counted, max) {
            (true, Some(0)) => 1,
            (true, _) => node.count.saturating_mul(times.max(1)),
            (false, _) => node.count,
        };
        if is_counted && times >= 2 && count > MAX_COUNT {
            return Err(SyntaxError::RepeatCount.in_part(part(start, self.position)));
        }
        let hir = Hir::repetition(Repetition {
            min,
            max,
            greedy: is_lazy == self.flags.is_lazy,
            sub: Box::new(node.hir),
        });
        let height = node.height + 1;
        self.stack.push(Item::Node(Node { hir, height, count }.checked()?));
        Ok(())
    }

    fn end(&mut self) -> Result<Hir, Re2Error> {
        let node = self.alternatives()?;
        if !self.stack.is_empty() {
            return Err(SyntaxError::MissingParenthesis.in_part(self.text));
        }
        Ok(node.hir)
    }
}
