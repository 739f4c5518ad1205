//! `process_names`: the configuration file of process-exporter.

use std::path::Path;

use super::{
    regex::compile,
    rules::{Rule, Rules},
    subject::base,
    template::Template,
};
use crate::document::{self, ConfigError, Node, Wrong};

/// What a configuration file says.
#[derive(Debug)]
pub struct Configured {
    /// Which process belongs to which group.
    pub rules: Rules,
    /// What is not used, with the line of each.
    pub warnings: Vec<String>,
}

/// Reads a configuration file.
pub fn read(path: &Path) -> Result<Configured, ConfigError> {
    document::read_file(path, |root| configured(*root))
}

/// Reads the text of a configuration file.
pub fn parse(text: &str) -> Result<Configured, Wrong> {
    document::read(text, |root| configured(*root))
}

impl Default for Rules {
    /// A group for each name of a process that has a command line: what the packages of process-exporter ship.
    fn default() -> Self {
        let text = "process_names: [{name: \"{{.Comm}}\", cmdline: ['.+']}]";
        parse(text).map_or_else(|_| Self::from_rules(Vec::new()), |file| file.rules)
    }
}

/// The rules in a document. What is not known is not used, there as here.
fn configured(root: Node<'_>) -> Result<Configured, Wrong> {
    let mut warnings = Vec::new();
    let mut rules = None;
    for (key, name, value) in root.entries("the configuration")? {
        if name != "process_names" {
            warnings.push(unused(key, "there is only process_names"));
        } else if !value.is_null() {
            let items = value.list("process_names")?.into_iter();
            let items = items.map(|item| rule(item, &mut warnings));
            rules = Some(items.collect::<Result<Vec<_>, _>>()?);
        }
    }
    if rules.as_ref().is_none_or(Vec::is_empty) {
        warnings.push(format!(
            "line {}: process_names is missing or empty: no process is in a group",
            root.line()
        ));
    }
    Ok(Configured {
        rules: Rules::from_rules(rules.unwrap_or_default()),
        warnings,
    })
}

fn unused(key: Node<'_>, known: &str) -> String {
    let name = key.text("a key").unwrap_or("this key");
    format!(
        "line {}: {name} is not known and not used; {known}",
        key.line()
    )
}

fn rule(node: Node<'_>, warnings: &mut Vec<String>) -> Result<Rule, Wrong> {
    let mut template = (node, "");
    let (mut comms, mut exes, mut cmdlines) = (None, None, None);
    for (key, name, value) in node.entries("an item of process_names")? {
        match name {
            "name" if value.is_null() => {}
            "name" => template = (value, value.text("name")?),
            "comm" => {
                let texts = value.texts("comm")?;
                comms = texts.map(|texts| {
                    texts
                        .into_iter()
                        .map(|(_, comm)| comm.as_bytes().to_vec())
                        .collect()
                });
            }
            "exe" => {
                let texts = value.texts("exe")?;
                exes = texts.map(|texts| {
                    texts
                        .into_iter()
                        .map(|(_, exe)| {
                            let whole = exe.contains('/').then(|| exe.as_bytes().to_vec());
                            let key = if whole.is_some() {
                                base(exe.as_bytes())
                            } else {
                                exe.as_bytes()
                            };
                            (key.to_vec(), whole)
                        })
                        .collect()
                });
            }
            "cmdline" => {
                let texts = value.texts("cmdline")?;
                let compiled = texts.map(|texts| {
                    texts
                        .into_iter()
                        .map(|(item, pattern)| {
                            compile(pattern).map_err(|reason| item.wrong(reason))
                        })
                        .collect::<Result<Vec<_>, _>>()
                });
                cmdlines = compiled.transpose()?;
            }
            _ => warnings.push(unused(key, "an item has name, comm, exe and cmdline")),
        }
    }
    if comms.is_none() && exes.is_none() && cmdlines.is_none() {
        return Err(node.wrong("this item selects nothing: it needs comm, exe or cmdline"));
    }
    let (at, text) = template;
    let text = if text.is_empty() {
        "{{.ExeBase}}"
    } else {
        text
    };
    Ok(Rule {
        comms,
        exes,
        cmdlines,
        name: Template::parse(text).map_err(|reason| at.wrong(reason))?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::naming::Subject;

    fn subject<'a>(comm: &'a str, cmdline: &'a str) -> Subject<'a> {
        Subject {
            pid: 1,
            comm: comm.as_bytes(),
            cmdline: cmdline.as_bytes(),
            username: "root",
            cgroups: &[],
            start_unix_ns: 0,
        }
    }

    fn name(rules: &Rules, comm: &str, cmdline: &str) -> Option<String> {
        rules.name_of(&subject(comm, cmdline))
    }

    /// The selectors that process-exporter documents: a name, a program by base or whole path, expressions with names.
    #[test]
    fn selectors_are_as_documented() {
        let rules = parse(
            r#"
process_names:
  # a name
  - comm:
    - bash
  - exe:
    - postgres
    - /usr/local/bin/prometheus
  - name: "{{.ExeFull}}:{{.Matches.Cfgfile}}"
    exe:
    - /usr/local/bin/process-exporter
    cmdline:
    - -config.path\s+(?P<Cfgfile>\S+)
"#,
        )
        .unwrap()
        .rules;
        assert_eq!(name(&rules, "bash", "-bash\0"), Some("-bash".into()));
        assert_eq!(name(&rules, "bash", ""), Some("bash".into()));
        assert_eq!(
            name(&rules, "x", "/opt/pg/postgres\0-D\0"),
            Some("postgres".into())
        );
        assert_eq!(
            name(&rules, "prometheus", "/usr/local/bin/prometheus\0"),
            Some("prometheus".into())
        );
        assert_eq!(name(&rules, "prometheus", "/usr/bin/prometheus\0"), None);
        let line = "/usr/local/bin/process-exporter\0-config.path\0/etc/a.yml\0-x\0";
        assert_eq!(
            name(&rules, "process-exporte", line),
            Some("/usr/local/bin/process-exporter:/etc/a.yml".into())
        );
        assert_eq!(
            name(
                &rules,
                "process-exporte",
                "/usr/local/bin/process-exporter\0"
            ),
            None
        );
    }

    #[test]
    fn all_expressions_must_match_and_the_first_item_wins() {
        let rules = parse(
            "process_names:\n- {name: 'a {{.Matches.x}}{{.Matches.y}}', cmdline: ['-x=(?P<x>\\w+)', '-y=(?P<y>\\w+)']}\n- {name: b, cmdline: ['.+']}\n- {name: c, comm: [kthreadd]}\n",
        )
        .unwrap()
        .rules;
        assert_eq!(name(&rules, "p", "p\0-x=1\0-y=2\0"), Some("a 12".into()));
        assert_eq!(name(&rules, "p", "p\0-x=1\0"), Some("b".into()));
        assert_eq!(name(&rules, "kthreadd", ""), Some("c".into()));
        assert_eq!(name(&rules, "kswapd0", ""), None);
    }

    #[test]
    fn by_default_whatever_has_a_command_line_is_grouped_by_name() {
        let rules = Rules::default();
        assert_eq!(
            name(&rules, "cron", "/usr/sbin/cron\0-f\0"),
            Some("cron".into())
        );
        assert_eq!(name(&rules, "kthreadd", ""), None);
    }

    #[test]
    fn what_is_wrong_is_told_with_its_line() {
        for (text, line, word) in [
            (
                "process_names:\n- comm: [a]\n- cmdline:\n  - 'ok'\n  - '('\n",
                5,
                "unclosed group",
            ),
            ("process_names:\n- name: x\n", 2, "selects nothing"),
            (
                "process_names:\n- comm: [a]\n  name: '{{.Foo}}'\n",
                3,
                "{{.Foo}}",
            ),
            ("process_names:\n- comm: a\n", 2, "list"),
            ("process_names:\n  comm: [a]\n", 2, "list"),
            ("process_names:\n- comm: [a, [b]]\n", 2, "string"),
            ("just text", 1, "mapping"),
        ] {
            let wrong = parse(text).expect_err(text);
            assert_eq!(wrong.line, line, "{text}: {wrong:?}");
            assert!(wrong.reason.contains(word), "{text}: {wrong:?}");
        }
    }

    /// The name of a kernel thread is no path: `ksoftirqd/0` is not `0`.
    #[test]
    fn a_name_is_no_path() {
        let file = parse("process_names: [{comm: [ksoftirqd/0, migration/0]}]").unwrap();
        let rules = file.rules;
        assert_eq!(name(&rules, "ksoftirqd/0", ""), Some("ksoftirqd/0".into()));
        assert_eq!(name(&rules, "migration/0", ""), Some("migration/0".into()));
    }

    /// As yaml.v2 has it, which process-exporter takes: what is not known is not used, and what is empty is empty.
    #[test]
    fn what_its_parser_takes_is_taken() {
        for (text, names, warning) in [
            (
                "process_names:\n- comm: [a]\n  nmae: x\n",
                1,
                "line 3: nmae is not known",
            ),
            ("process_name: []\n", 0, "line 1: process_name is not known"),
            ("", 0, "missing or empty"),
            ("process_names:\n", 0, "missing or empty"),
            ("process_names:\n- comm: [a, null, ~]\n", 1, ""),
            (
                "process_names:\n- comm: [a]\n---\nprocess_names: 3\n",
                1,
                "",
            ),
            (
                "x: &x {comm: [a]}\nprocess_names:\n- <<: *x\n",
                1,
                "line 1: x is not known",
            ),
            (
                "x: &x {comm: [b], name: n}\nprocess_names:\n- <<: [*x]\n  comm: [a]\n",
                1,
                "",
            ),
        ] {
            let file = parse(text).unwrap_or_else(|wrong| panic!("{text}: {wrong:?}"));
            let found = usize::from(name(&file.rules, "a", "a\0").is_some());
            assert_eq!(found, names, "{text}");
            assert!(
                file.warnings.iter().any(|found| found.contains(warning)) || warning.is_empty(),
                "{text}: {:?}",
                file.warnings
            );
        }
    }

    #[test]
    fn what_must_be_read_is_known_before() {
        let wants = |text: &str| parse(text).unwrap().rules.wants();
        assert!(!wants("process_names: [{name: x, comm: [a]}]").cmdline);
        assert!(wants("process_names: [{comm: [a]}]").cmdline);
        assert!(wants("process_names: [{name: '{{.Username}}', comm: [a]}]").username);
        assert!(wants("process_names: [{name: '{{.Cgroups}}', comm: [a]}]").cgroups);
    }
}
