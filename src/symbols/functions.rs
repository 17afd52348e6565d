//! The functions of a binary, from Go's function table, from DWARF with lines and inlined calls, and from symbols, in
//! this order.
//!
//! Indexes and the positions of tables are kept. Names and lines stay in the file until they are needed.

use std::sync::Arc;

use object::{Object, ReadRef};

use crate::bytes::{Bytes, Source};
use crate::calls::{Call, Located};
use crate::demangle::{Demangle, demangle};
use crate::elf::Index;
use crate::go;
use crate::pclntab::Pclntab;
use crate::ranges::Ranges;

/// The functions of a binary.
#[derive(Debug)]
pub struct Functions<S> {
    /// Symbols, and the file that contains their names: the binary or its debug file. If two of these indexes contain
    /// an address, the first one applies.
    symbols: Vec<(Index, S)>,
    /// Go's table, and the file that contains it.
    go: Option<(Pclntab, S)>,
    /// The file that contains DWARF.
    debug: Option<S>,
}

impl<S> Default for Functions<S> {
    fn default() -> Self {
        Self {
            symbols: Vec::new(),
            go: None,
            debug: None,
        }
    }
}

impl<S: Source> Functions<S> {
    /// Reads the functions of `file`, whose bytes are `source`.
    pub fn new<'data, R: ReadRef<'data>>(file: &object::File<'data, R>, source: S) -> Self
    where
        S: Clone,
    {
        let go = go::find(file, &Bytes::new(&source)).map(|table| (table, source.clone()));
        Self {
            debug: has_lines(file).then(|| source.clone()),
            symbols: vec![(Index::new(file), source)],
            go,
        }
    }

    /// Adds the names from a separate debug file, if it has any.
    pub fn with_debug_file<'data, R: ReadRef<'data>>(mut self, file: &object::File<'data, R>, source: S) -> Self
    where
        S: Clone,
    {
        if has_lines(file) {
            self.debug = Some(source.clone());
        }
        let index = Index::new(file);
        if !index.is_empty() {
            self.symbols = vec![(index, source)];
        }
        self
    }

    /// Adds the names from `file`, the unpacked symbols inside the binary (MiniDebugInfo). They contain only names that
    /// were stripped from the binary, not names that it still has.
    pub fn with_packed<'data, R: ReadRef<'data>>(mut self, file: &object::File<'data, R>, source: S) -> Self {
        self.symbols.insert(0, (Index::new(file), source));
        self
    }

    /// Looks up the sorted `addresses` that are not in `names` yet, and adds the results to `names`. `lines` returns
    /// the calls at all these addresses from the DWARF of a file ([`dwarf::locate`](crate::dwarf::locate)), or `None`
    /// if that is too expensive now. In that case, the method returns the addresses whose names have no line. A caller
    /// that removes these addresses from `names` can look them up again later.
    pub fn resolve(
        &self,
        addresses: &[u64],
        mode: Demangle,
        names: &mut Ranges,
        lines: impl FnOnce(&S, &[u64]) -> Option<Vec<(u64, Vec<Call>)>>,
    ) -> Vec<u64> {
        let mut postponed_addresses = Vec::new();
        let go = self.go.as_ref().map(|(table, source)| (table, Bytes::new(source)));
        if let Some(debug) = &self.debug
            && go.is_none()
        {
            let missing: Vec<u64> = addresses
                .iter()
                .copied()
                .filter(|address| names.find_calls(*address).is_none())
                .collect();
            let line_calls = if missing.is_empty() {
                Some(Vec::new())
            } else {
                lines(debug, &missing)
            };
            match line_calls {
                Some(line_calls) => self.keep_lines(line_calls, mode, names),
                None => postponed_addresses = missing,
            }
        }
        for address in &postponed_addresses {
            if names.is_full() {
                break;
            }
            let symbol = self.symbol(*address, mode).map(|line_calls| line_calls.calls.into());
            let calls = symbol.unwrap_or_else(|| Arc::new([Call::named(Arc::from(""))]) as Arc<[Call]>);
            names.insert_calls(*address, address.saturating_add(1), calls);
        }
        for address in addresses {
            if names.is_full() {
                break;
            }
            if names.find_calls(*address).is_some() {
                continue;
            }
            let go_function = go.as_ref().and_then(|(table, bytes)| table.find(bytes, *address));
            let (start, end, calls): (_, _, Arc<[Call]>) = match go_function {
                Some(located) => (*address, address.saturating_add(1), located.calls.into()),
                None => match self.symbol(*address, mode) {
                    Some(Located { start, end, calls }) => (start, end, calls.into()),
                    // The empty name prevents another search for the address.
                    None => (
                        *address,
                        address.saturating_add(1),
                        Arc::new([Call::named(Arc::from(""))]),
                    ),
                },
            };
            names.insert_calls(start, end, calls);
        }
        postponed_addresses
    }

    fn keep_lines(&self, calls_by_address: Vec<(u64, Vec<Call>)>, mode: Demangle, names: &mut Ranges) {
        for (address, mut calls) in calls_by_address {
            if names.is_full() {
                break;
            }
            // DWARF has only the line, so the symbol provides the function's name.
            if let Some(last) = calls.last_mut().filter(|call| call.name.is_empty()) {
                let symbol = self
                    .symbol(address, mode)
                    .and_then(|calls_by_address| calls_by_address.calls.into_iter().next());
                let Some(symbol) = symbol else { continue };
                last.name = symbol.name;
            }
            calls.retain(|call| !call.name.is_empty());
            names.insert_calls(address, address.saturating_add(1), calls.into());
        }
    }

    fn symbol(&self, address: u64, mode: Demangle) -> Option<Located> {
        self.symbols.iter().find_map(|(index, strings)| {
            let function = index.find(address)?;
            let name = Bytes::new(strings).text(function.name)?;
            Some(Located {
                start: function.start,
                end: function.end,
                calls: vec![Call::named(demangle(&name, mode).into())],
            })
        })
    }

    /// Returns true if a file has more functions than are kept.
    pub fn is_cut(&self) -> bool {
        self.symbols.iter().any(|(index, _)| index.is_cut())
    }

    /// Returns the number of bytes of the indexes, and of files that are in memory.
    pub fn bytes(&self) -> usize {
        self.symbols
            .iter()
            .map(|(index, source)| index.bytes() + source.held_bytes())
            .sum()
    }
}

fn has_lines<'data, R: ReadRef<'data>>(file: &object::File<'data, R>) -> bool {
    file.section_by_name(".debug_info").is_some()
}

/// Returns true if the file has a full symbol table, and not only the symbols for the dynamic linker.
pub fn has_symbols<'data, R: ReadRef<'data>>(file: &object::File<'data, R>) -> bool {
    file.section_by_name(".symtab").is_some()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::dwarf;

    fn resolve(bytes: &[u8], addresses: &[u64]) -> Ranges {
        let mut names = Ranges::default();
        if let Ok(file) = object::File::parse(bytes) {
            Functions::new(&file, bytes).resolve(addresses, Demangle::Full, &mut names, |_, missing| {
                Some(dwarf::locate(
                    &file,
                    missing,
                    Demangle::Full,
                    &mut dwarf::Limits::default(),
                ))
            });
        }
        names
    }

    #[test]
    fn lines_and_inlined_calls_of_our_own_program_are_found() {
        // The test program itself has only line tables.
        let bytes = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        let file = object::File::parse(bytes.as_slice()).unwrap();
        let symbol = object::ObjectSymbol::address(
            &file
                .symbols()
                .find(|symbol| {
                    object::ObjectSymbol::name(symbol)
                        .is_ok_and(|name| name.contains("lines_and_inlined_calls_of_our_own"))
                        && object::ObjectSymbol::size(symbol) > 0
                })
                .unwrap(),
        );
        let mut limits = dwarf::Limits {
            bytes: 4 << 30,
            steps: 1 << 30,
        };
        let calls_by_address = dwarf::locate(&file, &[symbol], Demangle::Full, &mut limits);
        let (address, calls) = calls_by_address.first().unwrap();
        let outer = calls.last().unwrap();
        assert_eq!(*address, symbol);
        assert!(
            outer.file.ends_with("src/symbols/functions.rs") && outer.line > 50,
            "{calls:?}"
        );
        assert!((1..1 << 30).contains(&limits.steps), "{limits:?}");
        // Nothing larger than allowed is read.
        limits.bytes = 1 << 20;
        assert!(dwarf::locate(&file, &[symbol], Demangle::Full, &mut limits).is_empty());
    }

    #[test]
    fn when_there_are_enough_names_no_more_are_looked_up() {
        let long_name: Arc<str> = "x".repeat(1 << 20).into();
        let mut names = Ranges::default();
        let is_looked_up = |names: &mut Ranges, address: u64| {
            let functions: Functions<&[u8]> = Functions::default();
            functions.resolve(&[address], Demangle::Full, names, |_, _| None);
            names.find_calls(address).is_some()
        };
        assert!(is_looked_up(&mut names, 1 << 40));
        for start in 0..200 {
            names.insert(start, start + 1, long_name.clone());
        }
        assert!(!is_looked_up(&mut names, 1 << 41));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        #[test]
        fn damaged_files_have_names_or_none(
            changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..40),
            addresses in proptest::collection::btree_set(0_u64..0x30000, 1..20),
        ) {
            let mut bytes = std::fs::read("/bin/sh").unwrap();
            let length = bytes.len();
            for (index, (position, value)) in changes.into_iter().enumerate() {
                let position = if index % 2 == 0 {
                    position.index(length)
                } else {
                    length - 2048 + position.index(2048)
                };
                bytes[position] = value;
            }
            let addresses: Vec<u64> = addresses.into_iter().collect();
            let names = resolve(&bytes, &addresses);
            prop_assert!(names.len() <= addresses.len());
        }
    }
}
