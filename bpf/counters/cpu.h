/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef FASTPROC_COUNTERS_CPU_H
#define FASTPROC_COUNTERS_CPU_H

/* ---- one CPU ---- */

/*
 * Separate functions, because clang hoists the offsets of members that this kernel may lack out of loops, before the
 * check that they exist.
 */
static __noinline u32 idle_sequence(u64 tick, u64 times)
{
	if (bpf_core_field_exists(((struct kernel_cpustat___idle *)0)->idle_sleeptime_seq))
		return half(times + bpf_core_field_offset(struct kernel_cpustat___idle, idle_sleeptime_seq));
	if (bpf_core_field_exists(((struct tick_sched___seq *)0)->idle_sleeptime_seq))
		return half(tick + bpf_core_field_offset(struct tick_sched___seq, idle_sleeptime_seq));
	return 0;
}

#define TS_FLAG_IDLE_ACTIVE (1u << 2)

static __noinline bool idle_active(u64 tick)
{
	if (bpf_core_field_exists(((struct tick_sched___flags *)0)->flags))
		return word(tick + bpf_core_field_offset(struct tick_sched___flags, flags)) & TS_FLAG_IDLE_ACTIVE;
	if (bpf_core_field_exists(((struct tick_sched___bits *)0)->idle_active)) {
		u64 offset = __builtin_preserve_field_info(((struct tick_sched___bits *)0)->idle_active,
							   BPF_FIELD_BYTE_OFFSET);
		u64 bits = word(tick + offset);

		bits <<= __builtin_preserve_field_info(((struct tick_sched___bits *)0)->idle_active,
						       BPF_FIELD_LSHIFT_U64);
		bits >>= __builtin_preserve_field_info(((struct tick_sched___bits *)0)->idle_active,
						       BPF_FIELD_RSHIFT_U64);
		return bits;
	}
	return false;
}

/* get_cpu_sleep_time_us(), in nanoseconds */
static __noinline void idle_of_tick(struct counters_cpu *to, u64 tick, u32 waiting)
{
	bool active = idle_active(tick);
	u64 idle = READ_IF(struct tick_sched, tick, idle_sleeptime);
	u64 iowait = READ_IF(struct tick_sched, tick, iowait_sleeptime);
	u64 entered = READ_IF(struct tick_sched, tick, idle_entrytime);

	if (!to)
		return;
	if (active && waiting)
		iowait += bpf_ktime_get_ns() - entered;
	else if (active)
		idle += bpf_ktime_get_ns() - entered;
	to->idle_ns = idle;
	to->iowait_ns = iowait;
}

/* kcpustat_field_dyntick(): subtracts stolen time from the next period, so that no reader sees idle time decrease */
static __noinline void idle_of_times(struct counters_cpu *to, u64 times, u32 waiting)
{
	u64 sums = times + bpf_core_field_offset(struct kernel_cpustat, cpustat);
	u64 idle = word(sums + 8 * bpf_core_enum_value(enum cpu_usage_stat, CPUTIME_IDLE));
	u64 iowait = word(sums + 8 * bpf_core_enum_value(enum cpu_usage_stat, CPUTIME_IOWAIT));
	bool active = READ_IF(struct kernel_cpustat___idle, times, idle_elapse);
	u64 entered = READ_IF(struct kernel_cpustat___idle, times, idle_entrytime);
	u64 stolen, period, now = active ? bpf_ktime_get_ns() : 0;

	if (!to)
		return;
	if (active && now > entered) {
		period = now - entered;
		if (waiting) {
			stolen = READ_IF(struct kernel_cpustat___idle, times, idle_stealtime[1]);
			iowait += period > stolen ? period - stolen : 0;
		} else {
			stolen = READ_IF(struct kernel_cpustat___idle, times, idle_stealtime[0]);
			idle += period > stolen ? period - stolen : 0;
		}
	}
	to->idle_ns = idle;
	to->iowait_ns = iowait;
}

static __always_inline void read_idle(struct counters_cpu *to, u64 tick, u64 times, u32 waiting)
{
	u32 before, after;

	for (int attempt = 0; attempt < 3; attempt++) {
		before = idle_sequence(tick, times);
		ordered();
		if (bpf_core_field_exists(((struct kernel_cpustat___idle *)0)->idle_elapse))
			idle_of_times(to, times, waiting);
		else
			idle_of_tick(to, tick, waiting);
		ordered();
		after = idle_sequence(tick, times);
		if (before == after && !(before & 1))
			break;
	}
	to->torn = before != after || before & 1;
}

struct cpu_loop {
	u32 zones;
	u32 generation;
	u32 faults;
};

static __always_inline u32 read_times(struct counters_cpu *to, struct counters_place *place, u32 waiting)
{
	u32 faults = 0;

	if (may_cast) {
		struct kernel_cpustat *times = CAST(struct kernel_cpustat, place->cpustat);

		for (int i = 0; i < COUNTERS_CPUSTATS; i++)
			to->cpustat[i] = times->cpustat[i];
	} else {
		faults = copy(to->cpustat, place->cpustat + bpf_core_field_offset(struct kernel_cpustat, cpustat),
			      sizeof(to->cpustat));
	}
	if (place->tick)
		read_idle(to, place->tick, place->cpustat, waiting);
	return faults;
}

static __always_inline u32 read_softirqs(struct counters_cpu *to, struct counters_place *place)
{
	if (may_cast) {
		struct kernel_stat *counts = CAST(struct kernel_stat, place->kstat);

		for (int i = 0; i < COUNTERS_SOFTIRQS; i++)
			to->softirqs[i] = counts->softirqs[i];
		return 0;
	}
	return copy(to->softirqs, place->kstat + bpf_core_field_offset(struct kernel_stat, softirqs),
		    sizeof(to->softirqs));
}

static __always_inline u32 read_counts(struct counters_cpu *to, struct counters_place *place)
{
	u32 faults = 0;

	to->irqs_sum = READ(struct kernel_stat, place->kstat, irqs_sum);
	if (place->arch)
		faults = copy(to->arch, place->arch, arch_bytes);
	if (place->mce_exception)
		to->mce_exception = half(place->mce_exception);
	if (place->mce_poll)
		to->mce_poll = half(place->mce_poll);
	to->nr_running = READ_IF(struct rq, place->rq, nr_running);
	to->nr_switches = READ_IF(struct rq, place->rq, nr_switches);
	return faults;
}

/*
 * Whether the record of an offline CPU is complete. A CPU that was online in between, even briefly, has switched tasks;
 * its state alone would not show that.
 */
static __always_inline bool has_settled(struct counters_cpu *record, struct counters_place *place, u32 generation)
{
	return record->settled == generation && record->nr_switches == READ_IF(struct rq, place->rq, nr_switches);
}

static long read_cpu(u32 cpu, struct cpu_loop *loop)
{
	struct counters_place *place = bpf_map_lookup_elem(&places, &cpu);
	struct counters_cpu *to = bpf_map_lookup_elem(&cpus, &cpu);
	u32 waiting, state = 0 /* CPUHP_OFFLINE */;

	if (!place || !to)
		return 1;
	if (!place->rq)
		return 0;
	if (place->hotplug)
		to->hotplug_state = state = READ_IF(struct cpuhp_cpu_state, place->hotplug, state);
	/* the counts of an offline CPU are final if they are read after its state */
	if (!state)
		ordered();
	waiting = READ_IF(struct rq, place->rq, nr_iowait.counter);
	to->nr_iowait = waiting;
	/* Once a CPU is completely offline, its counts no longer change. */
	if (!place->online && !state && has_settled(to, place, loop->generation))
		return 0;
	loop->faults += read_times(to, place, waiting);
	loop->faults += read_softirqs(to, place);
	loop->faults += read_counts(to, place);
	to->settled = !place->online && !state ? loop->generation : 0;
	return 0;
}

#endif
