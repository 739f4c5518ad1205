/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The words of a proof, see proof.h: a structure for each group of fields that needs some, in the form of record.h. The
 * library's build makes the functions of word_functions.h from this list: they compare, remember and fetch the words.
 *
 * The tag says where a word is. t is the task, s its signal_struct, mm its memory.
 * - FP_LINE: in this member, the first word that the walk reads in a line of the cache, which is fetched ahead.
 * - FP_WORD: in this member, in a line that is fetched for another word.
 * - FP_VALUE: calculated; for these no pointer of a task that has been replaced by another is followed.
 */
struct fp_words_always {
	u64 state          FP_VALUE(state_of(t));
	u64 flags          FP_WORD(t->flags);
	u64 ptrace         FP_WORD(t->ptrace);
	u64 nvcsw          FP_LINE(t->nvcsw);
	u64 nivcsw         FP_WORD(t->nivcsw);
	u64 start          FP_WORD(t->start_boottime);
	u64 execs          FP_LINE(t->self_exec_id);
	u64 parent         FP_VALUE(tgid_of(t->real_parent));
	u64 pgrp           FP_VALUE(group_before_exec(t, s));
};

struct fp_words_memory {
	u64 hiwater_rss    FP_LINE(mm->hiwater_rss);
	u64 total_vm       FP_WORD(mm->total_vm);
	u64 locked_vm      FP_WORD(mm->locked_vm);
	u64 pinned_vm      FP_WORD(mm->pinned_vm.counter);
	u64 rss_file       FP_VALUE(RSS_COUNT(mm, MM_FILEPAGES));
	u64 rss_anon       FP_VALUE(RSS_COUNT(mm, MM_ANONPAGES));
	u64 rss_swap       FP_VALUE(RSS_COUNT(mm, MM_SWAPENTS));
	u64 rss_shmem      FP_VALUE(RSS_COUNT(mm, MM_SHMEMPAGES));
	u64 rss_parts      FP_VALUE(rss_parts(proof->counters, &parts));
	u64 rss_parts_2    FP_VALUE(parts);
};

struct fp_words_scheduling {
	u64 prio           FP_LINE(t->prio);
	u64 static_prio    FP_WORD(t->static_prio);
	u64 rt_priority    FP_WORD(t->rt_priority);
	u64 policy         FP_LINE(t->policy);
	u64 processor      FP_VALUE(cpu_of(t));
};

struct fp_words_memory_details {
	u64 page_tables    FP_LINE(mm->pgtables_bytes.counter);
	u64 hugetlb        FP_VALUE(huge_pages(mm));
	u64 mm_flags       FP_VALUE(mm_flags(t, mm));
};

struct fp_words_credentials {
	u64 umask          FP_VALUE(shared_umask(t));
};

struct fp_words_signals {
	u64 pending        FP_LINE(t->pending.signal.sig[0]);
	u64 shared_pending FP_LINE(s->shared_pending.signal.sig[0]);
	u64 queue_limit    FP_LINE(s->rlim[RLIMIT_SIGPENDING].rlim_cur);
};

struct fp_words_scheduling_details {
	u64 cpus_allowed   FP_LINE(t->cpus_mask.bits[0]);
	u64 mems_allowed   FP_VALUE(memory_nodes(t));
};

struct fp_words_limits {
	u64 rss_limit      FP_LINE(s->rlim[RLIMIT_RSS].rlim_cur);
	u64 fd_size        FP_VALUE(shared_fd_size(t));
};

struct fp_words_cgroup {
	u64 cgroup         FP_VALUE(cgroup_of(t));
};
