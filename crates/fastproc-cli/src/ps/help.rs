//! The help of `fastproc ps` beyond its options.

use std::ffi::OsStr;

use clap::{
    Arg, Command, Error,
    builder::{PossibleValue, TypedValueParser},
};
use fastproc_columns::FIELDS;

use super::form::Column;

/// For `-h`.
pub const SHORT: &str = "\
Examples:
  fastproc ps --top 20
  fastproc ps --interval 1 --top 20 --fields pid,pcpu,read/s,write/s,cmdline
  fastproc ps --filter 'rss > 100M && user != root' --sort -rss
  fastproc ps aux

Fields, filters, forms of output and the exit status: see --help.";

const LONG: &str = r#"Fields:
{fields}
  Fields marked * are those of the thread where a row is about one (--threads); the others are
  those of its process. Fields marked ! are shown by the kernel only to those who could trace the
  process; they are not known to anybody else.

Filters:
  A filter compares fields, and joins comparisons with &&, ||, ! and parentheses (or with and, or,
  not). What is compared with a value that is not known is not known either, and such rows are not
  shown. A rate can be compared only with --interval.
    == != < <= > >=  values, and texts byte by byte
    =~ !~            a text matches a regular expression, or does not
  A value is written as any column shows it:
    sizes        in bytes, or with K, M, G, T, P (of 1024 each): rss > 100M, rss == 13.6K
    times        etime > 1h30m, utime > 250ms, etime > 01:30:00, etime < 2-12:00:00;
                 bare nanoseconds by the name of the column in csv and JSON: utime_ns > 1000
    dates        lstart >= '2026-03-01 09:30', start > 09:30, lstart == 2026-03-01 (all that day)
    sets, masks  capeff == 000001ffffffffff, umask == 0022; flags == 0x400100
    policies     policy == FF, policy != 0
  < and > compare exact values; == holds also for every value that a column shows so.
  A text with spaces or operators in it stands in quotes, with \\ \' \" \n \t \r \0 \xHH and
  \u{…} as escapes. A field that is true or false may stand alone:
    rss > 100M && !(user == root || kthread)
    state == D and etime > 10m
    cmdline =~ '^python3? .*worker'

As in ps(1):
  Options and words of ps(1) mean what they mean there, and the output is that of ps(1): its
  headings, sizes in KiB, widths and order; and without -e, ax or a list one's own processes on
  this terminal. So ps aux, -ef, axjf, -eLf, -eo pid=,rss,args, -p PID u, -O rss, -H and --forest.
  What names columns - words, -o, -O, -f, -F, -l, -j, -c, -P, -M, -L, -T, -H, --forest - does so in
  any case; what only selects or sorts does where no option is given that ps(1) does not have:
  --top, --filter, --interval, --threads and --tree look at every process, in fastproc's own table.
  --fields always gives that table; JSON and csv always have fastproc's fields.
  -o also takes fields that ps(1) does not have, each as wide as need be.

Formats:
  Numbers in a table are rounded, and dates are in the time zone TZ. In JSON and csv numbers are
  exact: times are nanoseconds (_ns), sizes bytes (_bytes), shares hundredths of a whole. Sets of
  signals and capabilities are 16 hexadecimal digits, as in proc(5). What is not known is null in
  JSON, nothing in csv, and - in a table.
  ndjson and csv have the time of the snapshot (boottime_ns) in front of each row with --interval.

  Names, arguments and paths can have any bytes in them. In JSON they are strings; those that are
  not UTF-8 are objects {"escaped": "…"}. Such an escaped text, and every text in a table or csv,
  has \\ for a backslash, \n \t \r \0 \u{…} for characters that cannot be printed or could
  change how the rest is shown, and \xHH for bytes that are not UTF-8. The arguments of a command
  are an array in JSON. In csv a space stands between them, and \x20 for a space in one; with
  --no-formulas no text begins with one of = + - @, which a spreadsheet would compute with. A table
  isolates names that are written from right to left (U+2068 and U+2069 around them).

Examples:
  fastproc ps --top 20
      The twenty processes that used most CPU time over their lives
  fastproc ps --interval 1 --top 20 --fields pid,pcpu,read/s,write/s,cmdline
      What uses CPU and disks now, every second
  fastproc ps --filter 'rss > 100M && user != root' --sort -rss --fields pid,user,rss,vmswap,cmdline
      The large processes of other users
  fastproc ps --threads --filter 'comm == nginx' --fields pid,tid,processor,cls,nvcsw,comm
      The threads of a service
  fastproc ps --tree -u www-data
      The processes of a user, children below their parents
  fastproc ps aux --sort -rss,pid | awk '$6 > 100000'
      As people are used to
  fastproc ps --json --fields pid,utime,rss,cgroup | jq '.processes[] | select(.pid == 1)'
      For programs

Exit status:
  0  something was shown
  1  nothing was: no process met the filter
  2  the command line is wrong, or the processes could not be read"#;

/// Where the explanation of a field starts, and the longest line.
const INDENT: usize = 28;
const WIDTH: usize = 98;

/// For `--help`.
pub fn long() -> String {
    let mut fields = String::new();
    for field in FIELDS {
        let marks = [(field.of_thread, '*'), (field.is_guarded(), '!')];
        let marks: String = marks
            .iter()
            .filter(|(is, _)| *is)
            .map(|&(_, mark)| mark)
            .collect();
        let mut line = format!("  {:<22} {marks:<2}", field.name);
        let aliases = field.aliases.join(", ");
        let also = if aliases.is_empty() {
            String::new()
        } else {
            format!(" (also {aliases})")
        };
        for word in format!("{}{also}", field.help).split(' ') {
            if line.len() + 1 + word.len() > WIDTH {
                fields += &line;
                fields.push('\n');
                line = " ".repeat(INDENT - 1);
            }
            line.push(' ');
            line += word;
        }
        fields += &line;
        fields.push('\n');
    }
    LONG.replace("{fields}\n", &fields)
}

/// Parses the name of a field, and tells shells all names to complete.
#[derive(Clone, Debug)]
pub struct FieldParser;

impl TypedValueParser for FieldParser {
    type Value = Column;

    fn parse_ref(
        &self,
        command: &Command,
        arg: Option<&Arg>,
        value: &OsStr,
    ) -> Result<Column, Error> {
        let parse = |name: &str| name.parse::<Column>();
        parse.parse_ref(command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        let value =
            |field: &fastproc_columns::Field| PossibleValue::new(field.name).help(field.help);
        Some(Box::new(FIELDS.iter().map(value)))
    }
}
