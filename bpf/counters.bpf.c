// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The counters behind /proc/stat and /proc/vmstat, in one run.
 *
 * The library finds the addresses (by `locate`, `find_nodes`, `walk_irqs`, and kallsyms if it shows data) and writes
 * them into `places`, `blocks` and `config`; `collect` reads those addresses. These programs take no lock and do not
 * stay in an RCU section, so every pointer may be stale: no read can fault, every loop is bounded, and the program or
 * the library then checks values that may have changed during a read (seqcounts, revisions, sums).
 */
#include "kernel_counters.h"
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include "arch.h"
#include "kfunc.h"

#include "counters/maps.h"
#include "counters/locate.h"
#include "counters/cpu.h"
#include "counters/irqs.h"
#include "counters/vm.h"

/* Without an argument: copying one in and out costs a tenth of a collection. */
SEC("syscall")
int collect(void *unused)
{
	u32 zero = 0;
	struct counters_config *from = bpf_map_lookup_elem(&config, &zero);
	struct counters_run *run = bpf_map_lookup_elem(&runs, &zero);
	struct cpu_loop loop = {};

	if (!from || !run)
		return 1;
	run->taken_ns = bpf_ktime_get_ns();
	for (int i = 0; i < COUNTERS_SCALARS; i++) {
		if (run->scalars_wanted & 1u << i)
			run->scalars[i] = word(from->scalars[i]);
	}
	if (run->want & COUNTERS_WANT_IRQS)
		read_irqs(from, run);
	loop.generation = from->generation;
	if (run->want & COUNTERS_WANT_STAT)
		bpf_loop(possible_cpus, read_cpu, &loop, 0);
	if (run->want & COUNTERS_WANT_VM) {
		loop.zones = from->zones;
		bpf_loop(possible_cpus, read_vm_cpu, &loop, 0);
		bpf_loop(from->blocks, read_block, &loop, 0);
	}
	run->faults = loop.faults;
	return 0;
}

/* ---- forks ---- */

/*
 * copy_process() sets start_time, increments total_forks, then calls this tracepoint, also for threads, io workers and
 * idle tasks. One word has the number of forks and, in its upper part, of the late ones among them, so that no reader
 * sees a late fork without knowing that it is one.
 */
SEC("tp_btf/task_newtask")
int count_fork(u64 *arguments)
{
	struct task_struct *task = (void *)arguments[0];
	u32 cpu = bpf_get_smp_processor_id();
	struct counters_forks *forks_here = bpf_map_lookup_elem(&forks, &cpu);
	u64 mark, late;

	if (!forks_here)
		return 0;
	mark = RELOAD(forks_here->mark);
	late = task->start_time < mark ? COUNTERS_LATE_FORK : 0;
	__sync_fetch_and_add(&forks_here->counted, 1 | late);
	ordered();
	/* the library sets the mark, then reads the count: it sees this fork in the count, or this sees the mark */
	if (!late && task->start_time < RELOAD(forks_here->mark))
		__sync_fetch_and_add(&forks_here->counted, COUNTERS_LATE_FORK);
	return 0;
}

