//! The kernel's tables of sockets, `/proc/net/tcp` and its like, for this network namespace. Values stay as the kernel prints them.

use std::{collections::HashMap, fs};

use fastproc::proc_root;

use super::Values;

const INET: [&str; 6] = ["tcp", "tcp6", "udp", "udp6", "raw", "raw6"];

/// Lines by inode number. `None`: several lines have this number.
#[derive(Debug, Default)]
pub struct Tables(HashMap<u64, Option<Values>>);

impl Tables {
    pub fn read() -> Self {
        let mut tables = Self::default();
        for name in INET {
            let text = fs::read_to_string(proc_root::path(&format!("/proc/net/{name}")));
            let text = text.unwrap_or_default();
            for line in text.lines().skip(1) {
                tables.add(inet(name, line));
            }
        }
        // Names are bytes, and an odd one makes only its own line unreadable.
        let unix = fs::read(proc_root::path("/proc/net/unix")).unwrap_or_default();
        tables.add_unix(&unix);
        tables
    }

    /// A line that cannot be parsed is the rest of a name with a newline, whose first part is in the line before. That name is not judged.
    fn add_unix(&mut self, text: &[u8]) {
        let text = text.strip_suffix(b"\n").unwrap_or(text);
        let mut previous = None;
        for line in text.split(|&byte| byte == b'\n').skip(1) {
            let found = std::str::from_utf8(line).ok().and_then(unix_line);
            if let Some((inode, _)) = found {
                previous = Some(inode);
            } else if let Some(Some(values)) = previous.and_then(|inode| self.0.get_mut(&inode)) {
                values.remove("unix name");
            }
            self.add(found);
        }
    }

    fn add(&mut self, line: Option<(u64, Values)>) {
        if let Some((inode, values)) = line.filter(|&(inode, _)| inode != 0) {
            let known = self.0.contains_key(&inode);
            self.0.insert(inode, (!known).then_some(values));
        }
    }

    pub fn find(&self, inode: u64) -> Values {
        self.0.get(&inode).cloned().flatten().unwrap_or_default()
    }
}

fn inet(table: &str, line: &str) -> Option<(u64, Values)> {
    let words: Vec<_> = line.split_ascii_whitespace().collect();
    let [_, local, peer, state, queues, _, _, uid, _, inode, ..] = words[..] else {
        return None;
    };
    let values = Values::from([
        ("socket table", table.to_owned()),
        ("socket local", local.to_owned()),
        ("socket peer", peer.to_owned()),
        ("socket state", state.to_owned()),
        ("socket queues", queues.to_owned()),
        ("socket uid", uid.to_owned()),
    ]);
    Some((inode.parse().ok()?, values))
}

fn unix_line(line: &str) -> Option<(u64, Values)> {
    let words: Vec<_> = line.split_ascii_whitespace().take(7).collect();
    let [_, _, _, flags, kind, _, inode] = words[..] else {
        return None;
    };
    // Behind the column of the inode number, which is five wide at least, comes a space.
    let start = line.find(&format!(" {inode}"))? + 1 + inode.len();
    let name = line.get(start + 1..).unwrap_or_default();
    let listens = flags == "00010000";
    let mut values = Values::from([
        ("unix type", kind.to_owned()),
        ("unix listens", listens.to_string()),
    ]);
    // Behind the first one of an abstract name an @ may be a zero byte.
    if !name
        .strip_prefix('@')
        .is_some_and(|name| name.contains('@'))
    {
        values.insert("unix name", name.escape_debug().to_string());
    }
    Some((inode.parse().ok()?, values))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_found_by_their_inode_numbers() {
        let mut tables = Tables::default();
        let line = " 0: 0100007F:0016 00000000:0000 0A 00000000:00000000 00:00000000 00000000 7 0 42 1 0 100";
        tables.add(inet("tcp", line));
        assert_eq!(tables.find(42)["socket local"], "0100007F:0016");
        assert_eq!(tables.find(42)["socket uid"], "7");
        let line = "0000000000000000: 00000002 00000000 00010000 0001 01 26536 @/tmp/a b";
        tables.add(unix_line(line));
        let found = tables.find(26536);
        assert_eq!(
            (&*found["unix name"], &*found["unix listens"]),
            ("@/tmp/a b", "true")
        );
        // A second line of a socket makes both unknown.
        tables.add(unix_line(line));
        assert_eq!(tables.find(26536), Values::new());
    }

    #[test]
    fn a_unix_name_that_the_text_cannot_tell_is_not_judged() {
        let mut tables = Tables::default();
        tables.add_unix(
            b"Num       RefCount Protocol Flags    Type St Inode Path\n\
            a: 00000002 00000000 00010000 0001 01 5 @two\nlines\n\
            b: 00000002 00000000 00010000 0001 01 6 @a@b\n\
            c: 00000002 00000000 00010000 0001 01 7 /run/a@b\n",
        );
        let name = |inode| tables.find(inode).remove("unix name");
        assert_eq!([5, 6, 7].map(name), [None, None, Some("/run/a@b".into())]);
    }
}
