//! The program: see [`alluvium::cli`].
//!
//! Also says which allocator it runs on, because only a program can: jemalloc, sampling one allocation in 512 KiB on
//! average, so that `/debug/pprof/heap` has something to show. One arena a processor and an early return of what was
//! freed: with jemalloc's defaults a server that takes profiles as fast as it can holds 80 MB more (measured by `make
//! bench-server`), for no gain in time.

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

#[allow(unsafe_code, reason = "jemalloc reads its options from this symbol before main")]
#[unsafe(export_name = "malloc_conf")]
static MALLOC_CONF: &[u8; 101] =
    b"percpu_arena:percpu,dirty_decay_ms:500,muzzy_decay_ms:0,prof:true,prof_active:true,lg_prof_sample:19\0";

fn main() -> std::process::ExitCode {
    alluvium::cli::main()
}
