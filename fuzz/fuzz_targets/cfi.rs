//! Any bytes as `.eh_frame` of a well-formed file, for both machines; and any bytes as the stack that its rules walk.
//!
//! The first byte chooses the machine; no seeds needed, `.eh_frame` sections of programs are good ones.

#![no_main]

use alluvium::unwind::walk::{Found, REGISTERS, Snapshot, walk};
use alluvium::unwind::{Arch, eh_frame};
use libfuzzer_sys::fuzz_target;

/// A file with one section.
fn elf(machine: u16, name: &str, data: &[u8]) -> Vec<u8> {
    let mut file = vec![0x7f, b'E', b'L', b'F', 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let names = format!("\0{name}\0.shstrtab\0");
    let name_at = (64 + data.len()) as u64;
    let table_at = (name_at + names.len() as u64).next_multiple_of(8);
    let mut put = |bytes: &[u8]| file.extend_from_slice(bytes);
    put(&3_u16.to_le_bytes());
    put(&machine.to_le_bytes());
    put(&1_u32.to_le_bytes());
    put(&[0; 16]);
    put(&table_at.to_le_bytes());
    put(&0_u32.to_le_bytes());
    for number in [64_u16, 56, 0, 64, 3, 2] {
        put(&number.to_le_bytes());
    }
    put(data);
    put(names.as_bytes());
    file.resize(table_at as usize, 0);
    let mut section = |name: u32, kind: u32, address: u64, at: u64, size: u64| {
        file.extend_from_slice(&name.to_le_bytes());
        file.extend_from_slice(&kind.to_le_bytes());
        for number in [2, address, at, size, 0, 8, 0] {
            file.extend_from_slice(&number.to_le_bytes());
        }
    };
    section(0, 0, 0, 0, 0);
    section(1, 1, 0x10000, 64, data.len() as u64);
    section(2 + name.len() as u32, 3, 0, name_at, names.len() as u64);
    file
}

fuzz_target!(|data: &[u8]| {
    let Some((choice, data)) = data.split_first() else {
        return;
    };
    let (machine, arch) = if choice % 2 == 0 { (62, Arch::X86_64) } else { (183, Arch::Aarch64) };
    let name = if choice % 4 < 2 { ".eh_frame" } else { ".debug_frame" };
    let bytes = elf(machine, name, data);
    let file = object::File::parse(bytes.as_slice()).expect("the file is well formed");
    let Ok((table, _)) = eh_frame::compile(&file) else {
        return;
    };
    assert!(table.rows().is_sorted_by(|a, b| a.pc < b.pc));
    let snapshot = Snapshot {
        ip: table.rows().first().map_or(0, |row| u64::from(row.pc)),
        sp: 0,
        bp: 16,
        aux: 8,
        registers: [24; REGISTERS],
        bytes: data,
    };
    let mut frames = Vec::new();
    walk(
        arch,
        &snapshot,
        896,
        |address| match u32::try_from(address).ok().and_then(|pc| table.find(pc)) {
            Some(row) => Found::Row(*row),
            None => Found::FramePointers,
        },
        &mut frames,
    );
    assert!(frames.len() <= 896);
});
