//! The parts of a text: which collector wrote what. With them the serving process leaves parts out, for `collect[]` and
//! `exclude[]`, without another question to the process that collects.

/// Where the part of each collector ends, in the order of the text. What belongs to none has an empty name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parts(Vec<(String, usize)>);

impl Parts {
    /// Ends a part, which begins where the last one has ended.
    pub(crate) fn end(&mut self, collector: &str, at: usize) {
        let last = self.0.last().map_or(0, |(_, end)| *end);
        // A collector without metrics is one nevertheless.
        if at > last || !collector.is_empty() {
            self.0.push((collector.into(), at));
        }
    }

    /// Whether this collector is among them.
    pub fn have(&self, collector: &str) -> bool {
        self.0.iter().any(|(of, _)| of == collector)
    }

    /// The parts of this text that belong to no collector, or to one that is wanted.
    pub fn select(&self, text: &[u8], is_wanted: impl Fn(&str) -> bool) -> Vec<u8> {
        let (mut selected, mut start) = (Vec::new(), 0);
        for (collector, end) in &self.0 {
            if collector.is_empty() || is_wanted(collector) {
                selected.extend_from_slice(text.get(start..*end).unwrap_or_default());
            }
            start = *end;
        }
        selected.extend_from_slice(text.get(start..).unwrap_or_default());
        selected
    }

    /// A line for each part.
    pub fn to_bytes(&self) -> Vec<u8> {
        let lines = self.0.iter().map(|(name, end)| format!("{end} {name}\n"));
        lines.collect::<String>().into_bytes()
    }

    /// The parts of these lines; `None` if they are wrong.
    pub fn from_bytes(lines: &[u8]) -> Option<Self> {
        let lines = str::from_utf8(lines).ok()?.lines();
        let parts = lines.map(|line| {
            let (end, name) = line.split_once(' ')?;
            Some((name.into(), end.parse().ok()?))
        });
        parts.collect::<Option<_>>().map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_other_collectors_are_left_out() {
        let mut parts = Parts::default();
        for (name, end) in [("cpu", 3), ("", 3), ("", 5), ("arp", 5), ("stat", 8)] {
            parts.end(name, end);
        }
        let parts = Parts::from_bytes(&parts.to_bytes()).expect("lines");
        let select = |wanted: &[&str]| {
            let text = parts.select(b"cpu--staend", |name| wanted.contains(&name));
            String::from_utf8(text).expect("a text")
        };
        assert_eq!(select(&["cpu"]), "cpu--end");
        assert_eq!(select(&["arp", "stat"]), "--staend");
        assert!(parts.have("arp") && !parts.have("netdev"));
        assert_eq!(Parts::from_bytes(b"x cpu\n"), None);
        // A part that the text does not have is no failure.
        assert_eq!(parts.select(b"cp", |_| true), b"");
    }
}
