//! `fastproc sockets`: the table of sockets, with the processes that have them.

use std::process::ExitCode;

use fastproc_columns::files::{Each, Filter};

use super::table::{self, Needs, Table};
use crate::{completed::lines, failure::Failure};

const QUESTIONS: &str = "\
Who listens on port 80?
  fastproc sockets --listen --port 80
Who talks to this address?
  fastproc sockets --filter \"peer =~ '^10[.]0[.]0[.]7:'\"
What is connected, and how much waits to be read?
  fastproc sockets --filter 'state == ESTAB && recv_q > 0' --sort -recv_q
Who is at the other end of a unix socket?
  fastproc sockets -o inode,peer_inode,local,pid,comm --filter 'inode == 4242 || peer_inode == 4242'
Which sockets has this process, whatever its network namespace?
  fastproc sockets 4242
What waits for its end, without a process?
  fastproc sockets --orphans --filter 'state == TIME-WAIT'";

fn long_help() -> String {
    let fields = lines(fastproc_columns::files::COLUMNS, |_| String::new(), 98);
    format!("Fields:\n{fields}{LONG_HELP}{EXIT_STATUS}")
}

const LONG_HELP: &str = "
  A - means that a socket has no such value, or that the kernel does not show it to this user. A row is
  a descriptor, so a socket that several processes share has several rows. Sockets of all network
  namespaces are shown; netns says which. Of processes that the kernel hides from this user, only
  sockets of this network namespace are shown, without the process. From /proc, the other ends of
  unix sockets are not known.

Filters:
  Filters are those of fastproc ps: comparisons with == != < <= > >=, =~ and !~ with a regular
  expression, joined by && || ! and parentheses.

";

const EXIT_STATUS: &str = "
Exit status:
  0  at least one row was shown
  1  no row was shown
  2  the command line is invalid, or sockets cannot be read";

/// Show the sockets of processes: addresses, states and queues, with the columns of ss.
///
/// fastproc sockets asks a service, if one runs, or reads the tables of all processes in one pass by BPF. Where neither can be
/// used, for single processes, and where few files are open, it reads /proc.
#[derive(Debug, clap::Args)]
#[command(max_term_width = 100, before_help = QUESTIONS, after_long_help = long_help())]
pub struct Args {
    #[command(flatten)]
    table: table::Common,

    /// Show only sockets that wait for connections, and UDP sockets that are not connected.
    #[arg(short, long)]
    listen: bool,

    /// Show only sockets with this port at one of their ends.
    #[arg(long, value_name = "N,…", value_delimiter = ',')]
    port: Vec<u16>,

    /// Show also sockets without a descriptor in this network namespace: connections that wait for their end, or to be accepted.
    #[arg(long, conflicts_with = "pids")]
    orphans: bool,
}

/// Runs the command.
pub fn run(args: &Args) -> Result<ExitCode, Failure> {
    let mut conditions = Vec::new();
    if args.listen {
        conditions.push("(listen || netid == udp && state == UNCONN)".to_owned());
    }
    if !args.port.is_empty() {
        let ports = args.port.iter();
        let ports = ports.map(|port| format!("local_port == {port} || peer_port == {port}"));
        conditions.push(format!("({})", ports.collect::<Vec<_>>().join(" || ")));
    }
    let filter = Some(conditions.join(" && ")).filter(|text| !text.is_empty());
    let needs = Needs {
        each: Each::Socket,
        filter: filter.map(|text| text.parse::<Filter>()).transpose()?,
        orphans: args.orphans,
        ..Needs::default()
    };
    Table::open(&args.table, needs)?.write(|_| true)
}
