#!/bin/sh
# Writes the profiles of `integration/poison.rs` as seeds of `store_flush`: fuzz/seed-poison.sh FOLDER
set -eu
mkdir -p "$1"
folder=$(cd "$1" && pwd)
cd "$(dirname "$0")/.."
ALLUVIUM_SEEDS=$folder cargo test --locked --test integration poison::the_cases_are_seeds_of_the_fuzz_target
