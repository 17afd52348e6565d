//! Selects the samples and frames of a profile for a report: `--focus`, `--ignore`, and the frames that the profile
//! itself excludes.
//!
//! All rules are the same as in `go tool pprof`. The expressions of `--focus` and `--ignore` match a part of the name
//! of a function, of its file, or of the binary. The profile's own expressions match the whole name of a function,
//! without its arguments.

use alluvium_base::re2::Expression;

use crate::pprof::{Line, Location, Profile};

/// Regular expressions for the frames that samples must or must not contain.
#[derive(Debug, Clone, Default)]
pub struct Focus {
    /// A sample must contain a frame that matches.
    pub focus: Option<Expression>,
    /// A sample must not contain a frame that matches.
    pub ignore: Option<Expression>,
}

/// The effect of a location on the samples that contain it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    Wanted,
    Unwanted,
    Neither,
}

impl Focus {
    /// Drops the samples that the expressions exclude. Returns the names of the flags whose expression matches no
    /// frame.
    pub(super) fn apply(&self, profile: &mut Profile<'_>) -> Vec<&'static str> {
        if self.focus.is_none() && self.ignore.is_none() {
            return Vec::new();
        }
        let matches = |regex: &Option<Expression>, location: &Location| {
            regex.as_ref().is_some_and(|regex| has_match(profile, location, regex))
        };
        let role = |location: &Location| {
            if matches(&self.ignore, location) {
                Role::Unwanted
            } else if self.focus.is_none() || matches(&self.focus, location) {
                Role::Wanted
            } else {
                Role::Neither
            }
        };
        let roles: Vec<Role> = profile.locations.iter().map(role).collect();
        let kept: Vec<bool> = (0..profile.sample_count())
            .map(|sample| {
                let stack = profile.stack(sample);
                let has = |role| {
                    stack
                        .iter()
                        .any(|location| roles.get(*location as usize) == Some(&role))
                };
                has(Role::Wanted) && !has(Role::Unwanted)
            })
            .collect();
        profile.retain_samples(|sample| kept.get(sample) == Some(&true));
        let unmatched = [
            (self.focus.is_some() && !roles.contains(&Role::Wanted), "focus"),
            (self.ignore.is_some() && !roles.contains(&Role::Unwanted), "ignore"),
        ];
        unmatched
            .iter()
            .filter(|(is_so, _)| *is_so)
            .map(|(_, flag)| *flag)
            .collect()
    }

    /// Formats the expressions for the head of a report, for example as `focus=main`.
    pub(super) fn named(&self) -> Vec<String> {
        let expressions = [("focus", &self.focus), ("ignore", &self.ignore)];
        let named = expressions
            .iter()
            .filter_map(|(name, regex)| Some(format!("{name}={}", regex.as_ref()?.as_str())));
        named.collect()
    }
}

fn has_match(profile: &Profile<'_>, location: &Location, regex: &Expression) -> bool {
    let functions = profile.lines_of(location).iter();
    let mut functions = functions.filter_map(|line| profile.functions.get(line.function as usize));
    let mapping = profile.mappings.get(location.mapping as usize);
    functions.any(|function| regex.is_match(function.name) || regex.is_match(function.file))
        || mapping.is_some_and(|mapping| regex.is_match(mapping.file))
}

/// Removes the frames that match the profile's own `drop_frames` and not `keep_frames`, together with everything that
/// they called. An invalid expression removes nothing.
pub(super) fn drop_frames(profile: &mut Profile<'_>) {
    let compile = |pattern: &str| Expression::whole(pattern).ok();
    if profile.drop_frames.is_empty() {
        return;
    }
    let Some(dropped) = compile(profile.drop_frames) else {
        return;
    };
    let kept = match profile.keep_frames {
        "" => None,
        pattern => match compile(pattern) {
            Some(kept) => Some(kept),
            None => return,
        },
    };
    let is_dropped: Vec<bool> = profile
        .functions
        .iter()
        .map(|function| {
            let name = simple(function.name);
            !function.name.is_empty()
                && dropped.is_match(name)
                && !kept.as_ref().is_some_and(|kept| kept.is_match(name))
        })
        .collect();
    let cuts: Vec<Cut> = profile
        .locations
        .iter()
        .map(|location| {
            let is_dropped = |line: &Line| is_dropped.get(line.function as usize) == Some(&true);
            let lines = profile.lines_of(location);
            match lines.iter().rposition(is_dropped) {
                None => Cut::None,
                Some(last) if last + 1 == lines.len() => Cut::Whole,
                Some(last) => Cut::Below(last as u32 + 1),
            }
        })
        .collect();
    for (location, cut) in profile.locations.iter_mut().zip(&cuts) {
        if let Cut::Below(lines) = cut {
            location.lines_start += lines;
        }
    }
    let (mut locations, mut starts) = (Vec::new(), vec![0]);
    for sample in 0..profile.sample_count() {
        let stack = profile.stack(sample);
        locations.extend_from_slice(&stack[cut_at(stack, &cuts)..]);
        starts.push(locations.len() as u32);
    }
    profile.sample_locations = locations;
    profile.sample_starts = starts;
}

/// The part of a location to remove.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Cut {
    None,
    /// The whole location, and everything that it called.
    Whole,
    /// This number of inlined frames, and everything that they called.
    Below(u32),
}

/// Returns the index of the first kept frame of a stack, whose frames are ordered from the leaf to the root. Seen from
/// the root, the matching frames before the first other frame are kept, so that no stack is removed completely.
fn cut_at(stack: &[u32], cuts: &[Cut]) -> usize {
    let mut is_user_seen = false;
    for (index, location) in stack.iter().enumerate().rev() {
        match cuts.get(*location as usize).unwrap_or(&Cut::None) {
            Cut::None => is_user_seen = true,
            _ if !is_user_seen => {}
            Cut::Whole => return index + 1,
            Cut::Below(_) => return index,
        }
    }
    0
}

/// Returns the name of a function without its arguments.
fn simple(name: &str) -> &str {
    let name = name.strip_prefix('.').unwrap_or(name);
    let mut from = 0;
    while let Some(offset) = name[from..].find('(').map(|offset| from + offset) {
        if name[offset..].starts_with("(anonymous namespace)") {
            from = offset + "(anonymous namespace)".len();
        } else if name[..offset].ends_with("operator") && name[offset..].starts_with("()") {
            from = offset + "()".len();
        } else {
            return &name[..offset];
        }
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_no_part_of_a_name() {
        for (name, expected) in [
            ("main.work", "main.work"),
            ("void work(int)", "void work"),
            ("(anonymous namespace)::work(int)", "(anonymous namespace)::work"),
            ("X::operator()(int)", "X::operator()"),
            (".work", "work"),
        ] {
            assert_eq!(simple(name), expected, "{name}");
        }
    }

    #[test]
    fn what_comes_before_the_first_frame_of_interest_stays() {
        let cuts = [Cut::None, Cut::Whole, Cut::Below(1)];
        for (stack, expected) in [
            (&[1, 0][..], 1),
            (&[0, 1], 0),
            (&[0, 1, 0], 2),
            (&[0, 2, 0], 1),
            (&[1], 0),
            (&[], 0),
        ] {
            assert_eq!(cut_at(stack, &cuts), expected, "{stack:?}");
        }
    }
}
