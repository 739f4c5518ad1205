//! The help of `fastproc ps` beyond its options.

use clap::builder::{StringValueParser, TypedValueParser};
use fastproc_columns::{FIELDS, Field, Processes};

use crate::{
    completed::{Completed, completed, lines},
    format::Column,
};

/// Which arguments choose whose output.
const RULE: &str =
    "  ps(1)'s     a word without a dash, as in aux; -o -O -f -F -l -j -y -c -M -L -T -H --forest,
              and -P -w -n --cols --context
  fastproc's  --fields --top --filter --search --tree, and neither of both
  either      selections (-e -p -C -u -t --ppid …), --sort, --interval, --json, --format, …
";

const SHORT: &str = "\
Examples:
  fastproc ps --top 20
  fastproc ps --interval 1 --top 20 --fields pid,pcpu,read/s,write/s,cmdline
  fastproc ps --filter 'rss > 100M && user != root' --sort -rss
  fastproc ps aux

Whose output it is; arguments of both cannot be combined:
{rule}
See --help for fields, filters, output formats and the exit status.";

const LONG: &str = r#"Fields:
{fields}
  With --threads, fields marked * are those of the thread; the others are those of its process.
  Fields marked ! are known only if you may trace the process, because the kernel shows them to
  nobody else.

Filters:
  A filter compares fields with values. Comparisons are combined with &&, || and ! (or and, or,
  not) and parentheses. A comparison with an unknown value is neither true nor false, and its row is
  not shown. Rates can be compared only with --interval. Of a command line that is cut, the missing
  end might decide a comparison; then the row is shown.
    == != < <= > >=  compare numbers, or texts byte by byte
    =~ !~            test whether a text matches a regular expression, or does not
  Write a value as a column shows it:
    sizes        in bytes, or with K, M, G, T, P (of 1024 each): rss > 100M, rss == 13.6K
    times        in seconds, or etime > 1h30m, utime > 250ms, etime > 01:30:00, etime < 2-12:00:00;
                 nanoseconds, with the name that the field has in CSV and JSON: utime_ns > 1000
    dates        lstart >= '2026-03-01 09:30', start > 09:30, lstart == 2026-03-01 (the whole day)
    sets, masks  capeff == 000001ffffffffff, umask == 0022; flags == 0x400100
    policies     policy == FF, policy != 0
    states       R running, S or I sleeping, D on disk, T stopped, Z zombie: state == Z
  < and > compare exact values; == also matches every value that a column would show like this.
  Quote a text that has spaces or operators in it; in quotes, \\ \' \" \n \t \r \0 \xHH and \u{…} are
  escapes. A field that is true or false needs no comparison:
    rss > 100M && !(user == root || kthread)
    state == D and etime > 10m
    cmdline =~ '^python3? .*worker'

As in ps(1):
  The options of ps(1) work as in ps(1), with and without a dash: ps aux, -ef, axjf, -eLf,
  -eo pid=,rss,args, -p PID u, -O rss, -H, --forest. Its output is the same: headings, sizes in KiB,
  widths and order, and without -e, ax or a selection your processes on this terminal.

  The arguments choose whose output it is; those of both cannot be combined:
{rule}
  JSON and CSV of the output of ps(1) have the same rows, and the fields with these names. -o also
  takes fields that ps(1) does not have, each as wide as necessary.

  These differ from ps(1): the variables PS_FORMAT, PS_PERSONALITY, CMD_ENV and the like have no
  effect. With -q a process that the list names twice is shown once. -s and --ppid accept
  a 0, which ps(1) refuses. For options and words that fastproc lacks, an error says what to type.

Looking back:
  --at shows the processes that the last walk of fastproc record before that time saw. --from, with
  --to or up to the last walk, shows what each process did between the two, the ended ones too: times,
  faults and bytes are sums, shares and rates are over the whole time; all else is as it was at the
  end. A process that ended is in state X. Filters, fields, orders, trees and formats are the same. A
  field that the history does not keep is refused; a time of which nothing was recorded, too. Damage
  and gaps are named on standard error.

Formats:
  A table rounds numbers and shows dates in the time zone TZ. It pads a column to at most 256
  columns; a longer value moves the rest of its row. JSON and CSV have exact numbers: times in
  nanoseconds (_ns), sizes in bytes (_bytes), shares in percent. Sets of signals and capabilities are
  16 hexadecimal digits, as in proc(5). An unknown value is null in JSON, empty in CSV, and - in a
  table. With --interval, each row of NDJSON and CSV begins with the time of the snapshot
  (boottime_ns).

  Names, arguments and paths can contain any byte. In JSON they are strings; a text that is not UTF-8
  is an object {"escaped": "…"}. An escaped text, and every text in a table or CSV, has \\ for a
  backslash, \n \t \r \0 \u{…} for characters that cannot be printed or that could change how the
  rest is displayed, and \xHH for bytes that are not UTF-8. The arguments of a command are an array
  in JSON; in CSV they are separated by spaces, and a space within an argument is \x20. A command
  line is cut after 128 KiB, that of an exited process after 4 KiB or less (see fastproc exits): a
  table shows … at its end, JSON has "cmdline_cut":true after it, and CSV marks it only in the column
  cmdline_cut, if you ask for that. With --no-formulas, no text in CSV begins with = + - or @, so
  that a spreadsheet does not take it for a formula. A table puts U+2068 and U+2069 around names that
  are written from right to left.

Examples:
  fastproc ps --top 20
      Show the twenty processes with the largest CPU share over their lifetime
  fastproc ps --interval 1 --top 20 --fields pid,pcpu,read/s,write/s,cmdline
      Show every second what uses CPUs and disks
  fastproc ps --filter 'rss > 100M && user != root' --sort -rss --fields pid,user,rss,vmswap,cmdline
      Show the large processes of users other than root
  fastproc ps --threads --filter 'comm == nginx' --fields pid,tid,processor,cls,nvcsw,comm
      Show the threads of a service
  fastproc ps --search nginx
      Show the processes that have nginx in their name or command line
  fastproc ps --tree --filter 'unit == nginx.service'
      Show the processes of a service as a tree
  fastproc ps --filter "exe =~ ' [(]deleted[)]$'" --fields pid,user,exe
      Show what runs a program that was deleted or replaced, as by an update
  fastproc ps --format csv --fields pid,user,rss,time,cmdline > processes.csv
      Write CSV, for a data frame or a spreadsheet
  fastproc ps --at 'yesterday 03:12' --sort -rss
      Show who had the memory then, if fastproc record keeps a history
  fastproc ps --from 03:00 --to 03:20 --sort -time
      Show who used CPU time between the two
  fastproc ps aux --sort -rss,pid | awk '$6 > 100000'
      Use the options and columns of ps(1)
  fastproc ps --json --fields pid,utime,rss,cgroup | jq '.processes[] | select(.pid == 1)'
      Write JSON for another program

Exit status:
  0  at least one row was shown
  1  no process matched
  2  the command line is invalid, or the processes could not be read"#;

/// The text for `-h`.
pub fn short() -> String {
    SHORT.replace("{rule}", RULE)
}

/// The text for `--help`.
pub fn long() -> String {
    let marks = |field: &Field| {
        let marks = [(field.of_thread, '*'), (field.is_guarded(), '!')];
        let marks = marks.iter().filter(|(is, _)| *is);
        marks.map(|&(_, mark)| mark).collect()
    };
    LONG.replace("{fields}\n", &lines(FIELDS, marks, 98))
        .replace("{rule}\n", RULE)
}

/// Parses the name of a field.
pub fn field_parser() -> Completed<Processes, impl TypedValueParser<Value = Column>> {
    completed::<Processes, _>(str::parse::<Column>)
}

/// Takes any order, because its names depend on other options.
pub fn sort_parser() -> Completed<Processes, impl TypedValueParser<Value = String>> {
    completed::<Processes, _>(StringValueParser::new())
}
