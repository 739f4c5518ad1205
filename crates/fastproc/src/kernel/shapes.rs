//! The kernel's structures, in every shape that the programs know. A kernel with none of these is refused: a program
//! leaves out what it does not find, and would show zeros.

use crate::{base::error::Error, kernel::KernelTypes, records::fields::Fields};

/// A value, and the members that hold it.
struct Shape {
    fields: Fields,
    value: &'static str,
    /// The kernel must have all members of one of these lists.
    known: &'static [&'static [&'static str]],
}

const SHAPES: &[Shape] = &[
    Shape {
        fields: Fields::MEMORY,
        value: "resident set",
        known: &[
            // From Linux 6.2 on.
            &[
                "mm_struct.rss_stat[].count",
                "mm_struct.rss_stat[].counters",
            ],
            &["mm_struct.rss_stat.count[].counter"],
        ],
    },
    Shape {
        fields: Fields::CPU,
        value: "CPU time",
        known: &[&[
            "task_struct.utime",
            "task_struct.stime",
            "task_struct.se.sum_exec_runtime",
            "signal_struct.utime",
            "signal_struct.stime",
            "signal_struct.sum_sched_runtime",
            "signal_struct.prev_cputime.utime",
            "signal_struct.prev_cputime.stime",
        ]],
    },
    Shape {
        fields: Fields::USERS,
        value: "users and groups",
        known: &[&[
            "task_struct.real_cred",
            "cred.uid.val",
            "cred.euid.val",
            "cred.suid.val",
            "cred.fsuid.val",
            "cred.gid.val",
            "cred.egid.val",
            "cred.sgid.val",
            "cred.fsgid.val",
        ]],
    },
    Shape {
        fields: Fields::CREDENTIALS,
        value: "capabilities",
        known: &[
            // From Linux 6.3 on.
            &[
                "cred.cap_inheritable.val",
                "cred.cap_permitted.val",
                "cred.cap_effective.val",
                "cred.cap_bset.val",
                "cred.cap_ambient.val",
            ],
            &[
                "cred.cap_inheritable.cap[]",
                "cred.cap_permitted.cap[]",
                "cred.cap_effective.cap[]",
                "cred.cap_bset.cap[]",
                "cred.cap_ambient.cap[]",
            ],
        ],
    },
    Shape {
        fields: Fields::CREDENTIALS,
        value: "supplementary groups",
        known: &[&[
            "task_struct.real_cred",
            "cred.group_info",
            "group_info.ngroups",
            "group_info.gid[].val",
        ]],
    },
    Shape {
        fields: Fields::IO,
        value: "I/O counters",
        known: &[&[
            "task_struct.ioac.rchar",
            "task_struct.ioac.read_bytes",
            "signal_struct.ioac.rchar",
            "signal_struct.ioac.read_bytes",
        ]],
    },
];

/// All members that [`check`] needs.
pub(crate) fn paths() -> Vec<&'static str> {
    let known = SHAPES.iter().flat_map(|shape| shape.known);
    known.flat_map(|paths| paths.iter().copied()).collect()
}

/// Refuses a kernel that keeps a value of these fields where no program looks for it.
pub(crate) fn check(types: &KernelTypes, fields: Fields) -> Result<(), Error> {
    let asked = SHAPES
        .iter()
        .filter(|shape| fields.intersects(shape.fields));
    for Shape { value, known, .. } in asked {
        let lacks = known
            .iter()
            .map(|paths| paths.iter().find(|path| !types.has_path(path)));
        // The newest comes first: an unknown kernel is newer than that.
        if let Some(&missing) = lacks
            .collect::<Option<Vec<_>>>()
            .and_then(|all| all.first().copied())
        {
            return Err(Error::UnknownKernel { value, missing });
        }
    }
    Ok(())
}
