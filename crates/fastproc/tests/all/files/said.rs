//! What the kernel's text says of a descriptor, by code that shares nothing with the library.

use std::{
    fs,
    os::unix::{ffi::OsStringExt, fs::MetadataExt},
};

use fastproc::files::{File, Kind, Slot};

/// A descriptor as the text has it.
#[derive(Debug, PartialEq, Eq)]
pub struct Said {
    pub name: Vec<u8>,
    device: u64,
    inode: u64,
    size: u64,
    special: u64,
    position: u64,
    flags: u32,
}

impl Said {
    /// Reads a descriptor, or what else a process holds. `None`: it is closed.
    pub fn read(pid: u32, slot: Slot) -> Option<Self> {
        let entry = match slot {
            Slot::Descriptor(number) => format!("fd/{number}"),
            Slot::CurrentDirectory => "cwd".into(),
            Slot::Root => "root".into(),
            Slot::Program => "exe".into(),
            _ => return None,
        };
        let path = format!("/proc/{pid}/{entry}");
        let name = fs::read_link(&path).ok()?.into_os_string().into_vec();
        let stat = fs::metadata(&path).ok()?;
        let info = match slot {
            Slot::Descriptor(number) => {
                fs::read_to_string(format!("/proc/{pid}/fdinfo/{number}")).ok()?
            }
            _ => "pos: 0\nflags: 0\n".into(),
        };
        let value = |name: &str| {
            let mut lines = info.lines();
            lines.find_map(|line| Some(line.strip_prefix(name)?.trim().to_owned()))
        };
        Some(Self {
            name,
            device: stat.dev(),
            inode: stat.ino(),
            size: stat.size(),
            special: stat.rdev(),
            position: value("pos:")?.parse::<i64>().ok()? as u64,
            flags: u32::from_str_radix(&value("flags:")?, 8).ok()?,
        })
    }

    /// What of a file differs from this: what is known must be the same, and a name and an inode must be known.
    pub fn differences(&self, file: File<'_>) -> Vec<String> {
        let mut found = Vec::new();
        let mut compare = |what: &str, is: Option<u64>, said: u64| {
            if is.is_some_and(|is| is != said) {
                found.push(format!("{what}: {is:?} instead of {said}"));
            }
        };
        let number =
            |device: fastproc::files::Device| rustix::fs::makedev(device.major, device.minor);
        compare("device", file.device().map(number), self.device);
        compare("inode", Some(file.inode().unwrap_or(0)), self.inode);
        compare("size", file.size(), self.size);
        compare("special", file.special_device().map(number), self.special);
        compare("position", file.position(), self.position);
        compare("flags", file.flags().map(u64::from), self.flags.into());
        let mut name = Vec::new();
        if !file.write_name(&mut name) || name != self.name {
            let [name, said] = [&name, &self.name].map(|name| name.escape_ascii().to_string());
            found.push(format!("name: {name:?} instead of {said:?}"));
        }
        if file.kind() == Kind::Other {
            found.push("the kind is unknown".into());
        }
        found
    }
}
