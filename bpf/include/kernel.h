/* SPDX-License-Identifier: MIT OR GPL-2.0-only
 *
 * The parts of the kernel's interface for BPF programs that the profiler uses, written from bpf-helpers(7), the kernel's UAPI numbers
 * and its BTF: numbers of helpers, types of maps, and the few fields of kernel structures that the program reads. The loader relocates
 * these fields by BTF, so their names must match the kernel's, but not their offsets.
 */
#ifndef ALLUVIUM_KERNEL_H
#define ALLUVIUM_KERNEL_H

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef signed char s8;
typedef short s16;
typedef int s32;
typedef long long s64;

#define SEC(name) __attribute__((section(name), used))
#define INLINE static inline __attribute__((always_inline))
#define NULL ((void *)0)
/* A read that the compiler neither moves nor merges. */
#define NOW(field) (*(volatile __typeof__(field) *)&(field))

/* Map definitions in BTF: the type of a member encodes its number. */
#define UINT(name, value) int(*name)[value]
#define TYPE(name, type) type *name
#define ARRAY(name, type) type *name[]

enum {
	MAP_HASH = 1,
	MAP_ARRAY = 2,
	MAP_PERCPU_ARRAY = 6,
	MAP_HASH_OF_MAPS = 13,
	MAP_RINGBUF = 27,
};

enum {
	F_NO_PREALLOC = 1u << 0,
	F_MMAPABLE = 1u << 10,
	F_INNER_MAP = 1u << 12,
	F_USER_STACK = 1u << 8,
	RB_NO_WAKEUP = 1u << 0,
};

static void *(*const map_lookup)(void *map, const void *key) = (void *)1;
static u64 (*const ktime_get_ns)(void) = (void *)5;
static u32 (*const get_smp_processor_id)(void) = (void *)8;
static u64 (*const get_current_pid_tgid)(void) = (void *)14;
static long (*const get_current_comm)(void *buffer, u32 size) = (void *)16;
static long (*const get_stack)(void *context, void *buffer, u32 size, u64 flags) = (void *)67;
static long (*const probe_read_user)(void *to, u32 size, const void *from) = (void *)112;
static long (*const ringbuf_output)(void *ring, void *data, u64 size, u64 flags) = (void *)130;
static void *(*const ringbuf_reserve)(void *ring, u64 size, u64 flags) = (void *)131;
static void (*const ringbuf_submit)(void *data, u64 flags) = (void *)132;
static struct task_struct *(*const get_current_task_btf)(void) = (void *)158;
static struct pt_regs *(*const task_pt_regs)(struct task_struct *task) = (void *)175;
static long (*const loop)(u32 count, void *callback, void *context, u64 flags) = (void *)181;

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct mm_struct;

struct task_struct {
	struct mm_struct *mm;
	struct task_struct *group_leader;
	u64 start_boottime;
	unsigned int flags;
};

#if defined(__TARGET_ARCH_x86)
struct pt_regs {
	unsigned long r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di;
	unsigned long ip;
	unsigned long cs;
	unsigned long sp;
};
#elif defined(__TARGET_ARCH_arm64)
struct user_pt_regs {
	u64 regs[31];
	u64 sp;
	u64 pc;
	u64 pstate;
};
struct pt_regs {
	struct user_pt_regs user_regs;
};
#else
#error "unknown architecture"
#endif

#pragma clang attribute pop

/* The context of a perf_event program (bpf_perf_event_data of the UAPI): the registers in the order of the UAPI, then period and address. */
#if defined(__TARGET_ARCH_x86)
struct perf_context {
	u64 r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di;
	u64 orig_ax, ip, cs, flags, sp, ss;
	u64 sample_period;
	u64 address;
};
#else
struct perf_context {
	u64 regs[31];
	u64 sp, pc, pstate;
	u64 sample_period;
	u64 address;
};
#endif

#endif
