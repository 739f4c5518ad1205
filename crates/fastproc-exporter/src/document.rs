//! YAML in which every node knows its line, so that an error can name the line.

use std::{
    io,
    path::{Path, PathBuf},
};

use saphyr::{LoadableYamlNode, MarkedYaml, Scalar, YamlData, YamlLoader};
use saphyr_parser::{Marker, Parser};

/// A configuration file that cannot be used: where and why.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// What a line says cannot be used.
    #[error("{}:{line}: {reason}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What is wrong with it.
        reason: String,
    },
}

/// What is wrong, and in which line. The caller that opened the file adds its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrong {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong with it.
    pub reason: String,
}

impl Wrong {
    /// An error in this line.
    pub fn at(line: usize, reason: impl Into<String>) -> Self {
        Self {
            line,
            reason: reason.into(),
        }
    }

    /// Adds the file.
    pub fn in_file(self, path: &Path) -> ConfigError {
        ConfigError::Line {
            path: path.into(),
            line: self.line,
            reason: self.reason,
        }
    }
}

/// Converts the first document of a file, given the result of reading it.
pub fn read_file<T>(
    path: &Path,
    text: io::Result<Vec<u8>>,
    understand: impl FnOnce(&Node<'_>) -> Result<T, Wrong>,
) -> Result<T, ConfigError> {
    let text = text.and_then(|bytes| {
        String::from_utf8(bytes).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
    });
    let text = text.map_err(|source| ConfigError::Read {
        path: path.into(),
        source,
    })?;
    read(&text, understand).map_err(|wrong| wrong.in_file(path))
}

/// Converts the first document of a text. An empty text is an empty mapping.
pub fn read<T>(
    text: &str,
    understand: impl FnOnce(&Node<'_>) -> Result<T, Wrong>,
) -> Result<T, Wrong> {
    let mut loader = YamlLoader::<MarkedYaml<'_>>::default();
    // Scalars stay as they are written: `1.10` is a name here, not a number.
    loader.early_parse(false);
    Parser::new_from_str(text)
        .load(&mut loader, true)
        .map_err(|error| Wrong::at(error.marker().line().max(1), error.info()))?;
    if let Some(error) = loader.error() {
        return Err(Wrong::at(error.marker().line().max(1), error.info()));
    }
    let documents = loader.into_documents();
    match documents.as_slice() {
        [] => {
            let nothing = MarkedYaml::from_bare_yaml(saphyr::Yaml::Value(Scalar::Null))
                .with_start(Marker::new(0, 1, 0));
            understand(&Node(&nothing))
        }
        // Further documents are ignored, as by Go's parser.
        [document, ..] => understand(&Node(document)),
    }
}

trait WithStart {
    fn with_start(self, marker: Marker) -> Self;
}

impl WithStart for MarkedYaml<'_> {
    fn with_start(self, marker: Marker) -> Self {
        self.with_start_marker(marker)
    }
}

/// A node of the document.
#[derive(Clone, Copy, Debug)]
pub struct Node<'a>(&'a MarkedYaml<'a>);

impl<'a> Node<'a> {
    /// Its line, from 1.
    pub fn line(self) -> usize {
        self.0.span.start.line().max(1)
    }

    /// An error in the line of this node.
    pub fn wrong(self, reason: impl Into<String>) -> Wrong {
        Wrong::at(self.line(), reason)
    }

    /// Whether this is empty or `null`.
    pub fn is_null(self) -> bool {
        match &self.0.data {
            YamlData::Value(Scalar::Null) => true,
            YamlData::Representation(text, style, None) => {
                *style == saphyr::ScalarStyle::Plain
                    && matches!(&**text, "" | "~" | "null" | "Null" | "NULL")
            }
            _ => false,
        }
    }

    /// A scalar, as it is written.
    pub fn text(self, what: &str) -> Result<&'a str, Wrong> {
        match &self.0.data {
            YamlData::Representation(text, ..) if !self.is_null() => Ok(text),
            YamlData::Value(Scalar::String(text)) => Ok(text),
            _ => Err(self.wrong(format!("{what} must be a string"))),
        }
    }

    /// `true` or `false`.
    pub fn flag(self, what: &str) -> Result<bool, Wrong> {
        match self.text(what)? {
            "true" => Ok(true),
            "false" => Ok(false),
            other => Err(self.wrong(format!("{what} must be true or false, and is {other:?}"))),
        }
    }

    /// A sequence's nodes.
    pub fn list(self, what: &str) -> Result<Vec<Node<'a>>, Wrong> {
        match &self.0.data {
            YamlData::Sequence(nodes) => Ok(nodes.iter().map(Node).collect()),
            _ => Err(self.wrong(format!("{what} must be a list"))),
        }
    }

    /// A sequence of strings. An empty node is `None`, as if the key were absent.
    pub fn texts(self, what: &str) -> Result<Option<Vec<(Node<'a>, &'a str)>>, Wrong> {
        if self.is_null() {
            return Ok(None);
        }
        let item = format!("an item of {what}");
        self.list(what)?
            .into_iter()
            .map(|node| {
                // An empty node is an empty string.
                let text = if node.is_null() {
                    ""
                } else {
                    node.text(&item)?
                };
                Ok((node, text))
            })
            .collect::<Result<_, _>>()
            .map(Some)
    }

    /// A mapping's keys and values. An empty node is an empty mapping.
    pub fn entries(self, what: &str) -> Result<Vec<(Node<'a>, &'a str, Node<'a>)>, Wrong> {
        if self.is_null() {
            return Ok(Vec::new());
        }
        let YamlData::Mapping(written) = &self.0.data else {
            return Err(self.wrong(format!("{what} must be a mapping of keys to values")));
        };
        let (mut entries, mut merged) = (Vec::new(), Vec::new());
        for (key, value) in written {
            let (key, value) = (Node(key), Node(value));
            match key.text("a key")? {
                // A merged key counts only if it is not set otherwise; of several the first counts.
                "<<" => {
                    let others = value.list(what).unwrap_or_else(|_| vec![value]);
                    for other in others {
                        merged.extend(other.entries(what)?);
                    }
                }
                name => entries.push((key, name, value)),
            }
        }
        for (key, name, value) in merged {
            if entries.iter().all(|&(_, known, _)| known != name) {
                entries.push((key, name, value));
            }
        }
        Ok(entries)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(text: &str) -> Result<Vec<(usize, String)>, Wrong> {
        read(text, |root| {
            Ok(root
                .entries("it")?
                .into_iter()
                .map(|(key, name, _)| (key.line(), name.to_owned()))
                .collect())
        })
    }

    #[test]
    fn every_node_knows_its_line() {
        assert_eq!(
            keys("# a comment\na: 1\n\nb:\n  - x\n"),
            Ok(vec![(2, "a".into()), (4, "b".into())])
        );
        assert_eq!(keys(""), Ok(vec![]));
    }

    #[test]
    fn malformed_yaml_is_an_error_in_its_line() {
        let wrong = keys("a: 1\nb: [1, 2\nc: 3\n").unwrap_err();
        assert!(wrong.line >= 2, "{wrong:?}");
        assert!(!wrong.reason.is_empty());
        assert_eq!(keys("a: 1\n---\nb: 2\n"), Ok(vec![(1, "a".into())]));
    }

    #[test]
    fn a_scalar_stays_as_it_is_written() {
        let value = |text: &str| {
            read(text, |root| {
                root.entries("it")?[0].2.text("a").map(str::to_owned)
            })
        };
        assert_eq!(value("a: 1.10").unwrap(), "1.10");
        assert_eq!(value("a: '0x10'").unwrap(), "0x10");
        assert!(value("a: [1]").is_err());
        assert!(value("a:").is_err());
    }
}
