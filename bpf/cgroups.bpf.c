// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Every cgroup of the default hierarchy, parents before their children, in sections (kernels from 6.7).
 *
 * As in tasks.bpf.c, a run stops when its time is over, and the next run continues there. Between two runs any cgroup
 * may be removed. A css that is still on the list of its parent has the same serial number, which is never used again,
 * and is not marked as released; the walk continues after the last such css. Cgroups recorded after it are gone.
 *
 * The kernel keeps removed cgroups while anything refers to them. The walk skips them.
 */
#include "kernel_cgroup.h"
#include "cgroup_record.h"
#include "cgroup_run.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include "kfunc.h"
#include "arch.h"

/* See tasks.bpf.c. */
const volatile struct {
	u32 cgroup_subsys_state, cgroup, cgroup_root, css_set, task_struct, kernfs_node;
	u32 task_group, mem_cgroup, pids_cgroup, blkcg, blkcg_gq, request_queue, gendisk;
	u32 psi_group, psi_group_cpu, cfs_rq, rq;
} type_ids;

#define ID_OF(type) ID_OF_##type
#define ID_OF_struct type_ids.
#define CAST(type, pointer) ((type *)rdonly_cast((const void *)(pointer), ID_OF(type)))
#define RELOAD(x) (*(volatile typeof(x) *)&(x))

const volatile struct cgroup_settings settings;

struct cgroup_run run SEC(".data.run");
/* through memory: a global function accepts the value of a pointer, not a pointer */
u64 scratch;
#define VALUE(pointer) (RELOAD(scratch) = (u64)(pointer), RELOAD(scratch))

/* Where a record is from. */
struct place {
	u64 css, serial;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct fp_cgroup_record);
} records SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct fp_cgroup_device);
} devices SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct place);
} places SEC(".maps");

#define PID_MAX_LIMIT (4 << 20)
#define WANTED(group) (settings.groups & (group))
/* How many cgroups a section visits or skips before it checks the clock again. */
#define UNITS 4
#define MAX_STEPS (1 << 23)
/* The most block devices that a cgroup is shown with. */
#define MAX_DEVICES 256

/* The css of a controller, if its files exist: it is online and was enabled in the parent. */
#define CONTROLLER(cgroup, name)                                                                                             \
	(bpf_core_enum_value_exists(enum cgroup_subsys_id, name) ?                                                           \
		 shown(CAST(struct cgroup, cgroup)->subsys[bpf_core_enum_value(enum cgroup_subsys_id, name)]) :               \
		 0)

static __always_inline u64 shown(struct cgroup_subsys_state *css)
{
	u64 value = (u64)css;
	u32 flags;

	if (!value)
		return 0;
	flags = CAST(struct cgroup_subsys_state, value)->flags;
	return (flags & (CSS_ONLINE | CSS_VISIBLE)) == (CSS_ONLINE | CSS_VISIBLE) ? value : 0;
}

int read_cpu(u64 cgroup, u64 css, u32 index);
__noinline int read_cpu(u64 cgroup, u64 css, u32 index)
{
	struct fp_cgroup_record *r = bpf_map_lookup_elem(&records, &index);
	struct cgroup *c = CAST(struct cgroup, cgroup);
	struct task_group *g;

	if (!r)
		return 0;
	r->cpu.usage_ns = c->bstat.cputime.sum_exec_runtime;
	r->cpu.sampled_utime_ns = c->bstat.cputime.utime;
	r->cpu.sampled_stime_ns = c->bstat.cputime.stime;
	r->cpu.prev_utime_ns = c->prev_cputime.utime;
	r->cpu.prev_stime_ns = c->prev_cputime.stime;
	r->cpu.nice_ns = bpf_core_field_exists(c->bstat.ntime) ? c->bstat.ntime : -1;
	r->cpu.forced_idle_ns = bpf_core_field_exists(c->bstat.forceidle_sum) ? c->bstat.forceidle_sum : -1;
	r->cpu.periods = r->cpu.throttled = r->cpu.throttled_ns = r->cpu.bursts = r->cpu.burst_ns = -1;
	r->cpu.quota_ns = r->cpu.period_ns = r->cpu.weight = -1;
	if (!css)
		return 0;
	g = CAST(struct task_group, css);
	if (bpf_core_field_exists(g->cfs_bandwidth.quota)) {
		u64 quota = g->cfs_bandwidth.quota;

		r->cpu.periods = (u32)g->cfs_bandwidth.nr_periods;
		r->cpu.throttled = (u32)g->cfs_bandwidth.nr_throttled;
		r->cpu.throttled_ns = g->cfs_bandwidth.throttled_time;
		r->cpu.bursts = (u32)g->cfs_bandwidth.nr_burst;
		r->cpu.burst_ns = g->cfs_bandwidth.burst_time;
		r->cpu.quota_ns = quota == ~0ULL ? FP_CGROUP_NO_LIMIT : quota;
		r->cpu.period_ns = g->cfs_bandwidth.period;
	}
	if (bpf_core_field_exists(g->shares))
		/* scale_load_down(), then from a weight of 1024 to one of 100 */
		r->cpu.weight = ((g->shares >> 10) * 100 + 512) / 1024;
	return 0;
}

static __always_inline u64 limit(u64 pages)
{
	return pages >= settings.no_pages ? FP_CGROUP_NO_LIMIT : pages << settings.page_shift;
}

int read_memory(u64 css, u32 index);
__noinline int read_memory(u64 css, u32 index)
{
	struct fp_cgroup_record *r = bpf_map_lookup_elem(&records, &index);
	struct mem_cgroup *m = CAST(struct mem_cgroup, css);

	if (!r)
		return 0;
	r->memory.current = m->memory.usage.counter << settings.page_shift;
	r->memory.peak = m->memory.watermark << settings.page_shift;
	r->memory.min = limit(m->memory.min);
	r->memory.low = limit(m->memory.low);
	r->memory.high = limit(m->memory.high);
	r->memory.max = limit(m->memory.max);
	r->memory.swap_current = m->swap.usage.counter << settings.page_shift;
	r->memory.swap_peak = m->swap.watermark << settings.page_shift;
	r->memory.swap_high = limit(m->swap.high);
	r->memory.swap_max = limit(m->swap.max);
	r->memory.events_low = m->memory_events[0].counter;
	r->memory.events_high = m->memory_events[1].counter;
	r->memory.events_max = m->memory_events[2].counter;
	r->memory.events_oom = m->memory_events[3].counter;
	r->memory.oom_kills = m->memory_events[4].counter;
	r->memory.oom_group_kills = m->memory_events[5].counter;
	r->memory.local_low = m->memory_events_local[0].counter;
	r->memory.local_high = m->memory_events_local[1].counter;
	r->memory.local_max = m->memory_events_local[2].counter;
	r->memory.local_oom = m->memory_events_local[3].counter;
	r->memory.local_oom_kills = m->memory_events_local[4].counter;
	r->memory.local_oom_group_kills = m->memory_events_local[5].counter;
	r->memory.sock_throttled = r->memory.local_sock_throttled = -1;
	if (bpf_core_enum_value_exists(enum memcg_memory_event, MEMCG_SOCK_THROTTLED)) {
		r->memory.sock_throttled = m->memory_events[9].counter;
		r->memory.local_sock_throttled = m->memory_events_local[9].counter;
	}
	r->memory.swap_events_high = m->memory_events[6].counter;
	r->memory.swap_events_max = m->memory_events[7].counter;
	r->memory.swap_events_fail = m->memory_events[8].counter;
	r->memory.oom_group = m->oom_group;
	return 0;
}

int read_memory_stat(u64 css, u32 index);
__noinline int read_memory_stat(u64 css, u32 index)
{
	struct fp_cgroup_record *r = bpf_map_lookup_elem(&records, &index);
	u32 bytes = settings.stat_bytes;

	if (!r || bytes > sizeof(r->memory_stat.slots))
		return 0;
	bpf_probe_read_kernel(r->memory_stat.slots, bytes, CAST(struct mem_cgroup, css)->vmstats);
	return 0;
}

static int read_device(u32 i, void *unused)
{
	u32 at = run.devices;
	struct fp_cgroup_device *to = bpf_map_lookup_elem(&devices, &at);
	u64 node = RELOAD(run.node);
	struct blkcg_gq *g;
	struct gendisk *disk;

	if (!node)
		return 1;
	if (!to) {
		run.lost_devices++;
		return 1;
	}
	g = CAST(struct blkcg_gq, node - bpf_core_field_offset(struct blkcg_gq, blkcg_node));
	RELOAD(run.node) = (u64)g->blkcg_node.next;
	if (!g->online)
		return 0;
	disk = CAST(struct gendisk, CAST(struct request_queue, g->q)->disk);
	if (!disk)
		return 0;
	to->major = disk->major;
	to->minor = disk->first_minor;
	to->rbytes = g->iostat.cur.bytes[0];
	to->wbytes = g->iostat.cur.bytes[1];
	to->dbytes = g->iostat.cur.bytes[2];
	to->rios = g->iostat.cur.ios[0];
	to->wios = g->iostat.cur.ios[1];
	to->dios = g->iostat.cur.ios[2];
	run.devices = at + 1;
	run.node_devices++;
	return 0;
}

int read_io(u64 css, u32 index);
__noinline int read_io(u64 css, u32 index)
{
	struct fp_cgroup_record *r = bpf_map_lookup_elem(&records, &index);

	if (!r)
		return 0;
	r->io = (struct fp_cgroup_io){ .devices_at = run.devices };
	run.node_devices = 0;
	RELOAD(run.node) = (u64)CAST(struct blkcg, css)->blkg_list.first;
	bpf_loop(MAX_DEVICES, read_device, 0, 0);
	r->io.devices = run.node_devices;
	return 0;
}

#include "cgroup_percpu.h"
#include "cgroup_pressure.h"

int visit(u64 css, u32 index);
__noinline int visit(u64 css, u32 index)
{
	struct fp_cgroup_record *r = bpf_map_lookup_elem(&records, &index);
	u64 cgroup = css - bpf_core_field_offset(struct cgroup, self), of;
	struct cgroup *c = CAST(struct cgroup, cgroup);
	u32 groups = 0, populated;

	if (!r)
		return 0;
	of = (u64)c->self.parent;
	r->identity.id = CAST(struct kernfs_node, c->kn)->id;
	r->identity.parent = 0;
	if (of) {
		of -= bpf_core_field_offset(struct cgroup, self);
		r->identity.parent = CAST(struct kernfs_node, CAST(struct cgroup, of)->kn)->id;
	}
	populated = c->nr_populated_domain_children + c->nr_populated_threaded_children;
	if (bpf_core_field_exists(c->nr_populated_csets))
		populated += c->nr_populated_csets;
	else
		populated += ((struct cgroup_subsys_state___7_3 *)CAST(struct cgroup_subsys_state, css))->nr_populated_csets;
	r->identity.level = c->level;
	r->identity.populated = populated != 0;
	r->identity.frozen = c->flags >> (settings.frozen_bit & 63) & 1;
	r->identity.descendants = c->nr_descendants;
	r->identity.dying_descendants = c->nr_dying_descendants;
	r->identity.threaded = (u64)c->dom_cgrp != (u64)c;
	r->identity.stat_by_line = 0;
	/* the files of the root do not come from its structures */
	if (!r->identity.parent) {
		r->identity.groups = 0;
		return 0;
	}
	if (WANTED(FP_CGROUP_CPU)) {
		groups |= FP_CGROUP_CPU;
		read_cpu(cgroup, VALUE(CONTROLLER(cgroup, cpu_cgrp_id)), index);
	}
	if (WANTED(FP_CGROUP_MEMORY | FP_CGROUP_MEMORY_STAT)) {
		of = VALUE(CONTROLLER(cgroup, memory_cgrp_id));
		if (of && WANTED(FP_CGROUP_MEMORY)) {
			groups |= FP_CGROUP_MEMORY;
			read_memory(of, index);
		}
		if (of && WANTED(FP_CGROUP_MEMORY_STAT) && settings.stat_bytes) {
			groups |= FP_CGROUP_MEMORY_STAT;
			read_memory_stat(of, index);
		}
	}
	if (WANTED(FP_CGROUP_PIDS)) {
		of = CONTROLLER(cgroup, pids_cgrp_id);
		if (of) {
			struct pids_cgroup *p = CAST(struct pids_cgroup, of);

			groups |= FP_CGROUP_PIDS;
			r->pids.current = p->counter.counter;
			r->pids.max = p->limit.counter > PID_MAX_LIMIT ? FP_CGROUP_NO_LIMIT : p->limit.counter;
			r->pids.peak = bpf_core_field_exists(p->watermark) ? p->watermark : -1;
		}
	}
	if (WANTED(FP_CGROUP_IO)) {
		of = VALUE(CONTROLLER(cgroup, io_cgrp_id));
		if (of) {
			groups |= FP_CGROUP_IO;
			read_io(of, index);
		}
	}
	if (WANTED(FP_CGROUP_PRESSURE)) {
		of = VALUE(c->psi);
		/* cgroup.pressure can hide the files. */
		if (of && CAST(struct psi_group, of)->enabled) {
			groups |= FP_CGROUP_PRESSURE;
			read_pressure(of, index);
		}
	}
	r->identity.groups = groups;
	return 0;
}

#define CSS(value) CAST(struct cgroup_subsys_state, value)

/* Moves to the next cgroup in order, from one that was visited, or whose descendants were all visited (`climbs`). */
static __always_inline void move_on(u64 css)
{
	u64 next, parent;

	if (!run.climbs) {
		next = (u64)CSS(css)->children.next;
		if (next != css + bpf_core_field_offset(struct cgroup_subsys_state, children)) {
			run.css = next - bpf_core_field_offset(struct cgroup_subsys_state, sibling);
			return;
		}
	}
	run.climbs = 0;
	if (css == run.root) {
		run.done = 1;
		return;
	}
	parent = (u64)CSS(css)->parent;
	next = (u64)CSS(css)->sibling.next;
	if (next != parent + bpf_core_field_offset(struct cgroup_subsys_state, children)) {
		run.css = next - bpf_core_field_offset(struct cgroup_subsys_state, sibling);
	} else {
		run.css = parent;
		run.climbs = 1;
	}
}

/* Whether the time of this section is over. Called after each cgroup; reads the clock only after a few. */
static __always_inline int is_over(void)
{
	if (++run.units < UNITS && run.section_ns)
		return 0;
	run.units = 0;
	return bpf_ktime_get_ns() >= run.deadline_ns;
}

static int step(u32 i, void *unused)
{
	u32 index = run.records;
	u64 css = RELOAD(run.css);

	if (!css) {
		run.done = 1;
		return 1;
	}
	if (!run.climbs) {
		if (CSS(css)->flags & CSS_ONLINE) {
			struct place *place = bpf_map_lookup_elem(&places, &index);

			if (!place) {
				run.lost_records++;
				run.done = 1;
				return 1;
			}
			place->css = css;
			place->serial = CSS(css)->serial_nr;
			visit(css, index);
			run.records = index + 1;
		} else {
			run.dying++;
		}
	}
	move_on(css);
	return run.done || is_over();
}

/*
 * Whether this is still the same css and on its parent's list, so that RCU keeps its successors. The kernel marks a css
 * as released before it takes it off the list.
 */
static __always_inline int is_here(u64 css, u64 serial)
{
	return RELOAD(CSS(css)->serial_nr) == serial && !(RELOAD(CSS(css)->flags) & CSS_RELEASED);
}

/* Finds the last record whose cgroup still exists: the walk continues after it. That may take several sections. */
static int go_back(u32 i, void *unused)
{
	u32 at = run.back - 1;
	struct place *place = bpf_map_lookup_elem(&places, &at);

	if (!place)
		return 1;
	if (is_here(place->css, place->serial)) {
		run.css = place->css;
		return 1;
	}
	run.back = at;
	return is_over();
}

SEC("syscall") int walk(void *ctx)
{
	struct task_struct *me;
	u64 began = bpf_ktime_get_ns(), took;

	run.deadline_ns = began + run.section_ns;
	run.now_ns = began + run.clock_ns;
	if (WANTED(FP_CGROUP_PRESSURE))
		begin_percpu();
	bpf_rcu_read_lock();
	me = CAST(struct task_struct, bpf_get_current_task());
	run.root = (u64)CAST(struct cgroup, CAST(struct css_set, me->cgroups)->dfl_cgrp)->root +
		   bpf_core_field_offset(struct cgroup_root, cgrp) + bpf_core_field_offset(struct cgroup, self);
	if (run.css && !is_here(run.css, run.serial)) {
		run.back = run.records;
		run.css = 0;
	}
	if (run.back) {
		/* The root is never removed, so the search ends at its record at the latest. */
		bpf_loop(MAX_STEPS, go_back, 0, 0);
		if (run.css) {
			run.records = run.back;
			run.back = 0;
			run.climbs = 0;
			move_on(run.css);
		}
	} else if (!run.css) {
		run.css = run.root;
	}
	if (run.css)
		bpf_loop(MAX_STEPS, step, 0, 0);
	if (run.css)
		run.serial = CSS(run.css)->serial_nr;
	bpf_rcu_read_unlock();
	took = bpf_ktime_get_ns() - began;
	if (took > run.longest_ns)
		run.longest_ns = took;
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
