/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Mappings that a walk needs before the recorder has announced them: right after an exec, after a dlopen,
 * and in processes that end before the recorder sees them. The kernel gives the mapped file; if that file's
 * table is loaded, the walk goes on.
 *
 * The memory's lock cannot be waited for here, and is given back only when interrupts are on again. So a
 * walk may ask once, and its answer is kept for the next ones.
 *
 * Part of stacks.bpf.c.
 */
#ifndef WHIT_LEARNED_H
#define WHIT_LEARNED_H

/* Address spaces with kept answers, a power of two; others take their places. */
#define LEARNED_SETS 1024
/* Mappings of each. */
#define LEARNED_WAYS 16
/* Where so often nothing was found, there is nothing to be found. */
#define LEARNED_FAILURES_MAX 64
/* Files that are known. */
#define FILES_MAX 16384

/* `vm_area_struct::vm_flags` (include/linux/mm.h). */
#define VM_EXEC 4
/* Result of bpf_find_vma() while the lock is taken. */
#define BUSY -16
/* Result of name_file() where no file is mapped: ENOENT. */
#define NO_FILE -2
/* In the place of a table: the file is to be forgotten. */
#define FORGET (~0ull)

/* How to unwind in a file. */
struct file_table {
	/* Stated addresses less offsets in the file. */
	u64 bias;
	u32 table;
	u32 generation;
};

/*
 * By the address of the file's inode in the kernel; 0 is the kernel's own code for user mode. Numbers of
 * devices and inodes do not tell files apart: a file on overlayfs has other ones in stat(2) than in its
 * mappings, and files in two subvolumes of btrfs may share theirs. The loader keeps each file mapped, so
 * that the inode stays where it is, and has it forgotten before.
 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(key_size, sizeof(u64));
	__uint(value_size, sizeof(struct file_table));
	__uint(max_entries, FILES_MAX);
} files SEC(".maps");

struct learned {
	/* Odd while somebody writes; another one afterwards. */
	u32 sequence;
	/* How many mappings were learned in all. */
	u32 count;
	u32 failures;
	u32 unused;
	/* The address space of the mapping, */
	u64 space;
	/* and the announced state of its process. */
	u64 process;
	struct unwind_mapping mappings[LEARNED_WAYS];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(key_size, sizeof(u32));
	__uint(value_size, sizeof(struct learned));
	__uint(max_entries, LEARNED_SETS);
} learned SEC(".maps");

/* A task's address space, as a number; 0 for none. */
static ALWAYS_INLINE u64 space_of(struct task_struct *task)
{
	u64 space = 0;

	bpf_probe_read_kernel(&space, sizeof(space), &task->mm);
	return space;
}

static ALWAYS_INLINE struct learned *learned_of(u64 space)
{
	u32 place = unwind_mix(UNWIND_HASH_SEED, space) % LEARNED_SETS;

	return bpf_map_lookup_elem(&learned, &place);
}

/* Lets nobody else write; 0 where somebody does already. */
static ALWAYS_INLINE u32 learned_lock(struct learned *of)
{
	u32 sequence = ordered_load(&of->sequence);

	return !(sequence & 1) &&
	       __sync_val_compare_and_swap(&of->sequence, sequence, sequence + 1) == sequence;
}

static ALWAYS_INLINE void learned_unlock(struct learned *of)
{
	ordered_store(&of->sequence, of->sequence + 1);
}

static ALWAYS_INLINE u32 is_learned_of(const struct learned *of, u64 space, u64 process)
{
	return of->space == space && of->process == process;
}

/* Nothing is known of an address space that begins. */
static ALWAYS_INLINE void learned_forget(u64 space)
{
	struct learned *of = learned_of(space);

	/* While another space's is written, this one's is not there. */
	if (!of || of->space != space || !learned_lock(of))
		return;
	of->space = 0;
	learned_unlock(of);
}

/* Number of the one that holds an address, plus one; 0 where none does. */
static ALWAYS_INLINE u32 learned_way(const struct learned *of, u64 address)
{
	for (u32 way = 0; way < LEARNED_WAYS; way++)
		if (address - of->mappings[way].start <
		    of->mappings[way].end - of->mappings[way].start)
			return way + 1;
	return 0;
}

/* Whether it was learned before; then it is in `mapping`. */
UNWIND_FN u32 learned_before(const struct learned *of, u64 space, u64 process, u64 address,
			     struct unwind_mapping *mapping)
{
	if (!of || !mapping)
		return 0;
	u32 sequence = ordered_load((u32 *)&of->sequence);
	if (sequence & 1 || !is_learned_of(of, space, process))
		return 0;
	u32 way = learned_way(of, address);
	if (!way)
		return 0;
	*mapping = of->mappings[(way - 1) % LEARNED_WAYS];
	return ordered_load((u32 *)&of->sequence) == sequence;
}

/* The address of a file's inode; 0 where it cannot be read. */
static ALWAYS_INLINE u64 inode_of(struct file *file)
{
	u64 inode = 0;

	bpf_probe_read_kernel(&inode, sizeof(inode), &file->f_inode);
	return inode;
}

/* Called under the memory's lock with the mapping that holds the address: has `inode` name the
 * file. */
static long look_for_inode(struct task_struct *task, struct vm_area_struct *vma, u64 *inode)
{
	struct file *file = vma->vm_file;

	if (file)
		*inode = inode_of(file);
	return 0;
}

/*
 * Run by the loader (BPF_PROG_TEST_RUN), with arguments: where the loader has a file mapped, stated
 * addresses of the file less offsets in it, and the number of its table with the generation above it. Makes
 * the file known, or with the table FORGET unknown. Returns 0 or the error of bpf_find_vma(); NO_FILE where
 * no file is mapped, or where the file to be forgotten was not known.
 */
SEC("raw_tp")
int name_file(struct bpf_raw_tracepoint_args *ctx)
{
	struct file_table table = { .bias = ctx->args[1],
				    .table = ctx->args[2],
				    .generation = ctx->args[2] >> 32 };
	u64 inode = 0;
	long result;

	if (!settings.learns)
		return NO_FILE;
	result = bpf_find_vma(bpf_get_current_task_btf(), ctx->args[0], look_for_inode, &inode, 0);
	if (result)
		return result;
	if (!inode)
		return NO_FILE;
	if (ctx->args[2] == FORGET)
		return bpf_map_delete_elem(&files, &inode);
	return bpf_map_update_elem(&files, &inode, &table, 0);
}

/* Called under the memory's lock with the mapping that holds the address: has `found` say how to
 * unwind there. */
static long look_at(struct task_struct *task, struct vm_area_struct *vma,
		    struct unwind_mapping *found)
{
	struct file *file = vma->vm_file;
	struct file_table *known;
	u64 key = 0;

	if (!(vma->vm_flags & VM_EXEC))
		return 0;
	if (file) {
		key = inode_of(file);
		if (!key)
			return 0;
	} else if (!core_field_exists(task->mm->context.vdso) ||
		   (u64)task->mm->context.vdso != vma->vm_start) {
		return 0;
	}
	known = bpf_map_lookup_elem(&files, &key);
	if (!known)
		return 0;
	found->start = vma->vm_start;
	found->end = vma->vm_end;
	found->bias = vma->vm_start - known->bias;
	if (file)
		found->bias -= vma->vm_pgoff << settings.page_shift;
	found->table = known->table;
	found->generation = known->generation;
	return 0;
}

/* Keeps a mapping, or that there was none. */
UNWIND_FN u32 learned_keep(struct learned *of, u64 space, u64 process,
			   const struct unwind_mapping *found)
{
	if (!of || !found || !learned_lock(of))
		return 0;
	if (!is_learned_of(of, space, process)) {
		of->count = of->failures = 0;
		of->space = space;
		of->process = process;
		for (u32 way = 0; way < LEARNED_WAYS; way++)
			of->mappings[way].start = of->mappings[way].end = 0;
	}
	if (found->end)
		of->mappings[of->count++ % LEARNED_WAYS] = *found;
	else
		of->failures++;
	learned_unlock(of);
	return 0;
}

/* How learn() ends. */
enum {
	LEARN_NOTHING = 0,
	LEARN_KNOWN = 1,
	LEARN_NEW = 2,
	/* Another time, maybe. */
	LEARN_BUSY = 3,
};

/* Finds the current process's mapping that holds an address without an announced one: among the kept answers
 * or, with `may_ask`, in the kernel. */
UNWIND_FN u32 learn(u64 process, u64 address, u32 may_ask, struct unwind_mapping *mapping)
{
	struct unwind_mapping found = {};
	struct task_struct *task = bpf_get_current_task_btf();
	u64 space = space_of(task);
	struct learned *of = learned_of(space);

	if (!of || !space || !mapping)
		return LEARN_NOTHING;
	if (learned_before(of, space, process, address, mapping))
		return LEARN_KNOWN;
	if (!settings.learns || !may_ask)
		return LEARN_NOTHING;
	if (is_learned_of(of, space, process) && of->failures >= LEARNED_FAILURES_MAX)
		return LEARN_NOTHING;
	if (bpf_find_vma(task, address, look_at, &found, 0) == BUSY)
		return LEARN_BUSY;
	learned_keep(of, space, process, &found);
	if (!found.end)
		return LEARN_NOTHING;
	*mapping = found;
	return LEARN_NEW;
}

#endif
