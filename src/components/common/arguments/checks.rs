//! Checks that compare several arguments, with uniform error messages.

use alluvium_lang::argument_error::ArgumentError;

/// Returns an error if both a text and a file with this text are given, such as `password` and `password_file`.
pub(crate) fn at_most_one_of<T, F>(
    text_name: &str,
    text: &Option<T>,
    file_name: &str,
    file: &Option<F>,
) -> Result<(), ArgumentError> {
    if text.is_some() && file.is_some() {
        let message = format!("at most one of {text_name} and {file_name} may be configured");
        return Err(ArgumentError::new(text_name, message));
    }
    Ok(())
}

/// Returns an error if more than one argument is given. Each pair is an argument's name, and true if it is given.
pub(crate) fn at_most_one(arguments: &[(&str, bool)]) -> Result<(), ArgumentError> {
    match set_names(arguments).as_slice() {
        [_, second, ..] => {
            let message = format!("at most one of {} may be given", list(arguments));
            Err(ArgumentError::new(*second, message))
        }
        _ => Ok(()),
    }
}

/// Returns an error unless exactly one argument is given. Each pair is an argument's name, and true if it is given.
pub(crate) fn exactly_one(arguments: &[(&str, bool)]) -> Result<(), ArgumentError> {
    let message = || format!("exactly one of {} must be given", list(arguments));
    match set_names(arguments).as_slice() {
        [_] => Ok(()),
        [] => Err(ArgumentError::new("", message())),
        [_, second, ..] => Err(ArgumentError::new(*second, message())),
    }
}

fn set_names<'a>(arguments: &[(&'a str, bool)]) -> Vec<&'a str> {
    let set_arguments = arguments.iter().filter(|(_, is_given)| *is_given);
    set_arguments.map(|(name, _)| *name).collect()
}

/// Returns the names as in a sentence: `a, b and c`.
fn list(arguments: &[(&str, bool)]) -> String {
    let names: Vec<&str> = arguments.iter().map(|(name, _)| *name).collect();
    match names.as_slice() {
        [] => String::new(),
        [alternative] => (*alternative).to_owned(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}
