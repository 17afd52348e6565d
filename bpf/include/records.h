/* SPDX-License-Identifier: MIT OR GPL-2.0-only
 *
 * What passes between the BPF program and the collector. src/ebpf/records.rs reads the same layout; all fields are of
 * native byte order and naturally aligned.
 */
#ifndef ALLUVIUM_RECORDS_H
#define ALLUVIUM_RECORDS_H

/* Kernel frames at most: the kernel's own limit (perf_event_max_stack) is 127. */
#define MAX_KERNEL_FRAMES 127
/* User frames at most. */
#define MAX_USER_FRAMES 896
/* Power of two that holds both. */
#define MAX_FRAMES 1024
/* Bytes of user stack in a snapshot. */
#define SNAPSHOT_BYTES 16384
#define SNAPSHOT_PIECE 4096

/* What a record is. */
enum record_kind {
	/* Frames only. */
	RECORD_STACK = 1,
	/* A stack whose user half is registers and bytes, to be unwound outside. */
	RECORD_SNAPSHOT = 2,
	/* As a snapshot, before the RECORD_STACK of the same tick, which has the frames: what both say can be compared. */
	RECORD_COPY = 3,
};

/* Why the walk of the user stack ended. */
enum stop {
	/* No user half: a kernel thread. */
	STOP_NO_USER = 0,
	/* The outermost frame was reached. */
	STOP_END = 1,
	/* More than MAX_USER_FRAMES. */
	STOP_DEPTH = 2,
	/* Stack memory could not be read. */
	STOP_READ = 3,
	/* The address lies in no known mapping. */
	STOP_NO_MAPPING = 4,
	/* The table says nothing of the address. */
	STOP_NO_RULE = 5,
	/* The rule is of a kind that the program cannot follow. */
	STOP_RULE = 6,
	/* The next frame is not above this one. */
	STOP_ORDER = 7,
	/* The mappings of the process are not known yet. */
	STOP_NEW_PROCESS = 8,
	/* The table of the file is not there yet. */
	STOP_NO_TABLE = 9,
};

struct record {
	/* CLOCK_MONOTONIC, nanoseconds. */
	u64 time;
	/* Start of the process, CLOCK_BOOTTIME, nanoseconds: with the id it names the process for good. */
	u64 start;
	u32 pid;
	u32 tid;
	u32 cpu;
	u16 kernel_frames;
	u16 user_frames;
	u8 kind;
	u8 stop;
	u16 reserved;
	u32 snapshot_bytes;
	char comm[16];
	/* Nanoseconds of CPU time that this tick stands for. */
	u64 period;
};

struct stack_record {
	struct record head;
	/* Kernel frames, then user frames, each leaf first. */
	u64 frames[MAX_FRAMES];
};

/* Registers at the leaf that rules may name, in the order of their DWARF numbers on x86-64; not used on arm64. */
#define REGISTERS 16

/* Only as much of it is written as there is: `kernel_frames` addresses, then `snapshot_bytes` bytes of the stack. */
struct snapshot_record {
	struct record head;
	u64 ip, sp, bp;
	/* rbx on x86-64, x30 on arm64. */
	u64 aux;
	/* Key of the table that the walk of the program lacked; 0: none. The walk outside may end before that file, where the bytes do. */
	u64 missing;
	u64 registers[REGISTERS];
	u8 data[MAX_KERNEL_FRAMES * 8 + SNAPSHOT_BYTES];
};

/* One executable mapping of a process; element 0 of the array holds the number of mappings in `start`. Sorted by start. */
struct mapping {
	u64 start;
	u64 end;
	/* Address in the process minus address in the file's tables. */
	u64 bias;
	/* Key of the unwind table; 0: none, walk by frame pointers. A file whose table has no rows is walked so too. */
	u32 table;
	u32 reserved;
};

/* In place of the number of mappings: ticks of this process are counted and nothing else. */
#define IGNORED 0xffffffffffffffffULL

/* A table is an array of these, which is read as one row of words: a header, all rules (the most frequent first), an index and the rows.
 * src/unwind/packed.rs writes it. A line is one of the processor's cache. */
#define LINE_WORDS 16
struct line {
	u32 words[LINE_WORDS];
};

/* Rules in the header. */
#define FIRST_RULES 8

/* The first line of a table. */
struct table {
	/* Without rows, frame pointers are followed. */
	u32 rows;
	/* The index has a word a page and one more: the number of the first row in it. A page has 1 << shift addresses. */
	u32 first_page;
	u32 pages;
	u32 shift;
	/* Words before the index, the rows and the rules. */
	u32 pages_at;
	u32 rows_at;
	u32 rules_at;
	u32 reserved;
	u32 first_rules[FIRST_RULES];
};

/* A row is a word: the offset in its page in the high `shift` bits, the number of its rule in the others. It holds up to the next row. A rule is a word too:
 * from bit 0 on 16 bits, signed: offset of the CFA from its register, in units of 8 bytes;
 * from bit 16 on 8 bits, signed: where the caller's frame pointer is saved, from the CFA in units of 8 bytes; 0: it still is in the register;
 * from bit 24 on 4 bits: enum rule;
 * from bit 28 on 4 bits: a register for RULE_REGISTER and RULE_RETURN, enum aux for all others.
 * RULE_SP_FAR has an offset of 24 bits in place of the first two.
 */

/* Where the caller's third register is: rbx on x86-64, the return address (x30) on arm64. Other values: at CFA - 8 * value. */
enum aux {
	/* It still is in the register. */
	AUX_SAME = 0,
	/* x86-64: nobody knows. */
	AUX_LOST = 1,
	/* arm64: `bp` words above the register that the CFA is counted from; the frame pointer still is in its register. */
	AUX_RETURN_AT_BASE = 1,
	/* arm64: the frame pointer lies `bp` words above the register that the CFA is counted from, the return address in the word after it. */
	AUX_RECORD_AT_BASE = 13,
	/* arm64: the frame pointer at SP - 8, the return address at SP (Go). */
	AUX_BELOW = 14,
	/* arm64: in the word after the saved frame pointer. */
	AUX_AFTER = 15,
};

enum rule {
	/* Nothing is known of these addresses. */
	RULE_NONE = 0,
	/* CFA = stack pointer + cfa */
	RULE_SP = 1,
	/* CFA = frame pointer + cfa */
	RULE_BP = 2,
	/* The outermost frame. */
	RULE_END = 3,
	/* A signal frame: the interrupted registers are in memory (struct ucontext). */
	RULE_SIGNAL = 4,
	/* A stub of the procedure linkage table: CFA = sp + 8, and 8 more from the 11th byte of each 16 on. */
	RULE_PLT = 5,
	/* Described in a form that the program does not follow. */
	RULE_COMPLEX = 6,
	/* CFA = what lies at frame pointer + cfa; the caller's frame pointer lies at the frame pointer. */
	RULE_BP_DEREF = 7,
	/* As RULE_BP, but the caller's frame may lie anywhere: the function changes stacks. */
	RULE_SWITCH = 8,
	/* CFA = what lies at the stack pointer + cfa, and 8 more. */
	RULE_SP_DEREF = 9,
	/* CFA = a register + cfa; only where all registers are known. */
	RULE_REGISTER = 10,
	/* CFA = stack pointer + cfa, and the return address is in a register; only where all are known. */
	RULE_RETURN = 11,
	/* CFA = the third register + cfa. */
	RULE_AUX = 12,
	/* x86-64: CFA = stack pointer + an offset of 24 bits, unsigned, in units of 8 bytes. The frame pointer is at CFA - 8 * aux; 0: it still is in the
	 * register. Nobody knows the third register. */
	RULE_SP_FAR = 13,
};

/* The rule where there is no table. */
#if defined(__TARGET_ARCH_arm64)
#define FRAME_POINTERS (2u | (u8)-2 << 16 | (u32)RULE_BP << 24 | (u32)AUX_AFTER << 28)
#else
#define FRAME_POINTERS (2u | (u8)-2 << 16 | (u32)RULE_BP << 24 | (u32)AUX_LOST << 28)
#endif

/* Counters, one set a CPU. Every tick increments exactly one of them, and TICKS before it: who copies them in their order finds no more of them than ticks. */
enum counter {
	COUNT_STACK = 0,
	COUNT_SNAPSHOT = 1,
	COUNT_RING_FULL = 2,
	COUNT_IDLE = 3,
	/* Of a process that is not looked at: the header of its mappings says IGNORED. */
	COUNT_IGNORED = 4,
	/* Not a count: nanoseconds that the program itself took. */
	COUNT_NANOS = 5,
	/* 6 is free. */
	COUNT_TICKS = 7,
	COUNTERS = 8,
};

/* Of a binary search: from the first element, included, to the last, not included. */
struct bounds {
	u32 low, high;
};

/* Where a walk is. */
struct walk {
	u64 ip, sp, bp, aux;
	u32 kernel_frames;
	u32 user_frames;
	u32 stop;
	/* The address is one of a call's return: the rule is that of the byte before. */
	u32 is_return;
};

/* What the program has for itself on each CPU, in one piece: after 10 ms each page of it is cold. */
struct cpu {
	u64 counters[COUNTERS];
	struct walk walk;
	/* Where it began. */
	struct walk start;
	/* The mapping of the frame before. */
	struct mapping mapping;
	struct bounds bounds;
	/* What holds at the address of the frame. */
	u32 rule;
	u32 reserved;
	/* All registers where the walk is, as long as they are known: at the leaf and below a signal. */
	u64 registers[REGISTERS];
	struct stack_record record;
};

#endif
