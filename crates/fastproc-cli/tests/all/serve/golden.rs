//! Groups that configurations and flags make of the frozen machine of `fixtures/`. `make golden` records them again.

use fastproc_testbed::{Frozen, check, golden, transcript};

use crate::serve::FASTPROC;

const ONCE: &str = "serve --source=procfs --user=root --once-to-stdout-delay=2s";
const SHOWN: [&str; 5] = [
    "$ ",
    "namedprocess_namegroup_num_procs{",
    "namedprocess_namegroup_cpu_seconds_total{",
    "namedprocess_namegroup_thread_count{",
    "fastproc_groups_folded ",
];

/// A process exits, one starts, one has another name and one another start time in the two seconds between the snapshots.
#[test]
fn golden_groups_are_named_by_configurations_and_flags() {
    let mut text = String::new();
    for flags in [
        "",
        "--config etc/fastproc/documented.yml --children=false",
        "--config etc/fastproc/documented.yml",
        "--config etc/fastproc/unused.yml",
        "--procnames nginx,xz --namemapping dbus-daemon,--(system) --children=false",
        "--procnames bash",
        "--procnames bash --children=false",
        "--procnames vim --remove-empty-groups",
        "--procnames renamed",
        "--procnames renamed --recheck",
        "--procnames renamed --recheck-with-time-limit 1ms",
        "--procnames renamed --recheck-with-time-limit 99999h",
        "--max-groups 2",
        "--max-groups 2 --rank memory",
        "--max-groups 2 --rank cpu",
        "--procnames java --max-thread-names 2",
        // As process-exporter has them.
        "-procnames=nginx,xz -namemapping=c,-x(y) -children=0 -threads=F -gather-smaps=false -recheck=1 \
         -recheck-with-time-limit=10s -remove-empty-groups=f -web.telemetry-path=/other -procfs=/proc",
    ] {
        let machine = Frozen::unpack();
        let mut command = machine.command(FASTPROC);
        let output = transcript(command.args(ONCE.split(' ')).args(flags.split_whitespace()));
        let output = String::from_utf8(output).expect("metrics are UTF-8");
        let told = output.find("standard error:").unwrap_or(output.len());
        let (metrics, told) = output.split_at(told);
        let shown = |line: &&str| SHOWN.iter().any(|start| line.starts_with(start));
        text.extend(
            metrics
                .lines()
                .filter(shown)
                .map(|line| format!("{line}\n")),
        );
        text += told;
        text += "\n";
    }
    golden("serve-groups", text.as_bytes());
}

#[test]
fn golden_wrong_settings_are_refused_with_a_reason_and_a_line() {
    let wrong = [
        "--config etc/fastproc/regex.yml",
        "--config etc/fastproc/template.yml",
        "--config etc/fastproc/nothing.yml",
        "--config etc/fastproc/syntax.yml",
        "--config etc/fastproc/none.yml",
        "--config /dev/zero",
        // The password is not shown.
        "--web.config.file etc/fastproc/web.yml",
        "--web.telemetry-path metrics",
        "--min-interval soon",
        "--costly-share 2",
        "--collector.vmstat.fields (",
        "--collector.netdev.device-exclude (",
        "--namemapping a",
    ];
    let lines = wrong.map(|flags| format!("{ONCE} {flags}"));
    check(
        FASTPROC,
        "serve-refused",
        &lines.each_ref().map(|line| &**line),
    );
}

/// The package's file has the same rules as the default.
#[test]
fn the_configuration_of_the_package_is_the_default() {
    let packaged = concat!(env!("CARGO_MANIFEST_DIR"), "/../../packaging/groups.yml");
    let groups = |more: &[&str]| {
        let machine = Frozen::unpack();
        let output = machine
            .command(FASTPROC)
            .args(ONCE.split(' '))
            .args(more)
            .output();
        let text = String::from_utf8(output.expect("it starts").stdout).expect("UTF-8");
        let named = text
            .lines()
            .filter(|line| line.starts_with("namedprocess_namegroup_num_procs{"));
        named.map(str::to_owned).collect::<Vec<_>>()
    };
    let default = groups(&[]);
    assert!(default.len() > 20, "{default:?}");
    assert_eq!(groups(&["--config", packaged]), default);
}
