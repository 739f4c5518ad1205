/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The types of the members of shared structures. */
#ifndef FASTPROC_TYPES_H
#define FASTPROC_TYPES_H

#ifndef __VMLINUX_TYPES__
typedef signed int s32;
typedef signed long long s64;
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
#endif

/* The same with a unit, which becomes part of the description of a record. */
typedef u64 fp_ns;
typedef u64 fp_bytes;

#endif
