//! The lines of status: each is defined here once, and rendered separately or in a run of several.

use seqtext::{Dec, DecWidth, Hex, Hex16, Octal, Piece, SeqBuf};

use super::{mask::MaskText, speculation::Speculation};
use crate::{
    records::record::{Memory, MemoryDetails, Record},
    snapshot::process::{NestedIds, Process},
    text::name,
};

/// `ARCH_SHSTK_SHSTK`: the thread has a shadow stack; its word in `x86_Thread_features`.
pub(super) const SHADOW_STACK: u64 = 1;
pub(super) const SHADOW_STACK_WORD: &[u8; 6] = b"shstk ";
/// `ARCH_SHSTK_WRSS`: the thread may write to its shadow stack.
pub(super) const WRSS: u64 = 2;
pub(super) const WRSS_WORD: &[u8; 5] = b"wrss ";

/// Facts about this kernel for lines that records do not determine completely.
#[derive(Clone, Debug, Default)]
pub(super) struct KernelFacts {
    pub(super) store_bypass: Option<Speculation>,
    pub(super) indirect_branch: Option<Speculation>,
    pub(super) thp_disable_bit: Option<u32>,
}

impl KernelFacts {
    /// The bit of `mm->flags`, as a mask.
    pub(super) const fn thp_disabled(&self) -> u64 {
        match self.thp_disable_bit {
            Some(bit) => 1 << bit,
            None => 0,
        }
    }
}

/// A process, and the other inputs of its lines.
#[derive(Clone, Copy)]
pub(super) struct View<'a> {
    pub(super) process: Process<'a>,
    pub(super) record: &'a Record,
    pub(super) facts: &'a KernelFacts,
    pub(super) cpus: &'a MaskText,
    pub(super) mems: &'a MaskText,
}

/// Defines the lines. A `uniform` line is its label, a value that is a [`Piece`], and the end of the line, and can be
/// part of a run; a `free` line is written by a function, including its label.
macro_rules! lines {
    (
        uniform { $($(#[$needs:ident])? $line:ident $view:ident => $value:expr;)* }
        free { $($free:ident $put:path;)* }
    ) => {
        /// A known line of status, spelled as its label.
        #[allow(non_camel_case_types, reason = "the spelling is the kernel's")]
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(super) enum Line { $($line,)* $($free,)* }

        impl Line {
            const ALL: &[(&str, Self)] =
                &[$((stringify!($line), Self::$line),)* $((stringify!($free), Self::$free),)*];

            /// Whether only a process with memory of its own has the line.
            pub(super) const fn needs_memory(self) -> bool {
                match self {
                    $($(Self::$line => lines!(@$needs),)?)*
                    _ => false,
                }
            }

            /// Appends the line.
            #[inline]
            pub(super) fn put(self, view: &View<'_>, out: &mut SeqBuf<'_>) {
                match self {
                    $(Self::$line => { out.put(piece::$line(view)); })*
                    $(Self::$free => $put(view, out),)*
                }
            }
        }

        /// The uniform lines as pieces.
        #[allow(non_snake_case, reason = "the spelling is the kernel's")]
        pub(super) mod piece {
            use super::*;
            $(
                #[inline(always)]
                pub(in super::super) fn $line($view: &View<'_>) -> impl Piece {
                    const TEXT: &[u8] = concat!(stringify!($line), ":\t").as_bytes();
                    const LABEL: &[u8; TEXT.len()] = TEXT.first_chunk().unwrap();
                    (LABEL, $value, b"\n")
                }
            )*
        }
    };
    (@memory) => { true };
}

lines! {
    uniform {
        Tgid v => Dec(v.record.identity.tgid);
        Ngid v => Dec(v.record.scheduling_details.ngid);
        Pid v => Dec(v.record.identity.tgid);
        PPid v => Dec(v.record.identity.ppid);
        TracerPid v => Dec(v.record.identity.tracer_pid);
        Uid v => {
            let c = &v.record.users;
            (Dec(c.uid), b"\t", Dec(c.euid), b"\t", Dec(c.suid), b"\t", Dec(c.fsuid))
        };
        Gid v => {
            let c = &v.record.users;
            (Dec(c.gid), b"\t", Dec(c.egid), b"\t", Dec(c.sgid), b"\t", Dec(c.fsgid))
        };
        FDSize v => Dec(v.record.limits.fd_size);
        Kthread v => Dec(u8::from(v.record.identity.is_kernel_thread()));
        #[memory] VmPeak v => kib(v, |m| m.peak_vsize);
        #[memory] VmSize v => kib(v, |m| m.vsize);
        #[memory] VmLck v => kib(v, |m| m.locked);
        #[memory] VmPin v => kib(v, |m| m.pinned);
        #[memory] VmHWM v => kib(v, |m| m.peak_rss);
        #[memory] VmRSS v => kib(v, Memory::rss);
        #[memory] RssAnon v => kib(v, |m| m.rss_anon);
        #[memory] RssFile v => kib(v, |m| m.rss_file);
        #[memory] RssShmem v => kib(v, |m| m.rss_shmem);
        #[memory] VmData v => kib(v, |m| m.data);
        #[memory] VmStk v => kib(v, |m| m.stack);
        #[memory] VmExe v => kib(v, |m| m.exe);
        #[memory] VmLib v => kib(v, |m| m.lib);
        #[memory] VmPTE v => detail_kib(v, |m| m.page_tables);
        #[memory] VmSwap v => kib(v, |m| m.swap);
        #[memory] HugetlbPages v => detail_kib(v, |m| m.hugetlb);
        #[memory] CoreDumping v => Dec(v.record.identity.core_dumping);
        #[memory] THP_enabled v => Dec(u8::from(v.record.memory_details.mm_flags & v.facts.thp_disabled() == 0));
        #[memory] untag_mask v => (b"0x", Hex(v.record.memory_details.untag_mask));
        Threads v => Dec(v.record.identity.num_threads);
        SigQ v => (Dec(v.record.signals.queued as u32), b"/", Dec(v.record.signals.queue_limit));
        SigPnd v => Hex16(v.record.signals.pending);
        ShdPnd v => Hex16(v.record.signals.shared_pending);
        SigBlk v => Hex16(v.record.signals.blocked);
        SigIgn v => Hex16(v.record.signals.ignored);
        SigCgt v => Hex16(v.record.signals.caught);
        CapInh v => Hex16(v.record.credentials.cap_inheritable);
        CapPrm v => Hex16(v.record.credentials.cap_permitted);
        CapEff v => Hex16(v.record.credentials.cap_effective);
        CapBnd v => Hex16(v.record.credentials.cap_bounding);
        CapAmb v => Hex16(v.record.credentials.cap_ambient);
        NoNewPrivs v => Dec(u8::from(v.record.credentials.no_new_privs()));
        Seccomp v => Dec(v.record.credentials.seccomp_mode);
        Seccomp_filters v => Dec(v.record.credentials.seccomp_filters);
        voluntary_ctxt_switches v => Dec(v.record.cpu.nvcsw);
        nonvoluntary_ctxt_switches v => Dec(v.record.cpu.nivcsw);
        x86_Thread_features v => features(v.record.credentials.thread_features);
        x86_Thread_features_locked v => features(v.record.credentials.thread_features_locked);
    }
    free {
        Name put_name;
        Umask put_umask;
        State put_state;
        Groups put_groups;
        NStgid put_nstgid;
        NSpid put_nspid;
        NSpgid put_nspgid;
        NSsid put_nssid;
        Speculation_Store_Bypass put_store_bypass;
        SpeculationIndirectBranch put_indirect_branch;
        Cpus_allowed put_cpus;
        Cpus_allowed_list put_cpus_list;
        Mems_allowed put_mems;
        Mems_allowed_list put_mems_list;
    }
}

impl Line {
    /// The line with this label.
    pub(super) fn with_label(label: &[u8]) -> Option<Self> {
        Self::ALL
            .iter()
            .find(|(name, _)| name.as_bytes() == label)
            .map(|&(_, line)| line)
    }
}

#[inline(always)]
fn kib(view: &View<'_>, size: impl FnOnce(&Memory) -> u64) -> impl Piece {
    (DecWidth::<8>(size(&view.record.memory) >> 10), b" kB")
}

#[inline(always)]
fn detail_kib(view: &View<'_>, size: impl FnOnce(&MemoryDetails) -> u64) -> impl Piece {
    (
        DecWidth::<8>(size(&view.record.memory_details) >> 10),
        b" kB",
    )
}

/// `dump_x86_features()` of arch/x86/kernel/cpu/proc.c.
#[inline(always)]
fn features(bits: u64) -> impl Piece {
    (
        (bits & SHADOW_STACK != 0).then_some(SHADOW_STACK_WORD),
        (bits & WRSS != 0).then_some(WRSS_WORD),
    )
}

fn put_name(view: &View<'_>, out: &mut SeqBuf<'_>) {
    out.put(b"Name:\t");
    name::put_escaped(view.process, out);
    out.putc(b'\n');
}

/// A process after `exit_fs()` has none.
fn put_umask(view: &View<'_>, out: &mut SeqBuf<'_>) {
    if let Ok(umask) = u32::try_from(view.record.credentials.umask) {
        out.put((b"Umask:\t", Octal::<4>(umask.into()), b"\n"));
    }
}

fn put_state(view: &View<'_>, out: &mut SeqBuf<'_>) {
    out.put(b"State:\t")
        .puts(view.record.identity.state().name())
        .putc(b'\n');
}

fn put_groups(view: &View<'_>, out: &mut SeqBuf<'_>) {
    out.put(b"Groups:\t");
    // In the kernel's words, the trailing space shouldn't have been added in the first place.
    let (words, count) = view.process.group_words();
    let (fours, rest) = words[..count / 2].as_chunks::<2>();
    let pair = |word: u64| (Dec(word as u32), b" ", Dec((word >> 32) as u32), b" ");
    for words in fours {
        out.put(words.map(pair));
    }
    for &word in rest {
        out.put(pair(word));
    }
    if let Some(&last) = words.get(count / 2) {
        out.put((Dec(last as u32), b" "));
    }
    if view.record.credentials.ngroups == 0 {
        out.putc(b' ');
    }
    out.putc(b'\n');
}

#[inline(always)]
fn put_nested(
    label: &'static [u8; 8],
    outermost: i32,
    view: &View<'_>,
    nested: impl Fn(NestedIds) -> u32,
    out: &mut SeqBuf<'_>,
) {
    // One of the four labels is shorter: its last byte is not printed.
    out.write(label.strip_suffix(b" ").unwrap_or(label));
    out.put(Dec(outermost));
    if view.record.namespaces.level > 0 {
        for ids in view.process.nested_ids() {
            out.put((b"\t", Dec(nested(ids))));
        }
    }
    out.putc(b'\n');
}

fn put_nstgid(view: &View<'_>, out: &mut SeqBuf<'_>) {
    put_nested(
        b"NStgid:\t",
        view.record.identity.tgid as i32,
        view,
        |ids| ids.tgid,
        out,
    );
}

fn put_nspid(view: &View<'_>, out: &mut SeqBuf<'_>) {
    put_nested(
        b"NSpid:\t ",
        view.record.identity.tgid as i32,
        view,
        |ids| ids.pid,
        out,
    );
}

fn put_nspgid(view: &View<'_>, out: &mut SeqBuf<'_>) {
    put_nested(
        b"NSpgid:\t",
        view.record.identity.pgrp as i32,
        view,
        |ids| ids.pgrp,
        out,
    );
}

fn put_nssid(view: &View<'_>, out: &mut SeqBuf<'_>) {
    put_nested(
        b"NSsid:\t ",
        view.record.identity.session as i32,
        view,
        |ids| ids.session,
        out,
    );
}

fn put_cpus(view: &View<'_>, out: &mut SeqBuf<'_>) {
    out.write(view.cpus.bitmap());
}

fn put_cpus_list(view: &View<'_>, out: &mut SeqBuf<'_>) {
    out.write(view.cpus.list());
}

fn put_mems(view: &View<'_>, out: &mut SeqBuf<'_>) {
    out.write(view.mems.bitmap());
}

fn put_mems_list(view: &View<'_>, out: &mut SeqBuf<'_>) {
    out.write(view.mems.list());
}

fn put_store_bypass(view: &View<'_>, out: &mut SeqBuf<'_>) {
    if let Some(line) = &view.facts.store_bypass {
        out.put((
            b"Speculation_Store_Bypass:\t",
            line.text(view.record.credentials.atomic_flags),
            b"\n",
        ));
    }
}

fn put_indirect_branch(view: &View<'_>, out: &mut SeqBuf<'_>) {
    if let Some(line) = &view.facts.indirect_branch {
        out.put((
            b"SpeculationIndirectBranch:\t",
            line.text(view.record.credentials.atomic_flags),
            b"\n",
        ));
    }
}

/// Lines that follow one another on all known kernels, rendered with one check of the room.
pub(super) struct Run {
    pub(super) lines: &'static [Line],
    pub(super) put: fn(&View<'_>, &mut SeqBuf<'_>),
}

/// A run of uniform lines, in groups of up to twelve.
macro_rules! run {
    ($([$($line:ident)*])*) => {
        Run {
            lines: &[$($(Line::$line,)*)*],
            put: |view, out| { out.put(($(($(piece::$line(view),)*),)*)); },
        }
    };
}

pub(super) const RUNS: &[Run] = &[
    run!([Tgid Ngid Pid PPid TracerPid Uid Gid FDSize]),
    Run {
        lines: &[Line::NStgid, Line::NSpid, Line::NSpgid, Line::NSsid],
        put: |view, out| {
            if view.record.namespaces.level == 0 {
                let identity = &view.record.identity;
                let (tgid, pgrp, session) =
                    (identity.tgid, identity.pgrp as i32, identity.session as i32);
                out.put((
                    b"NStgid:\t",
                    Dec(tgid),
                    b"\nNSpid:\t",
                    Dec(tgid),
                    b"\nNSpgid:\t",
                    Dec(pgrp),
                ));
                out.put((b"\nNSsid:\t", Dec(session), b"\n"));
            } else {
                for put in [put_nstgid, put_nspid, put_nspgid, put_nssid] {
                    put(view, out);
                }
            }
        },
    },
    run!(
        [VmPeak VmSize VmLck VmPin VmHWM VmRSS RssAnon RssFile RssShmem]
        [VmData VmStk VmExe VmLib VmPTE VmSwap]
    ),
    run!([Threads SigQ] [SigPnd ShdPnd SigBlk SigIgn SigCgt] [CapInh CapPrm CapEff CapBnd CapAmb] [NoNewPrivs]),
    run!([HugetlbPages CoreDumping THP_enabled untag_mask]),
    run!([Seccomp Seccomp_filters]),
    Run {
        lines: &[Line::Cpus_allowed, Line::Cpus_allowed_list],
        put: |view, out| {
            out.write(view.cpus.both());
        },
    },
    Run {
        lines: &[Line::Mems_allowed, Line::Mems_allowed_list],
        put: |view, out| {
            out.write(view.mems.both());
        },
    },
    run!([voluntary_ctxt_switches nonvoluntary_ctxt_switches]),
];
