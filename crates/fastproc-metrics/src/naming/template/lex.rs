//! From the text of a template to its tokens.

use super::value::Value;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token {
    Text(String),
    Open,
    Close,
    Word(String),
    /// With the names that follow without a space.
    Field(Vec<String>),
    Variable(String, Vec<String>),
    Literal(Value),
    LeftParen,
    /// With the names that follow without a space.
    RightParen(Vec<String>),
    Pipe,
    Comma,
    Declare,
    Assign,
    /// Separates words, and counts nowhere else.
    Space,
}

/// What is left of the text.
pub(super) struct Lexer<'a> {
    pub(super) rest: &'a str,
}

impl Lexer<'_> {
    pub(super) fn tokens(mut self) -> Result<Vec<Token>, String> {
        let mut tokens = Vec::new();
        let mut trim = false;
        while let Some(open) = self.rest.find("{{") {
            let (before, after) = self.rest.split_at(open);
            let mut before = if trim { before.trim_start() } else { before };
            let mut inside = &after[2..];
            // `{{- ` and ` -}}` eat the space around them.
            if let Some(trimmed) = inside.strip_prefix('-')
                && trimmed.starts_with([' ', '\t', '\r', '\n'])
            {
                before = before.trim_end();
                inside = trimmed.trim_start();
            }
            tokens.push(Token::Text(before.into()));
            self.rest = inside;
            trim = if inside.starts_with("/*") {
                self.comment()?
            } else {
                tokens.push(Token::Open);
                self.action(&mut tokens)?
            };
        }
        let rest = if trim {
            self.rest.trim_start()
        } else {
            self.rest
        };
        tokens.push(Token::Text(rest.into()));
        Ok(tokens)
    }

    fn comment(&mut self) -> Result<bool, String> {
        let unclosed = "has a comment that does not end";
        let end = self.rest.find("*/").ok_or(unclosed)?;
        self.rest = &self.rest[end + 2..];
        self.close().ok_or_else(|| unclosed.into())
    }

    /// The end of an action, and whether it eats the space behind.
    fn close(&mut self) -> Option<bool> {
        let trimmed = self.rest.trim_start();
        if trimmed.len() < self.rest.len()
            && let Some(rest) = trimmed.strip_prefix("-}}")
        {
            self.rest = rest;
            return Some(true);
        }
        self.rest = trimmed.strip_prefix("}}")?;
        Some(false)
    }

    /// The words of an action, to its end.
    fn action(&mut self, tokens: &mut Vec<Token>) -> Result<bool, String> {
        loop {
            if let Some(trim) = self.close() {
                tokens.push(Token::Close);
                return Ok(trim);
            }
            let Some(first) = self.rest.chars().next() else {
                return Err("has a {{ without a }}".into());
            };
            let token = match first {
                ' ' | '\t' | '\r' | '\n' => {
                    self.rest = self.rest.trim_start();
                    Token::Space
                }
                '"' | '`' | '\'' => Token::Literal(self.quoted(first)?),
                '.' if !self.rest[1..].starts_with(|c: char| c.is_ascii_digit()) => {
                    let names = self.names();
                    if names.is_empty() {
                        self.rest = &self.rest[1..];
                    }
                    Token::Field(names)
                }
                '$' => {
                    self.rest = &self.rest[1..];
                    Token::Variable(self.word(), self.names())
                }
                '(' => self.take(1, Token::LeftParen),
                ')' => {
                    self.rest = &self.rest[1..];
                    Token::RightParen(self.names())
                }
                '|' => self.take(1, Token::Pipe),
                ',' => self.take(1, Token::Comma),
                '=' => self.take(1, Token::Assign),
                ':' if self.rest.starts_with(":=") => self.take(2, Token::Declare),
                '+' | '-' | '.' | '0'..='9' => Token::Literal(self.number()?),
                c if c == '_' || c.is_alphabetic() => Token::Word(self.word()),
                c => return Err(format!("has {c:?} where nothing like it can be")),
            };
            tokens.push(token);
        }
    }

    fn take(&mut self, length: usize, token: Token) -> Token {
        self.rest = &self.rest[length..];
        token
    }

    fn word(&mut self) -> String {
        let end = self.rest.find(|c: char| c != '_' && !c.is_alphanumeric());
        let (word, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        self.rest = rest;
        word.into()
    }

    /// `.A.B`
    fn names(&mut self) -> Vec<String> {
        let mut names = Vec::new();
        while let Some(rest) = self.rest.strip_prefix('.')
            && rest.starts_with(|c: char| c == '_' || c.is_alphabetic())
        {
            self.rest = rest;
            names.push(self.word());
        }
        names
    }

    fn number(&mut self) -> Result<Value, String> {
        let end = self
            .rest
            .char_indices()
            .find(|&(at, c)| {
                let sign = matches!(c, '+' | '-')
                    && (at == 0 || self.rest[..at].ends_with(['e', 'E', 'p', 'P']));
                !(sign || c == '.' || c == '_' || c.is_ascii_alphanumeric())
            })
            .map_or(self.rest.len(), |(at, _)| at);
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        let plain = word.replace('_', "");
        let (negative, digits) = match plain.strip_prefix('-') {
            Some(digits) => (true, digits),
            None => (false, plain.strip_prefix('+').unwrap_or(&plain)),
        };
        let lower = digits.to_ascii_lowercase();
        let radix = [("0x", 16), ("0b", 2), ("0o", 8)];
        let whole = radix
            .iter()
            .find_map(|(prefix, radix)| {
                let digits = lower.strip_prefix(prefix)?;
                Some(i64::from_str_radix(digits, *radix).ok())
            })
            .unwrap_or_else(|| match lower.strip_prefix('0') {
                Some(octal) if !octal.is_empty() && octal.bytes().all(|c| c.is_ascii_digit()) => {
                    i64::from_str_radix(octal, 8).ok()
                }
                _ => lower.parse().ok(),
            });
        let value = whole.map(|n| Value::Int(if negative { -n } else { n }));
        let value = value.or_else(|| plain.parse().ok().map(Value::Float));
        value.ok_or_else(|| format!("has {word:?}, which is no number"))
    }

    /// A string, or a character's number.
    fn quoted(&mut self, quote: char) -> Result<Value, String> {
        let unclosed = || format!("has a {quote} without another");
        let mut text = Vec::new();
        let mut rest = self.rest[1..].char_indices();
        while let Some((at, c)) = rest.next() {
            if c == quote {
                self.rest = &self.rest[at + 2..];
                let text = String::from_utf8_lossy(&text).into_owned();
                if quote != '\'' {
                    return Ok(Value::Text(text));
                }
                let mut only = text.chars();
                let (Some(c), None) = (only.next(), only.next()) else {
                    return Err(format!("has '{text}', which is not one character"));
                };
                return Ok(Value::Int(u32::from(c).into()));
            }
            if c == '\n' && quote != '`' {
                return Err(unclosed());
            }
            if c == '\\' && quote != '`' {
                escape(&mut rest, &mut text).ok_or("has an escape that is not understood")?;
            } else {
                text.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
            }
        }
        Err(unclosed())
    }
}

/// What follows a backslash.
fn escape(rest: &mut std::str::CharIndices<'_>, text: &mut Vec<u8>) -> Option<()> {
    let (_, first) = rest.next()?;
    let byte = match first {
        'a' => 7,
        'b' => 8,
        't' => b'\t',
        'n' => b'\n',
        'v' => 11,
        'f' => 12,
        'r' => b'\r',
        '\\' | '\'' | '"' => first as u8,
        '0'..='7' => u8::try_from(digits(rest, Some(first), 3, 8)?).ok()?,
        'x' => digits(rest, None, 2, 16)? as u8,
        'u' | 'U' => {
            let number = digits(rest, None, if first == 'u' { 4 } else { 8 }, 16)?;
            let c = char::from_u32(number)?;
            text.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
            return Some(());
        }
        _ => return None,
    };
    text.push(byte);
    Some(())
}

/// The number that so many digits are, the first of which may be known already.
fn digits(
    rest: &mut std::str::CharIndices<'_>,
    first: Option<char>,
    count: usize,
    radix: u32,
) -> Option<u32> {
    let more = rest.by_ref().map(|(_, c)| c);
    let mut digits = first.into_iter().chain(more).take(count);
    (0..count).try_fold(0, |number, _| {
        Some(number * radix + digits.next()?.to_digit(radix)?)
    })
}
