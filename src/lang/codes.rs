//! The diagnostic codes: one per line; a code is never reused.
//!
//! A new code needs a line here and a file `catalogue/ID.md` with its explanation and examples (see
//! [`crate::catalogue`] for the format). Then `UPDATE_EXPECT=1 cargo test --test integration catalogue`
//! regenerates the reference page. A code that is no longer reported is removed.
//!
//! The first characters of a code name its area: `E00` lexical errors, `E01` grammar, `E02` evaluation, `E03` the check
//! of a body against its schema, `E04` the graph, `E05` components, `W` warnings.

/// A kind of diagnostic, by its stable code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Code {
    /// Stable identifier, such as `E0301`.
    pub id: &'static str,
}

macro_rules! codes {
    ($($name:ident $id:literal $summary:literal;)*) => {
        $(#[doc = $summary] pub const $name: Code = Code { id: $id };)*
        /// Every code, sorted by identifier.
        pub const ALL: &[Code] = &[$($name),*];
        /// The meaning of each code in one sentence, and the text of its file in `catalogue/`; in the order of
        /// [`ALL`].
        pub(super) const TEXTS: &[(&str, &str)] = &[$(($summary, include_str!(concat!("catalogue/", $id, ".md")))),*];
    };
}

codes! {
    ILLEGAL_CHARACTER "E0001" "a character that cannot start a token";
    UNTERMINATED_STRING "E0002" "a string without its closing quote";
    BAD_ESCAPE "E0003" "an escape sequence that does not exist or is incomplete";
    UNTERMINATED_COMMENT "E0004" "a block comment without the closing `*/`";
    BAD_NUMBER "E0005" "an exponent without digits";
    NOT_UTF8 "E0006" "bytes that are not UTF-8";
    EXPECTED_EXPRESSION "E0101" "a value was expected";
    EXPECTED_TOKEN "E0102" "another token was expected";
    EXPECTED_STATEMENT "E0103" "an attribute or a block was expected";
    BAD_LABEL "E0104" "a block label that is not a quoted identifier";
    BAD_ATTRIBUTE_NAME "E0105" "an attribute name with dots or a label";
    MISSING_COMMA "E0106" "list elements, fields or arguments without a comma between them";
    BLOCK_AS_EXPRESSION "E0107" "a block where a value was expected";
    TOO_DEEP "E0108" "expressions or blocks nested too deeply";
    BAD_HCL "E0109" "text of an .hcl file that is not HCL";
    HCL_WITHOUT_EQUAL "E0110" "HCL without an equivalent in Alloy, or the other way round";
    UNKNOWN_IDENTIFIER "E0201" "a name that is neither a component nor in the standard library";
    WRONG_OPERAND "E0202" "an operator applied to values of the wrong type";
    UNKNOWN_FIELD "E0203" "a field that the value does not have";
    BAD_INDEX "E0204" "an index out of range or of the wrong type";
    DIVISION_BY_ZERO "E0205" "a division by zero";
    FUNCTION_FAILED "E0206" "a function refused its arguments";
    NOT_CALLABLE "E0207" "a call of something that is not a function";
    BAD_LITERAL "E0208" "a literal whose value cannot be represented";
    UNKNOWN_ATTRIBUTE "E0301" "an attribute that the block does not have";
    UNKNOWN_BLOCK "E0302" "an inner block that the block does not have";
    MISSING_ATTRIBUTE "E0303" "a required attribute is missing";
    MISSING_BLOCK "E0304" "a required inner block is missing";
    DUPLICATE_ATTRIBUTE "E0305" "an attribute given twice";
    DUPLICATE_BLOCK "E0306" "an inner block given twice where only one is allowed";
    LABEL_REQUIRED "E0307" "an inner block without its label";
    LABEL_REFUSED "E0308" "a label where none is allowed";
    MUST_BE_BLOCK "E0309" "a block written as an attribute";
    MUST_BE_ATTRIBUTE "E0310" "an attribute written as a block";
    WRONG_TYPE "E0311" "a value of the wrong type";
    UNKNOWN_COMPONENT "E0401" "a component that does not exist";
    COMPONENT_LABEL "E0402" "a component without a label";
    ALREADY_DECLARED "E0403" "two blocks with the same id";
    UNKNOWN_REFERENCE "E0404" "a reference to something that does not exist";
    CYCLE "E0405" "components that refer to each other in a cycle";
    SELF_REFERENCE "E0406" "a component that refers to itself";
    STABILITY "E0407" "a component, block or function below the minimum stability level";
    TOP_LEVEL_ATTRIBUTE "E0408" "an attribute outside of all blocks";
    UNSUPPORTED_BLOCK "E0409" "a configuration block that the running command does not support";
    UNKNOWN_EXPORT "E0410" "an export that the component does not have";
    NOT_BUILT "E0411" "a component that this version knows but cannot run: `run` refuses it";
    FOREIGN_COMPONENT "E0412" "a component of Alloy that Alluvium does not have";
    MISPLACED_BLOCK "E0413" "a configuration block in the wrong place";
    MODULE_RECURSION "E0414" "a module that instantiates or imports itself";
    BAD_ARGUMENT "E0501" "a value that the component does not accept";
    BUILD_FAILED "E0502" "a component could not be built";
    UPDATE_FAILED "E0503" "a running component refused its new arguments";
    DEPRECATED_FUNCTION "W0001" "a function under its deprecated name";
    WILL_NOT_RUN "W0002" "a component that this version knows but cannot run: `validate` warns, and `run` refuses it";
    UNUSED_COMPONENT "W0003" "a component whose exports are never used and that does nothing else";
    UNUSED_DECLARATION "W0004" "a declaration, an import or an argument that is never used";
    NO_EFFECT "W0005" "a configuration block that has no effect in Alluvium";
    SHADOWED_LIBRARY "W0006" "a component that hides a name of the standard library";
    ARGUMENT_WITHOUT_EFFECT "W0007" "an argument that has no effect in Alluvium";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_unique_and_sorted() {
        assert!(ALL.windows(2).all(|pair| pair[0].id < pair[1].id));
    }
}
