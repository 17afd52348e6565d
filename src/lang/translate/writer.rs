//! The common part of both printers: bodies, expressions, lists on several lines, and the comments between elements.
//!
//! In: a tree. Out: its text, in an [`Output`]; `fmt` of the target language does the layout. The differences (names,
//! literals, operators) are in the implementations, `alloy` and `hcl`.

use super::comments::Comments;
use crate::ast::{Attribute, Block, Expression, ExpressionKind, Field, File, Statement};
use crate::codes;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::hcl::BlockContext;
use crate::source::{Source, Span};
use crate::token::TokenKind;

/// The text that is being written.
pub(super) struct Output<'a> {
    /// The source of the tree.
    pub source: &'a Source,
    /// The comments of the tree that have not been written.
    pub comments: Comments<'a>,
    /// The text written so far.
    pub out: String,
}

impl<'a> Output<'a> {
    /// Creates an empty output for the tree of `file`.
    pub(super) fn new(file: &'a File) -> Self {
        Self {
            source: &file.source,
            comments: Comments::new(file),
            out: String::new(),
        }
    }

    fn before(&mut self, offset: usize) {
        let comments = self.comments.before(offset);
        self.out.push_str(&comments);
    }

    fn behind(&mut self, offset: usize) -> bool {
        let comment = self.comments.behind(offset);
        self.out.push_str(&comment);
        !comment.is_empty()
    }
}

/// The layout of a list of items.
#[derive(Clone, Copy)]
pub(crate) struct Brackets {
    open: char,
    close: char,
    /// True if elements on separate lines end in commas.
    commas: bool,
}

/// Writes a tree in one of the languages.
pub(super) trait Writer<'a>: Sized {
    /// True if object fields on separate lines end in commas.
    const FIELD_COMMAS: bool;
    /// The operand of a unary operator is written in parentheses if its precedence is lower than this.
    const UNARY_OPERAND: u8;

    /// Returns the precedence of an operator. A higher precedence binds tighter, and 100 never needs parentheses.
    fn precedence(operator: TokenKind) -> u8;

    /// Returns the output that is being written.
    fn page(&mut self) -> &mut Output<'a>;

    /// Writes a name and its value, without trailing comments.
    fn attribute(&mut self, attribute: &Attribute) -> Result<(), Diagnostics>;

    /// Writes name and label of a block.
    fn header(&mut self, block: &Block, context: BlockContext) -> Result<(), Diagnostics>;

    /// Writes the key of a field.
    fn key(&mut self, field: &Field) -> Result<(), Diagnostics>;

    /// Writes a literal; `text` is its text in the source.
    fn literal(&mut self, kind: TokenKind, text: &str, span: Span) -> Result<(), Diagnostics>;

    /// Writes a name in an expression.
    fn name(&mut self, name: &str, span: Span) -> Result<(), Diagnostics>;

    /// Writes the value before an index, `value[0]`.
    fn operand(&mut self, value: &Expression) -> Result<(), Diagnostics>;

    /// Writes the value before a dot, `value.name`.
    fn dot_operand(&mut self, value: &Expression) -> Result<(), Diagnostics> {
        self.operand(value)
    }

    /// Writes the function of a call.
    fn callee(&mut self, callee: &Expression) -> Result<(), Diagnostics>;

    /// Writes a binary operator with its operands.
    fn binary(&mut self, operator: TokenKind, left: &Expression, right: &Expression) -> Result<(), Diagnostics>;

    /// Writes a text as it is.
    fn push(&mut self, text: &str) {
        self.page().out.push_str(text);
    }

    /// Writes a whole file and returns its text.
    fn file(mut self, body: &[Statement]) -> Result<String, Diagnostics> {
        self.body(body, BlockContext::Components)?;
        let page = self.page();
        page.before(usize::MAX);
        Ok(std::mem::take(&mut page.out))
    }

    /// Writes statements, each on its own lines.
    fn body(&mut self, body: &[Statement], context: BlockContext) -> Result<(), Diagnostics> {
        let mut last_line = None;
        for statement in body {
            let span = statement.span();
            let page = self.page();
            let comments = page.comments.before(span.start);
            let line = page.source.line(span.start);
            let first_line = line.saturating_sub(comments.matches('\n').count());
            if last_line.is_some_and(|last| first_line > last + 1) {
                page.out.push('\n');
            }
            page.out.push_str(&comments);
            match statement {
                Statement::Attribute(attribute) => self.attribute(attribute)?,
                Statement::Block(block) => self.block(block, context)?,
            }
            let page = self.page();
            page.behind(span.end);
            page.out.push('\n');
            last_line = Some(page.source.line(span.end.saturating_sub(1)));
        }
        Ok(())
    }

    /// Writes a block; an empty block is written on one line.
    fn block(&mut self, block: &Block, context: BlockContext) -> Result<(), Diagnostics> {
        self.header(block, context)?;
        let page = self.page();
        page.out.push_str(" {");
        let commented = page.behind(block.open + 1);
        let before = page.out.len();
        page.out.push('\n');
        self.body(&block.body, context.inner(&block.name.name))?;
        let page = self.page();
        page.before(block.close);
        if page.out.len() == before + 1 && !commented {
            page.out.pop();
        }
        page.out.push('}');
        Ok(())
    }

    /// Writes an expression; in parentheses if its precedence is below `min`.
    fn expression(&mut self, expression: &Expression, min: u8) -> Result<(), Diagnostics> {
        let is_wrapped = binding(expression, Self::precedence) < min;
        if is_wrapped {
            self.push("(");
        }
        match &expression.kind {
            ExpressionKind::Literal { kind, text } => self.literal(*kind, text, expression.span)?,
            ExpressionKind::Identifier(name) => self.name(name, expression.span)?,
            ExpressionKind::Array(items) => self.array(items, expression.span)?,
            ExpressionKind::Object(fields) => self.object(fields, expression.span)?,
            ExpressionKind::Access { value, name } => {
                self.dot_operand(value)?;
                self.push(".");
                self.name(&name.name, name.span)?;
            }
            ExpressionKind::Index { value, index, .. } => {
                self.operand(value)?;
                self.push("[");
                self.expression(index, 0)?;
                self.push("]");
            }
            ExpressionKind::Call {
                callee,
                open,
                arguments,
            } => {
                self.callee(callee)?;
                self.arguments(arguments, Span::new(*open, expression.span.end))?;
            }
            ExpressionKind::Unary { operator, value } => {
                self.push(operator.text());
                self.expression(value, Self::UNARY_OPERAND)?;
            }
            ExpressionKind::Binary {
                operator, left, right, ..
            } => self.binary(*operator, left, right)?,
            ExpressionKind::Paren(inner) => {
                self.push("(");
                self.expression(inner, 0)?;
                self.push(")");
            }
        }
        if is_wrapped {
            self.push(")");
        }
        Ok(())
    }

    /// Writes a list: `[...]`.
    fn array(&mut self, items: &[Expression], list_span: Span) -> Result<(), Diagnostics> {
        self.expressions('[', ']', items, list_span)
    }

    /// Writes arguments: `(...)`.
    fn arguments(&mut self, items: &[Expression], list_span: Span) -> Result<(), Diagnostics> {
        self.expressions('(', ')', items, list_span)
    }

    /// Writes an object: `{...}`.
    fn object(&mut self, fields: &[Field], list_span: Span) -> Result<(), Diagnostics> {
        let spans: Vec<Span> = fields
            .iter()
            .map(|field| field.name.span.to(field.value.span))
            .collect();
        let brackets = Brackets {
            open: '{',
            close: '}',
            commas: Self::FIELD_COMMAS,
        };
        self.list(brackets, list_span, &spans, |writer, index| {
            let field = &fields[index];
            writer.key(field)?;
            writer.page().out.push_str(" = ");
            writer.expression(&field.value, 0)
        })
    }

    /// Writes expressions in brackets: `[...]` or `(...)`.
    fn expressions(
        &mut self,
        open: char,
        close: char,
        items: &[Expression],
        list_span: Span,
    ) -> Result<(), Diagnostics> {
        let spans: Vec<Span> = items.iter().map(|item| item.span).collect();
        let brackets = Brackets {
            open,
            close,
            commas: true,
        };
        self.list(brackets, list_span, &spans, |writer, index| {
            writer.expression(&items[index], 0)
        })
    }

    /// Writes elements on separate lines if the first element was on its own line; `list_span` is the range from
    /// bracket to bracket.
    fn list(
        &mut self,
        Brackets { open, close, commas }: Brackets,
        list_span: Span,
        items: &[Span],
        mut write: impl FnMut(&mut Self, usize) -> Result<(), Diagnostics>,
    ) -> Result<(), Diagnostics> {
        let page = self.page();
        page.out.push(open);
        let lines = is_multiline(page.source, list_span.start, items.first().copied());
        for (index, item) in items.iter().enumerate() {
            let page = self.page();
            if lines {
                if index == 0 {
                    page.behind(list_span.start + 1);
                }
                page.out.push('\n');
                page.before(item.start);
            } else if index > 0 {
                page.out.push(' ');
            }
            write(self, index)?;
            let page = self.page();
            if (lines && commas) || (!lines && index + 1 < items.len()) {
                page.out.push(',');
            }
            if lines {
                page.behind(item.end);
            }
        }
        let page = self.page();
        if lines {
            page.out.push('\n');
            page.before(list_span.end.saturating_sub(1));
        }
        page.out.push(close);
        Ok(())
    }
}

/// Creates the error for a construct without an equivalent in the other syntax.
pub(super) fn refuse(source: &Source, span: Span, message: impl Into<String>) -> Diagnostics {
    Diagnostic::error(codes::HCL_WITHOUT_EQUAL, source, span, message).into()
}

/// Returns the precedence of an expression; `precedence` returns that of an operator in one of the languages.
fn binding(expression: &Expression, precedence: fn(TokenKind) -> u8) -> u8 {
    match &expression.kind {
        ExpressionKind::Binary { operator, .. } => precedence(*operator),
        ExpressionKind::Unary { .. } => 50,
        _ => 100,
    }
}

/// True if the first element of a list began on its own line.
fn is_multiline(source: &Source, open: usize, first: Option<Span>) -> bool {
    first.is_some_and(|first| source.line(open) != source.line(first.start))
}
