//! Names of terminals, found as ps(1) finds them: `/proc/tty/drivers` says how the files of a driver are called, and the
//! file in `/dev` confirms it.

use std::{collections::HashMap, fs, os::unix::fs::MetadataExt};

use rustix::fs::makedev;

use crate::base::{frozen, proc_root};

/// Names of terminals by their numbers. Each is looked up once until [`renew`](Self::renew).
#[derive(Debug, Default)]
pub struct Terminals {
    /// Recorded snapshots may be of another machine, whose `/dev` is not here.
    recorded: bool,
    drivers: Option<Vec<Driver>>,
    known: HashMap<u32, Option<Terminal>>,
}

/// A line of `/proc/tty/drivers`.
#[derive(Debug, PartialEq, Eq)]
struct Driver {
    /// Such as `/dev/ttyUSB`.
    path: String,
    major: u32,
    first: u32,
    last: u32,
}

#[derive(Debug)]
struct Terminal {
    /// Without `/dev/`.
    name: String,
    /// The file system that has its file. Each container has its own pseudo terminals, with the same numbers.
    file_system: u64,
}

/// Pseudo terminals, `UNIX98_PTY_SLAVE_MAJOR`.
const PTS: std::ops::Range<u32> = 136..144;

impl Terminals {
    /// The names of a recording's terminals: those that the kernel fixes. This machine is not asked.
    #[must_use]
    pub fn recorded() -> Self {
        Self {
            recorded: true,
            ..Self::default()
        }
    }

    /// Forgets all names, because terminals come and go.
    pub fn renew(&mut self) {
        self.known.clear();
    }

    /// The controlling terminal of the process `pid`, whose number `tty_nr` is as in `/proc/PID/stat`: its file, without
    /// `/dev/`. `None` if it has none, if no file here has this number, or if it is a pseudo terminal of another
    /// container, as far as this reader may see that.
    pub fn name(&mut self, pid: u32, tty_nr: i32) -> Option<&str> {
        let number = tty_nr as u32;
        // new_encode_dev() of the kernel
        let (major, minor) = (number >> 8 & 0xfff, number & 0xff | number >> 12 & 0xf_ff00);
        if (major, minor) == (0, 0) {
            return None;
        }
        let drivers = &mut self.drivers;
        let recorded = self.recorded;
        let terminal = self.known.entry(number).or_insert_with(|| {
            if recorded {
                let name = fixed(major, minor)?;
                return Some(Terminal {
                    name,
                    file_system: 0,
                });
            }
            let drivers = drivers.get_or_insert_with(|| {
                let text = fs::read(proc_root::path("/proc/tty/drivers")).unwrap_or_default();
                parse(&String::from_utf8_lossy(&text))
            });
            find(drivers, major, minor, frozen::device)
        });
        let terminal = terminal.as_ref()?;
        let is_foreign = !recorded
            && PTS.contains(&major)
            && is_elsewhere(pid, makedev(major, minor), terminal.file_system);
        (!is_foreign).then_some(&*terminal.name)
    }
}

/// The lines `NAME PATH MAJOR MINORS TYPE`.
fn parse(text: &str) -> Vec<Driver> {
    let driver = |line: &str| {
        // The name may have blanks, and the path does not.
        let mut words = line[line.find("/dev/")?..].split_whitespace();
        let path = words.clone().next()?.to_owned();
        // A path may be a name as well, as in `/dev/tty /dev/tty`.
        let major = words.find_map(|word| word.parse().ok())?;
        let minors = words.next()?;
        let (first, last) = minors.split_once('-').unwrap_or((minors, minors));
        Some(Driver {
            path,
            major,
            first: first.parse().ok()?,
            last: last.parse().ok()?,
        })
    };
    text.lines().filter_map(driver).collect()
}

/// The file of a terminal. Its driver numbers the files by the minor number, by the minor number less its first, or
/// names a single file. `file` returns which device a path is, and its file system.
fn find(
    drivers: &[Driver],
    major: u32,
    minor: u32,
    file: impl Fn(&str) -> Option<(u64, u64)>,
) -> Option<Terminal> {
    let own =
        |driver: &&Driver| driver.major == major && (driver.first..=driver.last).contains(&minor);
    let named = drivers.iter().filter(own).flat_map(|driver| {
        let Driver { path, first, .. } = driver;
        let number = minor - first;
        [
            format!("{path}{minor}"),
            format!("{path}/{minor}"),
            format!("{path}{number}"),
            path.clone(),
        ]
    });
    let fixed = fixed(major, minor).map(|name| format!("/dev/{name}"));
    named.chain(fixed).find_map(|path| {
        let (device, file_system) = file(&path)?;
        let name = path.trim_start_matches("/dev/").to_owned();
        (device == makedev(major, minor)).then_some(Terminal { name, file_system })
    })
}

/// The name by Documentation/admin-guide/devices.txt.
fn fixed(major: u32, minor: u32) -> Option<String> {
    Some(match major {
        4 if minor < 64 => format!("tty{minor}"),
        4 => format!("ttyS{}", minor - 64),
        major if PTS.contains(&major) => {
            format!("pts/{}", (major - PTS.start) * 256 + minor)
        }
        _ => return None,
    })
}

/// Whether a process has a pseudo terminal of another file system than the one with this number here. Its open files
/// show that; without one, a different mount namespace makes it likely enough not to name the one here.
fn is_elsewhere(pid: u32, device: u64, file_system: u64) -> bool {
    let of_process = |file: &str| proc_root::link(&format!("/proc/{pid}/{file}"));
    let open = ["fd/0", "fd/1", "fd/2", "fd/255"].iter().find_map(|file| {
        let file = fs::metadata(of_process(file)?).ok()?;
        (file.rdev() == device).then(|| file.dev())
    });
    if let Some(open) = open {
        return open != file_system;
    }
    let own = fs::read_link(proc_root::own_path("/proc/self/ns/mnt"));
    let other = of_process("ns/mnt").map(fs::read_link);
    matches!((own, other), (Ok(own), Some(Ok(other))) if own != other)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DRIVERS: &str = "\
/dev/tty             /dev/tty        5       0 system:/dev/tty
/dev/vc/0            /dev/vc/0       4       0 system:vtmaster
usbserial            /dev/ttyUSB   188 0-511 serial
serial               /dev/ttyS       4 64-95 serial
pty_slave            /dev/pts      136 0-1048575 pty:slave
unknown              /dev/tty        4 1-63 console
";

    #[test]
    fn drivers_have_a_path_and_a_range_of_numbers() {
        let drivers = parse(DRIVERS);
        let seen: Vec<_> = drivers
            .iter()
            .map(|driver| (&*driver.path, driver.major, driver.first, driver.last))
            .collect();
        assert_eq!(
            seen,
            [
                ("/dev/tty", 5, 0, 0),
                ("/dev/vc/0", 4, 0, 0),
                ("/dev/ttyUSB", 188, 0, 511),
                ("/dev/ttyS", 4, 64, 95),
                ("/dev/pts", 136, 0, 1_048_575),
                ("/dev/tty", 4, 1, 63),
            ]
        );
        for damaged in ["", "x", "x /dev/y", "x /dev/y z", "x /dev/y 1 2-z serial"] {
            assert_eq!(parse(damaged), [], "{damaged}");
        }
    }

    #[test]
    fn a_terminal_of_any_driver_has_the_name_of_its_file() {
        let name = |major, minor| {
            let file = |path: &str| match path {
                "/dev/ttyUSB3" => Some((makedev(188, 3), 5)),
                "/dev/ttyUSB4" => Some((makedev(1, 3), 5)),
                "/dev/ttyS1" => Some((makedev(4, 65), 5)),
                "/dev/tty0" => Some((makedev(4, 0), 5)),
                "/dev/pts/300" => Some((makedev(136, 300), 21)),
                _ => None,
            };
            find(&parse(DRIVERS), major, minor, file).map(|terminal| terminal.name)
        };
        assert_eq!(name(188, 3).as_deref(), Some("ttyUSB3"));
        assert_eq!(name(4, 65).as_deref(), Some("ttyS1"));
        assert_eq!(name(4, 0).as_deref(), Some("tty0"), "its driver is wrong");
        assert_eq!(name(136, 300).as_deref(), Some("pts/300"));
        assert_eq!(name(136, 0), None, "there is no file");
        assert_eq!(name(188, 4), None, "the file is another device");
        assert_eq!(name(189, 3), None, "no driver has it");
    }

    #[test]
    fn a_recording_has_the_names_that_the_kernel_fixes() {
        let mut terminals = Terminals::recorded();
        let mut name = |major: i32, minor: i32| {
            let number = minor & 0xff | major << 8 | (minor & !0xff) << 12;
            terminals.name(1, number).map(str::to_owned)
        };
        assert_eq!(name(0, 0), None);
        assert_eq!(name(4, 1).as_deref(), Some("tty1"));
        assert_eq!(name(4, 64).as_deref(), Some("ttyS0"));
        assert_eq!(name(136, 300).as_deref(), Some("pts/300"));
        assert_eq!(name(188, 3), None);
    }
}
