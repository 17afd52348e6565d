//! Any bytes as Go's table, a jitdump file, a perf map, a list of kernel symbols: names or none.
//!
//! Seeds: a `.gopclntab` section with `g` before it; the other forms begin with `j`, `p` and `k`.

#![no_main]

use alluvium::symbols::bytes::Bytes;
use alluvium::symbols::latest::Latest;
use alluvium::symbols::pclntab::Pclntab;
use alluvium::symbols::{Ranges, jitdump, kernel, perf_map};
use alluvium::unwind::{Arch, Table, go};
use libfuzzer_sys::fuzz_target;

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
        let described = go::Function {
            start: function.start,
            end: function.end,
            is_top: function.is_top,
            switches: function.switches,
            is_signal_return: false,
            offsets: &offsets,
        };
        go::rows(Arch::X86_64, &described, &mut rows);
        go::rows(Arch::Aarch64, &described, &mut rows);
        table.name(&bytes, &function);
        table.find(&bytes, function.start);
        table.find(&bytes, function.end.wrapping_sub(1));
    }
    let table = Table::default().overlay(rows, 0x1000, 0x100_0000);
    assert!(table.rows().is_sorted_by(|a, b| a.pc < b.pc));
}

fuzz_target!(|data: &[u8]| {
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
            kernel::resolve(data, &addresses, &mut Ranges::default()).expect("reading bytes does not fail");
        }
        _ => {}
    }
    let mut found = 0;
    latest.finish(|address, start, end, _| {
        assert!(start <= address && address < end);
        found += 1;
    });
    assert!(found <= addresses.len());
});
