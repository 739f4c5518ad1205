//! A file of sysfs for each device, kept open while the device exists.

use std::{fs::File, os::unix::fs::FileExt, path::PathBuf};

/// Longer than all files that are read here.
const LENGTH: usize = 256;

/// One attribute of many devices.
#[derive(Debug, Default)]
pub(super) struct Attributes {
    devices: Vec<Device>,
}

#[derive(Debug)]
struct Device {
    name: Vec<u8>,
    file: Option<File>,
    text: String,
}

impl Attributes {
    /// Reads the attribute of these devices. If that fails, the device has no value.
    pub(super) fn read<'a>(
        &mut self,
        names: impl Iterator<Item = &'a [u8]>,
        path: impl Fn(&[u8]) -> PathBuf,
    ) {
        let mut before = std::mem::take(&mut self.devices);
        for name in names {
            let known = before.iter().position(|device| device.name == name);
            let mut device = match known {
                Some(at) => before.swap_remove(at),
                None => Device {
                    name: name.into(),
                    file: None,
                    text: String::new(),
                },
            };
            device.read(&path);
            self.devices.push(device);
        }
    }

    /// The devices that have a value, with the value.
    pub(super) fn values(&self) -> impl Iterator<Item = (&[u8], &str)> {
        let known = self.devices.iter().filter(|device| !device.text.is_empty());
        known.map(|device| (&*device.name, &*device.text))
    }
}

impl Device {
    fn read(&mut self, path: impl Fn(&[u8]) -> PathBuf) {
        self.text.clear();
        let mut bytes = [0; LENGTH];
        // If the device has gone and another one has its name, the open file fails.
        for _ in 0..2 {
            if self.file.is_none() {
                self.file = File::open(path(&self.name)).ok();
            }
            let Some(file) = &self.file else { return };
            if let Ok(length) = file.read_at(&mut bytes, 0) {
                let text = std::str::from_utf8(&bytes[..length]).unwrap_or_default();
                self.text.push_str(text.trim());
                return;
            }
            self.file = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStrExt;

    use super::*;

    #[test]
    fn devices_come_and_go() {
        let folder = std::env::temp_dir().join(format!("fastproc-sysfs-{}", std::process::id()));
        // A killed run may have left one of this name.
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        let path = |name: &[u8]| folder.join(std::ffi::OsStr::from_bytes(name));
        for name in [&b"a"[..], b"b\xff"] {
            let text = format!("of {}\n", char::from(name[0]));
            std::fs::write(path(name), text).unwrap();
        }
        let mut attributes = Attributes::default();
        for (names, expected) in [
            (&[&b"a"[..], b"none"][..], &[(&b"a"[..], "of a")][..]),
            (&[b"b\xff", b"a"], &[(b"b\xff", "of b"), (b"a", "of a")]),
            (&[b"b\xff"], &[(b"b\xff", "of b")]),
            (&[], &[]),
        ] {
            attributes.read(names.iter().copied(), path);
            assert_eq!(attributes.values().collect::<Vec<_>>(), expected);
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
