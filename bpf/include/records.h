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

/* One unwind rule: holds from `pc` to the next row. Element 0 holds the number of rows in `pc`. */
struct row {
	u32 pc;
	/* Offset of the CFA from its register, in units of 8 bytes. */
	s16 cfa;
	/* Where the caller's frame pointer is saved, from the CFA in units of 8 bytes; 0: it still is in the register. */
	s8 bp;
	/* Low four bits: enum rule. High four bits: a register for RULE_REGISTER and RULE_RETURN, enum aux for all others. */
	u8 rule;
};

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
};

/* Counters, one set a CPU. Every tick increments TICKS and exactly one of those below it. */
enum counter {
	COUNT_TICKS = 0,
	COUNT_STACK = 1,
	COUNT_SNAPSHOT = 2,
	COUNT_RING_FULL = 3,
	COUNT_NO_SCRATCH = 4,
	COUNT_IDLE = 5,
	/* Of a process that is not looked at: the header of its mappings says IGNORED. */
	COUNT_IGNORED = 6,
	/* Not a count: nanoseconds that the program itself took. */
	COUNT_NANOS = 7,
	COUNTERS = 8,
};

#endif
