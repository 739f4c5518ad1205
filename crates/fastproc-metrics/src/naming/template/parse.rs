//! From the text of a template to its nodes.

use super::{
    lex::{Lexer, Token},
    value::Value,
};

/// A piece of a template.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Node {
    Text(String),
    Print(Pipe),
    If(Pipe, Vec<Node>, Vec<Node>),
    With(Pipe, Vec<Node>, Vec<Node>),
    Range(Pipe, Vec<Node>, Vec<Node>),
    Break,
    Continue,
}

/// Commands, each of which gets the result of the one before as its last argument.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Pipe {
    /// Variables that get the result.
    pub variables: Vec<String>,
    /// Whether these are new: `:=`.
    pub declares: bool,
    /// The first word of a command is what is called; the others are its arguments.
    pub commands: Vec<Vec<Operand>>,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Operand {
    Literal(Value),
    Function(String),
    /// `.A.B`; the dot itself without names.
    Field(Vec<String>),
    /// `$x.A.B`; `$` is the variable without a name.
    Variable(String, Vec<String>),
    /// `(…).A`
    Nested(Pipe, Vec<String>),
}

/// What a name may have in it.
const FIELDS: [&str; 18] = [
    "Cgroups",
    "Comm",
    "ExeBase",
    "ExeFull",
    "Username",
    "PID",
    "StartTime",
    "Matches",
    "ContainerID",
    "ContainerName",
    "PodUID",
    "PodName",
    "Namespace",
    "Image",
    "Runtime",
    "Machine",
    "Unit",
    "Slice",
];

/// The longest template, in bytes.
const LONGEST: usize = 8 * 1024;

/// How deep parentheses and `if`, `with` and `range` may stand in one another; an `else if` stands in its `if`.
const DEEPEST: usize = 64;

/// Takes a template apart. `is_function` knows the names of functions. The error says what is not understood.
pub(super) fn parse(text: &str, is_function: impl Fn(&str) -> bool) -> Result<Vec<Node>, String> {
    if text.len() > LONGEST {
        let length = text.len();
        return Err(format!(
            "a template of {length} bytes is too long: {LONGEST} are allowed"
        ));
    }
    let wrong = |reason: String| format!("the template {text:?} {reason}");
    let tokens = Lexer { rest: text }.tokens().map_err(wrong)?;
    let mut parser = Parser {
        tokens,
        at: 0,
        depth: 0,
        is_function: &is_function,
        variables: vec![String::new()],
        moved: 0,
        loops: 0,
    };
    let (nodes, end) = parser.nodes().map_err(wrong)?;
    match end {
        Stop::Text => Ok(nodes),
        Stop::End => Err(wrong("has an {{end}} that ends nothing".into())),
        Stop::Else => Err(wrong(
            "has an {{else}} outside of if, with and range".into(),
        )),
    }
}

/// What ended a list of nodes.
enum Stop {
    Text,
    End,
    /// With what follows in the same action: `else if`.
    Else,
}

struct Parser<'a> {
    tokens: Vec<Token>,
    /// Which of them is the next.
    at: usize,
    /// In how many pipes and controls this place is.
    depth: usize,
    is_function: &'a dyn Fn(&str) -> bool,
    /// Names of variables, the inner ones last.
    variables: Vec<String>,
    /// How many `with` and `range` around this place have moved the dot.
    moved: usize,
    loops: usize,
}

impl Parser<'_> {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at)
    }

    fn next(&mut self) -> Option<Token> {
        let token = self.peek().cloned();
        self.at += usize::from(token.is_some());
        token
    }

    fn next_is(&mut self, token: &Token) -> bool {
        let is = self.peek() == Some(token);
        self.at += usize::from(is);
        is
    }

    /// Takes apart what stands in something else.
    fn deeper<T>(
        &mut self,
        inner: impl FnOnce(&mut Self) -> Result<T, String>,
    ) -> Result<T, String> {
        if self.depth == DEEPEST {
            return Err(format!(
                "is too deep: no more than {DEEPEST} parentheses and controls may stand in one another"
            ));
        }
        self.depth += 1;
        let result = inner(self);
        self.depth -= 1;
        result
    }

    /// Nodes up to an `end`, an `else` or the end of the text.
    fn nodes(&mut self) -> Result<(Vec<Node>, Stop), String> {
        let known = self.variables.len();
        let mut nodes = Vec::new();
        let end = loop {
            match self.next() {
                None => break Stop::Text,
                Some(Token::Text(text)) if text.is_empty() => {}
                Some(Token::Text(text)) => nodes.push(Node::Text(text)),
                Some(_) => {
                    self.skip_space();
                    let word = match self.peek() {
                        Some(Token::Word(word)) => word.clone(),
                        _ => String::new(),
                    };
                    match &*word {
                        "end" => {
                            self.next();
                            self.close("end")?;
                            break Stop::End;
                        }
                        "else" => {
                            self.next();
                            self.skip_space();
                            break Stop::Else;
                        }
                        "if" | "with" | "range" => {
                            self.next();
                            nodes.push(self.deeper(|inner| inner.control(&word))?);
                        }
                        "break" | "continue" => {
                            self.next();
                            if self.loops == 0 {
                                return Err(format!("has {{{{{word}}}}} outside of range"));
                            }
                            self.close(&word)?;
                            nodes.push(match &*word {
                                "break" => Node::Break,
                                _ => Node::Continue,
                            });
                        }
                        "define" | "template" | "block" => {
                            return Err(format!(
                                "has {{{{{word}}}}}, which is not supported: a name is one template"
                            ));
                        }
                        _ => {
                            let pipe = self.pipe("an action", false)?;
                            self.close("an action")?;
                            nodes.push(Node::Print(pipe));
                        }
                    }
                }
            }
        };
        // A variable of an `if` is known in its `else` as well.
        if matches!(end, Stop::End | Stop::Text) {
            self.variables.truncate(known);
        }
        Ok((nodes, end))
    }

    fn control(&mut self, word: &str) -> Result<Node, String> {
        let known = self.variables.len();
        let pipe = self.pipe(word, word == "range")?;
        self.close(word)?;
        let (moves, loops) = (usize::from(word != "if"), usize::from(word == "range"));
        self.moved += moves;
        self.loops += loops;
        let inner = self.variables.len();
        let (body, end) = self.nodes()?;
        self.variables.truncate(inner);
        self.moved -= moves;
        self.loops -= loops;
        let otherwise = match end {
            Stop::Text => return Err(format!("has a {{{{{word}}}}} without an {{{{end}}}}")),
            Stop::End => Vec::new(),
            Stop::Else => self.otherwise(word)?,
        };
        self.variables.truncate(known);
        Ok(match word {
            "if" => Node::If(pipe, body, otherwise),
            "with" => Node::With(pipe, body, otherwise),
            _ => Node::Range(pipe, body, otherwise),
        })
    }

    /// What stands behind an `else`, to the `end` that belongs to it.
    fn otherwise(&mut self, word: &str) -> Result<Vec<Node>, String> {
        if let Some(Token::Word(next)) = self.peek() {
            let next = next.clone();
            if next == word && matches!(word, "if" | "with") {
                self.next();
                return Ok(vec![self.deeper(|inner| inner.control(word))?]);
            }
            return Err(format!("has {{{{else {next}}}}} behind {{{{{word}}}}}"));
        }
        self.close("else")?;
        match self.nodes()? {
            (nodes, Stop::End) => Ok(nodes),
            (_, Stop::Else) => Err("has an {{else}} behind another".into()),
            (_, Stop::Text) => Err("has an {{else}} without an {{end}}".into()),
        }
    }

    fn skip_space(&mut self) {
        while self.next_is(&Token::Space) {}
    }

    fn close(&mut self, what: &str) -> Result<(), String> {
        self.skip_space();
        match self.next() {
            Some(Token::Close) => Ok(()),
            other => Err(format!(
                "has {} at the end of {what}",
                shown(other.as_ref())
            )),
        }
    }

    fn pipe(&mut self, what: &str, is_range: bool) -> Result<Pipe, String> {
        let (variables, declares) = self.assignment(is_range)?;
        let mut commands = vec![self.command(what)?];
        loop {
            self.skip_space();
            if !self.next_is(&Token::Pipe) {
                break;
            }
            let command = self.command(what)?;
            if !matches!(
                command[0],
                Operand::Function(_) | Operand::Field(_) | Operand::Variable(..)
            ) {
                return Err(format!(
                    "has {what} whose pipe leads to what is no function"
                ));
            }
            commands.push(command);
        }
        if declares {
            self.variables.extend(variables.iter().cloned());
        }
        Ok(Pipe {
            variables,
            declares,
            commands,
        })
    }

    /// `$x :=`, `$x =`, and for a range `$at, $x :=`.
    fn assignment(&mut self, is_range: bool) -> Result<(Vec<String>, bool), String> {
        self.skip_space();
        let before = self.at;
        let mut variables = Vec::new();
        while let Some(Token::Variable(name, names)) = self.peek()
            && names.is_empty()
        {
            variables.push(name.clone());
            self.at += 1;
            self.skip_space();
            match self.next() {
                Some(Token::Comma) if is_range && variables.len() == 1 => self.skip_space(),
                Some(Token::Declare) => return Ok((variables, true)),
                Some(Token::Assign) => {
                    let unknown = variables.iter().find(|name| !self.variables.contains(name));
                    return match unknown {
                        Some(name) => Err(format!("has ${name}, which is not declared")),
                        None => Ok((variables, false)),
                    };
                }
                _ => break,
            }
        }
        self.at = before;
        Ok((Vec::new(), false))
    }

    fn command(&mut self, what: &str) -> Result<Vec<Operand>, String> {
        let mut operands = Vec::new();
        loop {
            self.skip_space();
            let operand = match self.peek() {
                Some(Token::Close | Token::RightParen(_) | Token::Pipe) | None => break,
                Some(_) => self.operand(what)?,
            };
            operands.push(operand);
            match self.peek() {
                Some(Token::Space | Token::Close | Token::RightParen(_) | Token::Pipe) => {}
                other => return Err(format!("has {} in {what}", shown(other))),
            }
        }
        match operands.first() {
            None => Err(format!("has {what} without a value")),
            Some(Operand::Literal(_)) if operands.len() > 1 => {
                Err(format!("has {what} that calls what is no function"))
            }
            Some(_) => Ok(operands),
        }
    }

    fn operand(&mut self, what: &str) -> Result<Operand, String> {
        match self.next() {
            Some(Token::Literal(value)) => Ok(Operand::Literal(value)),
            Some(Token::Field(names)) => {
                if self.moved == 0 {
                    known_field(&names)?;
                }
                Ok(Operand::Field(names))
            }
            Some(Token::Variable(name, names)) => {
                if !self.variables.contains(&name) {
                    return Err(format!("has ${name}, which is not declared"));
                }
                if name.is_empty() {
                    known_field(&names)?;
                }
                Ok(Operand::Variable(name, names))
            }
            Some(Token::Word(word)) => match &*word {
                "true" => Ok(Operand::Literal(Value::Bool(true))),
                "false" => Ok(Operand::Literal(Value::Bool(false))),
                "nil" => Ok(Operand::Literal(Value::Nil)),
                name if (self.is_function)(name) => Ok(Operand::Function(word)),
                _ => Err(format!("has {word}, which is no function")),
            },
            Some(Token::LeftParen) => {
                let pipe = self.deeper(|inner| inner.pipe("parentheses", false))?;
                self.skip_space();
                match self.next() {
                    Some(Token::RightParen(names)) => Ok(Operand::Nested(pipe, names)),
                    _ => Err("has a ( without a )".into()),
                }
            }
            other => Err(format!("has {} in {what}", shown(other.as_ref()))),
        }
    }
}

/// What the data has is known: a name that is misspelt is told before there is a process to be named by it.
fn known_field(names: &[String]) -> Result<(), String> {
    match names.first() {
        Some(name) if !FIELDS.contains(&&**name) => Err(format!(
            "has {{{{.{name}}}}}; there are .{}",
            FIELDS.join(", .")
        )),
        _ => Ok(()),
    }
}

fn shown(token: Option<&Token>) -> String {
    match token {
        Some(Token::Word(word)) => word.clone(),
        Some(Token::Field(names)) => format!(".{}", names.join(".")),
        Some(Token::Variable(name, _)) => format!("${name}"),
        Some(Token::Comma) => "a comma".into(),
        Some(Token::Declare) => ":=".into(),
        Some(Token::Assign) => "=".into(),
        Some(Token::LeftParen) => "(".into(),
        Some(Token::RightParen(_)) => ")".into(),
        Some(Token::Close) => "}}".into(),
        Some(Token::Literal(_)) => "a literal".into(),
        _ => "something else".into(),
    }
}

/// Whether anything in these nodes refers to this field of the data.
pub(super) fn refers_to(nodes: &[Node], field: &str) -> bool {
    nodes.iter().any(|node| match node {
        Node::Text(_) | Node::Break | Node::Continue => false,
        Node::Print(pipe) => pipe_refers_to(pipe, field),
        Node::If(pipe, body, otherwise)
        | Node::With(pipe, body, otherwise)
        | Node::Range(pipe, body, otherwise) => {
            pipe_refers_to(pipe, field) || refers_to(body, field) || refers_to(otherwise, field)
        }
    })
}

fn pipe_refers_to(pipe: &Pipe, field: &str) -> bool {
    // The dot alone, or the variable of all, may be printed with all that it has.
    let named = |names: &[String]| names.first().is_none_or(|name| name == field);
    pipe.commands.iter().flatten().any(|operand| match operand {
        Operand::Field(names) => named(names),
        Operand::Variable(name, names) => name.is_empty() && named(names),
        Operand::Nested(pipe, names) => {
            pipe_refers_to(pipe, field) || names.iter().any(|name| name == field)
        }
        Operand::Literal(_) | Operand::Function(_) => false,
    })
}
