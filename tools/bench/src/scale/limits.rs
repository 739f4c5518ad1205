//! Limits of the kernel on tasks, raised while this program runs.

use std::{
    io::{BufRead as _, BufReader},
    os::unix::process::CommandExt as _,
    path::Path,
    process::{Child, Command, Stdio},
};

use crate::measure::Failure;

/// `PID_MAX_LIMIT`.
const MOST_PIDS: usize = 1 << 22;

/// A shell that raises the number in each file, unless it is as great, and writes the old values back once its input ends:
/// then this program is done or dead. No signal of a user ends it before that.
const KEEPER: &str = r#"trap '' HUP INT TERM
trap 'eval "$restore"' EXIT
while [ $# -gt 1 ]; do
	now=$(cat "$1") || exit
	if [ "$now" -lt "$2" ]; then
		echo "$2" > "$1" || exit
		restore="$restore echo $now > $1;"
	fi
	shift 2
done
echo ready
read -r end"#;

/// Raised limits, which are restored when this is dropped, or when this program ends in any other way.
#[derive(Debug)]
pub struct Limits {
    keeper: Child,
}

impl Limits {
    /// Makes room for this many more tasks.
    pub fn raise(tasks: usize) -> Result<Self, Failure> {
        // Pids are given in turn, and those of the machine's own processes should not become rare.
        let pids = (tasks * 3).min(MOST_PIDS);
        let limits = [
            (Path::new("/proc/sys/kernel/pid_max"), pids),
            (Path::new("/proc/sys/kernel/threads-max"), tasks * 2),
        ];
        Self::raise_to(&limits)
    }

    fn raise_to(limits: &[(&Path, usize)]) -> Result<Self, Failure> {
        let mut keeper = Command::new("sh");
        keeper.args(["-c", KEEPER, "sh"]);
        for (path, wanted) in limits {
            keeper.arg(path).arg(wanted.to_string());
        }
        let mut keeper = keeper
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // Signals of the terminal do not reach it.
            .process_group(0)
            .spawn()?;
        let ready = keeper.stdout.take().map(BufReader::new);
        let limits = Self { keeper };
        if ready.map_or(Ok(0), |mut ready| ready.read_line(&mut String::new()))? == 0 {
            return Err(
                "a shell cannot raise the kernel's limits on tasks: run this as root".into(),
            );
        }
        Ok(limits)
    }
}

impl Drop for Limits {
    fn drop(&mut self) {
        drop(self.keeper.stdin.take());
        let _ = self.keeper.wait();
    }
}

#[cfg(test)]
mod tests {
    use std::{env, fs, path::PathBuf};

    use fastproc_testbed::wait_until;
    use rustix::process::{Pid, Signal, kill_process};

    use super::*;

    fn file(name: &str, number: usize) -> PathBuf {
        let path = env::temp_dir().join(format!("fastproc-{name}-{}", std::process::id()));
        fs::write(&path, format!("{number}\n")).unwrap();
        path
    }

    fn number(path: &Path) -> Option<usize> {
        fs::read_to_string(path).ok()?.trim().parse().ok()
    }

    #[test]
    fn raised_limits_are_restored_and_others_stay() {
        let (low, high) = (file("low", 100), file("high", 5000));
        let limits = Limits::raise_to(&[(&low, 1000), (&high, 1000)]).unwrap();
        assert_eq!((number(&low), number(&high)), (Some(1000), Some(5000)));
        drop(limits);
        assert_eq!((number(&low), number(&high)), (Some(100), Some(5000)));
        for path in [low, high] {
            fs::remove_file(path).unwrap();
        }
    }

    #[test]
    fn raised_limits_are_restored_after_a_kill() {
        let low = file("lost", 100);
        let mut limits = Limits::raise_to(&[(&low, 1000)]).unwrap();
        let keeper = Pid::from_child(&limits.keeper);
        kill_process(keeper, Signal::TERM).unwrap();
        kill_process(keeper, Signal::INT).unwrap();
        assert_eq!(number(&low), Some(1000));
        // As the kernel does when this program is killed.
        drop(limits.keeper.stdin.take());
        wait_until("the old limit", || number(&low) == Some(100));
        std::mem::forget(limits);
        fs::remove_file(low).unwrap();
    }
}
