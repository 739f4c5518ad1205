//! What the kernel's text says: links, stat(2), fdinfo, and the tables of sockets. It shares no code with the library.

use std::{
    collections::BTreeSet,
    fs,
    os::unix::{ffi::OsStrExt, fs::MetadataExt},
    path::{Path, PathBuf},
};

use fastproc::{files::Slot, proc_root};
use rustix::fs::{major, minor};

use super::{Key, Values, tables::Tables};

/// What no source may leave out.
pub const MUST_BE_KNOWN: [&str; 3] = ["descriptors", "name", "inode"];

fn path(below: &str) -> PathBuf {
    proc_root::path(&format!("/proc/{below}")).into_owned()
}

/// The numbers among the names of a folder.
fn numbers(folder: &Path) -> Option<BTreeSet<u32>> {
    let names = fs::read_dir(folder).ok()?;
    let names = names.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    Some(names.filter_map(|name| name.parse().ok()).collect())
}

/// All processes.
pub fn processes() -> Vec<u32> {
    let found = numbers(&path(""));
    found.unwrap_or_default().into_iter().collect()
}

/// What these processes have open.
pub fn keys(pids: &[u32]) -> BTreeSet<Key> {
    let mut keys = BTreeSet::new();
    for &pid in pids {
        let Some(open) = numbers(&path(&format!("{pid}/fd"))) else {
            continue;
        };
        keys.insert((pid, None));
        keys.extend(
            open.into_iter()
                .map(|number| (pid, Some(Slot::Descriptor(number)))),
        );
        for slot in [Slot::CurrentDirectory, Slot::Root, Slot::Program] {
            keys.insert((pid, Some(slot)));
        }
    }
    keys
}

/// The name of a file in the folder of its process.
pub fn name_of(slot: Slot) -> String {
    match slot {
        Slot::Descriptor(number) => format!("fd/{number}"),
        Slot::CurrentDirectory => "cwd".into(),
        Slot::Root => "root".into(),
        _ => "exe".into(),
    }
}

/// The values of an open file, or of a process. `None`: it is closed, or the kernel does not show it.
pub fn read((pid, slot): Key, tables: &Tables) -> Option<Values> {
    let Some(slot) = slot else {
        let open = numbers(&path(&format!("{pid}/fd")))?;
        // A leader that has ended shows nothing.
        let has_ended = fs::read_link(path(&format!("{pid}/cwd"))).is_err();
        return (!has_ended).then(|| Values::from([("descriptors", format!("{open:?}"))]));
    };
    let link = path(&format!("{pid}/{}", name_of(slot)));
    let name = fs::read_link(&link).ok()?;
    let stat = fs::metadata(&link).ok()?;
    let device = |number| format!("{}:{}", major(number), minor(number));
    let name = name.as_os_str().as_bytes();
    let mut values = Values::from([
        ("name", name.escape_ascii().to_string()),
        ("device", device(stat.dev())),
        ("inode", stat.ino().to_string()),
        ("size", stat.size().to_string()),
        ("rdev", device(stat.rdev())),
    ]);
    if let Slot::Descriptor(number) = slot {
        let info = fs::read_to_string(path(&format!("{pid}/fdinfo/{number}"))).ok()?;
        for (field, line) in [("position", "pos:"), ("flags", "flags:")] {
            let mut lines = info.lines();
            let value = lines.find_map(|text| text.strip_prefix(line))?;
            values.insert(field, value.trim().trim_start_matches('0').to_owned());
        }
    }
    if name.starts_with(b"socket:") {
        values.extend(tables.find(stat.ino()));
    }
    Some(values)
}
