// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The walk for the default fields of top and ps: a third of the code, which loads in half the time. */
#define GROUPS (FP_CPU | FP_MEMORY | FP_USERS | FP_SCHEDULING)
#include "tasks.bpf.c"
