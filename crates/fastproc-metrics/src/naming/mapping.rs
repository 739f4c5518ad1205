//! Names on the command line instead of a configuration file.

use super::{
    regex::{Memory, compile},
    rules::{Mapping, Rules},
};

/// Why names on the command line cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MappingError {
    /// Names and expressions come in pairs.
    #[error(
        "a name mapping is a list of names, each followed by a regular expression; {0:?} has an odd number of items"
    )]
    Odd(String),
    /// An item is empty.
    #[error("item {0} of the name mapping is empty")]
    Empty(usize),
    /// An expression cannot be compiled.
    #[error("in the name mapping, {0}")]
    Expression(String),
}

impl Rules {
    /// The rules of `-procnames` and `-namemapping`: a group for each name in the first list, and, for each name in the
    /// second, a group for each capture of its expression.
    pub fn of_names(names: &[String], mapping: Option<&str>) -> Result<Self, MappingError> {
        let mut rules = Mapping::new();
        if let Some(text) = mapping.filter(|text| !text.is_empty()) {
            let items: Vec<&str> = text.split(',').collect();
            if let Some(at) = items.iter().position(|item| item.is_empty()) {
                return Err(MappingError::Empty(at + 1));
            }
            let (pairs, rest) = items.as_chunks::<2>();
            if !rest.is_empty() {
                return Err(MappingError::Odd(text.into()));
            }
            let mut memory = Memory::default();
            for [name, pattern] in pairs {
                let regex = compile(pattern, &mut memory).map_err(MappingError::Expression)?;
                rules.insert(name.as_bytes().to_vec(), Some(regex));
            }
        }
        for name in names.iter().filter(|name| !name.is_empty()) {
            rules.entry(name.as_bytes().to_vec()).or_insert(None);
        }
        Ok(Self::from_mapping(rules))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::naming::Subject;

    fn name(rules: &Rules, comm: &str, cmdline: &str) -> Option<String> {
        rules
            .name_of(&Subject {
                comm: comm.as_bytes(),
                cmdline: cmdline.as_bytes(),
                ..Subject::default()
            })
            .unwrap()
    }

    #[test]
    fn names_are_groups_and_captures_are_added() {
        let names = ["bash".to_owned(), String::new(), "java".to_owned()];
        let rules =
            Rules::of_names(&names, Some(r"python2,([^/]+)\.py,java,-jar\s+([^/]+).jar")).unwrap();
        assert_eq!(name(&rules, "bash", ""), Some("bash".into()));
        assert_eq!(
            name(&rules, "python2", "python2\0/x/run.py\0"),
            Some("python2:run".into())
        );
        assert_eq!(
            name(&rules, "java", "java\0-jar\0a.jar\0"),
            Some("java:a".into())
        );
        assert_eq!(name(&rules, "java", "java\0"), None);
        assert_eq!(name(&rules, "sh", "sh\0"), None);
    }

    #[test]
    fn wrong_mappings_say_so() {
        for (mapping, reason) in [
            ("a", "\"a\" has an odd number"),
            ("a,", "item 2 of the name mapping is empty"),
            ("a,(", "unclosed group"),
        ] {
            let error = Rules::of_names(&[], Some(mapping)).expect_err(mapping);
            assert!(error.to_string().contains(reason), "{error}");
        }
    }
}
