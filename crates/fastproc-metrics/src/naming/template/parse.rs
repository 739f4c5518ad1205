//! Parses the text of a template into nodes.

use crate::naming::subject::{OF_CGROUP, OF_RUNTIME};

/// A piece of a template.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Node {
    Text(String),
    Print(Expression),
    If(Expression, Vec<Node>, Vec<Node>),
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Expression {
    Text(String),
    Int(i64),
    /// `.Comm`, `.Matches.Name`: the field, and what follows its name, which may be empty.
    Field(String, String),
    Call(Function, Vec<Expression>),
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Function {
    And,
    Or,
    Not,
    Eq,
    Ne,
    Index,
}

/// The functions, with the fewest and the most arguments that each takes.
const FUNCTIONS: [(&str, Function, usize, usize); 6] = [
    ("and", Function::And, 1, usize::MAX),
    ("or", Function::Or, 1, usize::MAX),
    ("not", Function::Not, 1, 1),
    ("eq", Function::Eq, 2, usize::MAX),
    ("ne", Function::Ne, 2, 2),
    ("index", Function::Index, 2, 2),
];

/// Fields of names, in addition to [`OF_CGROUP`] and [`OF_RUNTIME`].
const FIELDS: [&str; 8] = [
    "Cgroups",
    "Comm",
    "ExeBase",
    "ExeFull",
    "Username",
    "PID",
    "StartTime",
    "Matches",
];

/// The longest template, in bytes.
const LONGEST: usize = 8 * 1024;

/// The deepest nesting of parentheses and `if`; an `else if` is nested in its `if`.
const DEEPEST: usize = 64;

/// Parses a template. The error says what it does not understand.
pub(super) fn parse(text: &str) -> Result<Vec<Node>, String> {
    if text.len() > LONGEST {
        let length = text.len();
        return Err(format!(
            "a template of {length} bytes is too long: {LONGEST} are allowed"
        ));
    }
    let mut parser = Parser {
        rest: text,
        depth: 0,
    };
    let nodes = parser.nodes().and_then(|(nodes, end)| match end {
        None => Ok(nodes),
        Some(_) => Err("has an {{end}} or {{else}} without an {{if}}".into()),
    });
    nodes.map_err(|reason| format!("the template {text:?} {reason}"))
}

/// Calls `see` with every expression of these nodes, including nested ones.
pub(super) fn each_expression(nodes: &[Node], see: &mut impl FnMut(&Expression)) {
    for node in nodes {
        match node {
            Node::Text(_) => {}
            Node::Print(expression) => expression.each(see),
            Node::If(condition, then, otherwise) => {
                condition.each(see);
                each_expression(then, see);
                each_expression(otherwise, see);
            }
        }
    }
}

impl Expression {
    fn each(&self, see: &mut impl FnMut(&Self)) {
        see(self);
        if let Self::Call(_, arguments) = self {
            for argument in arguments {
                argument.each(see);
            }
        }
    }
}

/// The text between `{{` and `}}`.
enum Action {
    Comment,
    Print(Expression),
    If(Expression),
    Else,
    ElseIf(Expression),
    End,
}

struct Parser<'a> {
    rest: &'a str,
    /// The nesting depth at this place.
    depth: usize,
}

impl Parser<'_> {
    /// Parses nodes up to the end of the text, or to an `end` or `else`, which it returns.
    fn nodes(&mut self) -> Result<(Vec<Node>, Option<Action>), String> {
        let mut nodes = Vec::new();
        while let Some((text, inside)) = self.rest.split_once("{{") {
            let trims = inside.starts_with("- ");
            let text = if trims { text.trim_end() } else { text };
            nodes.push(Node::Text(text.into()));
            self.rest = &inside[usize::from(trims)..];
            match self.action()? {
                Action::Comment => {}
                Action::Print(expression) => nodes.push(Node::Print(expression)),
                Action::If(condition) => {
                    nodes.push(self.deeper(|inner| inner.branches(condition))?);
                }
                end => return Ok((nodes, Some(end))),
            }
        }
        nodes.push(Node::Text(self.rest.into()));
        Ok((nodes, None))
    }

    /// Parses what follows `{{if …}}`, up to its `end`.
    fn branches(&mut self, condition: Expression) -> Result<Node, String> {
        let (then, end) = self.nodes()?;
        let otherwise = match end {
            Some(Action::ElseIf(next)) => vec![self.deeper(|inner| inner.branches(next))?],
            Some(Action::Else) => match self.nodes()? {
                (nodes, Some(Action::End)) => nodes,
                _ => return Err("has an {{else}} without an {{end}}".into()),
            },
            Some(_) => Vec::new(),
            None => return Err("has an {{if}} without an {{end}}".into()),
        };
        Ok(Node::If(condition, then, otherwise))
    }

    fn deeper<T>(
        &mut self,
        inner: impl FnOnce(&mut Self) -> Result<T, String>,
    ) -> Result<T, String> {
        if self.depth == DEEPEST {
            return Err(format!(
                "is too deep: no more than {DEEPEST} parentheses and {{{{if}}}} may stand in one another"
            ));
        }
        self.depth += 1;
        let result = inner(self);
        self.depth -= 1;
        result
    }

    fn action(&mut self) -> Result<Action, String> {
        self.rest = self.rest.trim_start();
        let before = self.rest;
        let action = if let Some(comment) = self.rest.strip_prefix("/*") {
            let unclosed = "has a comment that does not end";
            (_, self.rest) = comment.split_once("*/").ok_or(unclosed)?;
            Action::Comment
        } else {
            match self.word() {
                "if" => Action::If(self.expression()?),
                "end" => Action::End,
                "else" => {
                    let after = self.rest;
                    self.rest = after.trim_start();
                    if self.word() == "if" {
                        Action::ElseIf(self.expression()?)
                    } else {
                        self.rest = after;
                        Action::Else
                    }
                }
                _ => {
                    self.rest = before;
                    Action::Print(self.expression()?)
                }
            }
        };
        let end = self.rest.trim_start();
        self.rest = match end.strip_prefix("-}}") {
            Some(rest) if end.len() < self.rest.len() => rest.trim_start(),
            _ => end.strip_prefix("}}").ok_or_else(|| unexpected(end))?,
        };
        Ok(action)
    }

    fn word(&mut self) -> &str {
        let end = self.rest.find(|c: char| c != '_' && !c.is_alphanumeric());
        let (word, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        self.rest = rest;
        word
    }

    /// A function with its arguments, or one value.
    fn expression(&mut self) -> Result<Expression, String> {
        self.rest = self.rest.trim_start();
        if !self.rest.starts_with(char::is_alphabetic) {
            return self.operand();
        }
        let word = self.word();
        let known = FUNCTIONS.iter().find(|(name, ..)| *name == word);
        let (name, function, least, most) = known.ok_or_else(|| {
            let names = FUNCTIONS.map(|(name, ..)| name).join(", ");
            format!("has {word}, which is not supported; if, else, end, {names} are")
        })?;
        let mut arguments = Vec::new();
        loop {
            let rest = self.rest.trim_start();
            if rest.starts_with([')', '}']) || rest.starts_with("-}") {
                break;
            }
            self.rest = rest;
            arguments.push(self.operand()?);
        }
        if !(*least..=*most).contains(&arguments.len()) {
            let count = arguments.len();
            return Err(format!("has {name} with {count} arguments"));
        }
        Ok(Expression::Call(*function, arguments))
    }

    fn operand(&mut self) -> Result<Expression, String> {
        let (rest, unexpected) = (self.rest, unexpected(self.rest));
        match rest.chars().next() {
            Some('.') => {
                self.rest = &rest[1..];
                self.field()
            }
            Some(quote @ ('"' | '`')) => {
                let end = rest[1..].find(quote).ok_or(unexpected)?;
                self.rest = &rest[end + 2..];
                let text = &rest[1..=end];
                if quote == '"' && text.contains('\\') {
                    return Err("has a \\ in a text: write such a text between ` and `".into());
                }
                Ok(Expression::Text(text.into()))
            }
            Some('(') => {
                self.rest = &rest[1..];
                let inner = self.deeper(Self::expression)?;
                let rest = self.rest.trim_start().strip_prefix(')');
                self.rest = rest.ok_or("has a ( without a )")?;
                Ok(inner)
            }
            _ => {
                let end = rest.find(|c: char| c != '-' && !c.is_ascii_digit());
                let (number, rest) = rest.split_at(end.unwrap_or(rest.len()));
                self.rest = rest;
                number.parse().map(Expression::Int).map_err(|_| unexpected)
            }
        }
    }

    /// Parses a field. A misspelt name is refused before any process is named by it.
    fn field(&mut self) -> Result<Expression, String> {
        let name = self.word().to_owned();
        let member = match self.rest.strip_prefix('.') {
            None => String::new(),
            Some(rest) => {
                self.rest = rest;
                self.word().to_owned()
            }
        };
        let known = fields().any(|field| field == name);
        if known
            && (member.is_empty()
                || name == "Matches"
                || (&*name, &*member) == ("StartTime", "Unix"))
        {
            return Ok(Expression::Field(name, member));
        }
        let fields = fields().collect::<Vec<_>>().join(", .");
        Err(match &*member {
            "" => format!("has {{{{.{name}}}}}; there are .{fields}"),
            _ => format!(
                "has {{{{.{name}.{member}}}}}; there are .{fields}, .Matches.NAME and .StartTime.Unix"
            ),
        })
    }
}

/// The names of all fields.
fn fields() -> impl Iterator<Item = &'static str> {
    FIELDS.into_iter().chain(OF_CGROUP).chain(OF_RUNTIME)
}

fn unexpected(rest: &str) -> String {
    match rest.split_whitespace().next() {
        None => "has a {{ without a }}".into(),
        Some(word) => format!("has {word:?}, which is not supported at this place"),
    }
}
