//! Man pages and completions are made from the command's own definitions.

use crate::common;

use std::fs;

use fastproc_testbed::Folder;

#[test]
fn every_option_is_in_the_man_page_and_the_completions() {
    let directory = Folder::new("generated");
    common::output(&["generate", directory.to_str().expect("a path")]);
    let read = |name: &str| fs::read_to_string(directory.join(name)).expect(name);
    let shells = ["fastproc.bash", "_fastproc", "fastproc.fish"].map(read);
    let mut options = 0;
    for command in [
        "ps", "top", "exits", "cgroups", "files", "sockets", "cat", "doctor", "verify", "serve",
    ] {
        let page = read(&format!("man1/fastproc-{command}.1")).replace("\\-", "-");
        let help = common::output(&[command, "--help"]);
        let words = help.split(|c: char| !c.is_ascii_alphanumeric() && c != '-');
        let is_option = |line: &&str| line.trim_start().starts_with('-');
        let of_options: Vec<_> = help.lines().filter(is_option).collect();
        for option in words.filter(|word| {
            word.len() > 3
                && word.starts_with("--")
                && of_options.iter().any(|line| line.contains(word))
        }) {
            options += 1;
            assert!(
                page.contains(option),
                "{option} is not in the page of {command}"
            );
            for shell in &shells {
                assert!(shell.contains(&option[2..]), "{option} is not completed");
            }
        }
    }
    assert!(options > 30, "only {options} options");
    let page = read("man1/fastproc-ps.1").replace("\\-", "-");
    for field in [
        "oom_score_adj",
        "cpus_allowed_list",
        "EXIT STATUS",
        "FILTERS",
    ] {
        assert!(page.contains(field), "{field} is not in the page");
        assert!(
            field.contains(' ') || field == "FILTERS" || shells[1].contains(field),
            "{field}"
        );
    }
    // The values of --sort and --fields, beside which bash would offer files.
    for option in ["--sort)", "--fields)"] {
        let after = |name: &str| {
            let (_, of_command) = shells[0].split_once(name).expect("the command");
            let (_, values) = of_command.split_once(option).expect("the option");
            values.lines().take(3).collect::<String>()
        };
        assert!(
            after("fastproc__subcmd__ps)").contains("compgen -W"),
            "{option}"
        );
        assert!(
            after("fastproc__subcmd__cgroups)").contains("compgen -W"),
            "{option}"
        );
    }
    assert!(read("man1/fastproc.1").contains("fastproc"));
    let names = [
        "man1/fastproc-exporter.1",
        "fastproc-exporter.bash",
        "_fastproc-exporter",
        "fastproc-exporter.fish",
    ];
    for text in names.map(read) {
        assert!(text.replace("\\-", "-").contains("web.telemetry-path"));
    }
}
