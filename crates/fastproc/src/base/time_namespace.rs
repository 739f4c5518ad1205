//! The offset of the clock in this process's time namespace (`time_namespaces(7)`).

use std::{fs, io, os::unix::fs::MetadataExt, path::Path};

use crate::base::error::Error;

/// `PROC_TIME_INIT_INO`: this namespace has no offset.
const INITIAL: u64 = 0xEFFF_FFFA;

/// Two of the links in `/proc/PID/ns`, as inode numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Links {
    /// `time`: the namespace whose clocks the process reads.
    own: u64,
    /// `time_for_children`: the one its children are born into, which `/proc/PID/timens_offsets` describes.
    children: u64,
}

impl Links {
    /// `None`: the process has exited, this reader may not see it, or the kernel has no time namespaces.
    fn read(proc: &Path, process: &str) -> Option<Self> {
        let inode = |name| {
            let link = proc.join(process).join("ns").join(name);
            fs::metadata(link).ok().map(|file| file.ino())
        };
        Some(Self {
            own: inode("time")?,
            children: inode("time_for_children")?,
        })
    }
}

/// The process whose `timens_offsets` describe the namespace of this process.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Described {
    /// None: the initial namespace has no offset.
    NotNeeded,
    /// This process itself.
    BySelf,
    /// A process whose children are born into it.
    By(String),
    /// No process that could be found.
    ByNone,
}

/// A process that has called unshare(2) and not yet forked is still in its old namespace, while its own file
/// describes the new one. The file of its parent may describe the old one.
fn described(own: Links, others: impl IntoIterator<Item = (String, Links)>) -> Described {
    if own.own == INITIAL {
        return Described::NotNeeded;
    }
    if own.own == own.children {
        return Described::BySelf;
    }
    others
        .into_iter()
        .find(|(_, links)| links.children == own.own)
        .map_or(Described::ByNone, |(process, _)| Described::By(process))
}

/// What to add to a time since boot for the time namespace of this process, in nanoseconds.
///
/// # Errors
/// The children of this process are born into another namespace, and no process can be found whose file describes
/// its own.
pub(crate) fn boot_offset_ns(proc: &Path) -> Result<i64, Error> {
    // Without the links the kernel has no time namespaces.
    let Some(own) = Links::read(proc, "self") else {
        return Ok(0);
    };
    let others = || {
        let entries = fs::read_dir(proc).into_iter().flatten();
        entries.filter_map(|entry| {
            let process = entry.ok()?.file_name().into_string().ok()?;
            let is_pid = process.bytes().all(|byte| byte.is_ascii_digit());
            let links = Links::read(proc, &process).filter(|_| is_pid)?;
            Some((process, links))
        })
    };
    let process = match described(own, others()) {
        Described::NotNeeded => return Ok(0),
        Described::BySelf => "self".to_owned(),
        Described::By(process) => process,
        Described::ByNone => {
            return Err(failure(
                &proc.join("self/timens_offsets"),
                io::Error::other(
                    "it describes the time namespace of the children, and no process tells of our own: \
                     start this program anew after unshare(2)",
                ),
            ));
        }
    };
    let path = proc.join(&process).join("timens_offsets");
    let text = fs::read_to_string(&path).map_err(|error| failure(&path, error))?;
    // The process may have called unshare(2) meanwhile, or another process may have its pid.
    if Links::read(proc, &process).is_none_or(|links| links.children != own.own) {
        return Err(failure(&path, io::ErrorKind::Interrupted.into()));
    }
    parse(&text).ok_or_else(|| failure(&path, io::ErrorKind::InvalidData.into()))
}

fn failure(path: &Path, source: io::Error) -> Error {
    Error::unreadable(path.display().to_string(), source)
}

/// The line `boottime SECONDS NANOSECONDS`.
fn parse(text: &str) -> Option<i64> {
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("boottime"))?;
    let mut numbers = line.split_whitespace().map(str::parse::<i64>);
    let (seconds, nanoseconds) = (numbers.next()?.ok()?, numbers.next()?.ok()?);
    seconds.checked_mul(1_000_000_000)?.checked_add(nanoseconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: u64 = 4_026_532_100;
    const NEXT: u64 = 4_026_532_200;

    fn found(own: (u64, u64), others: &[(&str, u64, u64)]) -> Described {
        let links = |(own, children)| Links { own, children };
        let others = others
            .iter()
            .map(|&(process, own, children)| (process.to_owned(), links((own, children))));
        described(links(own), others)
    }

    #[test]
    fn the_initial_namespace_adds_nothing_wherever_the_children_go() {
        assert_eq!(found((INITIAL, INITIAL), &[]), Described::NotNeeded);
        assert_eq!(found((INITIAL, NEXT), &[]), Described::NotNeeded);
    }

    #[test]
    fn a_process_in_the_namespace_of_its_children_describes_itself() {
        assert_eq!(found((HERE, HERE), &[("1", HERE, HERE)]), Described::BySelf);
    }

    #[test]
    fn a_process_that_moved_its_children_asks_another_process() {
        let moved = (HERE, NEXT);
        let parent = ("12", INITIAL, HERE);
        let sibling = ("13", HERE, HERE);
        let oneself = ("14", HERE, NEXT);
        let child = ("15", NEXT, NEXT);
        assert_eq!(
            found(moved, &[oneself, child, parent, sibling]),
            Described::By("12".into())
        );
        assert_eq!(
            found(moved, &[oneself, child, sibling]),
            Described::By("13".into())
        );
        assert_eq!(found(moved, &[oneself, child]), Described::ByNone);
    }

    #[test]
    fn offsets_are_read_as_the_kernel_prints_them() {
        let text = |boot: &str| format!("monotonic        -5         7\n{boot}\n");
        assert_eq!(
            parse(&text("boottime         100 500000000")),
            Some(100_500_000_000)
        );
        assert_eq!(
            parse(&text("boottime          -2 999999999")),
            Some(-1_000_000_001)
        );
        for damaged in [
            "",
            "boottime",
            "boottime 1",
            "boottime x 1",
            "boottime 9223372036854775807 0",
        ] {
            assert_eq!(parse(&text(damaged)), None, "{damaged}");
        }
    }

    #[test]
    fn this_process_knows_its_own() {
        assert!(boot_offset_ns(Path::new("/proc")).is_ok());
    }
}
