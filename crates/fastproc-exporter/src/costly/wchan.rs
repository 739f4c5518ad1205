//! Where in the kernel threads wait: `/proc/PID/task/TID/wchan`.

use std::collections::{BTreeMap, HashMap};

use rustix::{
    fs::{Dir, Mode, OFlags},
    io::Errno,
};

use super::OwnedFd;
use crate::exposition::escape;

/// The kernel's names of functions have no more bytes.
const LONGEST: usize = 512;

/// Threads of one process by the place that they wait at.
pub(super) type Waiting = Box<[(Symbol, u32)]>;

/// A function of the kernel, by its index among [`Wchans`].
pub(super) type Symbol = u32;

/// Threads of groups by the place that they wait at.
#[derive(Debug, Default)]
pub struct Wchans {
    /// `wchan="…"`, as it stands behind the labels of a group.
    labels: Vec<Box<str>>,
    by_name: HashMap<Box<[u8]>, Symbol>,
    sums: BTreeMap<(u32, Symbol), u64>,
}

impl Wchans {
    /// The label and the number of threads of all places of a group.
    pub fn of(&self, group: u32) -> impl Iterator<Item = (&str, u64)> {
        let places = self.sums.range((group, 0)..=(group, Symbol::MAX));
        places.map(|(&(_, symbol), &count)| (&*self.labels[symbol as usize], count))
    }

    pub(super) fn clear(&mut self) {
        self.sums.clear();
    }

    pub(super) fn add(&mut self, group: u32, waiting: &Waiting) {
        for &(symbol, count) in waiting {
            *self.sums.entry((group, symbol)).or_default() += u64::from(count);
        }
    }

    /// Reads them of every thread of a process. `None`: hidden, or gone.
    pub(super) fn read(&mut self, folder: &OwnedFd) -> Option<Waiting> {
        // Of a process that it hides, the kernel says that it waits nowhere; a link is refused.
        if rustix::fs::readlinkat(folder, "cwd", Vec::new()) == Err(Errno::ACCESS) {
            return None;
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let tasks = rustix::fs::openat(folder, "task", flags, Mode::empty()).ok()?;
        let mut counts = BTreeMap::<Symbol, u32>::new();
        for task in Dir::read_from(&tasks).ok()? {
            // One that has ended meanwhile waits nowhere.
            let Ok(task) = task else { break };
            let tid = task.file_name().to_bytes();
            if tid.starts_with(b".") {
                continue;
            }
            let path = [tid, b"/wchan"].concat();
            let flags = OFlags::RDONLY | OFlags::CLOEXEC;
            let Ok(file) = rustix::fs::openat(&tasks, path, flags, Mode::empty()) else {
                continue;
            };
            let mut text = [0; LONGEST];
            let read = rustix::io::read(&file, &mut text[..]).unwrap_or(0);
            let name = text[..read].trim_ascii();
            if !matches!(name, b"" | b"0") {
                *counts.entry(self.symbol(name)).or_default() += 1;
            }
        }
        Some(counts.into_iter().collect())
    }

    fn symbol(&mut self, name: &[u8]) -> Symbol {
        if let Some(&symbol) = self.by_name.get(name) {
            return symbol;
        }
        let symbol = self.labels.len() as Symbol;
        let label = format!(",wchan=\"{}\"", escape(&String::from_utf8_lossy(name)));
        self.labels.push(label.into());
        self.by_name.insert(name.into(), symbol);
        symbol
    }
}

#[cfg(test)]
mod tests {
    use std::{
        sync::{Arc, Mutex, mpsc},
        thread,
        time::{Duration, Instant},
    };

    use super::*;

    #[test]
    fn threads_that_wait_are_counted_by_place() {
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let folder = rustix::fs::open("/proc/self", flags, Mode::empty()).expect("it is ours");
        let (end, waited) = mpsc::channel::<()>();
        let waited = Arc::new(Mutex::new(waited));
        let wait = |waited: Arc<Mutex<mpsc::Receiver<()>>>| {
            thread::spawn(move || waited.lock().is_ok_and(|waited| waited.recv().is_ok()))
        };
        let threads = [(); 3].map(|()| wait(Arc::clone(&waited)));
        let mut wchans = Wchans::default();
        let limit = Instant::now() + Duration::from_secs(60);
        let waiting = loop {
            let waiting = wchans.read(&folder).expect("its own are never hidden");
            if waiting.iter().map(|&(_, count)| count).sum::<u32>() >= 3 {
                break waiting;
            }
            assert!(Instant::now() < limit, "nobody waits: {waiting:?}");
        };
        drop(end);
        for thread in threads {
            thread.join().expect("it only waits");
        }
        for group in [7, 7, 8] {
            wchans.add(group, &waiting);
        }
        let sum = |group| wchans.of(group).map(|(_, count)| count).sum::<u64>();
        assert_eq!(sum(7), 2 * sum(8));
        assert_eq!(sum(9), 0);
        for (label, _) in wchans.of(7) {
            assert!(
                label.starts_with(",wchan=\"") && label.ends_with('"'),
                "{label}"
            );
        }
        wchans.clear();
        assert_eq!(wchans.of(7).count(), 0);
    }
}
