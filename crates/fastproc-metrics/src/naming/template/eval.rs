//! From nodes and data to text.

use std::sync::Arc;

use super::{
    functions,
    members::member,
    parse::{Node, Operand, Pipe},
    value::{Data, NO_VALUE, Value},
};

/// The longest text that a template makes, and the longest value on the way to it, in bytes.
const LONGEST: usize = 64 * 1024;

/// What one rendering may do: nodes and values, each of which counts once more for every 64 bytes that it has.
const STEPS: usize = 10_000;

/// What goes on after a node.
enum Flow {
    On,
    Break,
    Continue,
}

/// Why a template was given up.
#[derive(Debug)]
enum Stopped {
    /// Something cannot be evaluated. It tells nobody anything that the name does not show.
    Wrong,
    TooMuch(String),
}

impl From<String> for Stopped {
    fn from(_: String) -> Self {
        Self::Wrong
    }
}

/// The text of a template. As there, it ends where something cannot be evaluated. The error says what there was too much of.
pub(super) fn render(nodes: &[Node], data: Data) -> Result<String, String> {
    let data = Value::Data(Arc::new(data));
    let mut run = Run {
        text: String::new(),
        variables: vec![(String::new(), data.clone())],
        steps: 0,
    };
    match run.nodes(nodes, &data) {
        Err(Stopped::TooMuch(reason)) => Err(reason),
        Ok(_) | Err(Stopped::Wrong) => Ok(run.text),
    }
}

struct Run {
    text: String,
    /// The inner ones last.
    variables: Vec<(String, Value)>,
    steps: usize,
}

impl Run {
    /// Counts what has so many bytes.
    fn count(&mut self, bytes: usize) -> Result<(), Stopped> {
        self.steps += 1 + bytes / 64;
        if self.steps > STEPS {
            return Err(Stopped::TooMuch(format!("takes more than {STEPS} steps")));
        }
        if bytes > LONGEST {
            return Err(Stopped::TooMuch(format!("makes more than {LONGEST} bytes")));
        }
        Ok(())
    }

    fn write(&mut self, text: &str) -> Result<(), Stopped> {
        self.text += text;
        if self.text.len() > LONGEST {
            return Err(Stopped::TooMuch(format!("makes more than {LONGEST} bytes")));
        }
        Ok(())
    }

    fn nodes(&mut self, nodes: &[Node], dot: &Value) -> Result<Flow, Stopped> {
        for node in nodes {
            match self.node(node, dot)? {
                Flow::On => {}
                flow => return Ok(flow),
            }
        }
        Ok(Flow::On)
    }

    fn node(&mut self, node: &Node, dot: &Value) -> Result<Flow, Stopped> {
        let known = self.variables.len();
        self.count(0)?;
        let flow = match node {
            Node::Text(text) => {
                self.write(text)?;
                return Ok(Flow::On);
            }
            Node::Print(pipe) => {
                let value = self.pipe(pipe, dot)?;
                if pipe.variables.is_empty() {
                    self.write(&match value {
                        Value::Nil => NO_VALUE.into(),
                        value => value.shown(),
                    })?;
                }
                // A variable that is declared here is known to what follows.
                return Ok(Flow::On);
            }
            Node::If(pipe, body, otherwise) => {
                let chosen = if self.pipe(pipe, dot)?.is_true() {
                    body
                } else {
                    otherwise
                };
                self.nodes(chosen, dot)?
            }
            Node::With(pipe, body, otherwise) => {
                let value = self.pipe(pipe, dot)?;
                if value.is_true() {
                    self.nodes(body, &value)?
                } else {
                    self.nodes(otherwise, dot)?
                }
            }
            Node::Range(pipe, body, otherwise) => self.range(pipe, body, otherwise, dot)?,
            Node::Break => return Ok(Flow::Break),
            Node::Continue => return Ok(Flow::Continue),
        };
        self.variables.truncate(known);
        Ok(flow)
    }

    fn range(
        &mut self,
        pipe: &Pipe,
        body: &[Node],
        otherwise: &[Node],
        dot: &Value,
    ) -> Result<Flow, Stopped> {
        let text = |text: &String| Value::Text(text.clone());
        let items: Vec<(Value, Value)> = match self.commands(pipe, dot)? {
            Value::List(items) => (0..).map(Value::Int).zip(items.iter().map(text)).collect(),
            Value::Map(entries) => entries
                .iter()
                .map(|(name, value)| (text(name), text(value)))
                .collect(),
            Value::Nil => Vec::new(),
            _ => return Err(Stopped::Wrong),
        };
        if items.is_empty() {
            return self.nodes(otherwise, dot);
        }
        let known = self.variables.len();
        for (key, item) in items {
            self.count(item.bytes())?;
            self.variables.truncate(known);
            match &pipe.variables[..] {
                [name] => self.set(name, item.clone(), pipe.declares),
                [first, second] => {
                    self.set(first, key, pipe.declares);
                    self.set(second, item.clone(), pipe.declares);
                }
                _ => {}
            }
            if matches!(self.nodes(body, &item)?, Flow::Break) {
                break;
            }
        }
        Ok(Flow::On)
    }

    fn set(&mut self, name: &str, value: Value, declares: bool) {
        let known = self.variables.iter_mut().rev();
        let known = known.filter(|_| !declares);
        match known.into_iter().find(|(known, _)| known == name) {
            Some((_, old)) => *old = value,
            None => self.variables.push((name.into(), value)),
        }
    }

    fn pipe(&mut self, pipe: &Pipe, dot: &Value) -> Result<Value, Stopped> {
        let value = self.commands(pipe, dot)?;
        if let [name] = &pipe.variables[..] {
            self.set(name, value.clone(), pipe.declares);
        }
        Ok(value)
    }

    fn commands(&mut self, pipe: &Pipe, dot: &Value) -> Result<Value, Stopped> {
        let mut last = None;
        for command in &pipe.commands {
            last = Some(self.command(command, last, dot)?);
        }
        last.ok_or(Stopped::Wrong)
    }

    fn command(
        &mut self,
        command: &[Operand],
        last: Option<Value>,
        dot: &Value,
    ) -> Result<Value, Stopped> {
        let (called, rest) = command.split_first().ok_or(Stopped::Wrong)?;
        if let Operand::Function(name) = called
            && matches!(&**name, "and" | "or")
        {
            // The first that decides; what stands behind it is not evaluated.
            let mut value = Value::Nil;
            for operand in rest {
                value = self.operand(operand, dot, &[])?;
                if value.is_true() == (name == "or") {
                    return Ok(value);
                }
            }
            return last.map_or(Ok(value), Ok);
        }
        let mut arguments = Vec::with_capacity(rest.len() + 1);
        for operand in rest {
            arguments.push(self.operand(operand, dot, &[])?);
        }
        arguments.extend(last);
        self.operand(called, dot, &arguments)
    }

    fn operand(
        &mut self,
        operand: &Operand,
        dot: &Value,
        arguments: &[Value],
    ) -> Result<Value, Stopped> {
        let value = match operand {
            Operand::Literal(value) if arguments.is_empty() => value.clone(),
            Operand::Literal(_) => return Err(Stopped::Wrong),
            Operand::Function(name) => functions::call(name, arguments)?,
            Operand::Field(names) => self.members(dot.clone(), names, arguments)?,
            Operand::Variable(name, names) => {
                let mut known = self.variables.iter().rev();
                let value = known.find(|(known, _)| known == name);
                let (_, value) = value.ok_or(Stopped::Wrong)?;
                self.members(value.clone(), names, arguments)?
            }
            Operand::Nested(pipe, names) => {
                let value = self.pipe(pipe, dot)?;
                self.members(value, names, arguments)?
            }
        };
        self.count(value.bytes())?;
        Ok(value)
    }

    fn members(
        &mut self,
        mut value: Value,
        names: &[String],
        arguments: &[Value],
    ) -> Result<Value, Stopped> {
        let Some((last, before)) = names.split_last() else {
            return match arguments {
                [] => Ok(value),
                _ => Err(Stopped::Wrong),
            };
        };
        // One match is not worth a copy of all.
        if let (Value::Data(data), [first], []) = (&value, before, arguments)
            && first == "Matches"
        {
            let found = data.matches.get(last);
            return Ok(found.map_or(Value::Nil, |text| Value::Text(text.clone())));
        }
        for name in before {
            value = member(&value, name, &[])?;
            self.count(value.bytes())?;
        }
        Ok(member(&value, last, arguments)?)
    }
}
