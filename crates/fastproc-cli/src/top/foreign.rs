//! Options of top(1) and htop(1) that this command lacks: the error says what to type instead.

use std::ops::RangeInclusive;

use clap::{Arg, ArgAction, ArgMatches, Command, FromArgMatches, parser::ValueSource};
use fastproc_columns::field;

/// An option of another program was given.
#[derive(Clone, Debug, thiserror::Error)]
#[error("fastproc top does not have {typed} of {program}; {instead}")]
pub struct ForeignOption {
    typed: String,
    program: &'static str,
    instead: String,
}

/// Options that are parsed only to be refused with a helpful message.
#[derive(Debug, Default)]
pub struct Foreign(Option<ForeignOption>);

/// An option of another program.
struct Known {
    short: Option<char>,
    long: &'static str,
    /// The number of its values.
    values: RangeInclusive<usize>,
    program: &'static str,
    /// What to type instead, given its value.
    instead: fn(&str) -> String,
}

const fn flag(short: char, long: &'static str, instead: fn(&str) -> String) -> Known {
    Known {
        short: Some(short),
        long,
        values: 0..=0,
        program: TOP,
        instead,
    }
}

static OPTIONS: [Known; 16] = [
    flag('c', "cmdline-toggle", |_| {
        "command lines are shown by default, and the key c shows names".into()
    }),
    flag('i', "idle-toggle", |_| {
        "type --filter 'pcpu > 0', or press i".into()
    }),
    flag('S', "accum-time-toggle", |_| {
        "show the times of children as columns: -o pid,time,cutime,cstime,cmdline".into()
    }),
    Known {
        values: 0..=1,
        ..flag('s', "secure-mode", |key| match key {
            "" => "a question always comes before a process is changed".into(),
            key => sort_hint(key),
        })
    },
    Known {
        values: 1..=1,
        ..flag('E', "scale-summary-mem", |_| UNITS.into())
    },
    Known {
        values: 1..=1,
        ..flag('e', "scale-task-mem", |_| UNITS.into())
    },
    flag('O', "list-fields", |_| {
        "fastproc ps --help lists the fields".into()
    }),
    Known {
        values: 0..=1,
        ..flag('U', "filter-any-user", |user| match user {
            "" => "LC_ALL=C draws ASCII only".into(),
            user => {
                format!("type -u {user}, or --filter \"user == '{user}' || ruser == '{user}'\"")
            }
        })
    },
    Known {
        values: 0..=1,
        ..flag('w', "width", |width| {
            let width = if width.is_empty() { "512" } else { width };
            format!("set COLUMNS={width} before the command")
        })
    },
    flag('1', "single-cpu-toggle", |_| "press 1".into()),
    Known {
        program: HTOP,
        ..flag('C', "no-color", |_| "set NO_COLOR=1, or press z".into())
    },
    Known {
        values: 1..=1,
        program: HTOP,
        ..flag('F', "filter-text", |text| {
            format!("type --filter \"cmdline =~ '{text}'\"")
        })
    },
    Known {
        program: HTOP,
        ..flag('M', "no-mouse", |_| {
            "terminals select text while Shift is held".into()
        })
    },
    Known {
        short: None,
        values: 1..=1,
        program: EARLIER,
        ..flag(' ', "record", |_| {
            "fastproc record FOLDER records, and fastproc top --history FOLDER shows it".into()
        })
    },
    Known {
        short: None,
        values: 1..=1,
        program: EARLIER,
        ..flag(' ', "replay", |_| {
            "fastproc top --history FOLDER shows what fastproc record FOLDER has recorded".into()
        })
    },
    // refuse_order() handles its short form.
    Known {
        short: None,
        values: 1..=1,
        ..flag('o', "sort-override", sort_hint)
    },
];

impl Known {
    fn arg(&self) -> Arg {
        let arg = Arg::new(self.long)
            .long(self.long)
            .short(self.short)
            .hide(true);
        if *self.values.end() == 0 {
            arg.action(ArgAction::SetTrue)
        } else {
            arg.num_args(self.values.clone())
                .allow_hyphen_values(*self.values.start() > 0)
        }
    }

    fn typed_in(&self, matches: &ArgMatches) -> Option<ForeignOption> {
        if matches.value_source(self.long) != Some(ValueSource::CommandLine) {
            return None;
        }
        let value = match self.values.end() {
            0 => None,
            _ => matches.get_one::<String>(self.long),
        };
        // The hint shows the value in quotes.
        let value = value.map_or(String::new(), |value| value.replace(['\'', '"', '\\'], ""));
        Some(ForeignOption {
            typed: match self.short {
                None => format!("--{}", self.long),
                Some(short) => format!("-{short}"),
            },
            program: self.program,
            instead: (self.instead)(&value),
        })
    }
}

impl FromArgMatches for Foreign {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let typed = OPTIONS.iter().find_map(|known| known.typed_in(matches));
        Ok(Self(typed))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl clap::Args for Foreign {
    fn augment_args(command: Command) -> Command {
        command.args(OPTIONS.iter().map(Known::arg))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl Foreign {
    /// Returns the error, if one of these options was given.
    pub fn refuse(&self) -> Result<(), ForeignOption> {
        self.0.clone().map_or(Ok(()), Err)
    }
}

/// Names of columns in top(1), and the field here, if it cannot be found by that name.
const COLUMNS: [(&str, &str); 8] = [
    ("TIME+", "time"),
    ("RES", "rss"),
    ("VIRT", "vsize"),
    ("COMMAND", "cmdline"),
    ("S", "state"),
    ("PR", "priority"),
    ("PERCENT_CPU", "pcpu"),
    ("PERCENT_MEM", "pmem"),
];

const TOP: &str = "top(1)";
const HTOP: &str = "htop(1)";
const EARLIER: &str = "earlier versions";
const UNITS: &str = "each size has a suitable unit";

/// Refuses `-o` with the meaning of top(1), the column to sort by. Here it names the columns to show.
pub fn refuse_order(fields: &[String]) -> Result<(), ForeignOption> {
    match fields {
        [one] if is_of_top(one) => Err(ForeignOption {
            typed: format!("-o {}", one.escape_debug()),
            program: TOP,
            instead: format!("{}; -o names the columns to show", sort_hint(one)),
        }),
        _ => Ok(()),
    }
}

/// Whether a name is one of top(1) and not ours; ours are in small letters.
pub fn is_of_top(name: &str) -> bool {
    name.starts_with(['%', '+', '-']) || name.chars().any(|c| c.is_ascii_uppercase())
}

/// How to sort by a column with this name of top(1) or htop(1).
fn sort_hint(name: &str) -> String {
    let plain = name.trim_start_matches(['+', '-']);
    let known = COLUMNS.iter().find(|(top, _)| *top == plain);
    let field = known.map_or(plain, |(_, field)| field);
    match field::find(field) {
        Ok(field) => {
            let sign = if field.unit.is_right_aligned() && !name.starts_with('-') {
                "-"
            } else {
                ""
            };
            format!("type --sort {sign}{}", field.name)
        }
        Err(error) => format!("type --sort -pcpu ({error})"),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Top {
        #[command(flatten)]
        foreign: Foreign,
    }

    fn refused(words: &[&str]) -> String {
        let command = Top::try_parse_from([&["top"], words].concat()).expect("understood");
        command
            .foreign
            .refuse()
            .expect_err("it is refused")
            .to_string()
    }

    #[test]
    fn every_option_of_top_is_refused_with_what_to_type_instead() {
        for (words, instead) in [
            (&["-c"][..], "command lines are shown"),
            (&["-i"], "--filter 'pcpu > 0'"),
            (&["-S"], "cutime"),
            (&["-s"], "a question"),
            (&["-s", "PERCENT_CPU"], "--sort -pcpu"),
            (&["-E", "m"], UNITS),
            (&["-e", "k"], UNITS),
            (&["-O"], "fastproc ps --help"),
            (&["--sort-override", "+%MEM"], "--sort -pmem"),
            (&["-U", "root"], "-u root"),
            (&["-U"], "LC_ALL=C"),
            (&["-w", "200"], "COLUMNS=200"),
            (&["-w"], "COLUMNS=512"),
            (&["-1"], "press 1"),
            (&["-C"], "NO_COLOR"),
            (&["-F", "nginx"], "cmdline =~ 'nginx'"),
            (&["-M"], "Shift"),
            (&["--record", "file"], "fastproc record FOLDER"),
            (&["--replay", "file"], "top --history FOLDER"),
        ] {
            let text = refused(words);
            let of = text.contains(&format!(" {} of ", words[0]));
            assert!(of && text.contains(instead), "{words:?}: {text}");
        }
        let command = Top::try_parse_from(["top"]).expect("nothing");
        assert!(command.foreign.refuse().is_ok());
    }

    #[test]
    fn an_order_of_top_is_told_from_columns() {
        let refused = |name: &str| {
            let refused = refuse_order(&[name.into()]);
            refused.err().map(|error| error.to_string())
        };
        for (name, sort) in [
            ("%CPU", "--sort -pcpu"),
            ("RES", "--sort -rss"),
            ("TIME+", "--sort -time"),
            ("-PID", "--sort pid"),
            ("COMMAND", "--sort cmdline"),
        ] {
            let text = refused(name).expect(name);
            assert!(text.contains(sort), "{text}");
        }
        assert_eq!(refused("pid"), None);
        assert!(refuse_order(&["PID".into(), "RSS".into()]).is_ok());
    }
}
