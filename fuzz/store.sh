#!/bin/sh
# Builds and runs `store_flush`, or the target that $TARGET names, with coverage counters in Alluvium's code only:
# fuzz/store.sh CORPUS [libFuzzer options]
#
# cargo-fuzz would build every dependency, including DataFusion, again with counters, and the coverage would include their branches.
# Therefore this script is also a wrapper of the compiler: it adds counters and traced comparisons only to Alluvium's crates and to
# the target.
set -eu
if [ "${STORE_FUZZ_WRAPS:-}" ]; then
    case " $* " in
    *" --crate-name alluvium"* | *" --crate-name store_flush "* | *" --crate-name pgwire "*fuzz_targets*)
        exec "$@" --cfg fuzzing -Copt-level=1 -Cdebug-assertions=on -Coverflow-checks=on -Cpasses=sancov-module \
            -Cllvm-args=-sanitizer-coverage-level=4 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
            -Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares
        ;;
    esac
    exec "$@"
fi
script=$(cd "$(dirname "$0")" && pwd)/$(basename "$0")
mkdir -p "$1"
corpus=$(cd "$1" && pwd)
shift
cd "$(dirname "$0")/.."
target=${TARGET:-store_flush}
[ "$(ls "$corpus")" ] || [ "$target" != store_flush ] || fuzz/seed-poison.sh "$corpus"
# The build uses a separate folder, because builds with and without counters must not be mixed.
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-target}/fuzz-store"
STORE_FUZZ_WRAPS=1 RUSTC_WRAPPER=$script CARGO_INCREMENTAL=0 \
    cargo build --locked --package alluvium-fuzz --features server --bin "$target"
exec "$CARGO_TARGET_DIR/debug/$target" -rss_limit_mb=1024 -timeout=120 -print_final_stats=1 "$@" "$corpus"
