//! A component's own check of its arguments, and its refusals at their places in the text.

use std::collections::BTreeMap;

use crate::lang::decode::locate;
use crate::lang::schema::Arguments;
use crate::lang::{Diagnostic, codes};
use crate::pipeline::check::graph::SourceBlock;
use crate::pipeline::component::{ArgumentError, Definition};

/// The refusal of a component's own check, at the place it names.
pub(crate) fn argument_error(text: &SourceBlock, error: &ArgumentError) -> Diagnostic {
    let SourceBlock { source, block } = text;
    let span = locate(&block.body, &error.path, block.header());
    let message = if error.path.is_empty() {
        error.message.clone()
    } else {
        format!("{}: {}", error.path, error.message)
    };
    Diagnostic::error(codes::BAD_ARGUMENT, source, span, message)
}

/// Runs a component's own check.
pub(crate) fn check_arguments(
    definition: &Definition,
    text: &SourceBlock,
    arguments: &Arguments,
) -> Result<(), Diagnostic> {
    (definition.validate)(arguments).map_err(|error| argument_error(text, &error))
}

/// What a component's own check says of its arguments, and of each block of several by itself: the check stops at the
/// first mistake, a person wants to see all.
pub(super) fn all_mistakes(definition: &Definition, text: &SourceBlock, arguments: &Arguments) -> Vec<Diagnostic> {
    let Err(first) = (definition.validate)(arguments) else {
        return Vec::new();
    };
    let mut mistakes = vec![first];
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for (place, block) in arguments.blocks.iter().enumerate() {
        let index = counts.entry(&block.name).or_default();
        let own = format!("{}[{index}]", block.name);
        *index += 1;
        let several = definition
            .arguments
            .blocks
            .iter()
            .any(|known| known.many && known.name == &*block.name);
        if !several {
            continue;
        }
        let others = arguments.blocks.iter().enumerate();
        let alone = Arguments {
            attributes: arguments.attributes.clone(),
            blocks: others
                .filter(|(other, others)| *other == place || others.name != block.name)
                .map(|(_, block)| block.clone())
                .collect(),
        };
        // What is said of the rest, that without the others, says nothing.
        if let Err(error) = (definition.validate)(&alone)
            && let Some(rest) = error.path.strip_prefix(&format!("{}[0]", block.name))
        {
            let path = format!("{own}{rest}");
            if !mistakes.iter().any(|known| known.path == path) {
                mistakes.push(ArgumentError { path, ..error });
            }
        }
    }
    mistakes.iter().map(|error| argument_error(text, error)).collect()
}
