/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the library and the walk of the cgroups exchange besides records, in the form of record.h. */
#ifndef FASTPROC_CGROUP_RUN_H
#define FASTPROC_CGROUP_RUN_H

#include "types.h"

/* Fixed when the program is loaded: the verifier drops the code of what was not requested. */
struct cgroup_settings {
	u32 groups, page_shift;
	u32 frozen_bit;	 /* CGRP_FROZEN, which has no type of its own */
	u32 stat_bytes;	 /* bytes of the states and events of a memory cgroup; 0: they are not read */
	u32 cpus, jiffy_ns; /* possible CPUs; the length of a jiffy */
	u64 no_pages; /* the limit in pages that means none (PAGE_COUNTER_MAX) */
};

/* One walk: the library sets it up, the program counts in it. */
struct cgroup_run {
	u32 records, devices;
	u32 lost_records, lost_devices;
	u32 done; /* every cgroup was met; else the library runs the program again */
	u32 dying; /* removed cgroups that were stepped over */
	u32 units, back, climbs, node_devices;
	u64 section_ns, deadline_ns; /* how long a run may take, from the library, and when this one ends */
	u64 longest_ns;		     /* how long the longest run took */
	u64 root, css, serial;	     /* where the walk is */
	u64 node;
	s64 clock_ns;	    /* how far the scheduler's clock is from CLOCK_MONOTONIC, found by compare_clocks */
	u64 anchor, now_ns; /* the cookie of the per-CPU map; the time of the scheduler's clock when this run began */
};

#endif
