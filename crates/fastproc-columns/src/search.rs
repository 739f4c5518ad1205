//! A search for processes by name and command line.

use std::{ops::Range, str::FromStr};

use regex::Regex;

/// A text to search for, in letters of either case.
#[derive(Clone, Debug)]
pub struct Needle(Regex);

/// The text is too long to search for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the text is too long")]
pub struct NeedleError;

impl FromStr for Needle {
    type Err = NeedleError;

    fn from_str(text: &str) -> Result<Self, NeedleError> {
        let pattern = format!("(?i){}", regex::escape(text));
        Regex::new(&pattern).map(Self).map_err(|_| NeedleError)
    }
}

impl Needle {
    /// The filter for processes that have it, except the one with this id: the command that searches has it, too.
    pub fn filter(&self, own: u32) -> String {
        let pattern = self.0.as_str().replace('\'', r"\x27");
        format!("(comm =~ '{pattern}' || cmdline =~ '{pattern}') && pid != {own}")
    }

    /// Where it is in a text.
    pub fn places(&self, text: &str) -> impl Iterator<Item = Range<usize>> {
        let found = self.0.find_iter(text).map(|found| found.range());
        found.filter(|range| !range.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Filter;

    #[test]
    fn every_text_is_searched_for_literally() {
        for text in ["nginx", "it's", "a.b (c) \\d 'x", "grün", ""] {
            let needle: Needle = text.parse().expect("a short text");
            let filter = needle.filter(1);
            assert!(filter.parse::<Filter>().is_ok(), "{filter}");
            let upper = text.to_uppercase();
            let found = needle.places(&upper).next();
            assert_eq!(found.unwrap_or(0..0), 0..upper.len(), "{text}");
        }
    }
}
