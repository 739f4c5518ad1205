//! The columns of ps(1): their names, headings, widths and fields.

use fastproc_columns::Row;

use super::Side::{self, Left, Right};

/// How a column writes the value of its field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writing {
    /// As in a table of fastproc; an unknown value is a dash.
    Plain,
    /// Name of a function, without leading underscores.
    Function,
    /// A number; an unknown value is zero.
    Number,
    /// Number of a user or a group, negative from 2^31 on.
    Id,
    /// KiB.
    Kibibytes,
    /// KiB of the text, from its first byte to its last.
    Text,
    /// KiB of the virtual size without the text.
    Data,
    /// Share of the lifetime, as `12.3`.
    Share,
    /// The same as a whole number, 99 at most.
    WholeShare,
    /// Share of the machine's memory, as `0.4`, rounded down.
    MemoryShare,
    /// Thousandths, 999 at most.
    Thousandths,
    /// Sixteen hexadecimal digits.
    Hexadecimal,
    /// CPU time: `[days-]hours:minutes:seconds`.
    Time,
    /// CPU time: minutes and seconds.
    Minutes,
    /// CPU time: seconds.
    Seconds,
    /// Time since the start: `[[days-]hours:]minutes:seconds`.
    Elapsed,
    /// The same as seconds.
    ElapsedSeconds,
    /// `Sun Mar  1 09:30:00 2026`.
    LongStart,
    /// `09:30:00`, or `Mar 01` if that is more than a day ago.
    Start,
    /// `09:30`, or `Mar01` if that was another day, or the year.
    ShortStart,
    /// `09:30`, or `Mar  1` if that is more than a day ago.
    BsdStart,
    /// Name of a program.
    Name,
    /// The first eight bytes of the name.
    ShortName,
    /// Command line, or the name in brackets.
    Arguments,
    /// Name of a user or a group, which may be shown as a number; a plus shows that it is cut.
    Owner(Owner),
    /// The same for the name of the user with this number.
    UserOf,
    /// The same for the name of the group with this number.
    GroupOf,
    /// The kernel's priority plus this.
    Priority(i64),
    /// This minus the kernel's priority.
    PriorityBelow(i64),
    /// The CPU that it runs on, or a star if it does not run.
    RunsOn,
    /// Paths of all its cgroups.
    Cgroups,
    /// Always a dash.
    Dash,
    /// Nothing: blanks between the codes of AIX.
    Blank,
}

/// Whose name a column shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    User,
    RealUser,
    Group,
    RealGroup,
}

impl Owner {
    /// Its number.
    pub fn id(self, row: &Row<'_>) -> u32 {
        let (real, effective) = match self {
            Self::User | Self::RealUser => row.users(),
            Self::Group | Self::RealGroup => row.groups(),
        }
        .unwrap_or_default();
        match self {
            Self::User | Self::Group => effective,
            Self::RealUser | Self::RealGroup => real,
        }
    }
}

/// A column of ps(1).
#[derive(Clone, Copy, Debug)]
pub struct Known {
    /// Its names, separated by blanks.
    pub names: &'static str,
    /// The heading.
    pub heading: &'static str,
    /// Its width; 0 means as wide as the largest process id.
    pub width: usize,
    /// The alignment of its values.
    pub side: Side,
    /// Its field.
    pub field: &'static str,
    /// How the value is written.
    pub writing: Writing,
}

const fn known(
    names: &'static str,
    heading: &'static str,
    (width, side): (usize, Side),
    field: &'static str,
    writing: Writing,
) -> Known {
    Known {
        names,
        heading,
        width,
        side,
        field,
        writing,
    }
}

const fn id(names: &'static str, heading: &'static str, field: &'static str) -> Known {
    known(names, heading, (0, Right), field, Writing::Number)
}

const fn number(
    names: &'static str,
    heading: &'static str,
    width: usize,
    field: &'static str,
) -> Known {
    known(names, heading, (width, Right), field, Writing::Number)
}

const fn owner(names: &'static str, heading: &'static str, field: &'static str) -> Known {
    known(names, heading, (5, Right), field, Writing::Id)
}

const fn size(
    names: &'static str,
    heading: &'static str,
    width: usize,
    field: &'static str,
) -> Known {
    known(names, heading, (width, Right), field, Writing::Kibibytes)
}

const fn set(names: &'static str, heading: &'static str, field: &'static str) -> Known {
    known(names, heading, (16, Right), field, Writing::Hexadecimal)
}

const fn named(
    names: &'static str,
    heading: &'static str,
    field: &'static str,
    writing: Writing,
) -> Known {
    known(names, heading, (8, Left), field, writing)
}

const fn namespace(names: &'static str, heading: &'static str) -> Known {
    known(names, heading, (10, Right), names, Writing::Plain)
}

const fn priority(names: &'static str, heading: &'static str, writing: Writing) -> Known {
    known(names, heading, (3, Right), "priority", writing)
}

/// All columns that both ps(1) and fastproc know.
#[rustfmt::skip]
pub const COLUMNS: &[Known] = &[
    known("%cpu pcpu", "%CPU", (4, Right), "pcpu", Writing::Share),
    known("%mem pmem", "%MEM", (4, Right), "pmem", Writing::MemoryShare),
    known("args command", "COMMAND", (27, Left), "cmdline", Writing::Arguments),
    known("cmd", "CMD", (27, Left), "cmdline", Writing::Arguments),
    known("atime cputime time", "TIME", (8, Right), "time", Writing::Time),
    known("bsdstart", "START", (6, Right), "start", Writing::BsdStart),
    known("bsdtime", "TIME", (6, Right), "time", Writing::Minutes),
    known("cputimes times", "TIME", (8, Right), "time", Writing::Seconds),
    known("c util", "C", (2, Right), "c", Writing::WholeShare),
    known("cp", "CP", (3, Right), "pcpu", Writing::Thousandths),
    known("cgroup", "CGROUP", (27, Left), "cgroup", Writing::Cgroups),
    known("class", "CLS", (3, Left), "cls", Writing::Plain),
    known("policy", "POL", (3, Left), "cls", Writing::Plain),
    known("cls", "CLS", (3, Right), "cls", Writing::Plain),
    known("comm ucomm", "COMMAND", (15, Left), "comm", Writing::Name),
    known("ucmd", "CMD", (15, Left), "comm", Writing::Name),
    known("fname", "COMMAND", (8, Left), "comm", Writing::ShortName),
    known("context", "CONTEXT", (31, Left), "label", Writing::Plain),
    known("label", "LABEL", (31, Left), "label", Writing::Plain),
    number("cpuid", "CPUID", 5, "processor"),
    number("lastcpu", "C", 3, "processor"),
    number("psr", "PSR", 3, "processor"),
    known("sgi_p", "P", (1, Left), "processor", Writing::RunsOn),
    known("drs m_drs", "DRS", (5, Right), "vsize", Writing::Data),
    known("dsiz", "DSIZ", (4, Right), "vsize", Writing::Data),
    known("elapsed etime", "ELAPSED", (11, Right), "etime", Writing::Elapsed),
    known("etimes", "ELAPSED", (7, Right), "etime", Writing::ElapsedSeconds),
    set("eip", "EIP", "kstkeip"),
    set("esp", "ESP", "kstkesp"),
    set("stackp start_stack", "STACKP", "startstack"),
    known("exe", "EXE", (27, Left), "exe", Writing::Plain),
    known("f flag flags", "F", (1, Left), "f", Writing::Number),
    owner("egid", "EGID", "egid"),
    owner("gid", "GID", "egid"),
    owner("rgid", "RGID", "rgid"),
    owner("sgid", "SGID", "sgid"),
    owner("svgid", "SVGID", "sgid"),
    owner("fgid", "FGID", "fsgid"),
    owner("fsgid", "FSGID", "fsgid"),
    owner("euid", "EUID", "euid"),
    owner("uid", "UID", "euid"),
    owner("ruid", "RUID", "ruid"),
    owner("suid", "SUID", "suid"),
    owner("svuid", "SVUID", "suid"),
    owner("fuid", "FUID", "fsuid"),
    owner("fsuid", "FSUID", "fsuid"),
    named("egroup", "EGROUP", "group", Writing::Owner(Owner::Group)),
    named("group", "GROUP", "group", Writing::Owner(Owner::Group)),
    named("rgroup", "RGROUP", "rgroup", Writing::Owner(Owner::RealGroup)),
    named("euser", "EUSER", "user", Writing::Owner(Owner::User)),
    named("user uname", "USER", "user", Writing::Owner(Owner::User)),
    named("uid_hack", "UID", "user", Writing::Owner(Owner::User)),
    named("ruser", "RUSER", "ruser", Writing::Owner(Owner::RealUser)),
    named("suser", "SUSER", "suid", Writing::UserOf),
    named("svuser", "SVUSER", "suid", Writing::UserOf),
    named("fuser", "FUSER", "fsuid", Writing::UserOf),
    named("fsuser", "FSUSER", "fsuid", Writing::UserOf),
    named("sgroup", "SGROUP", "sgid", Writing::GroupOf),
    named("svgroup", "SVGROUP", "sgid", Writing::GroupOf),
    named("fgroup", "FGROUP", "fsgid", Writing::GroupOf),
    named("fsgroup", "FSGROUP", "fsgid", Writing::GroupOf),
    known("supgid", "SUPGID", (20, Left), "groups", Writing::Plain),
    namespace("cgroupns", "CGROUPNS"),
    namespace("ipcns", "IPCNS"),
    namespace("mntns", "MNTNS"),
    namespace("netns", "NETNS"),
    namespace("pidns", "PIDNS"),
    namespace("timens", "TIMENS"),
    namespace("userns", "USERNS"),
    namespace("utsns", "UTSNS"),
    known("lstart", "STARTED", (24, Right), "lstart", Writing::LongStart),
    known("start", "STARTED", (8, Right), "start", Writing::Start),
    known("start_time", "START", (5, Right), "start", Writing::ShortStart),
    known("stime", "STIME", (5, Right), "start", Writing::ShortStart),
    id("pid", "PID", "pid"),
    id("tgid", "TGID", "pid"),
    id("ppid", "PPID", "ppid"),
    id("pgid", "PGID", "pgrp"),
    id("pgrp", "PGRP", "pgrp"),
    id("sid", "SID", "session"),
    id("sess session", "SESS", "session"),
    id("tpgid", "TPGID", "tpgid"),
    id("lwp", "LWP", "tid"),
    id("spid", "SPID", "tid"),
    id("tid", "TID", "tid"),
    number("maj_flt", "MAJFL", 6, "majflt"),
    number("majflt", "MAJFLT", 6, "majflt"),
    number("pagein", "PAGEIN", 6, "majflt"),
    number("min_flt", "MINFL", 6, "minflt"),
    number("minflt", "MINFLT", 6, "minflt"),
    known("ni nice", "NI", (3, Right), "nice", Writing::Plain),
    known("rtprio", "RTPRIO", (6, Right), "rt_priority", Writing::Plain),
    number("sched", "SCH", 3, "policy"),
    priority("intpri opri", "PRI", Writing::Priority(60)),
    priority("pri", "PRI", Writing::PriorityBelow(39)),
    priority("pri_api", "API", Writing::PriorityBelow(-1)),
    priority("pri_bar", "BAR", Writing::Priority(1)),
    priority("pri_baz", "BAZ", Writing::Priority(100)),
    priority("pri_foo", "FOO", Writing::Priority(-20)),
    priority("priority", "PRI", Writing::Priority(0)),
    number("nlwp", "NLWP", 4, "num_threads"),
    number("thcount", "THCNT", 5, "num_threads"),
    number("oom", "OOM", 4, "oom_score"),
    number("oomadj", "OOMADJ", 5, "oom_score_adj"),
    set("blocked sig_block sigmask", "BLOCKED", "sigblk"),
    set("caught sigcatch", "CAUGHT", "sigcgt"),
    set("sig_catch", "CATCHED", "sigcgt"),
    set("ignored sig_ignore sigignore", "IGNORED", "sigign"),
    set("pending sig", "PENDING", "shdpnd"),
    set("sig_pend", "SIGNAL", "shdpnd"),
    set("tsig", "PENDING", "sigpnd"),
    size("pss", "PSS", 5, "pss"),
    size("uss", "USS", 5, "uss"),
    size("rss rssize", "RSS", 5, "rss"),
    size("rsz", "RSZ", 5, "rss"),
    known("sgi_rss", "RSS", (4, Left), "rss", Writing::Kibibytes),
    size("size", "SIZE", 5, "size"),
    known("trs", "TRS", (4, Right), "trs", Writing::Text),
    known("m_trs", "TRS", (5, Right), "trs", Writing::Text),
    known("tsiz", "TSIZ", (4, Right), "trs", Writing::Text),
    size("vsz vsize", "VSZ", 6, "vsize"),
    number("sz", "SZ", 5, "sz"),
    number("rbytes", "RBYTES", 5, "read_bytes"),
    number("wbytes", "WBYTES", 5, "write_bytes"),
    number("wcbytes", "WCBYTES", 5, "cancelled_write_bytes"),
    number("rchars", "RCHARS", 5, "rchar"),
    number("wchars", "WCHARS", 5, "wchar"),
    number("rops", "ROPS", 5, "syscr"),
    number("wops", "WOPS", 5, "syscw"),
    known("s state", "S", (1, Left), "state", Writing::Plain),
    known("stat", "STAT", (4, Left), "stat", Writing::Plain),
    known("slice", "SLICE", (31, Left), "slice", Writing::Plain),
    known("unit", "UNIT", (31, Left), "unit", Writing::Plain),
    known("machine", "MACHINE", (31, Left), "machine", Writing::Plain),
    known("tname longtname tty8", "TTY", (8, Left), "tty", Writing::Plain),
    known("tt tty", "TT", (8, Left), "tty", Writing::Plain),
    known("wchan wname", "WCHAN", (6, Left), "wchan", Writing::Function),
    // Only for the sets of columns: a dash for values that kernels no longer provide.
    known("address", "ADDR", (1, Left), "pid", Writing::Dash),
    known("timeout tmout", "TMOUT", (5, Right), "pid", Writing::Dash),
    known("alarm", "ALARM", (5, Right), "pid", Writing::Dash),
];

/// The codes of AIX's ps, without their percent sign, and their columns.
pub const CODES: &[(char, &str)] = &[
    ('C', "pcpu"),
    ('G', "group"),
    ('P', "ppid"),
    ('U', "user"),
    ('a', "args"),
    ('c', "comm"),
    ('g', "rgroup"),
    ('n', "nice"),
    ('p', "pid"),
    ('r', "pgid"),
    ('t', "etime"),
    ('u', "ruser"),
    ('x', "time"),
    ('y', "tname"),
    ('z', "vsz"),
];

/// Columns of ps(1) for which fastproc has no field.
pub const MISSING: &[&str] = &[
    "ag_id", "ag_nice", "cgname", "cuc", "cuu", "docker", "environ", "fds", "htprv", "htshr",
    "lim", "lsession", "luid", "lxc", "m_size", "numa", "ouid", "seat", "supgrp", "trss", "tty4",
    "uunit", "zone",
];
