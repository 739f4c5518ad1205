//! Regular expressions of Go's syntax (RE2), for an engine whose syntax differs in places.

use regex::{Error, Regex, RegexBuilder};

/// Go refuses to repeat anything more often.
const MOST_REPEATS: u32 = 1000;

/// The longest expression, in bytes: what it is taken apart to is larger by far.
const LONGEST: usize = 8 * 1024;

/// What all expressions of the rules may take, in bytes. Each is charged with the first of these sizes that it fits.
const MEMORY: usize = 64 << 20;
const SIZES: [usize; 5] = [4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20];

/// What of that is left.
#[derive(Debug)]
pub(super) struct Memory(usize);

impl Default for Memory {
    fn default() -> Self {
        Self(MEMORY)
    }
}

impl Memory {
    /// Compiles an expression of the engine's syntax.
    fn build(&mut self, pattern: &str) -> Result<Regex, Error> {
        let mut result = Err(Error::CompiledTooBig(self.0));
        for size in SIZES.into_iter().filter(|&size| size <= self.0) {
            let mut builder = RegexBuilder::new(pattern);
            // What it remembers while it searches is as large at most.
            result = builder
                .size_limit(size)
                .dfa_size_limit(size.max(SIZES[2]))
                .build();
            match result {
                Err(Error::CompiledTooBig(_)) => {}
                Ok(_) => {
                    self.0 -= size;
                    break;
                }
                Err(_) => break,
            }
        }
        result
    }
}

/// An expression, with the names of its groups: two may have the same in Go.
#[derive(Clone, Debug)]
pub(super) struct Expression {
    pub regex: Regex,
    /// By the number of the group; empty for what has no name, and for the whole.
    pub names: Vec<String>,
}

impl PartialEq for Expression {
    fn eq(&self, other: &Self) -> bool {
        self.regex.as_str() == other.regex.as_str() && self.names == other.names
    }
}

/// Compiles an expression. What Go understands otherwise than the engine is translated; what it refuses is refused.
pub(super) fn compile(pattern: &str, memory: &mut Memory) -> Result<Expression, String> {
    if pattern.len() > LONGEST {
        let length = pattern.len();
        return Err(format!(
            "a regular expression of {length} bytes is too long: {LONGEST} are allowed"
        ));
    }
    let wrong = |reason: &str| format!("the regular expression {pattern:?} is wrong: {reason}");
    let mut translator = Translator {
        rest: pattern,
        to: String::with_capacity(pattern.len() + 16),
        names: vec![String::new()],
    };
    translator.expression().map_err(|reason| wrong(&reason))?;
    let regex = memory.build(&translator.to).map_err(|error| {
        if let Error::CompiledTooBig(_) = error {
            let (each, all) = (SIZES[4], MEMORY);
            return wrong(&format!(
                "it takes too much memory; one may take {each} bytes, and those of all rules {all}"
            ));
        }
        let reason = error.to_string();
        let last = reason.lines().last().unwrap_or_default().trim();
        wrong(last.trim_start_matches("error: "))
    })?;
    Ok(Expression {
        regex,
        names: translator.names,
    })
}

struct Translator<'a> {
    rest: &'a str,
    to: String,
    names: Vec<String>,
}

impl Translator<'_> {
    fn next(&mut self) -> Option<char> {
        let c = self.rest.chars().next()?;
        self.rest = &self.rest[c.len_utf8()..];
        Some(c)
    }

    fn literal(&mut self, c: char) {
        self.to += &regex::escape(c.encode_utf8(&mut [0; 4]));
    }

    fn expression(&mut self) -> Result<(), String> {
        while let Some(c) = self.next() {
            match c {
                '\\' => self.escape()?,
                '[' => self.class()?,
                '{' => self.repeat()?,
                '(' => self.group()?,
                c => self.to.push(c),
            }
        }
        Ok(())
    }

    /// `{2}`, `{2,}` or `{2,3}`; anything else is text.
    fn repeat(&mut self) -> Result<(), String> {
        let bounds = self.rest.split_once('}').filter(|(bounds, _)| {
            let (least, most) = bounds.split_once(',').unwrap_or((bounds, ""));
            let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
            !least.is_empty() && digits(least) && digits(most)
        });
        let Some((bounds, rest)) = bounds else {
            self.literal('{');
            return Ok(());
        };
        let too_many =
            |bound: &str| !bound.is_empty() && bound.parse().is_ok_and(|n: u32| n > MOST_REPEATS);
        if bounds.split(',').any(too_many) {
            return Err(format!(
                "nothing is repeated more than {MOST_REPEATS} times"
            ));
        }
        self.to += &format!("{{{bounds}}}");
        self.rest = rest;
        Ok(())
    }

    /// Names are kept here. Of flags there are only those of Go: the engine knows more.
    fn group(&mut self) -> Result<(), String> {
        self.to.push('(');
        let Some(rest) = self.rest.strip_prefix('?') else {
            self.names.push(String::new());
            return Ok(());
        };
        if let Some(named) = rest.strip_prefix("P<").or_else(|| rest.strip_prefix('<')) {
            let word = |name: &str| {
                let mut bytes = name.bytes();
                bytes.all(|byte| byte == b'_' || byte.is_ascii_alphanumeric())
            };
            let (name, rest) = named
                .split_once('>')
                .filter(|(name, _)| !name.is_empty() && word(name))
                .ok_or("a group has no name that can be one")?;
            self.names.push(name.into());
            self.rest = rest;
            return Ok(());
        }
        let end = rest.find([':', ')']).unwrap_or(rest.len());
        match rest[..end].chars().find(|c| !"imsU-".contains(*c)) {
            Some(flag) => Err(format!("(?{flag} is not known")),
            None => Ok(()),
        }
    }

    fn escape(&mut self) -> Result<(), String> {
        let Some(c) = self.next() else {
            return Err("a \\ ends it".into());
        };
        match c {
            'Q' => {
                let (text, rest) = self.rest.split_once("\\E").unwrap_or((self.rest, ""));
                self.to += &regex::escape(text);
                self.rest = rest;
            }
            // Those of Go are of ASCII, and everything else is of Unicode.
            'd' | 'D' | 's' | 'S' | 'w' | 'W' => self.to += &format!("[{}]", ascii(c)),
            'b' | 'B' => self.to += &format!("(?-u:\\{c})"),
            'A' | 'z' => self.to += &format!("\\{c}"),
            'p' | 'P' => self.property(c),
            c => {
                let c = self.character(c)?;
                self.literal(c);
            }
        }
        Ok(())
    }

    /// `\pN` or `\p{Greek}`.
    fn property(&mut self, c: char) {
        let length = if self.rest.starts_with('{') {
            self.rest.find('}').map_or(self.rest.len(), |at| at + 1)
        } else {
            self.rest.chars().next().map_or(0, char::len_utf8)
        };
        let (name, rest) = self.rest.split_at(length);
        self.to += &format!("\\{c}{name}");
        self.rest = rest;
    }

    /// The character that an escape stands for.
    fn character(&mut self, c: char) -> Result<char, String> {
        let not_known = || Err(format!("\\{c} is not known"));
        let number = match c {
            'a' => 7,
            'f' => 12,
            't' => 9,
            'n' => 10,
            'r' => 13,
            'v' => 11,
            '0' => self.octal(0, 2),
            '1'..='7' if self.rest.starts_with(|c: char| c.is_digit(8)) => {
                self.octal(c as u32 - u32::from('0'), 2)
            }
            'x' => return self.hexadecimal().map_or_else(not_known, Ok),
            c if c.is_ascii() && !c.is_ascii_alphanumeric() => return Ok(c),
            _ => return not_known(),
        };
        char::from_u32(number).map_or_else(not_known, Ok)
    }

    fn octal(&mut self, mut number: u32, most: usize) -> u32 {
        for _ in 0..most {
            let Some(digit) = self.rest.chars().next().and_then(|c| c.to_digit(8)) else {
                break;
            };
            self.next();
            number = number * 8 + digit;
        }
        number
    }

    fn hexadecimal(&mut self) -> Option<char> {
        let digits;
        (digits, self.rest) = match self.rest.strip_prefix('{') {
            Some(rest) => rest.split_once('}')?,
            None => self.rest.split_at_checked(2)?,
        };
        char::from_u32(u32::from_str_radix(digits, 16).ok()?)
    }

    /// What stands between brackets. There are no sets in sets, and no operators between them.
    fn class(&mut self) -> Result<(), String> {
        let unclosed = || "a [ has no ]".to_owned();
        self.to.push('[');
        if let Some(rest) = self.rest.strip_prefix('^') {
            self.to.push('^');
            self.rest = rest;
        }
        let mut first = true;
        loop {
            let c = self.next().ok_or_else(unclosed)?;
            match c {
                ']' if !first => {
                    self.to.push(']');
                    return Ok(());
                }
                '[' if self.rest.starts_with(':') && self.rest.contains(":]") => {
                    let (name, rest) = self.rest[1..].split_once(":]").ok_or_else(unclosed)?;
                    self.to += &format!("[:{name}:]");
                    self.rest = rest;
                }
                '\\' if self.rest.starts_with(['d', 'D', 's', 'S', 'w', 'W']) => {
                    let class = self.next().ok_or_else(unclosed)?;
                    self.to += &match class {
                        'd' | 's' | 'w' => ascii(class),
                        class => format!("[{}]", ascii(class)),
                    };
                }
                '\\' if self.rest.starts_with(['p', 'P']) => {
                    let class = self.next().ok_or_else(unclosed)?;
                    self.property(class);
                }
                c => {
                    self.member(c)?;
                    // A range, unless the - is the last.
                    if let Some(rest) = self.rest.strip_prefix('-')
                        && !rest.starts_with(']')
                    {
                        self.rest = rest;
                        self.to.push('-');
                        let c = self.next().ok_or_else(unclosed)?;
                        self.member(c)?;
                    }
                }
            }
            first = false;
        }
    }

    fn member(&mut self, c: char) -> Result<(), String> {
        let c = if c == '\\' {
            let escaped = self.next().ok_or("a \\ ends it")?;
            self.character(escaped)?
        } else {
            c
        };
        self.literal(c);
        Ok(())
    }
}

/// What is between the brackets of Perl's classes, as Go has them.
fn ascii(class: char) -> String {
    let members = match class.to_ascii_lowercase() {
        'd' => "0-9",
        's' => "\\t\\n\\x0C\\r ",
        _ => "0-9A-Za-z_",
    };
    let not = if class.is_ascii_uppercase() { "^" } else { "" };
    format!("{not}{members}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compile(pattern: &str) -> Result<Expression, String> {
        super::compile(pattern, &mut Memory::default())
    }

    #[test]
    fn expressions_that_take_too_much_memory_are_refused() {
        for pattern in [r"(\pL{1000}){1000}", r"(?i)\pL{900}"] {
            let error = compile(pattern).expect_err(pattern);
            assert!(error.contains("it takes too much memory"), "{error}");
        }
        let error = compile(&"a".repeat(8193)).expect_err("it is too long");
        assert_eq!(
            error,
            "a regular expression of 8193 bytes is too long: 8192 are allowed"
        );
        // Many are as bad as a large one.
        let mut memory = Memory(SIZES[1]);
        let taken = (0..5).map(|_| super::compile("a", &mut memory).is_ok());
        assert_eq!(taken.collect::<Vec<_>>(), [true, true, true, true, false]);
    }

    /// An expression, a text, and what Go finds in it.
    const FOUND: &[(&str, &str, Option<&str>)] = &[
        ("a{", "a{", Some("a{")),
        ("a{,2}", "a{,2}", Some("a{,2}")),
        ("a{2}", "aaa", Some("aa")),
        ("{x}", "{x}", Some("{x}")),
        (r"\Qa.b\E.", "a.bc", Some("a.bc")),
        (r"\Q(", "(", Some("(")),
        ("[[]", "[", Some("[")),
        ("[[a]+", "[a", Some("[a")),
        ("[a&&b]+", "a&b", Some("a&b")),
        ("[a~~b]+", "~", Some("~")),
        ("[]a]+", "]a", Some("]a")),
        ("[^]a]", "b", Some("b")),
        ("[a-]", "-", Some("-")),
        ("[[:alpha:]_]+", "ab_1", Some("ab_")),
        (r"[\d\-x]+", "1-x", Some("1-x")),
        (r"[\D]", "1", None),
        (r"[^\S]", " ", Some(" ")),
        (r"\101", "A", Some("A")),
        (r"\0", "\0", Some("\0")),
        (r"[\101-C]+", "ABCD", Some("ABC")),
        (r"\<a\>", "<a>", Some("<a>")),
        (r"\/\-\_", "/-_", Some("/-_")),
        (".", "\u{e9}", Some("\u{e9}")),
        ("(?i)\u{e9}", "\u{c9}", Some("\u{c9}")),
        (r"\w+", "a\u{e9}", Some("a")),
        (r"\w\b", "a\u{e9}", Some("a")),
        (r"\d", "\u{663}", None),
        (r"\s", "\u{a0}", None),
        (r"[^a]", "\u{e9}", Some("\u{e9}")),
        (r"\x41\x{42}", "AB", Some("AB")),
        (r"\pL+", "a\u{e9}1", Some("a\u{e9}")),
        ("(?U)a+", "aa", Some("a")),
        ("(?s).", "\n", Some("\n")),
        (".", "\n", None),
        (r"(?P<x>a)|b", "b", Some("b")),
    ];

    #[test]
    fn expressions_find_what_they_find_in_go() {
        for (pattern, text, found) in FOUND {
            let regex = compile(pattern).unwrap_or_else(|error| panic!("{error}"));
            let match_ = regex.regex.find(text).map(|found| found.as_str());
            assert_eq!(match_, *found, "{pattern} in {text:?}");
        }
    }

    #[test]
    fn what_go_refuses_is_refused() {
        for pattern in [
            "(",
            "[a",
            "a{1001}",
            r"\1",
            r"\Z",
            r"\8",
            r"\E",
            "(?x)a",
            "(?u)a",
            "(?=a)",
            "(?<!a)",
            "\\",
            "*",
            "(?P<a>x",
            "(?P<>y)",
            "(?P<a-b>y)",
            r"\C\",
            r"\h",
        ] {
            assert!(compile(pattern).is_err(), "{pattern}");
        }
        let twice = compile("(?P<a>x)(y)(?P<a>z)").unwrap();
        assert_eq!(twice.names, ["", "a", "", "a"]);
        let error = compile("(?x)a").unwrap_err();
        assert!(error.contains("(?x is not known"), "{error}");
    }
}
