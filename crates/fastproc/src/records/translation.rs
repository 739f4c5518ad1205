//! Reads records of another version, from a service or a recording, by field names.

use std::collections::HashMap;

use crate::{
    base::plain::{Plain, bytes_of, read},
    records::{
        fields::Fields,
        layout,
        record::{ExitRecord, Record, ThreadRecord},
        schema::{EXIT, RECORD, Structure, THREAD},
    },
};

/// How to read records of another layout. What that layout lacks is unknown: the member itself, if it can be marked,
/// otherwise its group.
#[derive(Debug)]
pub struct Translation {
    process: Plan,
    thread: Plan,
    exit: Plan,
    /// Groups that are missing or different in that layout.
    lacks: Fields,
}

/// The sources of the fields of a structure.
#[derive(Debug)]
struct Plan {
    /// The size of the structure in that layout.
    stride: usize,
    copies: Vec<Copied>,
    /// Groups that are missing or different in that layout.
    lacks: Fields,
    /// Whether every field that belongs to no group is the same in that layout.
    is_whole: bool,
}

#[derive(Debug)]
struct Copied {
    from: usize,
    to: usize,
    len: usize,
}

impl Translation {
    /// Makes a translation from a description of the layout, as [`layout`](crate::schema::layout) returns it. `None` if
    /// it lacks fields that every record must have.
    pub fn parse(text: &str) -> Option<Self> {
        let process = Plan::parse("process", RECORD, text)?;
        if !process.is_whole {
            return None;
        }
        let thread = Plan::parse("thread", THREAD, text).unwrap_or_else(Plan::nothing);
        let exit = Plan::parse("exit", EXIT, text).unwrap_or_else(Plan::nothing);
        let mut lacks = process.lacks;
        if !thread.is_whole || !thread.lacks.is_empty() {
            lacks |= Fields::THREADS;
        }
        Some(Self {
            process,
            thread,
            exit,
            lacks,
        })
    }

    /// Whether all of these groups can be read.
    pub fn has(&self, fields: Fields) -> bool {
        !self.lacks.intersects(fields)
    }

    /// Whether exits can be read.
    pub fn has_exits(&self) -> bool {
        self.exit.is_whole
    }

    /// Bytes of a record of a process, of a thread, and of an exit.
    pub fn strides(&self) -> [usize; 3] {
        [self.process.stride, self.thread.stride, self.exit.stride]
    }

    /// Reads records of processes. Their group bits omit groups that cannot be read.
    pub fn processes(&self, bytes: &[u8], records: &mut Vec<Record>) {
        self.process.translate(bytes, records);
        if !self.lacks.is_empty() {
            for record in records {
                record.identity.groups &= !self.lacks.bits();
            }
        }
    }

    /// Reads records of threads.
    pub fn threads(&self, bytes: &[u8], records: &mut Vec<ThreadRecord>) {
        self.thread.translate(bytes, records);
    }

    /// Reads records of exits.
    pub fn exits(&self, bytes: &[u8], records: &mut Vec<ExitRecord>) {
        self.exit.translate(bytes, records);
    }
}

impl Plan {
    /// The plan for a structure that is missing.
    const fn nothing() -> Self {
        Self {
            stride: 0,
            copies: Vec::new(),
            lacks: Fields::empty(),
            is_whole: false,
        }
    }

    /// A plan for reading a structure. `None` if it is not described.
    fn parse(name: &str, structure: &Structure, text: &str) -> Option<Self> {
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
            is_whole: true,
            ..Self::nothing()
        };
        for field in structure.fields() {
            let (to, len) = (field.offset, field.type_of.size());
            let there = theirs.get(&field.path).filter(|(offset, described)| {
                *described == layout::described(&field)
                    && offset.checked_add(len).is_some_and(|end| end <= stride)
            });
            match (there, field.group) {
                (Some(&(from, _)), _) => plan.copy(Copied { from, to, len }),
                (None, _) if field.unknown.is_some() => {}
                (None, Some(group)) => plan.lacks |= group,
                (None, None) => plan.is_whole = false,
            }
        }
        Some(plan)
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

    fn translate<T: Plain + Default>(&self, bytes: &[u8], records: &mut Vec<T>) {
        records.clear();
        if self.stride == 0 {
            return;
        }
        // Members that are not copied keep the value for unknown.
        let mut ours = bytes_of(&T::default()).to_vec();
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
        let same = Translation::parse(layout::text()).expect("all of it is there");
        assert_eq!(same.strides(), [RECORD.size, THREAD.size, EXIT.size]);
        assert!(same.has_exits());
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
            let other = Translation::parse(&text).expect("the rest is there");
            assert!(!other.has(Fields::MEMORY), "{from}");
            assert!(other.has(Fields::CREDENTIALS));
        }
        let processes = layout::text().split("structure\tthread").next();
        let other = Translation::parse(processes.expect("text")).expect("the rest is there");
        assert!(!other.has(Fields::THREADS) && other.has(Fields::all() - Fields::THREADS));
        // Fields that every record has must be present.
        for gone in ["field\tidentity.", "field\tname", "structure\tprocess"] {
            let text = layout::text().replace(gone, "field\tother");
            assert!(Translation::parse(&text).is_none(), "{gone}");
        }
    }

    #[test]
    fn members_that_another_layout_lacks_are_unknown() {
        let mut lines: Vec<&str> = layout::text().lines().collect();
        // Its description ends before later fields, and has fields that have been removed since.
        let without = [
            "field\tidentity.on_cpu\t",
            "field\tcpu.sum_exec_ns\t",
            "field\tmemory.swap\t",
        ];
        lines.retain(|line| !without.iter().any(|start| line.starts_with(start)));
        lines.insert(1, "field\tidentity.of_old\t0\tu64\t-\t0");
        let other = Translation::parse(&lines.join("\n")).expect("the rest is there");
        assert!(other.has(Fields::CPU) && !other.has(Fields::MEMORY) && other.has_exits());
        let mut there = Record::default();
        there.identity.tgid = 7;
        there.identity.groups = (Fields::CPU | Fields::MEMORY).bits();
        there.cpu.utime_ns = 9;
        there.identity.set_on_cpu(Some(1));
        there.cpu.set_sum_exec_ns(Some(5));
        let mut here = Vec::new();
        other.processes(bytes_of(&there), &mut here);
        let process = crate::Process::new(&here[0], &[]);
        assert_eq!((process.pid(), process.memory()), (7, None));
        let cpu = process.cpu().expect("it is there");
        assert_eq!((cpu.utime_ns, cpu.sum_exec_ns()), (9, None));
        assert_eq!(process.identity().on_cpu(), None);
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
            if let Some(translation) = Translation::parse(&text.join("\n")) {
                translation.processes(&bytes, &mut Vec::new());
                translation.threads(&bytes, &mut Vec::new());
                translation.exits(&bytes, &mut Vec::new());
            }
        }
    }
}
