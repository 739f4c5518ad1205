//! The collectors that a request selects: `?collect[]=cpu&collect[]=meminfo`, or `?exclude[]=arp`, as in `node_exporter`.

use fastproc_metrics::parts::Parts;

/// Some collectors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Selection {
    /// These, and no other.
    Only(Vec<String>),
    /// All but these.
    Without(Vec<String>),
}

impl Selection {
    /// The selection in the query of a URL. `None`: all collectors.
    pub(super) fn of(query: &str) -> Result<Option<Self>, &'static str> {
        let (mut only, mut without) = (Vec::new(), Vec::new());
        for pair in query.split('&') {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            match decoded(key).as_str() {
                "collect[]" => only.push(decoded(value)),
                "exclude[]" => without.push(decoded(value)),
                _ => {}
            }
        }
        match (only.is_empty(), without.is_empty()) {
            (true, true) => Ok(None),
            (false, true) => Ok(Some(Self::Only(only))),
            (true, false) => Ok(Some(Self::Without(without))),
            (false, false) => Err("Combined collect and exclude queries are not allowed.\n"),
        }
    }

    /// The parts of a text that it selects; what belongs to no collector stays. An error names a collector that is not
    /// there, or is off.
    pub(super) fn apply(&self, text: &[u8], parts: &Parts) -> Result<Vec<u8>, String> {
        match self {
            Self::Only(names) => match names.iter().find(|name| !parts.have(name)) {
                Some(name) => Err(format!("There is no collector {name:?}, or it is off.\n")),
                None => Ok(parts.select(text, |of| names.iter().any(|name| name == of))),
            },
            Self::Without(names) => {
                Ok(parts.select(text, |of| names.iter().all(|name| name != of)))
            }
        }
    }
}

/// A text of a query without its escapes. A wrong escape stays.
fn decoded(text: &str) -> String {
    let mut plain = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, others)) = rest.split_first() {
        let escape = others
            .get(..2)
            .filter(|digits| first == b'%' && digits.iter().all(u8::is_ascii_hexdigit));
        let byte =
            escape.and_then(|digits| u8::from_str_radix(str::from_utf8(digits).ok()?, 16).ok());
        plain.push(byte.unwrap_or(if first == b'+' { b' ' } else { first }));
        rest = if byte.is_some() { &others[2..] } else { others };
    }
    String::from_utf8_lossy(&plain).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_selects_collectors() {
        let names = |names: &[&str]| names.iter().copied().map(String::from).collect();
        for (query, selection) in [
            ("", Ok(None)),
            ("x=1&collect=cpu", Ok(None)),
            (
                "exclude[]=%+f",
                Ok(Some(Selection::Without(names(&["% f"])))),
            ),
            (
                "collect[]=cpu&collect%5B%5d=stat",
                Ok(Some(Selection::Only(names(&["cpu", "stat"])))),
            ),
            (
                "exclude[]=a%2Bb+c%2",
                Ok(Some(Selection::Without(names(&["a+b c%2"])))),
            ),
            (
                "exclude[]=a&collect[]=b",
                Err("Combined collect and exclude queries are not allowed.\n"),
            ),
        ] {
            assert_eq!(Selection::of(query), selection, "{query}");
        }
    }
}
