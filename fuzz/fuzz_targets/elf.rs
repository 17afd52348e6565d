//! Any bytes as an ELF file: its unwind table, its functions, lines and inlined calls, and Go's table are there or not; nothing panics, hangs or
//! takes more memory than it may.
//!
//! Seeds: small programs, `fuzz/seed-elf.sh FOLDER`.

#![no_main]

use alluvium::symbols::bytes::Bytes;
use alluvium::symbols::functions::Functions;
use alluvium::symbols::{Demangle, Ranges, dwarf, elf, go};
use alluvium::unwind::eh_frame;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Ok(file) = object::File::parse(data) else {
        return;
    };
    elf::build_id(&file);
    let segments = elf::executable_segments(&file);
    let mut addresses: Vec<u64> = segments
        .iter()
        .flat_map(|segment| [segment.address, segment.address.wrapping_add(segment.size / 2)])
        .collect();
    if let Ok((table, _)) = eh_frame::compile(&file) {
        assert!(table.rows().is_sorted_by(|a, b| a.pc < b.pc));
        addresses.extend(table.rows().iter().take(8).map(|row| u64::from(row.pc)));
    }
    addresses.sort_unstable();
    addresses.dedup();
    let mut names = Ranges::default();
    let limits = dwarf::Limits {
        bytes: 8 << 20,
        entries: 100_000,
    };
    Functions::new(&file, data).resolve(&addresses, Demangle::Full, &mut names, |_, missing| {
        dwarf::locate(&file, missing, Demangle::Full, limits)
    });
    assert!(names.len() <= addresses.len());
    go::find(&file, &Bytes::new(&data));
});
