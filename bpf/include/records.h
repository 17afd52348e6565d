/* SPDX-License-Identifier: MIT OR GPL-2.0-only
 *
 * The data that the BPF program and the collector share. src/ebpf/records.rs reads the same layout. All fields have the native byte
 * order and natural alignment.
 */
#ifndef ALLUVIUM_RECORDS_H
#define ALLUVIUM_RECORDS_H

/* Maximum number of kernel frames. The kernel's own limit (perf_event_max_stack) is 127. */
#define MAX_KERNEL_FRAMES 127
/* Maximum number of user frames. */
#define MAX_USER_FRAMES 896
/* Power of two that is at least the sum of both. */
#define MAX_FRAMES 1024
/* Maximum number of bytes of the user stack in a snapshot, and number of bytes of one read. */
#define SNAPSHOT_BYTES 16384
#define SNAPSHOT_PIECE 4096

/* Kinds of records. */
enum record_kind {
	/* A stack of frames. */
	RECORD_STACK = 1,
	/* A stack whose user frames are not walked: it has registers and bytes instead, and the collector unwinds them. */
	RECORD_SNAPSHOT = 2,
	/* A snapshot that precedes the RECORD_STACK of the same tick, so that a test can compare its own walk with the frames of the record. */
	RECORD_COPY = 3,
};

/* Reasons why the walk of the user stack ended. */
enum stop {
	/* A kernel thread has no user stack. */
	STOP_NO_USER = 0,
	/* The walk reached the outermost frame. */
	STOP_END = 1,
	/* The stack has more than MAX_USER_FRAMES. */
	STOP_DEPTH = 2,
	/* The program could not read the memory of the stack. */
	STOP_READ = 3,
	/* The address is in no known mapping. */
	STOP_NO_MAPPING = 4,
	/* The table has no rule for the address. */
	STOP_NO_RULE = 5,
	/* The program does not support the rule. */
	STOP_RULE = 6,
	/* The stack pointer of the caller is not above the stack pointer of the frame. */
	STOP_ORDER = 7,
	/* The collector has not added the mappings of the process yet. */
	STOP_NEW_PROCESS = 8,
	/* The collector has not added the table of the file yet. */
	STOP_NO_TABLE = 9,
};

struct record {
	/* Time of the tick by CLOCK_MONOTONIC, in nanoseconds. */
	u64 time;
	/* Start of the process by CLOCK_BOOTTIME, in nanoseconds. The start and the id identify the process, even if the id is used again. */
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
	/* CPU time that this tick stands for, in nanoseconds. */
	u64 period;
};

struct stack_record {
	struct record head;
	/* Kernel frames, then user frames, each leaf first. */
	u64 frames[MAX_FRAMES];
};

/* Number of registers of the leaf to which rules may refer, in the order of their DWARF numbers on x86-64. Not used on arm64. */
#define REGISTERS 16

/* The ring contains only the used part of `data`: `kernel_frames` addresses, then `snapshot_bytes` bytes of the stack. */
struct snapshot_record {
	struct record head;
	u64 ip, sp, bp;
	/* The third register: rbx on x86-64, x30 on arm64. */
	u64 aux;
	/* Key of the table that was missing in the walk of the program, 0 for none. The collector's walk may not reach that file, because the bytes end before it. */
	u64 missing;
	u64 registers[REGISTERS];
	u8 data[MAX_KERNEL_FRAMES * 8 + SNAPSHOT_BYTES];
};

/* One executable mapping of a process. The array is sorted by start. Element 0 contains the number of mappings in `start`. */
struct mapping {
	u64 start;
	u64 end;
	/* Address in the process minus address in the file's tables. */
	u64 bias;
	/* Key of the unwind table. If it is 0, or if the table has no rows, the walk follows frame pointers. */
	u32 table;
	u32 reserved;
};

/* Value instead of the number of mappings: the program only counts the ticks of this process. */
#define IGNORED 0xffffffffffffffffULL

/* A table is an array of lines, which the program reads as one array of words: a header, all rules (the most frequent first), an index and
 * the rows. src/unwind/packed.rs writes it. A line has the size of a line of the processor's cache. */
#define LINE_WORDS 16
struct line {
	u32 words[LINE_WORDS];
};

/* Number of rules in the header. */
#define FIRST_RULES 8

/* The first line of a table. */
struct table {
	/* Number of rows. If it is 0, the walk follows frame pointers. */
	u32 rows;
	/* The index has a word for each page, the number of its first row, and one more word for the end. A page has 1 << shift addresses. */
	u32 first_page;
	u32 pages;
	u32 shift;
	/* Number of words before the index, before the rows, and before the rules. */
	u32 pages_at;
	u32 rows_at;
	u32 rules_at;
	u32 reserved;
	u32 first_rules[FIRST_RULES];
};

/* A row is a word. Its high `shift` bits are the offset in its page, the other bits the number of its rule. A row applies up to the next row. A rule is a word:
 * 16 bits from bit 0 on, signed: offset of the CFA from its register, in units of 8 bytes;
 * 8 bits from bit 16 on, signed: offset of the caller's saved frame pointer from the CFA, in units of 8 bytes. 0: it is still in the register;
 * 4 bits from bit 24 on: enum rule;
 * 4 bits from bit 28 on: a register for RULE_REGISTER and RULE_RETURN, enum aux for all other rules.
 * RULE_SP_FAR has an offset of 24 bits instead of the first two fields.
 */

/* Location of the caller's third register: rbx on x86-64, the return address (x30) on arm64. For any other value, it is saved at CFA - 8 * value. */
enum aux {
	/* It is still in the register. */
	AUX_SAME = 0,
	/* x86-64: its location is not known. */
	AUX_LOST = 1,
	/* arm64: saved `bp` words above the register to which the CFA is relative. The frame pointer is still in its register. */
	AUX_RETURN_AT_BASE = 1,
	/* arm64: the frame pointer is saved `bp` words above the register to which the CFA is relative, and the return address in the next word. */
	AUX_RECORD_AT_BASE = 13,
	/* arm64: the frame pointer is saved at SP - 8, and the return address at SP (Go). */
	AUX_BELOW = 14,
	/* arm64: saved in the word after the saved frame pointer. */
	AUX_AFTER = 15,
};

enum rule {
	/* These addresses have no rule. */
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
	/* The file describes the frame in a form that the program does not support. */
	RULE_COMPLEX = 6,
	/* CFA = the word at frame pointer + cfa. The caller's frame pointer is saved at the frame pointer. */
	RULE_BP_DEREF = 7,
	/* Like RULE_BP, but the caller's frame may be at any address, because the function changes the stack. */
	RULE_SWITCH = 8,
	/* CFA = the word at stack pointer + cfa, plus 8. */
	RULE_SP_DEREF = 9,
	/* CFA = a register + cfa. Supported only in a frame in which all registers are known. */
	RULE_REGISTER = 10,
	/* CFA = stack pointer + cfa, and the return address is in a register. Supported only in a frame in which all registers are known. */
	RULE_RETURN = 11,
	/* CFA = the third register + cfa. */
	RULE_AUX = 12,
	/* x86-64: CFA = stack pointer + an unsigned offset of 24 bits, in units of 8 bytes. The frame pointer is saved at CFA - 8 * aux, or for 0 it is still in
	 * the register. The location of the third register is not known. */
	RULE_SP_FAR = 13,
};

/* The rule for files without a table. */
#if defined(__TARGET_ARCH_arm64)
#define FRAME_POINTERS (2u | (u8)-2 << 16 | (u32)RULE_BP << 24 | (u32)AUX_AFTER << 28)
#else
#define FRAME_POINTERS (2u | (u8)-2 << 16 | (u32)RULE_BP << 24 | (u32)AUX_LOST << 28)
#endif

/* Counters, one set per CPU. A tick increments TICKS and then exactly one other counter. If a reader copies them in order, their sum is at most TICKS. */
enum counter {
	COUNT_STACK = 0,
	COUNT_SNAPSHOT = 1,
	COUNT_RING_FULL = 2,
	COUNT_IDLE = 3,
	/* Ticks of ignored processes: the header of their mappings is IGNORED. */
	COUNT_IGNORED = 4,
	/* Run time of the program itself in nanoseconds, not a number of ticks. */
	COUNT_NANOS = 5,
	/* 6 is not used. */
	COUNT_TICKS = 7,
	COUNTERS = 8,
};

/* The remaining range of a binary search, without its end. */
struct bounds {
	u32 low, high;
};

/* The current frame of a walk. */
struct walk {
	u64 ip, sp, bp, aux;
	u32 kernel_frames;
	u32 user_frames;
	u32 stop;
	/* 1 if the address is a return address. Then the rule of the byte before it applies. */
	u32 is_return;
};

/* The data of the program on each CPU. It is contiguous, because every page of it is out of the caches after 10 ms. */
struct cpu {
	u64 counters[COUNTERS];
	struct walk walk;
	/* The first frame of the walk. */
	struct walk start;
	/* The mapping of the previous frame. */
	struct mapping mapping;
	struct bounds bounds;
	/* The rule for the address of the frame. */
	u32 rule;
	u32 reserved;
	/* All registers of the current frame, if they are known: in the leaf, and in a frame that a signal interrupted. */
	u64 registers[REGISTERS];
	struct stack_record record;
};

#endif
