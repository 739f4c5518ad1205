// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The iterator's program for the default fields of top and ps: see tasks_top.bpf.c. */
#define GROUPS (FP_CPU | FP_MEMORY | FP_USERS | FP_SCHEDULING)
#include "tasks_iter.bpf.c"
