//! From nodes and data to text.

use std::sync::Arc;

use super::{
    functions,
    members::member,
    parse::{Node, Operand, Pipe},
    value::{Data, NO_VALUE, Value},
};

/// What goes on after a node.
enum Flow {
    On,
    Break,
    Continue,
}

/// The text of a template. As there, it ends where something cannot be evaluated.
pub(super) fn render(nodes: &[Node], data: Data) -> String {
    let data = Value::Data(Arc::new(data));
    let mut run = Run {
        text: String::new(),
        variables: vec![(String::new(), data.clone())],
    };
    // The error tells nobody anything that the name does not show.
    let _ = run.nodes(nodes, &data);
    run.text
}

struct Run {
    text: String,
    /// The inner ones last.
    variables: Vec<(String, Value)>,
}

impl Run {
    fn nodes(&mut self, nodes: &[Node], dot: &Value) -> Result<Flow, String> {
        for node in nodes {
            match self.node(node, dot)? {
                Flow::On => {}
                flow => return Ok(flow),
            }
        }
        Ok(Flow::On)
    }

    fn node(&mut self, node: &Node, dot: &Value) -> Result<Flow, String> {
        let known = self.variables.len();
        let flow = match node {
            Node::Text(text) => {
                self.text += text;
                return Ok(Flow::On);
            }
            Node::Print(pipe) => {
                let value = self.pipe(pipe, dot)?;
                if pipe.variables.is_empty() {
                    self.text += &match value {
                        Value::Nil => NO_VALUE.into(),
                        value => value.shown(),
                    };
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
    ) -> Result<Flow, String> {
        let text = |text: &String| Value::Text(text.clone());
        let items: Vec<(Value, Value)> = match self.commands(pipe, dot)? {
            Value::List(items) => (0..).map(Value::Int).zip(items.iter().map(text)).collect(),
            Value::Map(entries) => entries
                .iter()
                .map(|(name, value)| (text(name), text(value)))
                .collect(),
            Value::Nil => Vec::new(),
            other => return Err(format!("range cannot go over a {}", other.type_name())),
        };
        if items.is_empty() {
            return self.nodes(otherwise, dot);
        }
        let known = self.variables.len();
        for (key, item) in items {
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

    fn pipe(&mut self, pipe: &Pipe, dot: &Value) -> Result<Value, String> {
        let value = self.commands(pipe, dot)?;
        if let [name] = &pipe.variables[..] {
            self.set(name, value.clone(), pipe.declares);
        }
        Ok(value)
    }

    fn commands(&mut self, pipe: &Pipe, dot: &Value) -> Result<Value, String> {
        let mut last = None;
        for command in &pipe.commands {
            last = Some(self.command(command, last, dot)?);
        }
        last.ok_or_else(|| "a pipe is empty".into())
    }

    fn command(
        &mut self,
        command: &[Operand],
        last: Option<Value>,
        dot: &Value,
    ) -> Result<Value, String> {
        let (called, rest) = command.split_first().ok_or("a command is empty")?;
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
    ) -> Result<Value, String> {
        match operand {
            Operand::Literal(value) if arguments.is_empty() => Ok(value.clone()),
            Operand::Literal(_) => Err("a literal is no function".into()),
            Operand::Function(name) => functions::call(name, arguments),
            Operand::Field(names) => members(dot.clone(), names, arguments),
            Operand::Variable(name, names) => {
                let mut known = self.variables.iter().rev();
                let value = known.find(|(known, _)| known == name);
                let (_, value) = value.ok_or_else(|| format!("${name} is not known"))?;
                members(value.clone(), names, arguments)
            }
            Operand::Nested(pipe, names) => members(self.pipe(pipe, dot)?, names, arguments),
        }
    }
}

fn members(mut value: Value, names: &[String], arguments: &[Value]) -> Result<Value, String> {
    let Some((last, before)) = names.split_last() else {
        return match arguments {
            [] => Ok(value),
            _ => Err("a value is no function".into()),
        };
    };
    for name in before {
        value = member(&value, name, &[])?;
    }
    member(&value, last, arguments)
}
