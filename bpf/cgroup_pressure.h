/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Pressure: the values that the kernel calculates when it prints cpu.pressure, memory.pressure and io.pressure
 * (psi_show), without the kernel's writes to its own state.
 *
 * Each CPU adds up the time in each state. A reader of a file adds the times since the last reading to the totals,
 * weighted by the time in which the CPU was not idle (collect_percpu_times). If one does so during the walk, the library
 * reads the files of that cgroup. The averages are not read here: the kernel calculates them by another clock.
 */
#ifndef FASTPROC_CGROUP_PRESSURE_H
#define FASTPROC_CGROUP_PRESSURE_H

/* The states that the files show: some and full of I/O, of memory and of CPUs. */
#define PRESSURES 6
/* How many times to read a CPU whose state changes meanwhile. */
#define PRESSURE_TRIES 3
/* The kernel may add up the times of a CPU after this run took its time: so far below zero, a time means none. */
#define BELOW_ZERO (1U << 28)

/* State of the cgroup that is read; it does not fit on the stack. */
struct {
	u64 before[PRESSURES], now[PRESSURES];
	u64 cpus;		     /* __percpu */
	u64 deltas[PRESSURES], busy; /* what the CPUs have added since the last reading */
} pressure;

static __always_inline u32 at_least_zero(u32 time)
{
	return time >= -BELOW_ZERO ? 0 : time;
}

static long add_cpu(u32 cpu, void *unused)
{
	u64 part = on_cpu(pressure.cpus, cpu), start;
	struct psi_group_cpu *c;
	u32 times[PRESSURES] = {}, mask, since, busy = 0;

	if (!part)
		return 1;
	c = CAST(struct psi_group_cpu, part);
	for (int tries = 0; tries < PRESSURE_TRIES; tries++) {
		start = RELOAD(c->state_start);
		mask = RELOAD(c->state_mask);
		ordered();
		since = run.now_ns > start ? run.now_ns - start : 0;
#define SINCE(state)                                                          \
	at_least_zero(RELOAD(c->times[state]) - RELOAD(c->times_prev[state]) + \
		      (mask >> (state) & 1 ? since : 0))
		if (bpf_core_enum_value(enum psi_states, PSI_NONIDLE) == 7)
			busy = SINCE(7);
		else
			busy = SINCE(6);
		busy /= settings.jiffy_ns;
		/* The kernel gives no weight to a CPU that was idle. Nearly all are: the rest is not read. */
		if (busy)
			for (int i = 0; i < PRESSURES; i++)
				times[i] = SINCE(i);
		ordered();
		if (RELOAD(c->state_start) == start && RELOAD(c->state_mask) == mask)
			break;
	}
	if (!busy)
		return 0;
	pressure.busy += busy;
	for (int i = 0; i < PRESSURES; i++)
		pressure.deltas[i] += (u64)times[i] * busy;
	return 0;
}

int read_pressure(u64 group, u32 index);
__noinline int read_pressure(u64 group, u32 index)
{
	struct fp_cgroup_record *r = bpf_map_lookup_elem(&records, &index);
	struct psi_group *g = CAST(struct psi_group, group);
	u64 last, changed;

	/* Kernels without pressure may lack its structures. */
	if (!r || !WANTED(FP_CGROUP_PRESSURE))
		return 0;
	/* The kernel sets this time before it calculates the averages, and holds the lock until it has. */
	last = RELOAD(g->avg_last_update);
	ordered();
	changed = RELOAD(g->avgs_lock.owner.counter);
	ordered();
	pressure.cpus = VALUE(g->pcpu);
	pressure.busy = 0;
	for (int i = 0; i < PRESSURES; i++)
		pressure.deltas[i] = 0, pressure.now[i] = pressure.before[i] = RELOAD(g->total[i]);
	bpf_loop(settings.cpus, add_cpu, 0, 0);
	ordered();
	for (int i = 0; i < PRESSURES; i++) {
		if (pressure.busy)
			pressure.now[i] += pressure.deltas[i] / pressure.busy;
		/* A reader of the files has added the times of the CPUs to the totals, or is about to. */
		changed |= RELOAD(g->total[i]) ^ pressure.before[i];
	}
	r->pressure.io_some_ns = pressure.now[0];
	r->pressure.io_full_ns = pressure.now[1];
	r->pressure.memory_some_ns = pressure.now[2];
	r->pressure.memory_full_ns = pressure.now[3];
	r->pressure.cpu_some_ns = pressure.now[4];
	r->pressure.cpu_full_ns = pressure.now[5];
	r->pressure.torn = (changed | RELOAD(g->avgs_lock.owner.counter) | (RELOAD(g->avg_last_update) ^ last)) != 0;
	run.units += settings.cpus / 16;
	return 0;
}

/* Finds how far the scheduler's clock is from that of BPF: the run queue has its time since this thread got the CPU.
 * */
SEC("syscall") int compare_clocks(void *ctx)
{
	struct task_struct *me = CAST(struct task_struct, bpf_get_current_task());

	if (!WANTED(FP_CGROUP_PRESSURE))
		return 0;
	run.clock_ns = CAST(struct rq, CAST(struct cfs_rq, me->se.cfs_rq)->rq)->clock - bpf_ktime_get_ns();
	return 0;
}

#endif
