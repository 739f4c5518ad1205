//! Rules as they are written, and as bytes for the process that uses them: whoever reads the file is another one.

use super::{
    regex::compile,
    rules::{Rule, Rules},
    subject::base,
    template::Template,
};

/// What an item of `process_names` says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Item {
    /// The template of the name; empty for that which process-exporter has.
    pub name: String,
    /// Names of processes, one of which must be its own.
    pub comms: Option<Vec<String>>,
    /// Programs, by path or base, one of which must be its own.
    pub exes: Option<Vec<String>>,
    /// Regular expressions that must all match its command line.
    pub cmdlines: Option<Vec<String>>,
}

/// An item cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("item {item} of the rules: {reason}")]
pub struct WrongItem {
    /// Its number, from 1.
    pub item: usize,
    /// What is wrong with it.
    pub reason: String,
}

/// Whether this can be the template of a name, or what of it is not understood.
pub fn check_name(template: &str) -> Result<(), String> {
    Template::parse(template).map(drop)
}

/// Whether this is a regular expression as Go has them, or what is wrong with it.
pub fn check_expression(pattern: &str) -> Result<(), String> {
    compile(pattern).map(drop)
}

impl Item {
    fn rule(&self) -> Result<Rule, String> {
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
            let compiled = patterns.iter().map(|pattern| compile(pattern));
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

    /// Items as bytes: a text is its length and its bytes, a list its length, or `u32::MAX` where there is none, and its texts.
    pub fn to_bytes(items: &[Self]) -> Vec<u8> {
        let mut bytes = Vec::new();
        let text = |bytes: &mut Vec<u8>, text: &str| {
            bytes.extend_from_slice(&(text.len() as u32).to_ne_bytes());
            bytes.extend_from_slice(text.as_bytes());
        };
        for item in items {
            text(&mut bytes, &item.name);
            for list in [&item.comms, &item.exes, &item.cmdlines] {
                let length = list.as_ref().map_or(u32::MAX, |list| list.len() as u32);
                bytes.extend_from_slice(&length.to_ne_bytes());
                for element in list.iter().flatten() {
                    text(&mut bytes, element);
                }
            }
        }
        bytes
    }

    /// The items of such bytes, unless they are none.
    pub fn from_bytes(mut bytes: &[u8]) -> Option<Vec<Self>> {
        let mut items = Vec::new();
        while !bytes.is_empty() {
            items.push(Self {
                name: text(&mut bytes)?,
                comms: list(&mut bytes).ok()?,
                exes: list(&mut bytes).ok()?,
                cmdlines: list(&mut bytes).ok()?,
            });
        }
        Some(items)
    }
}

fn number(bytes: &mut &[u8]) -> Option<u32> {
    let (number, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(u32::from_ne_bytes(*number))
}

fn text(bytes: &mut &[u8]) -> Option<String> {
    let length = number(bytes)?;
    let (text, rest) = bytes.split_at_checked(length as usize)?;
    *bytes = rest;
    String::from_utf8(text.to_vec()).ok()
}

/// A list, or that there is none.
fn list(bytes: &mut &[u8]) -> Result<Option<Vec<String>>, CutShort> {
    match number(bytes).ok_or(CutShort)? {
        u32::MAX => Ok(None),
        length => (0..length)
            .map(|_| text(bytes).ok_or(CutShort))
            .collect::<Result<_, _>>()
            .map(Some),
    }
}

/// There are not so many bytes.
struct CutShort;

impl Rules {
    /// The rules of these items, the first of which that matches names a process.
    pub fn of_items(items: &[Item]) -> Result<Self, WrongItem> {
        let rules = items.iter().enumerate().map(|(at, item)| {
            item.rule().map_err(|reason| WrongItem {
                item: at + 1,
                reason,
            })
        });
        Ok(Self::from_rules(rules.collect::<Result<_, _>>()?))
    }
}

impl Default for Rules {
    /// A group for each name of a process that has a command line: what the packages of process-exporter ship.
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
            prop_assert_eq!(Item::from_bytes(&Item::to_bytes(&items)), Some(items));
        }

        #[test]
        fn what_are_no_items_is_refused_and_takes_no_memory(bytes: Vec<u8>) {
            let _ = Item::from_bytes(&bytes);
        }

        #[test]
        fn what_is_cut_short_is_refused(items in items(), cut in 1..64_usize) {
            let bytes = Item::to_bytes(&items);
            let kept = bytes.len().saturating_sub(cut);
            let read = Item::from_bytes(&bytes[..kept]);
            prop_assert!(read.is_none_or(|read| read.len() < items.len() || bytes.is_empty()));
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
        assert_eq!(error.item, 2);
        assert!(error.reason.contains("unclosed group"), "{error}");
    }

    #[test]
    fn by_default_whatever_has_a_command_line_is_grouped_by_name() {
        let name = |comm: &str, cmdline: &str| {
            Rules::default()
                .name_of(&Subject {
                    pid: 1,
                    comm: comm.as_bytes(),
                    cmdline: cmdline.as_bytes(),
                    username: "root",
                    cgroups: &[],
                    start_unix_ns: 0,
                })
                .unwrap()
        };
        assert_eq!(name("cron", "/usr/sbin/cron\0-f\0"), Some("cron".into()));
        assert_eq!(name("kthreadd", ""), None);
    }
}
