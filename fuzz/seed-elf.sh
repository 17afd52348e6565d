#!/bin/sh
# Builds small programs as seeds of `elf`, and extracts their sections as seeds of `cfi` and `names`: fuzz/seed-elf.sh FOLDER
set -eu
seed_names=$(cd "$(dirname "$0")" && pwd)/seed-names.py
mkdir -p "$1/elf" "$1/cfi" "$1/names"
cd "$1"
printf 'int f(int a){return a?f(a-1)*3:1;}int main(int c,char**v){(void)v;return f(c);}' >small.c
for flags in '-O0 -g' '-O2' '-O2 -g -gdwarf-4 -static-pie -nostdlib -Wl,-emain' '-O1 -g -gz -nostdlib -Wl,-emain'; do
    # shellcheck disable=SC2086
    gcc $flags -o "elf/gcc$(echo "$flags" | cksum | cut -d' ' -f1)" small.c || true
done
for file in elf/*; do
    objcopy -O binary --only-section=.eh_frame "$file" frames && { printf '\000'; cat frames; } >"cfi/$(basename "$file")"
done
if command -v go >/dev/null; then
    mkdir -p program
    printf 'package main\nfunc main() { println(len("x")) }\n' >program/main.go
    printf 'module x\n' >program/go.mod
    (cd program && go build -ldflags='-s -w' -o ../bare .)
    objcopy -O binary --only-section=.gopclntab bare table && { printf g; head -c 65536 table; } >names/go
fi
"$seed_names" names
printf 'p1000 10 LazyCompile:~work a.js:3\n0x1008 0x8 void A.b(int)\n' >names/map
printf 'kffffffff81000000 T first\n0000000000001000 t second [m]\n' >names/list
printf 'j\104\124\151\112\001\000\000\000\050\000\000\000' >names/dump
rm -rf small.c frames table program bare
