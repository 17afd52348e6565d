/* SPDX-License-Identifier: MIT OR GPL-2.0-only
 *
 * The BPF program of the profiler. At every tick of the CPU clock, it writes the kernel stack and the user stack of the running thread to a ring.
 *
 * The program walks the user stack with tables that the collector fills: the mappings of each process, and the rules of each file. It searches both
 * by binary search. If a file has no table, the program follows frame pointers. If the collector does not know the process yet, the program copies the
 * registers and the top of the stack instead, so that no tick is lost. Every tick increments exactly one counter besides COUNT_TICKS.
 */
#include "kernel.h"
#include "records.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

/* The loader sets these variables. */
const volatile u32 kernel_stacks = 1;
const volatile u32 snapshots = 1;
/* If set, the program also copies the stacks that it has walked, so that a test can compare the walk with another one. */
const volatile u32 copies = 0;

struct {
	UINT(type, MAP_RINGBUF);
	UINT(max_entries, 1 << 20);
} ring SEC(".maps");

struct {
	UINT(type, MAP_PERCPU_ARRAY);
	UINT(max_entries, 1);
	TYPE(key, u32);
	TYPE(value, struct cpu);
} scratch SEC(".maps");

struct {
	UINT(type, MAP_PERCPU_ARRAY);
	UINT(max_entries, 1);
	TYPE(key, u32);
	TYPE(value, struct snapshot_record);
} snapshot_scratch SEC(".maps");

struct mapping_array {
	UINT(type, MAP_ARRAY);
	UINT(max_entries, 1);
	UINT(key_size, sizeof(u32));
	UINT(value_size, sizeof(struct mapping));
	UINT(map_flags, F_INNER_MAP | F_MMAPABLE);
};

struct {
	UINT(type, MAP_HASH_OF_MAPS);
	UINT(max_entries, 16384);
	UINT(map_flags, F_NO_PREALLOC);
	TYPE(key, u32);
	ARRAY(values, struct mapping_array);
} processes SEC(".maps");

struct line_array {
	UINT(type, MAP_ARRAY);
	UINT(max_entries, 1);
	UINT(key_size, sizeof(u32));
	UINT(value_size, sizeof(struct line));
	UINT(map_flags, F_INNER_MAP | F_MMAPABLE);
};

struct {
	UINT(type, MAP_HASH_OF_MAPS);
	UINT(max_entries, 4096);
	UINT(map_flags, F_NO_PREALLOC);
	TYPE(key, u32);
	ARRAY(values, struct line_array);
} tables SEC(".maps");

/* The argument of each step of a walk. All other values are in `struct cpu`: the verifier does not know numbers in memory, so it treats many states as one. */
struct context {
	struct cpu *cpu;
	void *mappings;
};

/* Returns the index of the last mapping that starts at or before `address`, in a sorted array of `size` mappings from index 1 on. Returns 0 for none. */
INLINE u32 find_mapping(void *mappings, volatile struct bounds *bounds, u32 size, u64 address)
{
	bounds->low = 1;
	bounds->high = size + 1;
	for (int step = 0; step < 14; step++) {
		u32 low = bounds->low, high = bounds->high;
		if (low >= high)
			break;
		u32 middle = low + ((high - low) >> 1);
		struct mapping *entry = map_lookup(mappings, &middle);
		if (!entry)
			return 0;
		if (entry->start <= address)
			bounds->low = middle + 1;
		else
			bounds->high = middle;
	}
	return bounds->low - 1;
}

/* Returns the word of a table at an index. */
INLINE u32 *word(void *table, u32 at)
{
	u32 index = at / LINE_WORDS;
	struct line *line = map_lookup(table, &index);
	return line ? &line->words[at % LINE_WORDS] : NULL;
}

/* Returns the rule for `pc`, or 0, which is RULE_NONE, if the table has none. */
INLINE u32 find_rule(void *table, struct table *header, volatile struct bounds *bounds, u32 pc)
{
	u32 shift = header->shift & 31, numbers = 0xffffffffU >> shift;
	u32 page = pc >> shift;
	bounds->low = bounds->high = header->rows;
	if (page < header->first_page)
		return 0;
	page -= header->first_page;
	/* After the last page, the last row applies. */
	if (page < header->pages) {
		u32 *first = word(table, header->pages_at + page), *last = word(table, header->pages_at + page + 1);
		if (!first || !last)
			return 0;
		bounds->low = *first;
		bounds->high = *last;
	}
	/* The key is at least as large as every row at this offset. */
	u32 key = pc << (32 - shift) | numbers;
	for (int step = 0; step < 17; step++) {
		u32 low = bounds->low, high = bounds->high;
		if (low >= high)
			break;
		u32 middle = low + ((high - low) >> 1);
		u32 *row = word(table, header->rows_at + middle);
		if (!row)
			return 0;
		if (*row <= key)
			bounds->low = middle + 1;
		else
			bounds->high = middle;
	}
	u32 low = bounds->low;
	/* If no row of this page is at or before `pc`, this is the last row of an earlier page. */
	u32 *row = low ? word(table, header->rows_at + low - 1) : NULL;
	if (!row)
		return 0;
	u32 number = *row & numbers;
	if (number < FIRST_RULES)
		return header->first_rules[number & (FIRST_RULES - 1)];
	u32 *rule = word(table, header->rules_at + number);
	return rule ? *rule : 0;
}

/* Does one step of the walk: stores the address of the frame, then finds the registers of its caller. Returns 1 if the walk ends. */
static long step(u32 index, struct context *context)
{
	struct cpu *cpu = context->cpu;
	struct walk *walk = &cpu->walk;
	u32 slot = walk->kernel_frames + walk->user_frames;
	cpu->record.frames[slot & (MAX_FRAMES - 1)] = walk->ip;
	walk->user_frames += 1;

	u64 address = walk->ip - walk->is_return;
	u32 first = 0;
	/* Callers are often in the same mapping. */
	if (address < cpu->mapping.start || address >= cpu->mapping.end) {
		struct mapping *header = map_lookup(context->mappings, &first);
		u32 found = header ? find_mapping(context->mappings, &cpu->bounds, header->start, address) : 0;
		struct mapping *mapping = found ? map_lookup(context->mappings, &found) : NULL;
		if (!mapping || address >= mapping->end) {
			walk->stop = STOP_NO_MAPPING;
			return 1;
		}
		cpu->mapping = *mapping;
	}

	volatile u32 *said = &cpu->rule;
	*said = FRAME_POINTERS;
	u32 key = cpu->mapping.table;
	if (key) {
		/* The collector creates a table when the first stack needs it. */
		void *table = map_lookup(&tables, &key);
		struct table *header = table ? map_lookup(table, &first) : NULL;
		if (!header) {
			walk->stop = STOP_NO_TABLE;
			return 1;
		}
		if (header->rows) {
			u64 relative = address - cpu->mapping.bias;
			u32 pc = relative > 0xffffffffULL ? 0xffffffff : relative;
			*said = find_rule(table, header, &cpu->bounds, pc);
		}
	}
	u32 row = *said, rule = row >> 24 & 15, extra = row >> 28;
	s64 cfa_offset = (s64)(s16)row * 8, bp_offset = (s64)(s8)(row >> 16) * 8;

	u64 cfa, ip = 0;
	if (rule == RULE_SP) {
		cfa = walk->sp + cfa_offset;
	} else if (rule == RULE_BP || rule == RULE_SWITCH) {
		if (walk->bp == 0) {
			walk->stop = STOP_END;
			return 1;
		}
		cfa = walk->bp + cfa_offset;
#if defined(__TARGET_ARCH_x86)
	} else if (rule == RULE_PLT) {
		cfa = walk->sp + 8 + ((address & 15) >= 11 ? 8 : 0);
	} else if (rule == RULE_BP_DEREF) {
		u64 outer;
		if (probe_read_user(&cfa, sizeof(cfa), (void *)(walk->bp + cfa_offset)) ||
		    probe_read_user(&outer, sizeof(outer), (void *)walk->bp)) {
			walk->stop = STOP_READ;
			return 1;
		}
		walk->bp = outer;
		bp_offset = 0;
	} else if (rule == RULE_SP_DEREF) {
		if (probe_read_user(&cfa, sizeof(cfa), (void *)(walk->sp + cfa_offset))) {
			walk->stop = STOP_READ;
			return 1;
		}
		cfa += 8;
	} else if (rule == RULE_AUX && walk->aux) {
		cfa = walk->aux + cfa_offset;
	} else if (rule == RULE_SP_FAR) {
		cfa = walk->sp + (u64)(row & 0xffffff) * 8;
		bp_offset = -8 * (s64)extra;
		extra = AUX_LOST;
	} else if ((rule == RULE_REGISTER || rule == RULE_RETURN) && !walk->is_return) {
		u64 value = cpu->registers[extra & (REGISTERS - 1)];
		if (rule == RULE_REGISTER) {
			cfa = value + cfa_offset;
		} else {
			cfa = walk->sp + cfa_offset;
			ip = value;
		}
		/* Only leaves in assembly have these rules. Nothing describes rbx there, so the walk treats it as unchanged. */
		extra = AUX_SAME;
	} else if (rule == RULE_SIGNAL) {
		/* rt_sigframe has r8 to r15, rdi, rsi, rbp, rbx, rdx, rax, rcx, rsp and rip of the ucontext, 40 bytes above the stack pointer. */
		u64 saved[17];
		u64 *known = cpu->registers;
		if (probe_read_user(saved, sizeof(saved), (void *)(walk->sp + 40))) {
			walk->stop = STOP_READ;
			return 1;
		}
#pragma unroll
		for (int index = 0; index < 8; index++)
			known[8 + index] = saved[index];
		known[5] = saved[8];
		known[4] = saved[9];
		known[6] = saved[10];
		known[3] = saved[11];
		known[1] = saved[12];
		known[0] = saved[13];
		known[2] = saved[14];
		known[7] = saved[15];
		walk->bp = saved[10];
		walk->aux = saved[11];
		walk->sp = saved[15];
		walk->ip = saved[16];
		walk->is_return = 0;
		if (walk->ip == 0) {
			walk->stop = STOP_END;
			return 1;
		}
		return 0;
#else
	} else if (rule == RULE_SIGNAL) {
		/* rt_sigframe has x29, x30, sp and pc in the sigcontext of the ucontext. */
		u64 saved[4];
		if (probe_read_user(saved, sizeof(saved), (void *)(walk->sp + 544))) {
			walk->stop = STOP_READ;
			return 1;
		}
		walk->bp = saved[0];
		walk->aux = saved[1];
		walk->sp = saved[2];
		walk->ip = saved[3];
		walk->is_return = 0;
		if (walk->ip == 0) {
			walk->stop = STOP_END;
			return 1;
		}
		return 0;
#endif
	} else {
		walk->stop = rule == RULE_END ? STOP_END : rule == RULE_NONE ? STOP_NO_RULE : STOP_RULE;
		return 1;
	}
	/* Stacks grow down, so the caller's frame must be above this frame. */
	if (cfa <= walk->sp && walk->is_return && rule != RULE_SWITCH) {
		walk->stop = STOP_ORDER;
		return 1;
	}
#if defined(__TARGET_ARCH_x86)
	if (ip == 0 && probe_read_user(&ip, sizeof(ip), (void *)(cfa - 8))) {
		walk->stop = STOP_READ;
		return 1;
	}
	u64 bp_at = cfa + bp_offset;
	if (extra == AUX_LOST || (extra > AUX_LOST && probe_read_user(&walk->aux, sizeof(walk->aux), (void *)(cfa - 8 * (u64)extra))))
		walk->aux = 0;
#else
	u64 bp_at = cfa + bp_offset;
	if (extra == AUX_SAME) {
		/* Only a leaf still has the return address in the register. */
		if (walk->is_return) {
			walk->stop = STOP_ORDER;
			return 1;
		}
		ip = walk->aux;
	} else {
		u64 at = extra == AUX_AFTER ? bp_at + 8 : cfa - 8 * (u64)extra;
		u64 base = (rule == RULE_SP ? walk->sp : walk->bp) + bp_offset;
		if (extra == AUX_BELOW) {
			at = walk->sp;
			bp_at = walk->sp - 8;
			bp_offset = -8;
		} else if (extra == AUX_RETURN_AT_BASE) {
			at = base;
			bp_offset = 0;
		} else if (extra == AUX_RECORD_AT_BASE) {
			at = base + 8;
			bp_at = base;
			bp_offset = 8;
		}
		if (probe_read_user(&ip, sizeof(ip), (void *)at)) {
			walk->stop = STOP_READ;
			return 1;
		}
	}
	/* The upper bits may contain a signature (pointer authentication). */
	ip &= 0x0000ffffffffffffULL;
	walk->aux = 0;
#endif
	if (bp_offset) {
		u64 bp;
		if (probe_read_user(&bp, sizeof(bp), (void *)bp_at)) {
			walk->stop = STOP_READ;
			return 1;
		}
		walk->bp = bp;
	}
	if (ip == 0) {
		walk->stop = STOP_END;
		return 1;
	}
	walk->ip = ip;
	walk->sp = cfa;
	walk->is_return = 1;
	return 0;
}

/* Copies the readable part of the stack to the bytes after the kernel frames: first whole pieces, then ever smaller halves of a piece. The number of bytes
 * is in the record, and each step reads it again: the verifier does not know the number, so it treats many states as one. */
INLINE void copy_stack(struct snapshot_record *snapshot, u32 kernel_frames, u64 sp)
{
	volatile u32 *bytes = &snapshot->head.snapshot_bytes;
	*bytes = 0;
	for (int piece = 0; piece < SNAPSHOT_BYTES / SNAPSHOT_PIECE; piece++) {
		u32 offset = piece * SNAPSHOT_PIECE;
		if (probe_read_user(snapshot->data + kernel_frames * 8 + offset, SNAPSHOT_PIECE, (void *)(sp + offset)))
			break;
		*bytes = offset + SNAPSHOT_PIECE;
	}
#pragma unroll
	for (u32 part = SNAPSHOT_PIECE / 2; part >= 8; part /= 2) {
		u32 at = *bytes;
		if (at <= SNAPSHOT_BYTES - part && !probe_read_user(snapshot->data + kernel_frames * 8 + at, part, (void *)(sp + at)))
			*bytes = at + part;
	}
}

/* Writes the registers and the top of the stack to the ring, for a walk by the collector. Returns 0 if the ring accepts them. */
static __attribute__((noinline)) int write_snapshot(struct cpu *cpu, u32 kind)
{
	u32 zero = 0;
	struct snapshot_record *snapshot = map_lookup(&snapshot_scratch, &zero);
	if (!cpu || !snapshot)
		return 1;
	struct stack_record *record = &cpu->record;
	struct walk *start = &cpu->start;
	u32 kernel_frames = record->head.kernel_frames & 127;
	snapshot->head = record->head;
	snapshot->head.kind = kind;
	snapshot->head.stop = cpu->walk.stop;
	snapshot->head.user_frames = 0;
	snapshot->ip = start->ip;
	snapshot->sp = start->sp;
	snapshot->bp = start->bp;
	snapshot->aux = start->aux;
	snapshot->missing = cpu->walk.stop == STOP_NO_TABLE ? cpu->mapping.table : 0;
	/* After a walk through a signal, these are the interrupted registers. Only the rules of leaves in assembly would use the wrong values. */
	__builtin_memcpy(snapshot->registers, cpu->registers, sizeof(snapshot->registers));
	/* Copies the maximum number of kernel frames. The bytes of the stack then overwrite the surplus. */
	__builtin_memcpy(snapshot->data, record->frames, MAX_KERNEL_FRAMES * 8);
	copy_stack(snapshot, kernel_frames, start->sp);
	u64 size = __builtin_offsetof(struct snapshot_record, data) + kernel_frames * 8 + (NOW(snapshot->head.snapshot_bytes) & 0xffff);
	if (size > sizeof(*snapshot))
		size = sizeof(*snapshot);
	return ringbuf_output(&ring, snapshot, size, RB_NO_WAKEUP) != 0;
}

/* Returns true if the clock interrupted code of a program, and not code of the kernel. */
INLINE int interrupted_user(struct perf_context *context)
{
#if defined(__TARGET_ARCH_x86)
	/* The low two bits of the code segment are the privilege: 3 is user mode. */
	return (NOW(context->cs) & 3) == 3;
#else
	/* The low four bits of pstate are the exception level: 0 is user mode. */
	return (NOW(context->pstate) & 15) == 0;
#endif
}

/* Writes the stack of this tick. Returns the counter to increment. */
INLINE u32 sample(struct perf_context *context, struct cpu *cpu, u64 now)
{
	u64 id = get_current_pid_tgid();
	u32 pid = id >> 32;
	if (pid == 0)
		return COUNT_IDLE;
	u32 zero = 0;
	void *mappings = map_lookup(&processes, &pid);
	if (mappings) {
		struct mapping *header = map_lookup(mappings, &zero);
		if (header && header->start == IGNORED)
			return COUNT_IGNORED;
	}
	struct stack_record *record = &cpu->record;
	struct task_struct *task = get_current_task_btf();
	record->head.time = now;
	record->head.period = context->sample_period;
	record->head.start = task->group_leader->start_boottime;
	record->head.pid = pid;
	record->head.tid = id;
	record->head.cpu = get_smp_processor_id();
	record->head.kind = RECORD_STACK;
	record->head.reserved = 0;
	record->head.snapshot_bytes = 0;
	get_current_comm(record->head.comm, sizeof(record->head.comm));

	/* The program requests the kernel stack only if there is one, because the request is expensive. */
	u32 kernel_frames = 0, is_user = interrupted_user(context);
	if (kernel_stacks && !is_user) {
		long bytes = get_stack(context, record->frames, MAX_KERNEL_FRAMES * 8, 0);
		if (bytes > 0)
			kernel_frames = ((u32)bytes / 8) & 127;
	}
	record->head.kernel_frames = kernel_frames;

	struct walk *walk = &cpu->walk;
	walk->kernel_frames = kernel_frames;
	walk->user_frames = 0;
	walk->stop = STOP_NO_USER;
	walk->is_return = 0;
	if (task->mm) {
		struct pt_regs *regs = task_pt_regs(task);
		/* Each register is read by a separate instruction, because the verifier refuses a computed pointer into the context. */
#if defined(__TARGET_ARCH_x86)
		u64 *known = cpu->registers;
		u64 ip = NOW(context->ip);
		if (is_user) {
			walk->ip = ip;
			known[0] = NOW(context->ax);
			known[1] = NOW(context->dx);
			known[2] = NOW(context->cx);
			known[3] = NOW(context->bx);
			known[4] = NOW(context->si);
			known[5] = NOW(context->di);
			known[6] = NOW(context->bp);
			known[7] = NOW(context->sp);
			known[8] = NOW(context->r8);
			known[9] = NOW(context->r9);
			known[10] = NOW(context->r10);
			known[11] = NOW(context->r11);
			known[12] = NOW(context->r12);
			known[13] = NOW(context->r13);
			known[14] = NOW(context->r14);
			known[15] = NOW(context->r15);
		} else {
			walk->ip = regs->ip;
			known[0] = regs->ax;
			known[1] = regs->dx;
			known[2] = regs->cx;
			known[3] = regs->bx;
			known[4] = regs->si;
			known[5] = regs->di;
			known[6] = regs->bp;
			known[7] = regs->sp;
			known[8] = regs->r8;
			known[9] = regs->r9;
			known[10] = regs->r10;
			known[11] = regs->r11;
			known[12] = regs->r12;
			known[13] = regs->r13;
			known[14] = regs->r14;
			known[15] = regs->r15;
		}
		walk->sp = known[7];
		walk->bp = known[6];
		walk->aux = known[3];
#else
		u64 ip = NOW(context->pc), sp = NOW(context->sp), bp = NOW(context->regs[29]), link = NOW(context->regs[30]);
		if (is_user) {
			walk->ip = ip;
			walk->sp = sp;
			walk->bp = bp;
			walk->aux = link;
		} else {
			walk->ip = regs->user_regs.pc;
			walk->sp = regs->user_regs.sp;
			walk->bp = regs->user_regs.regs[29];
			walk->aux = regs->user_regs.regs[30];
		}
		walk->aux &= 0x0000ffffffffffffULL;
#endif
		cpu->start = *walk;
		if (mappings) {
			struct context given = { .cpu = cpu, .mappings = mappings };
			walk->stop = STOP_DEPTH;
			cpu->mapping.end = 0;
			loop(MAX_USER_FRAMES, step, &given, 0);
		} else {
			walk->stop = STOP_NEW_PROCESS;
		}
		/* If the address has no known mapping, the mapping is new. The collector's walk can wait for the news of the mapping, and for tables. */
		if (walk->stop == STOP_NEW_PROCESS || walk->stop == STOP_NO_MAPPING || walk->stop == STOP_NO_TABLE) {
			if (snapshots && !write_snapshot(cpu, RECORD_SNAPSHOT))
				return COUNT_SNAPSHOT;
			if (walk->stop == STOP_NEW_PROCESS) {
				record->frames[kernel_frames & (MAX_FRAMES - 1)] = walk->ip;
				walk->user_frames = 1;
			}
		}
		if (copies)
			write_snapshot(cpu, RECORD_COPY);
	}
	u32 user_frames = NOW(walk->user_frames);
	record->head.user_frames = user_frames;
	record->head.stop = walk->stop;

	u64 size = sizeof(struct record) + (u64)(kernel_frames + user_frames) * 8;
	if (size > sizeof(struct stack_record))
		size = sizeof(struct stack_record);
	return ringbuf_output(&ring, record, size, RB_NO_WAKEUP) ? COUNT_RING_FULL : COUNT_STACK;
}

SEC("perf_event")
int profile(struct perf_context *context)
{
	u64 start = ktime_get_ns();
	u32 zero = 0;
	struct cpu *cpu = map_lookup(&scratch, &zero);
	if (!cpu)
		return 0;
	cpu->counters[COUNT_TICKS] += 1;
	cpu->counters[sample(context, cpu, start) & (COUNTERS - 1)] += 1;
	cpu->counters[COUNT_NANOS] += ktime_get_ns() - start;
	return 0;
}
