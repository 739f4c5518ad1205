//! The kernel's own texts: what every reader of /proc pays.

use std::{ffi::CString, rc::Rc};

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
        count(&self.paths, dead, |paths| {
            paths
                .iter()
                .try_for_each(|path| read(open(path)?, &mut *buffer).map(drop))
        })
    }
}

/// All that are kept open: each once, however many cases read it.
pub struct Files {
    names: Vec<&'static str>,
    /// Of each process, in the order of the names; nothing if it was dead.
    descriptors: Vec<Vec<OwnedFd>>,
}

impl Files {
    /// # Errors
    /// The limit of descriptors is too low.
    pub fn open(
        names: &[&'static str],
        samples: &[Sample],
        dead: &mut [bool],
    ) -> Result<Rc<Self>, Failure> {
        let mut descriptors = Vec::new();
        for (sample, dead) in samples.iter().zip(dead) {
            let opened: Result<Vec<OwnedFd>, Errno> =
                paths(names, sample.pid).iter().map(open).collect();
            match opened {
                Err(Errno::MFILE) => {
                    let (processes, files) = (samples.len(), names.len() * samples.len());
                    let message = format!(
                        "the texts of {processes} processes are {files} open files, and this process may not have so \
                         many: raise the limit (ulimit -n {})",
                        files + 100
                    );
                    return Err(message.into());
                }
                Err(_) => *dead = true,
                Ok(_) => {}
            }
            descriptors.push(opened.unwrap_or_default());
        }
        Ok(Rc::new(Self {
            names: names.to_vec(),
            descriptors,
        }))
    }
}

/// Some of the files that are kept open.
pub struct Kept {
    files: Rc<Files>,
    chosen: Vec<usize>,
    buffer: Vec<u8>,
}

impl Kept {
    /// Those with these names.
    pub fn new(files: &Rc<Files>, names: &[&str]) -> Self {
        let all = files.names.iter().enumerate();
        let chosen = all.filter(|(_, name)| names.contains(name));
        Self {
            chosen: chosen.map(|(at, _)| at).collect(),
            files: Rc::clone(files),
            buffer: vec![0; BUFFER],
        }
    }

    /// Reads the files of all processes, and returns of how many.
    pub fn read(&mut self, dead: &mut [bool]) -> usize {
        let Self {
            files,
            chosen,
            buffer,
        } = self;
        count(&files.descriptors, dead, |descriptors: &Vec<OwnedFd>| {
            for &at in &*chosen {
                let descriptor = descriptors.get(at).ok_or(Errno::SRCH)?;
                pread(descriptor, &mut **buffer, 0)?;
            }
            Ok(())
        })
    }
}

/// Reads of each process that is not dead, and returns of how many it could.
fn count<T>(
    processes: &[T],
    dead: &mut [bool],
    mut read: impl FnMut(&T) -> Result<(), Errno>,
) -> usize {
    let mut alive = 0;
    for (process, dead) in processes.iter().zip(dead) {
        if !*dead {
            *dead = read(process).is_err();
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
        let alive = count(&[1, 2, 3], &mut dead, |&process| {
            asked.push(process);
            if process == 3 {
                Err(Errno::SRCH)
            } else {
                Ok(())
            }
        });
        assert_eq!((alive, dead), (1, [false, true, true]));
        assert_eq!(asked, [1, 3]);
    }
}
