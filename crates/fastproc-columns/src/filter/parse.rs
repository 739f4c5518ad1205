//! Parses a filter.
//!
//! ```text
//! any        = all { ( "||" | "or" ) all }
//! all        = one { ( "&&" | "and" ) one }
//! one        = ( "!" | "not" ) one | "(" any ")" | comparison
//! comparison = field [ operator value ]
//! operator   = "==" | "=" | "!=" | "<" | "<=" | ">" | ">=" | "=~" | "!~"
//! value      = word | "'" { byte } "'" | '"' { byte } '"'
//! ```

use std::fmt;

use regex::bytes::Regex;

use super::{Node, Operator, decimal::LiteralError, hints, literal::Literal, unescape::unescape};
use crate::{
    escape::escape,
    field::{Field, Subject, UnknownField},
    value::Unit,
};

/// The deepest nesting of conditions.
const DEEPEST: u32 = 64;

const STATES: &str = "R runs, S and D wait, I is an idle kernel thread, T and t are stopped, Z is a zombie, X has ended";

/// Why a filter is invalid, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilterError {
    text: String,
    at: usize,
    problem: Problem,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
enum Problem {
    #[error("expected {0}")]
    Expected(&'static str),
    #[error(transparent)]
    UnknownField(#[from] UnknownField),
    #[error("'{name}' is not true or false; compare it with a value")]
    NotATruth { name: &'static str },
    #[error(
        "'{symbol}' is not an operator; use =~ with a regular expression, as in {name} =~ '{example}'"
    )]
    Operator {
        symbol: &'static str,
        name: &'static str,
        example: &'static str,
    },
    #[error(
        "== compares '{}' letter by letter, including the star; use =~ with a regular expression, as in {name} =~ '{pattern}' (\\x2a means a star)",
        .text.escape_debug()
    )]
    Glob {
        name: &'static str,
        text: String,
        pattern: String,
    },
    #[error("this is neither an exit status nor the name of a signal, as in SIGKILL")]
    Status,
    #[error("a state is a letter, as in state == Z: {STATES}")]
    State,
    #[error("'{name}' is true or false; compare it only with == or !=, or write the name alone")]
    Truth { name: &'static str },
    #[error("'{name}' is not text; only text can be matched with =~ or !~")]
    NotText { name: &'static str },
    #[error(
        "'{name}' is a rate, which is known only over an interval; give one, as in --interval 1"
    )]
    Rate { name: &'static str },
    #[error(transparent)]
    Literal(#[from] LiteralError),
    #[error("this regular expression is invalid: {0}")]
    Pattern(String),
    #[error("the closing quote is missing")]
    Unclosed,
    #[error(
        "this escape does not exist; use \\\\ \\' \\\" \\n \\t \\r \\0, \\x with two digits, and \\u{{…}}"
    )]
    Escape,
    #[error("conditions are nested too deeply")]
    TooDeep,
}

impl std::error::Error for FilterError {}

impl fmt::Display for FilterError {
    /// The problem, the filter, and a mark below the place.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |text: &str| {
            let mut shown = Vec::new();
            escape(text.as_bytes(), &mut shown);
            String::from_utf8(shown).unwrap_or_default()
        };
        let (before, after) = self.text.split_at(self.at);
        let before = shown(before);
        let column = unicode_width::UnicodeWidthStr::width(before.as_str());
        write!(
            f,
            "{}\n\n    {before}{}\n    {:column$}^",
            self.problem,
            shown(after),
            ""
        )
    }
}

/// Why a text is not a regular expression: the last line of the error, whose others repeat the text.
fn reason(error: &regex::Error) -> String {
    let message = error.to_string();
    let reason = message.lines().last().unwrap_or_default();
    reason.strip_prefix("error: ").unwrap_or(reason).into()
}

/// Parses a whole filter. Returns also the error for a single snapshot, if the filter compares a rate.
pub fn parse<S: Subject>(text: &str) -> Result<(Node<S>, Option<FilterError>), FilterError> {
    let mut parser = Parser {
        text,
        at: 0,
        depth: 0,
        rate: None,
    };
    let result = parser.any().and_then(|node| {
        parser.skip_space();
        if parser.rest().is_empty() {
            Ok(node)
        } else {
            Err(parser.problem(Problem::Expected("&&, || or the end")))
        }
    });
    let error = |(at, problem)| FilterError {
        text: text.into(),
        at,
        problem,
    };
    Ok((result.map_err(error)?, parser.rate.map(error)))
}

/// A result whose error has a place.
type Parsed<T> = Result<T, (usize, Problem)>;

struct Parser<'t> {
    text: &'t str,
    at: usize,
    depth: u32,
    /// The first rate in the filter.
    rate: Option<(usize, Problem)>,
}

impl<'t> Parser<'t> {
    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    fn problem(&self, problem: impl Into<Problem>) -> (usize, Problem) {
        (self.at, problem.into())
    }

    fn skip_space(&mut self) {
        self.at = self.text.len() - self.rest().trim_start().len();
    }

    /// Consumes `symbol`, if it comes next.
    fn symbol(&mut self, symbol: &str) -> bool {
        self.skip_space();
        let found = self.rest().starts_with(symbol);
        if found {
            self.at += symbol.len();
        }
        found
    }

    /// Consumes `word`, if it comes next and does not begin a longer word.
    fn keyword(&mut self, word: &str) -> bool {
        self.skip_space();
        let found = self.rest().split(ends_word).next() == Some(word);
        if found {
            self.at += word.len();
        }
        found
    }

    fn any<S: Subject>(&mut self) -> Parsed<Node<S>> {
        let mut nodes = vec![self.all()?];
        while self.symbol("||") || self.keyword("or") {
            nodes.push(self.all()?);
        }
        Ok(joined(nodes, Node::Any))
    }

    fn all<S: Subject>(&mut self) -> Parsed<Node<S>> {
        let mut nodes = vec![self.one()?];
        while self.symbol("&&") || self.keyword("and") {
            nodes.push(self.one()?);
        }
        Ok(joined(nodes, Node::All))
    }

    fn one<S: Subject>(&mut self) -> Parsed<Node<S>> {
        self.skip_space();
        if self.depth == DEEPEST {
            return Err(self.problem(Problem::TooDeep));
        }
        self.depth += 1;
        let node = if self.symbol("!") || self.keyword("not") {
            Node::Not(Box::new(self.one()?))
        } else if self.symbol("(") {
            let node = self.any()?;
            if !self.symbol(")") {
                return Err(self.problem(Problem::Expected("&&, || or )")));
            }
            node
        } else {
            self.comparison()?
        };
        self.depth -= 1;
        Ok(node)
    }

    fn comparison<S: Subject>(&mut self) -> Parsed<Node<S>> {
        self.skip_space();
        let start = self.at;
        let name = self.rest().split(ends_name).next().unwrap_or_default();
        if name.is_empty() {
            return Err(self.problem(Problem::Expected("a field, ! or (")));
        }
        let field = Field::find(name).map_err(|unknown| self.problem(unknown))?;
        self.at += name.len();
        // The name of a column in csv and JSON includes the unit of its bare numbers.
        let bare = !field.unit.suffix().is_empty() && name.eq_ignore_ascii_case(&field.key());
        if field.is_rate && self.rate.is_none() {
            self.rate = Some((start, Problem::Rate { name: field.name }));
        }
        self.skip_space();
        let operator_at = self.at;
        if self.symbol("=~") {
            return self.pattern(field, start);
        }
        if self.symbol("!~") {
            return Ok(Node::Not(Box::new(self.pattern(field, start)?)));
        }
        let operators = [
            ("==", Operator::Equal),
            ("=", Operator::Equal),
            ("!=", Operator::NotEqual),
            ("<=", Operator::LessOrEqual),
            ("<", Operator::Less),
            (">=", Operator::GreaterOrEqual),
            (">", Operator::Greater),
        ];
        let operator = operators
            .into_iter()
            .find(|(symbol, _)| self.symbol(symbol));
        let name = field.name;
        match (operator, field.unit) {
            (None, Unit::Truth) => Ok(Node::Truth(field)),
            (None, _) => Err((operator_at, no_operator(self.rest(), name))),
            (Some((_, operator)), Unit::Truth)
                if !matches!(operator, Operator::Equal | Operator::NotEqual) =>
            {
                Err((operator_at, Problem::Truth { name }))
            }
            (Some((_, operator)), _) => self.compare(field, operator, bare),
        }
    }

    fn compare<S: Subject>(
        &mut self,
        field: &'static Field<S>,
        operator: Operator,
        bare: bool,
    ) -> Parsed<Node<S>> {
        self.skip_space();
        let at = self.at;
        let literal = match field.unit {
            unit if unit.is_text() => {
                let equality = matches!(operator, Operator::Equal | Operator::NotEqual);
                let text = self.bare_or_quoted()?;
                if let Some(pattern) = hints::glob(text).filter(|_| equality) {
                    let name = field.name;
                    let text = text.to_owned();
                    return Err((
                        at,
                        Problem::Glob {
                            name,
                            text,
                            pattern,
                        },
                    ));
                }
                self.at = at;
                let mut value = self.value()?;
                if S::ARE_PROCESSES && field.name == "status" && equality {
                    let status = hints::status(&value).ok_or((at, Problem::Status))?;
                    value = status.to_vec();
                }
                if S::ARE_PROCESSES && field.name == "state" && equality && value.len() != 1 {
                    return Err((at, Problem::State));
                }
                Literal::text(value)
            }
            Unit::Truth => match self.bare_or_quoted()? {
                "true" | "1" | "yes" => Literal::truth(true),
                "false" | "0" | "no" => Literal::truth(false),
                _ => return Err((at, Problem::Expected("true or false"))),
            },
            unit => Literal::parse(self.bare_or_quoted()?, unit, bare)
                .map_err(|error| (at, error.into()))?,
        };
        Ok(Node::Compare(field, operator, literal))
    }

    fn pattern<S: Subject>(&mut self, field: &'static Field<S>, start: usize) -> Parsed<Node<S>> {
        if !field.unit.is_text() {
            return Err((start, Problem::NotText { name: field.name }));
        }
        self.skip_space();
        let at = self.at;
        let pattern = self.bare_or_quoted()?;
        let regex = Regex::new(pattern);
        let regex = regex.map_err(|error| (at, Problem::Pattern(reason(&error))))?;
        Ok(Node::Match(field, regex))
    }

    /// A word or a quoted text, with its escapes resolved.
    fn value(&mut self) -> Parsed<Vec<u8>> {
        let (start, text) = match self.rest().chars().next() {
            Some(quote @ ('"' | '\'')) => (self.at + 1, self.quoted(quote)?),
            _ => (self.at, self.word()?),
        };
        unescape(text).map_err(|at| (start + at, Problem::Escape))
    }

    fn bare_or_quoted(&mut self) -> Parsed<&'t str> {
        match self.rest().chars().next() {
            Some(quote @ ('"' | '\'')) => self.quoted(quote),
            _ => self.word(),
        }
    }

    /// The text between quotes. A backslash escapes the next character.
    fn quoted(&mut self, quote: char) -> Parsed<&'t str> {
        let inner = &self.rest()[1..];
        let mut escaped = false;
        let end = inner.find(|c| {
            let ends = c == quote && !escaped;
            escaped = c == '\\' && !escaped;
            ends
        });
        let end = end.ok_or_else(|| self.problem(Problem::Unclosed))?;
        self.at += end + 2;
        Ok(&inner[..end])
    }

    fn word(&mut self) -> Parsed<&'t str> {
        let word = self.rest().split(ends_word).next().unwrap_or_default();
        if word.is_empty() {
            return Err(self.problem(Problem::Expected(
                "a value; quote it if it has spaces or one of ()&|!<>='\"",
            )));
        }
        self.at += word.len();
        Ok(word)
    }
}

/// The error for text in place of an operator.
fn no_operator(rest: &str, name: &'static str) -> Problem {
    match hints::other_operator(rest) {
        Some((symbol, example)) => Problem::Operator {
            symbol,
            name,
            example,
        },
        None => Problem::NotATruth { name },
    }
}

fn joined<S: Subject>(mut nodes: Vec<Node<S>>, join: fn(Vec<Node<S>>) -> Node<S>) -> Node<S> {
    match nodes.pop() {
        Some(only) if nodes.is_empty() => only,
        last => {
            nodes.extend(last);
            join(nodes)
        }
    }
}

fn ends_word(c: char) -> bool {
    c.is_whitespace() || "()&|!<>='\"".contains(c)
}

fn ends_name(c: char) -> bool {
    ends_word(c) || c == '~'
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::field::Processes;

    #[track_caller]
    fn message(text: &str) -> String {
        parse::<Processes>(text)
            .expect_err("a wrong filter")
            .to_string()
    }

    #[test]
    fn an_error_points_at_its_place() {
        assert_eq!(
            message("pid > 1 && rsss > 100M"),
            "there is no field 'rsss'; did you mean 'rss'?\n\n    pid > 1 && rsss > 100M\n               ^"
        );
        assert_eq!(
            message("pid >"),
            "expected a value; quote it if it has spaces or one of ()&|!<>='\"\n\n    pid >\n         ^"
        );
        assert!(message("größe").ends_with("    größe\n    ^"));
        assert!(message("comm == größe x").ends_with("    comm == größe x\n                  ^"));
        assert!(message("comm == 進程 x").ends_with("\n                 ^"));
        assert!(message("comm == \"\u{1b}[2J").ends_with("comm == \"\\u{1b}[2J\n            ^"));
    }

    #[test]
    fn errors_say_what_is_wrong() {
        for (text, says) in [
            ("", "expected a field, ! or ("),
            ("pid", "'pid' is not true or false"),
            ("pid == 1 pid == 2", "expected &&, || or the end"),
            ("(pid == 1", "expected &&, || or )"),
            ("pid == 1)", "expected &&, || or the end"),
            ("pid == x", "this is not a number"),
            ("pid =~ 1", "'pid' is not text"),
            ("utime > 5x", "or has units"),
            ("rss > 5X", "the units of a size"),
            ("kthread < true", "'kthread' is true or false"),
            ("kthread == maybe", "expected true or false"),
            ("lstart > 5", "this is not a date"),
            ("umask == 8", "octal digits, as in 0022"),
            ("capeff == xyz", "hexadecimal digits"),
            ("policy == fifo", "TS, FF, RR"),
            (r"comm == a\u{110000}", "this escape does not exist"),
            (r"comm == a\u00", "this escape does not exist"),
            (
                "comm =~ '('",
                "this regular expression is invalid: unclosed group",
            ),
            (
                "comm ~ ssh",
                "'~' is not an operator; use =~ with a regular expression",
            ),
            ("comm like 'ssh%'", "'like' is not an operator"),
            ("comm contains ssh", "comm =~ 'ssh'"),
            ("cmdline startswith ssh", "cmdline =~ '^ssh'"),
            ("comm == *rust*", "comm =~ 'rust'"),
            ("comm == rust*", "comm =~ '^rust'"),
            ("comm != '*.sh'", r"comm =~ '\.sh$'"),
            ("comm == 'abc", "the closing quote is missing"),
            (r"comm == '\q'", "this escape does not exist"),
            (r"comm == '\xg0'", "this escape does not exist"),
            (r"comm == '\x+1'", "this escape does not exist"),
        ] {
            let message = message(text);
            assert!(message.contains(says), "{text}: {message}");
        }
        assert!(message(&"!".repeat(100_000)).contains("too deeply"));
        assert!(message(&"(".repeat(100_000)).contains("too deeply"));
    }

    #[test]
    fn a_star_can_be_compared_with() {
        for text in [
            r"comm == 'a\x2a'",
            "comm == a*b",
            "comm == '*'",
            "comm > 'a*'",
        ] {
            assert!(parse::<Processes>(text).is_ok(), "{text}");
        }
    }

    #[test]
    fn there_may_be_many_conditions_side_by_side() {
        assert!(parse::<Processes>(&vec!["(pid == 1)"; 10_000].join(" || ")).is_ok());
    }

    proptest! {
        #[test]
        fn no_text_is_a_panic(text in any::<String>()) {
            let _ = parse::<Processes>(&text).map_err(|error| error.to_string());
        }

        #[test]
        fn nor_is_what_looks_like_a_filter(parts in prop::collection::vec(prop::sample::select(vec![
            "pid", "comm", "rss", "utime", "kthread", "lstart", "pcpu", "groups", "==", "=", "!=", "<", ">=", "=~", "!~", "!", "(", ")", "&&",
            "||", "and", "or", "not", "1", "0x", "-1.5", "1.5s", "100M", "'a'", "\"", "'", "\\", "\\x", "é", " ", "x[", "\u{0}",
        ]), 0..12)) {
            for separator in ["", " "] {
                let _ = parse::<Processes>(&parts.join(separator)).map_err(|error| error.to_string());
            }
        }
    }
}
