//! One run of the emulator, and what became of the guest.

use std::{
    fmt, fs,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};
use fastproc_guest::{
    report::{Broken, Report},
    scenario::Scenario,
};

use crate::{image::Image, machine::Machine};

const QEMU: &str = "qemu-system-x86_64";

/// The exit codes of qemu that the guest chose, through `isa-debug-exit`.
const PASSED: i32 = 3;
const FAILED: i32 = 5;

/// A guest that ran to an end.
pub struct Guest {
    /// What became of it.
    pub verdict: Verdict,
    /// Whether it came to its first program, which reports at once.
    pub began: bool,
    /// How long it took, as a person waits for it.
    pub took: Duration,
    /// The kernel's console.
    pub console: PathBuf,
    /// What the emulator itself had to say.
    pub emulator: PathBuf,
}

/// What became of a guest. Only the exit code and the report's closing line together make it one of the first two: qemu also
/// ends with 0 after a kernel panic, and a report may be cut off anywhere.
pub enum Verdict {
    /// It ran to its end; the report says how many checks failed.
    Reported(Report),
    /// The kernel panicked, or restarted for another reason.
    Panicked,
    /// It took too long.
    TimedOut,
    /// The exit code says something else than the report.
    Contradicted {
        code: Option<i32>,
        report: Result<Report, Broken>,
    },
}

impl Verdict {
    fn of(status: Option<ExitStatus>, text: &str, wanted: Scenario, release: &str) -> Self {
        let Some(status) = status else {
            return Self::TimedOut;
        };
        let report = Report::parse(text);
        match (status.code(), report) {
            (Some(0), _) => Self::Panicked,
            (Some(code), Ok(report))
                if code == (if report.failed == 0 { PASSED } else { FAILED })
                    && report.scenario == wanted.name()
                    && report.release == release =>
            {
                Self::Reported(report)
            }
            (code, report) => Self::Contradicted { code, report },
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Reported(Report { failed: 0, .. }) => write!(f, "passed"),
            Self::Reported(report) => write!(f, "{} checks failed", report.failed),
            Self::Panicked => write!(f, "the kernel panicked or restarted"),
            Self::TimedOut => write!(f, "timed out"),
            Self::Contradicted { code, report } => {
                match code {
                    Some(code) => write!(f, "exit code {code}")?,
                    None => write!(f, "the emulator was killed")?,
                }
                match report {
                    Ok(report) => write!(
                        f,
                        ", but the report of {} on {} says {} failed",
                        report.scenario, report.release, report.failed
                    ),
                    Err(broken) => write!(f, ", and {broken}"),
                }
            }
        }
    }
}

/// Boots a kernel and waits until the guest has ended, one way or another.
///
/// `number` tells several boots of the same from each other.
pub fn boot(
    image: &Image,
    initramfs: &Path,
    scenario: Scenario,
    number: u8,
    results: &Path,
) -> Result<Guest> {
    let machine = Machine::of(scenario);
    let again = if number > 0 {
        format!("-{number}")
    } else {
        String::new()
    };
    let file = |kind: &str| results.join(format!("{}-{scenario}{again}.{kind}", image.release));
    let (console, report, emulator) = (file("console"), file("report"), file("emulator"));
    for path in [&console, &report] {
        fs::write(path, "").with_context(|| format!("cannot write {}", path.display()))?;
    }
    let errors = fs::File::create(&emulator)
        .with_context(|| format!("cannot write {}", emulator.display()))?;
    let disk = match machine.disk_mib {
        None => None,
        Some(size) => Some(Disk::new(file("disk"), size << 20)?),
    };
    let started = Instant::now();
    let mut qemu = Command::new(QEMU)
        .args([
            "-nodefaults",
            "-no-user-config",
            "-display",
            "none",
            "-no-reboot",
        ])
        .args(machine.arguments(disk.as_ref().map(|disk| disk.path.as_path())))
        .args(["-device", "isa-debug-exit,iobase=0xf4,iosize=0x04"])
        .arg("-serial")
        .arg(format!("file:{}", console.display()))
        .arg("-serial")
        .arg(format!("file:{}", report.display()))
        .arg("-kernel")
        .arg(&image.kernel)
        .arg("-initrd")
        .arg(initramfs)
        .args(["-append", &machine.command_line(scenario)])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(errors)
        .spawn()
        .with_context(|| format!("cannot run {QEMU} (Debian: apt-get install qemu-system-x86)"))?;
    let status = wait(&mut qemu, machine.patience)?;
    let took = started.elapsed();
    let text = fs::read(&report).with_context(|| format!("cannot read {}", report.display()))?;
    let verdict = Verdict::of(
        status,
        &String::from_utf8_lossy(&text),
        scenario,
        &image.release,
    );
    Ok(Guest {
        began: !text.is_empty(),
        verdict,
        took,
        console,
        emulator,
    })
}

/// A file that is a guest's disk, and is gone afterwards.
struct Disk {
    path: PathBuf,
}

impl Disk {
    fn new(path: PathBuf, bytes: u64) -> Result<Self> {
        let made = fs::File::create(&path).and_then(|file| file.set_len(bytes));
        made.with_context(|| format!("cannot make the disk {}", path.display()))?;
        Ok(Self { path })
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // It is in the cache, which anyone may clear.
        let _ = fs::remove_file(&self.path);
    }
}

/// Waits for a child for so long, and ends it then.
fn wait(child: &mut Child, patience: Duration) -> Result<Option<ExitStatus>> {
    let deadline = Instant::now() + patience;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if Instant::now() >= deadline {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        thread::sleep(Duration::from_millis(50));
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;

    use super::*;

    const WHOLE: &str = "{\"line\":\"begin\",\"scenario\":\"survey\",\"release\":\"6.1\"}\n\
                         {\"line\":\"end\",\"checks\":0,\"failed\":0}\n";
    const FAILING: &str = "{\"line\":\"begin\",\"scenario\":\"survey\",\"release\":\"6.1\"}\n\
                           {\"line\":\"check\",\"name\":\"it\",\"passed\":false,\"detail\":\"\"}\n\
                           {\"line\":\"end\",\"checks\":1,\"failed\":1}\n";

    fn verdict(code: Option<i32>, text: &str) -> String {
        let status = code.map(|code| ExitStatus::from_raw(code << 8));
        Verdict::of(status, text, Scenario::Survey, "6.1").to_string()
    }

    #[test]
    fn a_guest_passes_by_its_exit_code_and_its_closing_line_together() {
        assert_eq!(verdict(Some(PASSED), WHOLE), "passed");
        assert_eq!(verdict(Some(FAILED), FAILING), "1 checks failed");
        for (code, text) in [
            (Some(0), WHOLE),
            (Some(1), WHOLE),
            (Some(FAILED), WHOLE),
            (Some(PASSED), FAILING),
            (Some(PASSED), ""),
            (Some(PASSED), &WHOLE[..WHOLE.len() - 30]),
            (Some(PASSED), &WHOLE.replace("6.1", "6.2")),
            (Some(PASSED), &WHOLE.replace("survey", "big")),
            (None, WHOLE),
        ] {
            let status = code.map(|code| ExitStatus::from_raw(code << 8));
            let verdict = Verdict::of(status, text, Scenario::Survey, "6.1");
            assert!(!matches!(verdict, Verdict::Reported(_)), "{code:?} {text}");
        }
    }

    #[test]
    fn a_child_that_takes_too_long_is_ended() {
        let mut child = Command::new("sleep").arg("600").spawn().unwrap();
        assert_eq!(wait(&mut child, Duration::from_millis(1)).unwrap(), None);
        assert!(child.try_wait().unwrap().is_some());
    }
}
