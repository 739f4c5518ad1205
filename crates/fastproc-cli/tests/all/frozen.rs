//! What the commands write for the frozen machine of `fixtures/`: no test here reads the running one. `make golden` records
//! it again.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
};

use fastproc_columns::{FIELDS, cgroups::COLUMNS};
use fastproc_testbed::{Frozen, golden};

const FASTPROC: &str = env!("CARGO_BIN_EXE_fastproc");

#[track_caller]
fn check(name: &str, lines: &[&str]) {
    fastproc_testbed::check(FASTPROC, name, lines);
}

/// The ids of cgroups are numbers of folders of this machine's own file system.
fn fields() -> String {
    let names = FIELDS.iter().map(|field| field.name);
    let names: Vec<_> = names.filter(|&name| name != "cgroup_id").collect();
    names.join(",")
}

#[test]
fn golden_ps_shows_every_field_of_every_process() {
    let fields = fields();
    check(
        "ps-fields",
        &[
            &format!("ps --sort pid --format ndjson --fields {fields}"),
            &format!(
                "ps --sort pid --threads --filter 'num_threads > 1' --format ndjson --fields {fields}"
            ),
            &format!("ps --sort pid --fields {fields}"),
            &format!("ps --sort pid --format csv --no-formulas --fields {fields}"),
        ],
    );
}

#[test]
fn golden_ps_selects_sorts_and_writes_processes() {
    check(
        "ps",
        &[
            "ps",
            "ps --tree",
            "ps --tree --top 2 --fields pid,pcpu,comm",
            "ps --ppid 900,1500 --sort -rss",
            "ps --tree --fields pid,comm,cmdline --user anna",
            "ps --threads --fields pid,tid,comm,state,time --sort -time,tid --top 12",
            "ps --no-headers --top 3 --sort rss,-pid",
            "ps --json --top 2",
            "ps --json --top 1 --fields pid,euid,pid,uid",
            "ps --fields user,ppid,pid --sort user,-ppid,-pid",
            "ps --format csv --top 4 --sort pid",
            "ps --filter 'rss > 100M && user != root'",
            "ps --filter 'state == D || state == T' --fields pid,state,wchan,comm",
            "ps --filter 'comm =~ ^nginx && !(pid < 902)' --fields pid,comm",
            "ps --filter 'container_name == shop-db-1' --fields pid,container_name,pod,namespace,image,runtime",
            "ps --filter 'pod =~ web' --fields pid,container_name,pod,namespace,image,runtime",
            "ps --filter 'start > 2026-01-15 && kthread == true' --fields pid,start,comm",
            "ps --filter 'pcpu > 1% && etime < 1h'",
            "ps --filter 'comm == nobody'",
            "ps --search NGINX --sort -THR,ram",
            "ps --pid 1,900,4194303 --fields pid,comm,cgroup,unit,slice",
            "ps --comm nginx,xz --fields pid,comm,tty",
            "ps --user control-with-a-long-name,33 --fields pid,euid,user,policy,rt_priority,nice,priority",
            "ps --user 10001 --fields pid,user,nspid,vmswap",
        ],
    );
}

#[test]
fn golden_ps_writes_the_tables_of_ps1() {
    check(
        "ps1",
        &[
            "ps -ef",
            "ps -eF",
            "ps -ely",
            "ps -eLf",
            "ps -ejH",
            "ps -eM",
            "ps aux",
            "ps -q 1202,1 -o pid=",
            "ps axjf",
            "ps axu --sort -rss",
            "ps axl",
            "ps axv",
            "ps axs",
            "ps axX",
            "ps axH -o pid,tid,comm",
            "ps -eo pid,tid,cls,rtprio,ni,pri,psr,pcpu,stat,wchan:14,comm",
            "ps -eo user:20,pid,rss=MEMORY,args --no-headers",
            "ps -eo pid,lstart,etime,time,%mem,sz,vsz,tname,flags,nlwp,ppid,pgid,sess,tpgid",
            "ps -eo euid,ruid,suid,fuid,egid,rgid,sgid,supgid,blocked,caught,ignored,pending",
            "ps -eo '%p %y %c %a %U %G %n %z'",
            "ps -C nginx -o pid=,comm=",
            "ps -N -u root -o pid,user,comm",
            "ps -t pts/0,tty1 -o pid,tty,comm",
            "ps --ppid 2 -o pid,comm",
            "ps -g www-data -o pid,group,comm",
            "ps -G www-data -o pid,rgroup,comm",
            "ps -p 1202,1 -O rss",
            "ps f -u anna",
            "ps r -e -o pid,stat,comm",
        ],
    );
}

/// Each message says what is wrong and what to type instead. Only what is near is suggested.
#[test]
fn golden_mistakes_in_options_are_told() {
    check(
        "mistakes",
        &[
            "ps --fields pid,rsss",
            "ps -o pid,rsss",
            "ps -o pid,lxc",
            "ps -o pid:x",
            "ps -m",
            "ps -e --nosuch",
            "ps --filtr pid",
            "ps -fu no-such-user",
            "ps -t no-such-tty",
            "ps aux --top 3",
            "ps -eo pid --fields rss",
            "ps -f u",
            "ps axm",
            "ps --sort -cpuu",
            "ps --sort ''",
            "ps --filter 'pid > 1 && rss > 5X'",
            "ps --filter ''",
            "ps --source bfp",
            "ps --format xml",
            "ps --top x",
            "exits --count -1",
            "ps -o",
            "ps -LT",
            "ps -y",
            "ps --exited",
            "cgroups --count 1",
            "top --json",
            "serve --json",
            "ps --version",
            "version",
            "ps --filter 'pid > 1' --filter 'pid < 9'",
            "cgroups foo",
            "top foo bar",
            "ps nginx",
            "ps top",
            "exits --interval 1",
            "serve --listen 9256",
            "cgroups --pid 4194304",
            "ps aux --search x",
            "run ps aux",
            "run --json -- ps",
            "run --library /nowhere -- ps",
            "cat ''",
            "ps -q 1 --sort pid",
            "ps -q 1 -e",
            "exits --filter 'pid > 1 && rss > 1'",
            "cgroups --filter 'path =~ \"(\"'",
            "cgroups --filter '(memory > 1M || cpu > 5)'",
            "cgroups --sort -memroy",
            "verify --rounds 0",
            "exits --format xml",
            "cat --stat-irqs-latency 1e300 stat",
            "serve --status --socket /etc/passwd",
            "ps --interval 0",
            "ps --interval x",
            "ps --count 3",
            "ps --interval 1 --count 0",
            "ps extra",
            "ps -f extra",
            "ps auxz",
            "ps --filter 'pid > 0 && read/s > 1'",
            "ps --sort pid,-minflt/s",
            "ps --exited --threads --interval 1",
            "ps -eLf --exited --interval 1",
            "exits --filter 'no_such_field == 1'",
            "verify --source kmem",
            "cat --all maps",
            "doctor --yaml",
            "sp",
            "ps --reverse",
            "exits --interval",
            "nothing",
            "files --filter 'name == nothing'",
            "files -F pq",
            "files --path /no/such/file",
            "files --filter 'nmae == x'",
            "files --count -o pid,fd",
            "files --count --filter 'kind == file'",
            "files x",
            "sockets --port 70000",
            "ps --filter 'pid == 0'",
        ],
    );
}

/// Shares and rates over two seconds, in which a process exits and another one starts.
#[test]
fn golden_intervals_show_what_changed() {
    check(
        "intervals",
        &[
            "ps --interval 2 --count 1 --source procfs",
            "ps --interval 2 --count 1 --source procfs --filter 'pid == 0'",
            "ps --interval 2 --count 1 --source procfs --json --sort pid --filter 'pcpu > 0 || write/s > 0' --fields pid,comm,pcpu,pcpu_user,pcpu_system,minflt/s,majflt/s,read/s,write/s,nvcsw",
            "ps --interval 2 --count 1 --source procfs --sort pid --filter 'timeslices > 0' --fields pid,comm,pcpu,wait,run_delay,timeslices",
            "ps --interval 2 --count 1 --source procfs --threads --filter 'pid == 1100' --fields pid,tid,comm,pcpu,minflt/s",
            "cgroups --interval 2 --count 1 --source files",
            "cgroups --interval 2 --count 1 --source files --sort path --filter 'wait > 0' -o path,processes,cpu,wait",
            "cgroups --interval 2 --count 1 --source files --tree --csv",
        ],
    );
}

#[test]
fn golden_cgroups_are_shown_as_table_tree_json_and_csv() {
    let columns = COLUMNS
        .iter()
        .filter(|column| !column.is_rate && column.name != "id");
    let columns: Vec<_> = columns.map(|column| column.name).collect();
    let columns = columns.join(",");
    check(
        "cgroups",
        &[
            "cgroups --source files",
            "cgroups --source files --tree",
            "cgroups --source files --sort -OOM --top 3 -o path,OOM,WORKING",
            "cgroups --source files --filter 'memory > 100M && path =~ slice' --fields path,memory,memory_max",
            "cgroups --source files --filter 'path == none'",
            "cgroups --source files --pid 900,1100 --format ndjson -o path,tasks",
            "cgroups --source files --no-headers --top 2 --sort path",
            &format!("cgroups --source files --sort path --fields {columns}"),
            &format!("cgroups --source files --sort path --csv --fields {columns}"),
            &format!("cgroups --source files --tree --json --fields {columns}"),
        ],
    );
}

#[test]
fn cgroups_are_shown_as_many_times_as_requested() {
    let machine = Frozen::unpack();
    let mut command = machine.command(FASTPROC);
    command.args(["cgroups", "--source", "files", "--fields", "path", "--json"]);
    let output = command.args(["--interval", "0.1", "--count", "2"]).output();
    let output = output.expect("the command starts");
    assert_eq!(String::from_utf8_lossy(&output.stdout).lines().count(), 2);
}

/// Parsed into records and written again, these texts stay as they are.
#[test]
fn cat_writes_the_bytes_of_the_kernel() {
    let machine = Frozen::unpack();
    let cat = |arguments: &[&str]| {
        let output = machine
            .command(FASTPROC)
            .arg("cat")
            .args(arguments)
            .output();
        let output = output.expect("it starts");
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let files = [
        "stat",
        "vmstat",
        "interrupts",
        "softirqs",
        "loadavg",
        "uptime",
        "meminfo",
        "diskstats",
        "net/dev",
    ];
    for file in files {
        let text = fs::read(machine.folder().join("proc").join(file)).expect("it was unpacked");
        assert_eq!(cat(&[file]), String::from_utf8_lossy(&text), "{file}");
    }
    for file in ["stat", "statm", "status"] {
        let kernel = cat(&["--proc", "--all", file]);
        assert!(kernel.len() > 1000, "{file}");
        for (found, expected) in cat(&["--all", file]).lines().zip(kernel.lines()) {
            assert_eq!(found, expected, "{file}");
        }
    }
}

const ONCE: &str = "serve --source=procfs --user=root --once-to-stdout-delay=2s";

#[test]
fn golden_scrapes_have_every_metric_of_the_machine_of_groups_and_of_cgroups() {
    let all = "--cgroups --gather-smaps --costly-share=1 --collector.interrupts --collector.netstat.fields=.* \
        --collector.vmstat.fields=.*";
    check("serve-all", &[&format!("{ONCE} {all}")]);
    check("serve", &[ONCE]);
}

/// A command line as in the units of `node_exporter`: flags without effect are named in one line.
#[test]
fn golden_scrapes_take_the_flags_of_node_exporter() {
    let flags = "--path.procfs=/proc --path.sysfs=/sys --path.rootfs=/ --path.udev.data=/run/udev/data \
        --collector.disable-defaults --collector.loadavg --collector.mdadm --no-collector.wifi \
        --collector.filesystem.ignored-mount-points=^/x --web.max-requests=40 --log.level=info --log.format=logfmt \
        --procnames=none";
    check("serve-node-exporter", &[&format!("{ONCE} {flags}")]);
}

/// The series of a scrape, by family.
fn series(machine: &Frozen, flags: &str) -> BTreeMap<String, Vec<String>> {
    let mut command = machine.command(FASTPROC);
    let output = command
        .args(ONCE.split(' '))
        .args(flags.split_whitespace())
        .output();
    let output = output.expect("it starts");
    assert!(output.status.success(), "{flags}: {output:?}");
    let text = String::from_utf8(output.stdout).expect("metrics are UTF-8");
    let mut families = BTreeMap::<_, Vec<_>>::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let (key, _) = line.rsplit_once(' ').expect("a value");
        let name = key.split('{').next().unwrap_or(key);
        families
            .entry(name.to_owned())
            .or_default()
            .push(key.to_owned());
    }
    families
}

/// The golden file has what a flag adds to a scrape and what it takes away: families, and how many series of them.
#[test]
fn golden_flags_choose_what_a_scrape_has() {
    let machine = Frozen::unpack();
    // The first scrape makes the machine go on, and after that nothing changes any more.
    series(&machine, "");
    let default = series(&machine, "");
    let mut lines = Vec::new();
    for flags in [
        "--no-collector.cpu",
        "--no-collector.stat",
        "--no-collector.stat.softirq",
        "--no-collector.vmstat",
        "--no-collector.processes",
        "--no-collector.loadavg",
        "--collector.interrupts",
        "--collector.vmstat.fields=^nr_free_pages$",
        "--collector.netstat.fields=^Tcp_InSegs$",
        "--collector.netdev.device-exclude=^lo$",
        "--collector.netdev.device-whitelist=^lo$",
        "--collector.arp.device-include=^none$",
        "--collector.diskstats.device-include=^none$",
        "--collector.filesystem.mount-points-exclude=.*",
        "--collector.filesystem.mount-points-include=^/proc$ --collector.filesystem.fs-types-include=^proc$",
        "--collector.disable-defaults",
        // When it replaces process-exporter, a node_exporter probably runs beside it, and nothing should be counted twice.
        "--no-host",
        "--no-host --collector.loadavg",
        "--procnames=none",
        "-children=false",
        "--procnames=none --host",
        "--procnames=none --collector.loadavg",
        "--gather-fds=false --gather-wchan=false",
        "--gather-smaps",
        "--costly-share=0",
        "--threads=false",
        "--cgroups",
    ] {
        lines.push(format!("$ fastproc serve {flags}"));
        let chosen = series(&machine, flags);
        let families = default.keys().chain(chosen.keys());
        let none = Vec::new();
        for family in families.collect::<BTreeSet<_>>() {
            let [before, after] = [&default, &chosen].map(|all| all.get(family).unwrap_or(&none));
            let gone = before
                .iter()
                .filter(|series| !after.contains(series))
                .count();
            let new = after
                .iter()
                .filter(|series| !before.contains(series))
                .count();
            if gone > 0 {
                lines.push(format!("- {family}: {gone} of {}", before.len()));
            }
            if new > 0 {
                lines.push(format!("+ {family}: {new}"));
            }
        }
        lines.push(String::new());
    }
    golden("serve-flags", (lines.join("\n") + "\n").as_bytes());
}
