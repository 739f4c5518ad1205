//! `process_names`: the configuration file of process-exporter.

use std::{io, path::Path};

use fastproc_metrics::naming::{Item, Rules, check_expression, check_name};

use crate::document::{self, ConfigError, Node, Wrong};

/// The contents of a configuration file.
#[derive(Debug)]
pub struct Configured {
    /// Which process belongs to which group.
    pub items: Vec<Item>,
    /// Lines that are not used.
    pub warnings: Vec<String>,
}

/// Reads a configuration file, given the result of reading its text.
pub fn read(path: &Path, text: io::Result<Vec<u8>>) -> Result<Configured, ConfigError> {
    document::read_file(path, text, |root| configured(*root))
}

/// Reads the text of a configuration file.
pub fn parse(text: &str) -> Result<Configured, Wrong> {
    document::read(text, |root| configured(*root))
}

/// The items in a document. Unknown keys are ignored, as in process-exporter.
fn configured(root: Node<'_>) -> Result<Configured, Wrong> {
    let mut warnings = Vec::new();
    let mut rules: Option<Vec<Item>> = None;
    for (key, name, value) in root.entries("the configuration")? {
        if name != "process_names" {
            warnings.push(unused(key, "there is only process_names"));
        } else if !value.is_null() {
            let items = value.list("process_names")?.into_iter();
            let items = items.map(|node| item(node, &mut warnings));
            rules = Some(items.collect::<Result<Vec<_>, _>>()?);
        }
    }
    if let Some(items) = &rules {
        Rules::of_items(items).map_err(|error| root.wrong(error.to_string()))?;
    }
    if rules.as_ref().is_none_or(Vec::is_empty) {
        warnings.push(format!(
            "line {}: process_names is missing or empty: no process is in a group",
            root.line()
        ));
    }
    Ok(Configured {
        items: rules.unwrap_or_default(),
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

fn item(node: Node<'_>, warnings: &mut Vec<String>) -> Result<Item, Wrong> {
    let mut item = Item::default();
    let mut named_at = node;
    for (key, name, value) in node.entries("an item of process_names")? {
        let texts = || -> Result<Option<Vec<String>>, Wrong> {
            let texts = value.texts(name)?;
            Ok(texts.map(|texts| texts.into_iter().map(|(_, text)| text.to_owned()).collect()))
        };
        match name {
            "name" if value.is_null() => {}
            "name" => {
                named_at = value;
                item.name = value.text("name")?.into();
            }
            "comm" => item.comms = texts()?,
            "exe" => item.exes = texts()?,
            "cmdline" => {
                for (node, pattern) in value.texts("cmdline")?.into_iter().flatten() {
                    check_expression(pattern).map_err(|reason| node.wrong(reason))?;
                }
                item.cmdlines = texts()?;
            }
            _ => warnings.push(unused(key, "an item has name, comm, exe and cmdline")),
        }
    }
    if item.comms.is_none() && item.exes.is_none() && item.cmdlines.is_none() {
        return Err(node.wrong("this item selects nothing: it needs comm, exe or cmdline"));
    }
    check_name(&item.name).map_err(|reason| named_at.wrong(reason))?;
    Ok(item)
}

#[cfg(test)]
mod tests {
    use fastproc_metrics::naming::Subject;

    use super::*;

    fn subject<'a>(comm: &'a str, cmdline: &'a str) -> Subject<'a> {
        Subject {
            comm: comm.as_bytes(),
            cmdline: cmdline.as_bytes(),
            ..Subject::default()
        }
    }

    fn rules_of(file: &Configured) -> Rules {
        Rules::of_items(&file.items).unwrap()
    }

    fn name(rules: &Rules, comm: &str, cmdline: &str) -> Option<String> {
        rules.name_of(&subject(comm, cmdline)).unwrap()
    }

    #[test]
    fn all_expressions_must_match_and_the_first_item_wins() {
        let rules = rules_of(&parse("process_names:\n- {name: 'a {{.Matches.x}}{{.Matches.y}}', cmdline: ['-x=(?P<x>\\w+)', '-y=(?P<y>\\w+)']}\n- {name: b, cmdline: ['.+']}\n- {name: c, comm: [kthreadd]}\n").unwrap());
        assert_eq!(name(&rules, "p", "p\0-x=1\0-y=2\0"), Some("a 12".into()));
        assert_eq!(name(&rules, "p", "p\0-x=1\0"), Some("b".into()));
        assert_eq!(name(&rules, "kthreadd", ""), Some("c".into()));
        assert_eq!(name(&rules, "kswapd0", ""), None);
    }

    /// Others are in the golden file of what is refused.
    #[test]
    fn errors_name_their_line() {
        for (text, line, word) in [
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

    /// The name of a kernel thread is not a path: `ksoftirqd/0` is not `0`.
    #[test]
    fn a_name_is_no_path() {
        let file = parse("process_names: [{comm: [ksoftirqd/0, migration/0]}]").unwrap();
        let rules = rules_of(&file);
        assert_eq!(name(&rules, "ksoftirqd/0", ""), Some("ksoftirqd/0".into()));
        assert_eq!(name(&rules, "migration/0", ""), Some("migration/0".into()));
    }

    /// As with yaml.v2, which process-exporter uses: unknown keys are ignored, and empty values are empty.
    #[test]
    fn unknown_keys_are_accepted_with_a_warning() {
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
            let found =
                usize::from(name(&Rules::of_items(&file.items).unwrap(), "a", "a\0").is_some());
            assert_eq!(found, names, "{text}");
            assert!(
                file.warnings.iter().any(|found| found.contains(warning)) || warning.is_empty(),
                "{text}: {:?}",
                file.warnings
            );
        }
    }

    #[test]
    fn the_rules_tell_which_texts_they_need() {
        let wants = |text: &str| rules_of(&parse(text).unwrap()).wants();
        assert!(!wants("process_names: [{name: x, comm: [a]}]").cmdline);
        assert!(wants("process_names: [{comm: [a]}]").cmdline);
        assert!(wants("process_names: [{name: '{{.Username}}', comm: [a]}]").username);
        assert!(wants("process_names: [{name: '{{.Cgroups}}', comm: [a]}]").cgroups);
    }
}
