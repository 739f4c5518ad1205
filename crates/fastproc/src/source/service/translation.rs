//! Reads records of a service of another version by the names of their fields.

use std::collections::HashMap;

use super::layout;
use crate::{
    base::plain::{Plain, read},
    records::{
        fields::Fields,
        record::{Record, ThreadRecord},
        schema::{RECORD, Structure, THREAD},
    },
};

/// How to read records of another layout.
#[derive(Debug)]
pub(super) struct Translation {
    /// Id of that layout.
    pub(super) layout: u64,
    process: Plan,
    thread: Plan,
    /// Groups that it does not describe as this version does.
    lacks: Fields,
}

/// Where the fields of a structure come from.
#[derive(Debug, Default)]
struct Plan {
    /// Bytes of the structure in that layout.
    stride: usize,
    copies: Vec<Copied>,
}

#[derive(Debug)]
struct Copied {
    from: usize,
    to: usize,
    len: usize,
}

impl Translation {
    /// Makes a translation from the service's description. `None` if it lacks fields that every record must
    /// have.
    pub(super) fn parse(layout: u64, text: &str) -> Option<Self> {
        let (process, mut lacks) = Plan::parse("process", RECORD, text)?;
        let thread = Plan::parse("thread", THREAD, text);
        let (thread, lacks_of_threads) = thread.unwrap_or((Plan::default(), Fields::THREADS));
        if !lacks_of_threads.is_empty() {
            lacks |= Fields::THREADS;
        }
        Some(Self {
            layout,
            process,
            thread,
            lacks,
        })
    }

    /// Whether all of these groups can be read.
    pub(super) fn has(&self, fields: Fields) -> bool {
        !self.lacks.intersects(fields)
    }

    /// Bytes of a record of a process, and of a thread.
    pub(super) fn strides(&self) -> [usize; 2] {
        [self.process.stride, self.thread.stride]
    }

    /// Reads records of processes.
    pub(super) fn processes(&self, bytes: &[u8], records: &mut Vec<Record>) {
        self.process.translate(bytes, records);
    }

    /// Reads records of threads.
    pub(super) fn threads(&self, bytes: &[u8], records: &mut Vec<ThreadRecord>) {
        self.thread.translate(bytes, records);
    }
}

impl Plan {
    /// How to read a structure, and the groups that are missing or different in it.
    fn parse(name: &str, structure: &Structure, text: &str) -> Option<(Self, Fields)> {
        let mut lines = text
            .lines()
            .map(|line| line.split('\t').collect::<Vec<_>>());
        let stride = lines.find_map(|columns| match columns[..] {
            ["structure", found, bytes] if found == name => bytes.parse().ok(),
            _ => None,
        })?;
        let fields = lines.map_while(|columns| match columns[..] {
            ["field", path, offset, type_of, unit, group] => Some((
                path.to_owned(),
                (
                    offset.parse().ok()?,
                    [type_of, unit, group].map(str::to_owned),
                ),
            )),
            _ => None,
        });
        let theirs: HashMap<String, (usize, [String; 3])> = fields.collect();
        let mut plan = Self {
            stride,
            copies: Vec::new(),
        };
        let mut lacks = Fields::empty();
        for field in structure.fields() {
            let (to, len) = (field.offset, field.type_of.size());
            let there = theirs.get(&field.path).filter(|(offset, described)| {
                *described == layout::described(&field)
                    && offset.checked_add(len).is_some_and(|end| end <= stride)
            });
            match there {
                Some(&(from, _)) => plan.copy(Copied { from, to, len }),
                None => lacks |= field.group?,
            }
        }
        Some((plan, lacks))
    }

    /// Neighbours that are also neighbours in the other layout are copied together.
    fn copy(&mut self, next: Copied) {
        match self.copies.last_mut() {
            Some(last) if last.from + last.len == next.from && last.to + last.len == next.to => {
                last.len += next.len;
            }
            _ => self.copies.push(next),
        }
    }

    fn translate<T: Plain>(&self, bytes: &[u8], records: &mut Vec<T>) {
        records.clear();
        if self.stride == 0 {
            return;
        }
        // Members that are not copied stay 0.
        let mut ours = vec![0; size_of::<T>()];
        records.extend(bytes.chunks_exact(self.stride).filter_map(|theirs| {
            for &Copied { from, to, len } in &self.copies {
                ours[to..to + len].copy_from_slice(&theirs[from..from + len]);
            }
            read::<T>(&ours)
        }));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn this_layout_is_one_copy() {
        let same = Translation::parse(1, layout::text()).expect("all of it is there");
        assert_eq!(same.strides(), [RECORD.size, THREAD.size]);
        assert!(same.has(Fields::all()));
        assert_eq!(
            (same.process.copies.len(), same.thread.copies.len()),
            (1, 1)
        );
    }

    #[test]
    fn a_field_that_is_not_what_it_is_here_takes_its_group_away() {
        for (from, to) in [
            ("field\tmemory.", "field\tmemory_of_old."),
            ("\tu64\tbytes\t", "\tu32\tbytes\t"),
            ("\tu64\tbytes\t", "\tu64\t-\t"),
        ] {
            let text = layout::text().replace(from, to);
            let other = Translation::parse(1, &text).expect("the rest is there");
            assert!(!other.has(Fields::MEMORY), "{from}");
            assert!(other.has(Fields::CREDENTIALS));
        }
        let processes = layout::text().split("structure\tthread").next();
        let other = Translation::parse(1, processes.expect("text")).expect("the rest is there");
        assert!(!other.has(Fields::THREADS) && other.has(Fields::all() - Fields::THREADS));
        // What every record has must be there.
        for gone in ["field\tidentity.", "field\tname", "structure\tprocess"] {
            let text = layout::text().replace(gone, "field\tother");
            assert!(Translation::parse(1, &text).is_none(), "{gone}");
        }
    }

    proptest! {
        #[test]
        fn no_description_reads_beyond_a_record(
            lines in prop::collection::vec((0..1000_usize, "[0-9]{0,20}"), 0..40),
            bytes in prop::collection::vec(any::<u8>(), 0..3000),
        ) {
            let mut text: Vec<Vec<String>> = layout::text()
                .lines()
                .map(|line| line.split('\t').map(str::to_owned).collect())
                .collect();
            for (line, number) in lines {
                let line = line % text.len();
                text[line][2] = number;
            }
            let text: Vec<String> = text.iter().map(|columns| columns.join("\t")).collect();
            if let Some(translation) = Translation::parse(1, &text.join("\n")) {
                translation.processes(&bytes, &mut Vec::new());
                translation.threads(&bytes, &mut Vec::new());
            }
        }
    }
}
