//! The kernel's own texts: what every reader of /proc pays.

use std::ffi::CString;

use rustix::{
    fd::OwnedFd,
    fs::{CWD, Mode, OFlags, openat},
    io::{Errno, pread, read},
};

use super::input::Sample;
use crate::measure::Failure;

/// Longer than the texts of most processes; of a longer one, the rest is not read.
const BUFFER: usize = 16 << 10;

/// The paths of each process.
fn paths(files: &[&str], pid: u32) -> Vec<CString> {
    files
        .iter()
        .filter_map(|name| CString::new(format!("/proc/{pid}/{name}")).ok())
        .collect()
}

fn open(path: &CString) -> Result<OwnedFd, Errno> {
    openat(CWD, path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
}

/// Files that are opened each time. A process that has died is passed over from then on, by all ways alike.
pub struct Opened {
    paths: Vec<Vec<CString>>,
    buffer: Vec<u8>,
}

impl Opened {
    pub fn new(files: &[&str], samples: &[Sample]) -> Self {
        let paths = samples.iter().map(|sample| paths(files, sample.pid));
        Self {
            paths: paths.collect(),
            buffer: vec![0; BUFFER],
        }
    }

    /// Reads the files of all processes, and returns of how many.
    pub fn read(&mut self, dead: &mut [bool]) -> usize {
        let buffer = &mut *self.buffer;
        count(&self.paths, dead, |path| read(open(path)?, &mut *buffer))
    }
}

/// Files that are kept open.
pub struct Kept {
    descriptors: Vec<Vec<OwnedFd>>,
    buffer: Vec<u8>,
}

impl Kept {
    /// # Errors
    /// The limit of descriptors is too low.
    pub fn open(files: &[&str], samples: &[Sample], dead: &mut [bool]) -> Result<Self, Failure> {
        let mut descriptors = Vec::new();
        for (sample, dead) in samples.iter().zip(dead) {
            let opened: Result<Vec<OwnedFd>, Errno> =
                paths(files, sample.pid).iter().map(open).collect();
            match opened {
                Err(Errno::MFILE) => {
                    return Err("too many files are open: raise the limit (ulimit -n)".into());
                }
                Err(_) => *dead = true,
                Ok(_) => {}
            }
            descriptors.push(opened.unwrap_or_default());
        }
        Ok(Self {
            descriptors,
            buffer: vec![0; BUFFER],
        })
    }

    /// Reads the files of all processes, and returns of how many.
    pub fn read(&mut self, dead: &mut [bool]) -> usize {
        let buffer = &mut *self.buffer;
        count(&self.descriptors, dead, |descriptor| {
            pread(descriptor, &mut *buffer, 0)
        })
    }
}

fn count<T>(
    processes: &[Vec<T>],
    dead: &mut [bool],
    mut read: impl FnMut(&T) -> Result<usize, Errno>,
) -> usize {
    let mut alive = 0;
    for (files, dead) in processes.iter().zip(dead) {
        if !*dead {
            *dead = files.iter().any(|file| read(file).is_err());
            alive += usize::from(!*dead);
        }
    }
    alive
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_three_files_have_their_paths() {
        let paths = |files: &[&str]| {
            let paths = paths(files, 7).into_iter();
            paths
                .map(|path| path.into_string().expect("it is text"))
                .collect::<Vec<_>>()
        };
        assert_eq!(
            paths(&["stat", "statm", "status"]),
            ["/proc/7/stat", "/proc/7/statm", "/proc/7/status"]
        );
        assert_eq!(paths(&["statm"]), ["/proc/7/statm"]);
    }

    #[test]
    fn the_dead_are_passed_over_and_not_counted() {
        let mut dead = [false, true, false];
        let mut asked = Vec::new();
        let alive = count(&[vec![1], vec![2], vec![3]], &mut dead, |&file| {
            asked.push(file);
            if file == 3 { Err(Errno::SRCH) } else { Ok(1) }
        });
        assert_eq!((alive, dead), (1, [false, true, true]));
        assert_eq!(asked, [1, 3]);
    }
}
