/* SPDX-License-Identifier: MIT OR GPL-2.0-only
 *
 * The profiler's program: at every tick of the CPU clock it writes the stack of what runs, kernel and user halves, to a ring.
 *
 * The user half is walked here with the tables that the collector fills: mappings of the process, and rules of each file,
 * both found by binary search. Where there is no table, frame pointers are followed. Of a process that is not known yet, the registers and
 * the top of the stack are copied instead, so that no tick is lost. Every tick ends in exactly one counter.
 */
#include "kernel.h"
#include "records.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

/* Set by the loader. */
const volatile u32 kernel_stacks = 1;
const volatile u32 snapshots = 1;

struct {
	UINT(type, MAP_RINGBUF);
	UINT(max_entries, 1 << 20);
} ring SEC(".maps");

struct {
	UINT(type, MAP_PERCPU_ARRAY);
	UINT(max_entries, 1);
	TYPE(key, u32);
	TYPE(value, struct stack_record);
} scratch SEC(".maps");

struct {
	UINT(type, MAP_PERCPU_ARRAY);
	UINT(max_entries, 1);
	TYPE(key, u32);
	TYPE(value, struct snapshot_record);
} snapshot_scratch SEC(".maps");

struct {
	UINT(type, MAP_PERCPU_ARRAY);
	UINT(max_entries, COUNTERS);
	TYPE(key, u32);
	TYPE(value, u64);
} counters SEC(".maps");

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

struct row_array {
	UINT(type, MAP_ARRAY);
	UINT(max_entries, 1);
	UINT(key_size, sizeof(u32));
	UINT(value_size, sizeof(struct row));
	UINT(map_flags, F_INNER_MAP | F_MMAPABLE);
};

struct {
	UINT(type, MAP_HASH_OF_MAPS);
	UINT(max_entries, 4096);
	UINT(map_flags, F_NO_PREALLOC);
	TYPE(key, u32);
	ARRAY(values, struct row_array);
} tables SEC(".maps");

/* State of one walk; lives on the stack of the program. */
struct walk {
	u64 ip, sp, bp;
	void *mappings;
	u32 kernel_frames;
	u32 user_frames;
	u32 stop;
	/* The address is one of a call's return: the rule is that of the byte before. */
	u32 is_return;
};

INLINE void count(u32 index)
{
	u64 *value = map_lookup(&counters, &index);
	if (value)
		*value += 1;
}

/* The last element of a sorted inner array of `size` elements (from index 1) that starts at or before `address`; 0: none. */
INLINE u32 find_mapping(void *mappings, u32 size, u64 address)
{
	u32 low = 1, high = size + 1;
	for (int step = 0; step < 14; step++) {
		if (low >= high)
			break;
		u32 middle = low + ((high - low) >> 1);
		struct mapping *entry = map_lookup(mappings, &middle);
		if (!entry)
			return 0;
		if (entry->start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low - 1;
}

INLINE u32 find_row(void *rows, u32 size, u32 pc)
{
	u32 low = 1, high = size + 1;
	for (int step = 0; step < 22; step++) {
		if (low >= high)
			break;
		u32 middle = low + ((high - low) >> 1);
		struct row *entry = map_lookup(rows, &middle);
		if (!entry)
			return 0;
		if (entry->pc <= pc)
			low = middle + 1;
		else
			high = middle;
	}
	return low - 1;
}

/* One frame of the walk: notes the address, then finds the caller's registers. Answers 1 to end. */
static long step(u32 index, struct walk *walk)
{
	u32 zero = 0;
	struct stack_record *record = map_lookup(&scratch, &zero);
	if (!record)
		return 1;
	u32 slot = walk->kernel_frames + walk->user_frames;
	record->frames[slot & (MAX_FRAMES - 1)] = walk->ip;
	walk->user_frames += 1;

	u64 address = walk->ip - walk->is_return;
	u32 first = 0;
	struct mapping *header = map_lookup(walk->mappings, &first);
	if (!header) {
		walk->stop = STOP_NO_MAPPING;
		return 1;
	}
	u32 found = find_mapping(walk->mappings, header->start, address);
	struct mapping *mapping = found ? map_lookup(walk->mappings, &found) : NULL;
	if (!mapping || address >= mapping->end) {
		walk->stop = STOP_NO_MAPPING;
		return 1;
	}

	u32 rule = RULE_BP;
	s64 cfa_offset = 16, bp_offset = -16;
	u32 key = mapping->table;
	if (key) {
		void *rows = map_lookup(&tables, &key);
		if (rows) {
			struct row *size = map_lookup(rows, &first);
			if (!size) {
				walk->stop = STOP_NO_RULE;
				return 1;
			}
			u64 relative = address - mapping->bias;
			u32 pc = relative > 0xffffffffULL ? 0xffffffff : relative;
			u32 at = find_row(rows, size->pc, pc);
			struct row *row = at ? map_lookup(rows, &at) : NULL;
			if (!row) {
				walk->stop = STOP_NO_RULE;
				return 1;
			}
			rule = row->rule;
			cfa_offset = (s64)row->cfa * 8;
			bp_offset = (s64)row->bp * 8;
		}
	}

	u64 cfa;
	if (rule == RULE_SP) {
		cfa = walk->sp + cfa_offset;
	} else if (rule == RULE_BP) {
		if (walk->bp == 0) {
			walk->stop = STOP_END;
			return 1;
		}
		cfa = walk->bp + cfa_offset;
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
	} else if (rule == RULE_SIGNAL) {
		/* rt_sigframe on x86-64: the ucontext's registers lie at fixed places above the stack pointer (signal frame ABI). */
		u64 saved[7];
		if (probe_read_user(saved, sizeof(saved), (void *)(walk->sp + 120))) {
			walk->stop = STOP_READ;
			return 1;
		}
		walk->bp = saved[0];
		walk->sp = saved[5];
		walk->ip = saved[6];
		walk->is_return = 0;
		if (walk->ip == 0) {
			walk->stop = STOP_END;
			return 1;
		}
		return 0;
	} else {
		walk->stop = rule == RULE_END ? STOP_END : rule == RULE_NONE ? STOP_NO_RULE : STOP_RULE;
		return 1;
	}
	/* Stacks grow down: a caller's frame lies above. */
	if (cfa <= walk->sp && walk->user_frames > 1) {
		walk->stop = STOP_ORDER;
		return 1;
	}
	u64 ip;
	if (probe_read_user(&ip, sizeof(ip), (void *)(cfa - 8))) {
		walk->stop = STOP_READ;
		return 1;
	}
	if (bp_offset) {
		u64 bp;
		if (probe_read_user(&bp, sizeof(bp), (void *)(cfa + bp_offset))) {
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

/* Copies as much of the stack as there is to after the kernel frames: whole pieces, then halves of what is left. The number of bytes is kept in the
 * record and read again at each step: a number that the verifier knows nothing of makes one state of many. */
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

/* Writes the registers and the top of the stack to the ring, for a walk outside. Answers 0 when they are there. */
static __attribute__((noinline)) int write_snapshot(struct walk *start, u32 stop)
{
	u32 zero = 0;
	struct stack_record *record = map_lookup(&scratch, &zero);
	struct snapshot_record *snapshot = map_lookup(&snapshot_scratch, &zero);
	if (!record || !snapshot)
		return 1;
	u32 kernel_frames = record->head.kernel_frames & 127;
	snapshot->head = record->head;
	snapshot->head.kind = RECORD_SNAPSHOT;
	snapshot->head.stop = stop;
	snapshot->head.user_frames = 0;
	snapshot->ip = start->ip;
	snapshot->sp = start->sp;
	snapshot->bp = start->bp;
	/* All of them: what is more than there is lies where the stack goes. */
	__builtin_memcpy(snapshot->data, record->frames, MAX_KERNEL_FRAMES * 8);
	copy_stack(snapshot, kernel_frames, start->sp);
	u64 size = __builtin_offsetof(struct snapshot_record, data) + kernel_frames * 8 + (NOW(snapshot->head.snapshot_bytes) & 0xffff);
	if (size > sizeof(*snapshot))
		size = sizeof(*snapshot);
	return ringbuf_output(&ring, snapshot, size, RB_NO_WAKEUP) != 0;
}

INLINE int sample(struct perf_context *context, u64 now)
{
	count(COUNT_TICKS);
	u64 id = get_current_pid_tgid();
	u32 pid = id >> 32;
	if (pid == 0) {
		count(COUNT_IDLE);
		return 0;
	}
	u32 zero = 0;
	void *mappings = map_lookup(&processes, &pid);
	if (mappings) {
		struct mapping *header = map_lookup(mappings, &zero);
		if (header && header->start == IGNORED) {
			count(COUNT_IGNORED);
			return 0;
		}
	}
	struct stack_record *record = map_lookup(&scratch, &zero);
	if (!record) {
		count(COUNT_NO_SCRATCH);
		return 0;
	}
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

	u32 kernel_frames = 0;
	if (kernel_stacks) {
		long bytes = get_stack(context, record->frames, MAX_KERNEL_FRAMES * 8, 0);
		if (bytes > 0)
			kernel_frames = ((u32)bytes / 8) & 127;
	}
	record->head.kernel_frames = kernel_frames;

	struct walk walk = {
		.kernel_frames = kernel_frames,
		.stop = STOP_NO_USER,
	};
	if (task->mm) {
		struct pt_regs *regs = task_pt_regs(task);
		/* Read at once, each by its own instruction: the verifier refuses a pointer into the context that was computed. */
#if defined(__TARGET_ARCH_x86)
		u64 ip = NOW(context->ip), sp = NOW(context->sp), bp = NOW(context->bp);
		/* The low two bits of the code segment are the privilege: 3 is user mode. */
		if ((NOW(context->cs) & 3) == 3) {
			walk.ip = ip;
			walk.sp = sp;
			walk.bp = bp;
		} else {
			walk.ip = regs->ip;
			walk.sp = regs->sp;
			walk.bp = regs->bp;
		}
#else
		u64 ip = NOW(context->pc), sp = NOW(context->sp), bp = NOW(context->regs[29]);
		/* The low four bits of pstate are the exception level: 0 is user mode. */
		if ((NOW(context->pstate) & 15) == 0) {
			walk.ip = ip;
			walk.sp = sp;
			walk.bp = bp;
		} else {
			walk.ip = regs->user_regs.pc;
			walk.sp = regs->user_regs.sp;
			walk.bp = regs->user_regs.regs[29];
		}
#endif
		struct walk start = walk;
		walk.mappings = mappings;
		if (mappings) {
			walk.stop = STOP_DEPTH;
			loop(MAX_USER_FRAMES, step, &walk, 0);
		} else {
			walk.stop = STOP_NEW_PROCESS;
		}
		/* What is not mapped was mapped a moment ago: outside, the walk can wait for the news of it. */
		if (walk.stop == STOP_NEW_PROCESS || walk.stop == STOP_NO_MAPPING) {
			if (snapshots && !write_snapshot(&start, walk.stop)) {
				count(COUNT_SNAPSHOT);
				return 0;
			}
			if (walk.stop == STOP_NEW_PROCESS) {
				record->frames[kernel_frames & (MAX_FRAMES - 1)] = walk.ip;
				walk.user_frames = 1;
			}
		}
	}
	record->head.user_frames = walk.user_frames;
	record->head.stop = walk.stop;

	u64 size = sizeof(struct record) + (u64)(kernel_frames + walk.user_frames) * 8;
	if (size > sizeof(struct stack_record))
		size = sizeof(struct stack_record);
	if (ringbuf_output(&ring, record, size, RB_NO_WAKEUP))
		count(COUNT_RING_FULL);
	else
		count(COUNT_STACK);
	return 0;
}

SEC("perf_event")
int profile(struct perf_context *context)
{
	u64 start = ktime_get_ns();
	int status = sample(context, start);
	u32 index = COUNT_NANOS;
	u64 *nanos = map_lookup(&counters, &index);
	if (nanos)
		*nanos += ktime_get_ns() - start;
	return status;
}
