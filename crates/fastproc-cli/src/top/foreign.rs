//! What users of top(1) and htop(1) type and this command does not have: each is told what to type instead.

use fastproc_columns::field;

/// It is an option of another program.
#[derive(Debug, thiserror::Error)]
#[error("{typed} of {program} is not an option here; {instead}")]
pub struct ForeignOption {
    typed: String,
    program: &'static str,
    instead: String,
}

/// Options that are understood, so that they can be refused in words that help.
#[derive(Debug, clap::Args)]
pub struct Foreign {
    #[arg(short = 'c', long, hide = true)]
    cmdline_toggle: bool,
    #[arg(short = 'i', long, hide = true)]
    idle_toggle: bool,
    #[arg(short = 'S', long, hide = true)]
    accum_time_toggle: bool,
    #[arg(short = 's', long, hide = true, alias = "sort-key", num_args = 0..=1, value_name = "KEY")]
    secure_mode: Option<Option<String>>,
    #[arg(short = 'E', long, hide = true, value_name = "SCALE")]
    scale_summary_mem: Option<String>,
    #[arg(short = 'e', long, hide = true, value_name = "SCALE")]
    scale_task_mem: Option<String>,
    #[arg(short = 'O', long, hide = true)]
    list_fields: bool,
    #[arg(long, hide = true, value_name = "FIELD", allow_hyphen_values = true)]
    sort_override: Option<String>,
    #[arg(short = 'U', long, hide = true, alias = "no-unicode", num_args = 0..=1, value_name = "USER")]
    filter_any_user: Option<Option<String>>,
    #[arg(short = 'w', long, hide = true, num_args = 0..=1, value_name = "COLUMNS")]
    width: Option<Option<String>>,
    #[arg(short = '1', long, hide = true)]
    single_cpu_toggle: bool,
    #[arg(short = 'C', long, hide = true, alias = "no-colour")]
    no_color: bool,
    #[arg(short = 'F', hide = true, value_name = "TEXT")]
    filter_text: Option<String>,
    #[arg(short = 'M', long, hide = true)]
    no_mouse: bool,
}

/// What top(1) calls a column, and the field here, where that is not found by the name itself.
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

impl Foreign {
    /// Refuses the first of them that was typed.
    pub fn refuse(self) -> Result<(), ForeignOption> {
        let quoted = |text: &str| text.replace(['\'', '"', '\\'], "");
        let (typed, program, instead) = if self.cmdline_toggle {
            let instead = "command lines are shown without it, and the key c shows names";
            ("-c", TOP, instead.into())
        } else if self.idle_toggle {
            let instead = "type --filter 'pcpu > 0', or press i";
            ("-i", TOP, instead.into())
        } else if self.accum_time_toggle {
            let instead = "the times of children are fields: -o pid,time,cutime,cstime,cmdline";
            ("-S", TOP, instead.into())
        } else if let Some(key) = self.secure_mode {
            match key {
                Some(key) => ("-s", HTOP, sort_hint(&key)),
                None => (
                    "-s",
                    TOP,
                    "without it nothing is done to a process before a question".into(),
                ),
            }
        } else if self.scale_summary_mem.is_some() {
            ("-E", TOP, UNITS.into())
        } else if self.scale_task_mem.is_some() {
            ("-e", TOP, UNITS.into())
        } else if self.list_fields {
            ("-O", TOP, "fastproc ps --help lists the fields".into())
        } else if let Some(field) = self.sort_override {
            ("--sort-override", TOP, sort_hint(&field))
        } else if let Some(user) = self.filter_any_user {
            match user {
                Some(user) => {
                    let user = quoted(&user);
                    let filter = format!("user == '{user}' || ruser == '{user}'");
                    let instead = format!("type -u {user}, or --filter \"{filter}\"");
                    ("-U", TOP, instead)
                }
                None => ("-U", HTOP, "LC_ALL=C draws ASCII only".into()),
            }
        } else if let Some(width) = self.width {
            let width = width.map_or_else(|| "512".into(), |width| quoted(&width));
            ("-w", TOP, format!("set COLUMNS={width} before the command"))
        } else if self.single_cpu_toggle {
            ("-1", TOP, "press 1".into())
        } else if self.no_color {
            ("-C", HTOP, "set NO_COLOR=1, or press z".into())
        } else if let Some(text) = self.filter_text {
            let instead = format!("type --filter \"cmdline =~ '{}'\"", quoted(&text));
            ("-F", HTOP, instead)
        } else if self.no_mouse {
            let instead = "terminals select text while Shift is held";
            ("-M", HTOP, instead.into())
        } else {
            return Ok(());
        };
        Err(ForeignOption {
            typed: typed.into(),
            program,
            instead,
        })
    }
}

const TOP: &str = "top(1)";
const HTOP: &str = "htop(1)";
const UNITS: &str = "every size has the unit that suits it";

/// Refuses what top(1) means by `-o`: the column to sort by. Here it is the columns to show.
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

/// Whether a name is one of top(1)'s and not of ours, which are in small letters.
pub fn is_of_top(name: &str) -> bool {
    name.starts_with(['%', '+', '-']) || name.chars().any(|c| c.is_ascii_uppercase())
}

/// How to sort by what top(1) or htop(1) calls so.
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
    struct Command {
        #[command(flatten)]
        foreign: Foreign,
    }

    fn refused(words: &[&str]) -> String {
        let command = Command::try_parse_from([&["top"], words].concat()).expect("understood");
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
            (&["-s"], "before a question"),
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
        ] {
            let text = refused(words);
            let of = text.starts_with(&words[0].to_string());
            assert!(of && text.contains(instead), "{words:?}: {text}");
        }
        let command = Command::try_parse_from(["top"]).expect("nothing");
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
