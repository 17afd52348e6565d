//! Promises about files that are, or describe, a program, with one function per fuzz target. A broken promise panics.
//!
//! The fuzz targets call these functions. `integration/fuzzing.rs` also calls them with the seeds, with inputs that
//! once broke a promise, and with random changes of both. In: bytes. Out: nothing, or a panic. The functions read and
//! write no files.

use alluvium_symbols::bytes::Bytes;
use alluvium_symbols::functions::Functions;
use alluvium_symbols::latest::Latest;
use alluvium_symbols::pclntab::Pclntab;
use alluvium_symbols::{Demangle, Ranges, dwarf, elf as elf_file, go as go_file, jitdump, kernel, perf_map, separate};
use alluvium_unwind::walk::{REGISTERS, RuleLookup, Snapshot, walk};
use alluvium_unwind::{Arch, Packed, Table, eh_frame, go as go_rules};

/// Any bytes are read as an ELF file. The unwind table, functions, lines, inlined calls and Go's table may be missing,
/// but nothing panics, hangs or exceeds its memory limit.
pub(super) fn elf(data: &[u8]) {
    let Ok(file) = object::File::parse(data) else {
        return;
    };
    separate::link(&file);
    if let Some(packed) = separate::packed(&file) {
        separate::unpack(&packed);
    }
    let head = elf_file::Head::read(data).expect("a file that can be parsed has a head");
    assert!(head.build_id.len() <= 128);
    let mut addresses: Vec<u64> = head
        .segments
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
    let mut limits = dwarf::Limits {
        bytes: 8 << 20,
        steps: 100_000,
    };
    Functions::new(&file, data).resolve(&addresses, Demangle::Full, &mut names, |_, missing| {
        Some(dwarf::locate(&file, missing, Demangle::Full, &mut limits))
    });
    assert!(names.len() <= addresses.len());
    go_file::find(&file, &Bytes::new(&data));
}

/// Any bytes as `.eh_frame` or `.debug_frame` of a well-formed file result in an error or in sorted rules, and a walk
/// by these rules ends. The same bytes are also the stack that the walk reads. The first byte selects machine and
/// section.
pub(super) fn cfi(data: &[u8]) {
    let Some((choice, data)) = data.split_first() else {
        return;
    };
    let (machine, arch) = if choice % 2 == 0 {
        (62, Arch::X86_64)
    } else {
        (183, Arch::Aarch64)
    };
    let name = if choice % 4 < 2 { ".eh_frame" } else { ".debug_frame" };
    let bytes = with_section(machine, name, data);
    let file = object::File::parse(bytes.as_slice()).expect("the file is well formed");
    let Ok((table, _)) = eh_frame::compile(&file) else {
        return;
    };
    assert!(table.rows().is_sorted_by(|a, b| a.pc < b.pc));
    let packed = Packed::new(table.clone());
    for row in table.rows().iter().take(256) {
        assert!(packed.find(row.pc).is_some_and(|found| found == *row));
    }
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
        |address| match u32::try_from(address).ok().and_then(|pc| packed.find(pc)) {
            Some(row) => RuleLookup::Row(row),
            None => RuleLookup::FramePointers,
        },
        &mut frames,
    );
    assert!(frames.len() <= 896);
}

/// Builds a file with one section.
fn with_section(machine: u16, name: &str, data: &[u8]) -> Vec<u8> {
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

/// Any bytes are read as Go's table, a jitdump file, a perf map or a list of kernel symbols. Names may be missing, but
/// nothing panics. The first byte selects the kind: `g`, `j`, `p` or `k`.
pub(super) fn names(data: &[u8]) {
    let Some((kind, data)) = data.split_first() else {
        return;
    };
    let addresses = [0x10, 0x1000, 0x1008, 0x7f00_0000_0000];
    let mut latest = Latest::new(&addresses);
    match kind {
        b'g' => go_table(data),
        b'j' => {
            jitdump::offer(&Bytes::new(&data), &mut latest);
        }
        b'p' => perf_map::offer(data, &mut latest).expect("reading bytes does not fail"),
        b'k' => {
            if let Some(symbols) = kernel::Symbols::read(data).expect("reading bytes does not fail") {
                symbols.resolve(&addresses, &mut Ranges::default());
            }
        }
        _ => {}
    }
    let mut found = 0;
    latest.finish(|address, start, end, _| {
        assert!(start <= address && address < end);
        found += 1;
    });
    assert!(found <= addresses.len());
}

fn go_table(data: &[u8]) {
    let bytes = Bytes::new(&data);
    let Some(mut table) = Pclntab::open(&bytes, 0, 0x1000) else {
        return;
    };
    table.inlined = Some(data.len() as u64 / 2);
    let mut rows = Vec::new();
    let mut offsets = Vec::new();
    for function in table.functions(&bytes).take(64) {
        offsets.clear();
        table.stack_offsets(&bytes, &function, |end, offset| {
            if offsets.len() < 1000 {
                offsets.push((end, offset));
            }
        });
        let described = go_rules::Function {
            start: function.start,
            end: function.end,
            is_top: function.is_top,
            switches: function.switches,
            is_signal_return: false,
            offsets: &offsets,
        };
        go_rules::rows(Arch::X86_64, &described, &mut rows);
        go_rules::rows(Arch::Aarch64, &described, &mut rows);
        table.name(&bytes, &function);
        table.find(&bytes, function.start);
        table.find(&bytes, function.end.wrapping_sub(1));
    }
    let table = Table::default().overlay(rows, 0x1000, 0x100_0000);
    assert!(table.rows().is_sorted_by(|a, b| a.pc < b.pc));
}
