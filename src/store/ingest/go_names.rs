//! Removes type parameters from names of Go functions. The compiler adds these parameters to shared instantiations of
//! generic functions.

use hashbrown::HashMap;

use alluvium_profile::pprof::Profile;

/// Start of the removed type parameters.
const GO_SHAPE: &str = "[go.shape.";

/// The new names of functions. Functions whose old names are the same text of the profile share one new name, so that a
/// long name is copied only once.
pub(crate) struct GoNames {
    /// Maps the address and length of the old name to an index in `names`, or to `None` if the name stays. Texts with
    /// the same address and length are equal.
    index_of: HashMap<(usize, usize), Option<usize>>,
    names: Vec<String>,
}

impl GoNames {
    /// Finds the names of `profile` that change. `buffer` holds the bytes of the profile.
    pub(super) fn of(profile: &Profile<'_>, buffer: &[u8]) -> Self {
        let mut all = Self {
            index_of: HashMap::new(),
            names: Vec::new(),
        };
        // One search over all bytes runs first, because few profiles have such names and a search per name costs more.
        if memchr::memmem::find(buffer, GO_SHAPE.as_bytes()).is_none() {
            return all;
        }
        for function in &profile.functions {
            let name = function.display_name();
            if all.index_of.contains_key(&text_address(name)) {
                continue;
            }
            let renamed = without_go_shapes(name).map(|renamed| {
                all.names.push(renamed);
                all.names.len() - 1
            });
            all.index_of.insert(text_address(name), renamed);
        }
        all
    }

    /// Returns the new name of a function named `name` in the profile, if it has one.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        if self.names.is_empty() {
            return None;
        }
        let index = self.index_of.get(&text_address(name)).copied().flatten()?;
        self.names.get(index).map(String::as_str)
    }
}

fn text_address(text: &str) -> (usize, usize) {
    (text.as_ptr() as usize, text.len())
}

pub(super) fn without_go_shapes(name: &str) -> Option<String> {
    let mut position = memchr::memmem::find(name.as_bytes(), GO_SHAPE.as_bytes())?;
    let mut out = String::with_capacity(name.len());
    let mut rest = name;
    loop {
        let (before, parameters) = rest.split_at(position);
        out.push_str(before);
        // Parameters nest: `[go.shape.struct { a []int }]`.
        let mut depth = 0usize;
        let end = parameters.bytes().position(|byte| {
            match byte {
                b'[' => depth += 1,
                b']' => depth -= 1,
                _ => {}
            }
            depth == 0
        });
        rest = match end {
            Some(end) => &parameters[end + 1..],
            // The name ends within the parameters, because very long names are truncated.
            None => "",
        };
        if let Some(next) = rest.find(GO_SHAPE) {
            position = next;
        } else {
            out.push_str(rest);
            return Some(out);
        }
    }
}
