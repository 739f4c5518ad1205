//! The default columns of ps(1).

use super::{Column, parse};

/// The chosen set of columns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Set {
    /// Options with a dash: those of `ps -e`, changed by `-f`, `-l` and `-j`.
    #[default]
    Dashed,
    /// Words without a dash: `ps ax`.
    Words,
    /// `u`
    User,
    /// `j`
    Jobs,
    /// `l`
    Long,
    /// `s`
    Signals,
    /// `v`
    Memory,
    /// `X`
    Registers,
}

/// A set of columns, changed by letters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools, reason = "one for each letter")]
pub struct Shape {
    /// The set.
    pub set: Set,
    /// `-f`
    pub full: bool,
    /// `-F`
    pub extra_full: bool,
    /// `-l`
    pub long: bool,
    /// `-j`
    pub jobs: bool,
    /// `-y`: memory instead of addresses
    pub no_address: bool,
    /// `-c`: class and priority of scheduling
    pub class: bool,
    /// `-P`: the CPU
    pub processor: bool,
    /// `-M`, `Z`: the label of a security module
    pub label: bool,
    /// `--context`: the label of a security module before the command line
    pub context: bool,
    /// `-L`: ids of threads
    pub lwp: bool,
    /// `-T`: ids of threads
    pub spid: bool,
    /// `c`: names instead of command lines
    pub names: bool,
    /// `n`: numbers instead of names of users
    pub numbers: bool,
}

impl Shape {
    /// Whether an option with a dash names a set.
    pub const fn is_dashed(&self) -> bool {
        self.full || self.extra_full || self.long || self.jobs || self.context
    }

    /// The columns.
    pub fn columns(&self) -> Vec<Column> {
        let set = if self.is_dashed() || self.lwp || self.spid || self.class || self.processor {
            Set::Dashed
        } else {
            self.set
        };
        let mut names: String = match set {
            _ if self.context => {
                let of = |is: bool, names: &'static str| if is { names } else { "" };
                let [jobs, lwp, spid] = [
                    of(self.jobs, "pgid sid "),
                    of(self.lwp, "lwp "),
                    of(self.spid, "spid "),
                ];
                format!("pid {spid}{lwp}{jobs}context args")
            }
            Set::Dashed => self.dashed(),
            Set::Words => "pid tname stat bsdtime args".into(),
            Set::User => "user pid %cpu %mem vsz rss tname stat start_time bsdtime args".into(),
            Set::Jobs => "ppid pid pgid sid tname tpgid stat uid bsdtime args".into(),
            Set::Long => "f uid pid ppid priority ni vsz rss wchan stat tname bsdtime args".into(),
            Set::Signals => "uid pid pending blocked ignored caught stat tname bsdtime args".into(),
            Set::Memory => "pid tname stat bsdtime maj_flt m_trs drs rss %mem args".into(),
            Set::Registers => "pid stackp esp eip timeout alarm stat tname bsdtime args".into(),
        };
        if self.label {
            names = format!("label {names}");
        }
        let mut columns = parse(&names).expect("a test has parsed all of them");
        if set != Set::Dashed {
            for column in columns.iter_mut().filter(|column| column.heading == "CMD") {
                "COMMAND".clone_into(&mut column.heading);
            }
        }
        columns
    }

    /// The columns of options with a dash, in the order of ps(1). A word beside them changes the last ones.
    fn dashed(&self) -> String {
        let beside_words = self.set != Set::Dashed;
        let full = self.full || self.extra_full;
        let threads = self.lwp && full;
        let of = |is: bool, names: &'static str| if is { names } else { "" };
        let columns = [
            of(self.long && !self.no_address, "f"),
            of(self.long, "s"),
            of(full, "uid_hack"),
            of(self.long && !full, "uid"),
            "pid",
            of(self.spid, "spid"),
            of(full || self.long, "ppid"),
            of(self.jobs, "pgid sid"),
            of(self.lwp, "lwp"),
            of(self.processor, "psr"),
            if self.class {
                "class pri"
            } else {
                match (full, self.long) {
                    (_, true) => "c opri ni",
                    (true, false) => "c",
                    (false, false) => "",
                }
            },
            of(threads, "nlwp"),
            of(self.long && !self.no_address, "address"),
            of(self.long && self.no_address, "rss"),
            of(self.long, "sz wchan"),
            of(self.extra_full && !self.long, "sz"),
            of(self.extra_full && !(self.long && self.no_address), "rss"),
            of(self.extra_full && !self.processor, "psr"),
            of(full, "stime"),
            "tname",
            of(beside_words && !self.long, "stat"),
            if beside_words { "bsdtime" } else { "time" },
            match (beside_words, full, self.long) {
                (true, false, false) => "args",
                (false, false, _) => "ucmd",
                _ => "cmd",
            },
        ];
        columns
            .join(" ")
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ")
    }
}
