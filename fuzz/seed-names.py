#!/usr/bin/env python3
"""Writes small tables of Go's functions, one per layout, as seeds of `names`: fuzz/seed-names.py FOLDER

The real table of the smallest program has 64 KiB, which is too large for a fuzzer. Each table here has two functions with names, files, lines, stack offsets
and, if the layout supports it, an inlined call.
"""

import pathlib
import struct
import sys


def table(version):
    names = b"main.main\0main.work\0main.inner\0"
    files = b"/a/main.go\0/a/work.go\0"
    units = struct.pack("<II", 0, 11)
    # Each piece is a list of pairs (a zigzag number and a length) that ends with a zero. The four pieces are the stack offsets 0, 24, 0; one file; lines; and the
    # index of the inlined call.
    pieces = [b"\x02\x01\x30\x10\x2f\x0f\x00", b"\x02\x20\x00", b"\x14\x08\x02\x18\x00", b"\x02\x10\x01\x10\x00"]
    values, starts = b"\0", []
    for piece in pieces:
        starts.append(len(values))
        values += piece
    wide = version in (2, 16)
    header = 16 if version == 2 else 64 if version == 16 else 72
    at = {}
    body = b""
    for name, part in (("names", names), ("units", units), ("files", files), ("values", values)):
        at[name] = header + len(body)
        body += part + b"\0" * (-len(part) % 8)
    functions = header + len(body)
    entry = "<QQ" if wide else "<II"
    first = struct.calcsize(entry) * 2 + (16 if wide else 8)
    records, index = b"", b""
    for number, name in enumerate((0, 10)):
        start = (0x1000 if wide else 0) + number * 0x20
        index += struct.pack(entry, start, first + len(records))
        record = struct.pack("<Q" if wide else "<I", start)
        record += struct.pack("<7I", name, 0, 0, *starts[:3], 3)
        if version != 2:
            record += struct.pack("<I", 0)
        if version == 20:
            record += struct.pack("<I", 7)
        record += bytes((0, number, 0, 4)) + struct.pack("<3I", 0, 0, starts[3]) + struct.pack("<4I", 0, 0, 0, 0)
        records += record
    index += struct.pack("<Q" if wide else "<I", (0x1000 if wide else 0) + 0x40)
    index += b"\0" * (first - len(index))
    magic = {2: 0xFFFFFFFB, 16: 0xFFFFFFFA, 18: 0xFFFFFFF0, 20: 0xFFFFFFF1}[version]
    head = struct.pack("<I4BQ", magic, 0, 0, 1, 8, 2)
    places = [at["names"], at["units"], at["files"], at["values"], functions]
    if version == 16:
        head += struct.pack("<6Q", 2, *places)
    elif version > 16:
        head += struct.pack("<7Q", 2, 0x1000, *places)
    else:
        # In this layout the functions follow the header. All other offsets count from the beginning of the header.
        return head + index + records + body
    whole = head + body + index + records
    # The fuzz target reads the tree of inlined calls from the middle of the data. So the tree and its padding are as long as the table.
    tree = struct.pack("<4I", 0, 20, 4, 1)
    return whole + tree + b"\0" * (len(whole) - len(tree))


folder = pathlib.Path(sys.argv[1])
folder.mkdir(parents=True, exist_ok=True)
for version in (2, 16, 18, 20):
    (folder / f"go{version}").write_bytes(b"g" + table(version))
