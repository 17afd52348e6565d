#!/bin/sh
# Writes seeds of `language` and `hcl` to a folder: fuzz/seed.sh FOLDER
#
# The seeds are the input texts of the cases in integration/lang, and the files config/*.river and config/*.hcl.
set -eu
cd "$(dirname "$0")/.."
mkdir -p "$1"
cp config/*.river config/*.hcl "$1"/ 2>/dev/null || true
for file in integration/lang/fmt/*.txt integration/lang/check/*.txt integration/lang/lex/*.txt integration/lang/hcl/*.txt; do
    [ -e "$file" ] || continue
    awk -v to="$1/$(basename "$(dirname "$file")")-$(basename "$file" .txt)" \
        '/^-- expect --$/ { out = ""; next } /^-- .* --$/ { n++; out = to "-" n; next } out { print > out }' "$file"
done
for file in integration/lang/expr/*.txt integration/lang/conv/*.txt; do
    awk -v to="$1/$(basename "$file" .txt)" '/^-- expect --$/ { exit } !/^-- / { n++; print > (to "-" n) }' "$file"
done
