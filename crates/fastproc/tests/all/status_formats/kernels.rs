//! The status of a process on other kernels, line by line.

/// The differences between kernels.
#[derive(Clone, Copy)]
#[allow(clippy::struct_excessive_bools, reason = "each is a line of its own")]
pub(super) struct Kernel {
    pub(super) kthread: bool,
    pub(super) huge_pages: bool,
    pub(super) untag_mask: bool,
    pub(super) indirect_branch: bool,
    pub(super) shadow_stack: bool,
    pub(super) unknown: bool,
}

pub(super) const LINUX_5_10: Kernel = Kernel {
    kthread: false,
    huge_pages: true,
    untag_mask: false,
    indirect_branch: false,
    shadow_stack: false,
    unknown: false,
};
pub(super) const LINUX_6_1: Kernel = Kernel {
    indirect_branch: true,
    ..LINUX_5_10
};
pub(super) const LINUX_6_12: Kernel = Kernel {
    kthread: true,
    untag_mask: true,
    shadow_stack: true,
    ..LINUX_6_1
};

/// A process on this kernel.
#[derive(Clone, Copy, Debug)]
pub(super) struct Values {
    pub(super) pid: u32,
    pub(super) memory: bool,
    pub(super) store_bypass: &'static str,
    pub(super) indirect_branch: &'static str,
    pub(super) cpus: (&'static str, &'static str),
    pub(super) features: &'static str,
}

pub(super) const OWN: Values = Values {
    pid: 4711,
    memory: true,
    store_bypass: "thread vulnerable",
    indirect_branch: "conditional enabled",
    cpus: ("ff,ffffffff", "0-39"),
    features: "",
};
pub(super) const OTHER: Values = Values {
    pid: 4_194_304,
    memory: true,
    store_bypass: "thread force mitigated",
    indirect_branch: "conditional disabled",
    cpus: ("80,00000005", "0,2,39"),
    features: "shstk ",
};
pub(super) const KERNEL_THREAD: Values = Values {
    pid: 2,
    memory: false,
    ..OWN
};

pub(super) fn text(kernel: Kernel, values: Values) -> String {
    let mut text = String::new();
    let mut line = |line: &str, present: bool| {
        if present {
            text.push_str(line);
            text.push('\n');
        }
    };
    let Values {
        pid,
        memory,
        store_bypass,
        indirect_branch,
        cpus,
        features,
    } = values;
    line("Name:\ta (\\\\) b\\n", true);
    line("Umask:\t0022", true);
    line("State:\tD (disk sleep)", true);
    line(
        &format!("Tgid:\t{pid}\nNgid:\t3\nPid:\t{pid}\nPPid:\t1\nTracerPid:\t77"),
        true,
    );
    line(
        "Uid:\t1000\t1001\t1002\t4294967294\nGid:\t100\t101\t102\t103\nFDSize:\t64",
        true,
    );
    line("Groups:\t4 24 27 4294967294 1000000 ", true);
    line(
        &format!("NStgid:\t{pid}\t7\t1\nNSpid:\t{pid}\t7\t1\nNSpgid:\t12\t0\t1\nNSsid:\t12\t0\t0"),
        true,
    );
    line(
        if memory { "Kthread:\t0" } else { "Kthread:\t1" },
        kernel.kthread,
    );
    line(
        "VmPeak:\t123456789012 kB\nVmSize:\t 1234567 kB\nVmLck:\t       0 kB\nVmPin:\t       4 kB",
        memory,
    );
    line(
        "VmHWM:\t   13968 kB\nVmRSS:\t   13964 kB\nRssAnon:\t    1000 kB\nRssFile:\t   12960 kB",
        memory,
    );
    line(
        "RssShmem:\t       4 kB\nVmData:\t     360 kB\nVmStk:\t     132 kB\nVmExe:\t      20 kB",
        memory,
    );
    line(
        "VmLib:\t    1528 kB\nVmPTE:\t      44 kB\nVmSwap:\t       8 kB\nHugetlbPages:\t    2048 kB",
        memory,
    );
    line("CoreDumping:\t0", memory);
    line("THP_enabled:\t1", memory && kernel.huge_pages);
    line(
        "untag_mask:\t0x81ffffffffffffff",
        memory && kernel.untag_mask,
    );
    line("Horizon:\tevent", kernel.unknown);
    line(
        "Threads:\t12\nSigQ:\t1/96365\nSigPnd:\t0000000000000001\nShdPnd:\t8000000000000000",
        true,
    );
    line(
        "SigBlk:\t00000000fffffffe\nSigIgn:\t0000000000001000\nSigCgt:\t00000001800004e8",
        true,
    );
    line(
        "CapInh:\t0000000000000000\nCapPrm:\t000001ffffffffff\nCapEff:\t000001fffeffffff",
        true,
    );
    line(
        "CapBnd:\t000001ffffffffff\nCapAmb:\t0000000000000002\nNoNewPrivs:\t1\nSeccomp:\t2",
        true,
    );
    line("Seccomp_filters:\t3", true);
    line(&format!("Speculation_Store_Bypass:\t{store_bypass}"), true);
    line(
        &format!("SpeculationIndirectBranch:\t{indirect_branch}"),
        kernel.indirect_branch,
    );
    line(
        &format!("Cpus_allowed:\t{}\nCpus_allowed_list:\t{}", cpus.0, cpus.1),
        true,
    );
    line(
        "Mems_allowed:\t00000000,00000003\nMems_allowed_list:\t0-1",
        true,
    );
    line(
        "voluntary_ctxt_switches:\t150\nnonvoluntary_ctxt_switches:\t545",
        true,
    );
    line(
        &format!("x86_Thread_features:\t{features}\nx86_Thread_features_locked:\t"),
        kernel.shadow_stack,
    );
    text
}
