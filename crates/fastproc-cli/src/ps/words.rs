//! Parses words without a dash, as in `ps aux`, `ps axo pid,comm` and `ps 1 42`.

use fastproc_columns::Sort;

use super::{
    ps1::{self, Column, ColumnError, Set, Shape},
    selection::{By, Choice, ListError, Selection},
};

/// The parsed words.
#[derive(Clone, Debug, Default)]
#[allow(clippy::struct_excessive_bools, reason = "one for each letter")]
pub struct Words {
    /// Whether there are words.
    pub any: bool,
    /// Whether one of them names a set of columns.
    pub sets: bool,
    /// The set of columns.
    pub shape: Shape,
    /// The columns that follow `o`.
    pub columns: Vec<Column>,
    /// The columns that follow `O`, placed between the process id and the rest.
    pub inserted: Vec<Column>,
    /// The keys that follow `k`.
    pub sort: Option<String>,
    /// The selected processes.
    pub selection: Selection,
    /// `f`: as a tree.
    pub tree: bool,
    /// `H`: a row for each thread.
    pub threads: bool,
    /// `h`: without headings.
    pub no_headings: bool,
    /// `w`: each doubles the width.
    pub wide: u8,
    /// `a`; the next is `x`.
    others: bool,
    without_terminal: bool,
}

/// Why a word is invalid.
#[derive(Debug, thiserror::Error)]
pub enum WordsError {
    /// A letter that fastproc ps does not know.
    #[error("the word '{}' is not understood{}; {}", .word.escape_debug(), .why, HINT)]
    Unknown {
        /// The word.
        word: String,
        /// The reason.
        why: String,
    },
    /// Two sets of columns.
    #[error("'{0}' and '{1}' each name a set of columns; type one of them, as in ps aux")]
    Sets(char, char),
    /// The value of a letter is missing.
    #[error("'{0}' needs a value, as in ps ax{0} {1}")]
    Argument(char, &'static str),
    /// The keys after k are invalid.
    #[error("k needs fields to sort by, as in k -rss; '{}' is not one; {}", .0.escape_debug(), HINT)]
    Sort(String),
    /// An invalid list of columns.
    #[error(transparent)]
    Column(#[from] ColumnError),
    /// An invalid list of processes, or of their properties.
    #[error(transparent)]
    List(#[from] ListError),
}

/// Examples of valid input.
const HINT: &str =
    "type aux, ax, axjf or a process id, or options with a dash, as in -ef or -p PID";

/// Letters of ps(1) that fastproc lacks, and what to type instead.
const OTHERS: &[(char, &str)] = &[
    (
        'e',
        "the environment is not shown; read it from /proc/PID/environ, or leave out the e",
    ),
    (
        'm',
        "threads are not shown below their processes; type H for a row each, as in ps axH",
    ),
    (
        'S',
        "times of children are columns; type ps -o pid,cutime,cstime",
    ),
    ('L', "fastproc ps --help lists the columns"),
    ('V', "type fastproc --version"),
    ('N', "type -N or --deselect"),
];

/// What is wrong with words, of which the first may be meant as a text to search for.
#[derive(Debug, thiserror::Error)]
#[error("{problem}; to search for processes, type --search {}", .word.escape_debug())]
pub struct NoWords {
    problem: WordsError,
    word: String,
}

/// Parses words without a dash.
pub fn parse_words(words: &[String]) -> Result<Words, NoWords> {
    parse(words).map_err(|problem| NoWords {
        problem,
        word: words.join(" "),
    })
}

fn parse(words: &[String]) -> Result<Words, WordsError> {
    let mut parsed = Words::default();
    let mut words = words.iter();
    let mut set_by = None;
    while let Some(word) = words.next() {
        parsed.any = true;
        if word.starts_with(|c: char| c.is_ascii_digit()) {
            parsed.selection.list(By::Pid, word)?;
            continue;
        }
        let mut letters = word.chars();
        while let Some(letter) = letters.next() {
            if let Some(set) = set(letter) {
                if let Some(other) = set_by.replace(letter).filter(|&other| other != letter) {
                    return Err(WordsError::Sets(other, letter));
                }
                parsed.shape.set = set;
                continue;
            }
            if let Some(example) = takes(letter) {
                let rest = letters.as_str();
                let argument = if rest.is_empty() {
                    words.next().ok_or(WordsError::Argument(letter, example))?
                } else {
                    rest
                };
                parsed.argument(letter, argument)?;
                break;
            }
            parsed.letter(letter).map_err(|why| WordsError::Unknown {
                word: word.clone(),
                why: if word == "help" { String::new() } else { why },
            })?;
        }
    }
    parsed.sets = set_by.is_some();
    if parsed.any && parsed.shape.set == Set::Dashed {
        parsed.shape.set = Set::Words;
    }
    if parsed.others || parsed.without_terminal {
        parsed.selection.choose(Choice::Bsd {
            others: parsed.others,
            without_terminal: parsed.without_terminal,
        });
    }
    Ok(parsed)
}

const fn set(letter: char) -> Option<Set> {
    Some(match letter {
        'u' => Set::User,
        'j' => Set::Jobs,
        'l' => Set::Long,
        's' => Set::Signals,
        'v' => Set::Memory,
        'X' => Set::Registers,
        _ => return None,
    })
}

/// An example of the value of this letter, if it takes one.
const fn takes(letter: char) -> Option<&'static str> {
    Some(match letter {
        'o' | 'O' => "pid,rss,comm",
        'k' => "-rss",
        'p' | 'q' => "1,42",
        't' => "pts/0",
        'U' => "root",
        _ => return None,
    })
}

impl Words {
    fn argument(&mut self, letter: char, argument: &str) -> Result<(), WordsError> {
        match letter {
            'o' => self.columns.extend(ps1::parse(argument)?),
            'O' => self.inserted.extend(ps1::parse(argument)?),
            'k' if ps1::sort_keys(argument).parse::<Sort>().is_err() => {
                return Err(WordsError::Sort(argument.into()));
            }
            'k' => self.sort = Some(argument.into()),
            't' => self.selection.list(By::Terminal, argument)?,
            'U' => self.selection.list(By::User, argument)?,
            'q' => self.selection.list_in_order(argument)?,
            _ => self.selection.list(By::Pid, argument)?,
        }
        Ok(())
    }

    fn letter(&mut self, letter: char) -> Result<(), String> {
        match letter {
            'a' => self.others = true,
            'x' => self.without_terminal = true,
            // ps(1) has long shown group leaders without it.
            'g' => {}
            'T' => self.selection.choose(Choice::OwnTerminal),
            'r' => self.selection.running = true,
            'f' => self.tree = true,
            'H' => self.threads = true,
            'h' => self.no_headings = true,
            'c' => self.shape.names = true,
            'n' => self.shape.numbers = true,
            'w' => self.wide = self.wide.saturating_add(1),
            'Z' => self.shape.label = true,
            _ => {
                let instead = OTHERS.iter().find(|(other, _)| *other == letter);
                return Err(match instead {
                    Some((_, instead)) => format!(" ('{letter}': {instead})"),
                    None => String::new(),
                });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Result<Words, NoWords> {
        let words: Vec<_> = line.split_whitespace().map(String::from).collect();
        parse_words(&words)
    }

    #[test]
    fn the_words_of_ps_are_understood() {
        let set = |line| words(line).map(|words| words.shape.set).ok();
        assert_eq!(set(""), Some(Set::Dashed));
        assert_eq!(set("aux"), Some(Set::User));
        assert_eq!(set("auxww"), Some(Set::User));
        assert_eq!(set("u"), Some(Set::User));
        assert_eq!(set("ax"), Some(Set::Words));
        assert_eq!(set("alx"), Some(Set::Long));
        assert_eq!(set("axjf"), Some(Set::Jobs));
        assert_eq!(set("1,42"), Some(Set::Words));
        assert!(words("auxf").is_ok_and(|words| words.tree));
        assert!(words("axH").is_ok_and(|words| words.threads));
        assert!(words("axo pid,comm").is_ok_and(|words| words.columns.len() == 2));
        assert!(words("axopid").is_ok_and(|words| words.columns.len() == 1));
        assert!(words("axk -rss").is_ok_and(|words| words.sort.as_deref() == Some("-rss")));
    }

    #[test]
    fn unknown_words_are_answered_with_what_to_type() {
        for (line, says) in [
            (
                "kill",
                "k needs fields to sort by, as in k -rss; 'ill' is not one",
            ),
            ("extra", "as in -ef"),
            ("auxz", "as in -ef"),
            ("help", "the word 'help' is not understood; type aux"),
            ("axo", "as in ps axo pid,rss,comm"),
            ("auj", "'u' and 'j' each name a set of columns"),
            ("axm", "type H"),
            ("p x", "'x' is not a process id"),
        ] {
            let error = words(line).expect_err(line).to_string();
            assert!(error.contains(says), "{line}: {error}");
        }
    }
}
