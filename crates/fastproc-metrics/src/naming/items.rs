//! Rules as they are written, and as bytes for the process that uses them, since another process reads the file.

use serde::{Deserialize, Serialize};

use super::{
    regex::{Memory, compile},
    rules::{Rule, Rules},
    subject::base,
    template::Template,
};

/// An item of `process_names`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct Item {
    /// The template of the name; empty for process-exporter's default.
    pub name: String,
    /// Names of processes; the name of the process must be one of them.
    pub comms: Option<Vec<String>>,
    /// Programs, by path or base name; the program of the process must be one of them.
    pub exes: Option<Vec<String>>,
    /// Regular expressions that must all match its command line.
    pub cmdlines: Option<Vec<String>>,
}

/// The most bytes that rules may have.
const LONGEST: usize = 1 << 20;

/// The most items and regular expressions, together.
const MOST: usize = 10_000;

/// Why rules cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WrongRules {
    /// One item cannot be used.
    #[error("item {item} of the rules: {reason}")]
    Item {
        /// Its number, from 1.
        item: usize,
        /// What is wrong with it.
        reason: String,
    },
    /// They have too many bytes.
    #[error(
        "the rules of groups have {0} bytes, and {LONGEST} are allowed; use fewer or shorter rules"
    )]
    TooLong(usize),
    /// There are too many.
    #[error("the rules of groups have more than {MOST} items and regular expressions; use fewer")]
    TooMany,
    /// The bytes are not a list of rules.
    #[error("the rules of groups are malformed")]
    Malformed,
}

/// Checks the template of a name. The error names what is not supported.
pub fn check_name(template: &str) -> Result<(), String> {
    Template::parse(template).map(drop)
}

/// Checks a regular expression.
pub fn check_expression(pattern: &str) -> Result<(), String> {
    compile(pattern, &mut Memory::default()).map(drop)
}

impl Item {
    fn rule(&self, memory: &mut Memory) -> Result<Rule, String> {
        let exe = |exe: &String| {
            let whole = exe.contains('/').then(|| exe.as_bytes().to_vec());
            let key = match &whole {
                Some(path) => base(path),
                None => exe.as_bytes(),
            };
            (key.to_vec(), whole)
        };
        let comms = self.comms.as_ref().map(|comms| {
            let comms = comms.iter().map(|comm| comm.as_bytes().to_vec());
            comms.collect()
        });
        let cmdlines = self.cmdlines.as_ref().map(|patterns| {
            let compiled = patterns.iter().map(|pattern| compile(pattern, memory));
            compiled.collect::<Result<Vec<_>, _>>()
        });
        let name = match &*self.name {
            "" => "{{.ExeBase}}",
            name => name,
        };
        Ok(Rule {
            comms,
            exes: self
                .exes
                .as_ref()
                .map(|exes| exes.iter().map(exe).collect()),
            cmdlines: cmdlines.transpose()?,
            name: Template::parse(name)?,
        })
    }

    /// Converts items to JSON.
    pub fn to_bytes(items: &[Self]) -> Vec<u8> {
        serde_json::to_vec(items).unwrap_or_default()
    }

    /// Converts JSON to items. Fails if it is malformed, or longer than the rules may be.
    pub fn from_bytes(bytes: &[u8]) -> Result<Vec<Self>, WrongRules> {
        if bytes.len() > LONGEST {
            return Err(WrongRules::TooLong(bytes.len()));
        }
        serde_json::from_slice(bytes).map_err(|_| WrongRules::Malformed)
    }
}

impl Rules {
    /// The rules of these items. The first that matches names a process.
    pub fn of_items(items: &[Item]) -> Result<Self, WrongRules> {
        let expressions = items.iter().filter_map(|item| item.cmdlines.as_ref());
        if items.len() + expressions.map(Vec::len).sum::<usize>() > MOST {
            return Err(WrongRules::TooMany);
        }
        let length = Item::to_bytes(items).len();
        if length > LONGEST {
            return Err(WrongRules::TooLong(length));
        }
        let mut memory = Memory::default();
        let rules = items.iter().enumerate().map(|(at, item)| {
            item.rule(&mut memory).map_err(|reason| WrongRules::Item {
                item: at + 1,
                reason,
            })
        });
        Ok(Self::from_rules(rules.collect::<Result<_, _>>()?))
    }
}

impl Default for Rules {
    /// A group for each name of a process with a command line, as in the packages of process-exporter.
    fn default() -> Self {
        let item = Item {
            name: "{{.Comm}}".into(),
            cmdlines: Some(vec![".+".into()]),
            ..Item::default()
        };
        Self::of_items(&[item]).unwrap_or_else(|_| Self::from_rules(Vec::new()))
    }
}

#[cfg(test)]
mod tests {
    use proptest::{option, prelude::*};

    use super::*;
    use crate::naming::Subject;

    fn items() -> impl Strategy<Value = Vec<Item>> {
        let list = || option::of(prop::collection::vec(any::<String>(), 0..4));
        let item = (any::<String>(), list(), list(), list());
        let item = item.prop_map(|(name, comms, exes, cmdlines)| Item {
            name,
            comms,
            exes,
            cmdlines,
        });
        prop::collection::vec(item, 0..4)
    }

    proptest! {
        #[test]
        fn items_come_through_as_they_are(items in items()) {
            prop_assert_eq!(Item::from_bytes(&Item::to_bytes(&items)), Ok(items));
        }

        #[test]
        fn truncated_rules_are_refused(items in items(), cut in 1..64_usize) {
            let bytes = Item::to_bytes(&items);
            let kept = bytes.len().saturating_sub(cut);
            prop_assert_eq!(Item::from_bytes(&bytes[..kept]), Err(WrongRules::Malformed));
        }
    }

    #[test]
    fn a_wrong_item_is_named() {
        let right = Item::default();
        let wrong = Item {
            cmdlines: Some(vec!["(".into()]),
            ..Item::default()
        };
        let error = Rules::of_items(&[right, wrong]).expect_err("it is no expression");
        let error = error.to_string();
        assert!(error.starts_with("item 2 of the rules: "), "{error}");
        assert!(error.contains("unclosed group"), "{error}");
    }

    #[test]
    fn more_rules_than_there_may_be_are_refused() {
        let item = Item {
            comms: Some(Vec::new()),
            ..Item::default()
        };
        let items = vec![item.clone(); MOST];
        assert!(Rules::of_items(&items).is_ok());
        let items = vec![item.clone(); MOST + 1];
        assert_eq!(Rules::of_items(&items), Err(WrongRules::TooMany));
        let expressions = Item {
            cmdlines: Some(vec![String::new(); MOST]),
            ..Item::default()
        };
        let error = Rules::of_items(&[expressions]).expect_err("they are one too many");
        assert_eq!(error, WrongRules::TooMany);
        let long = Item {
            comms: Some(vec!["a".repeat(LONGEST)]),
            ..Item::default()
        };
        for wrong in [
            Rules::of_items(std::slice::from_ref(&long)).map(drop),
            Item::from_bytes(&Item::to_bytes(std::slice::from_ref(&long))).map(drop),
        ] {
            assert!(matches!(wrong, Err(WrongRules::TooLong(_))), "{wrong:?}");
        }
    }

    #[test]
    fn by_default_whatever_has_a_command_line_is_grouped_by_name() {
        let name = |comm: &str, cmdline: &str| {
            Rules::default()
                .name_of(&Subject {
                    comm: comm.as_bytes(),
                    cmdline: cmdline.as_bytes(),
                    ..Subject::default()
                })
                .unwrap()
        };
        assert_eq!(name("cron", "/usr/sbin/cron\0-f\0"), Some("cron".into()));
        assert_eq!(name("kthreadd", ""), None);
    }
}
