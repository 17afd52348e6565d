//! The program. [`alluvium::cli`] implements its commands.
//!
//! This file also selects the allocator, because that choice belongs to the program. The allocator is jemalloc. It
//! samples one allocation per 512 KiB on average, so that `/debug/pprof/heap` can return a heap profile. It has one
//! arena for each CPU, and it returns freed memory to the system after 500 ms. With jemalloc's defaults, a server that
//! accepts profiles at its maximum rate holds 80 MB more memory and is not faster (measured by `make bench-server`).

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

#[allow(unsafe_code, reason = "jemalloc reads its options from this symbol before main")]
#[unsafe(export_name = "malloc_conf")]
static MALLOC_CONF: &[u8; 101] =
    b"percpu_arena:percpu,dirty_decay_ms:500,muzzy_decay_ms:0,prof:true,prof_active:true,lg_prof_sample:19\0";

fn main() -> std::process::ExitCode {
    alluvium::cli::main()
}
