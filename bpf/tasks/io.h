/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The seven counters of task_io_accounting. */
#ifndef FASTPROC_TASKS_IO_H
#define FASTPROC_TASKS_IO_H

#define IO_SET(to, op, from)                                          \
	do {                                                          \
		(to)->rchar op(from).rchar;                           \
		(to)->wchar op(from).wchar;                           \
		(to)->syscr op(from).syscr;                           \
		(to)->syscw op(from).syscw;                           \
		(to)->read_bytes op(from).read_bytes;                 \
		(to)->write_bytes op(from).write_bytes;               \
		(to)->cancelled_write_bytes op(from).cancelled_write_bytes; \
	} while (0)

#endif
