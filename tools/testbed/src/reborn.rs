//! A process with a chosen pid.

use std::{
    ffi::{CStr, CString},
    io,
    os::unix::ffi::OsStrExt,
    path::Path,
};

use rustix::{
    io::Errno,
    process::{Pid, Signal, WaitOptions, kill_process, waitpid},
};

use crate::sys;

/// A process that was started with the pid of one that has exited. It ends when this is dropped.
#[derive(Debug)]
pub struct Reborn(Pid);

impl Reborn {
    /// Runs a program with this pid, or returns `None` if another process has it.
    ///
    /// `clone3` affects only this process. Writing to `ns_last_pid` would change the next pids of all processes.
    ///
    /// # Errors
    ///
    /// If the kernel refuses: only root may choose a pid.
    ///
    /// # Panics
    ///
    /// If a text has a zero byte, or the pid is zero.
    pub fn start(pid: u32, program: &Path, arguments: &[&str]) -> io::Result<Option<Self>> {
        let text = |bytes: &[u8]| CString::new(bytes).expect("a text has no zero byte");
        let program = text(program.as_os_str().as_bytes());
        let arguments: Vec<CString> = arguments.iter().map(|word| text(word.as_bytes())).collect();
        let mut words: Vec<&CStr> = vec![&program];
        words.extend(arguments.iter().map(CString::as_c_str));
        let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
        let pid = pid.expect("a pid");
        match sys::execute_with_pid(pid, &program, &words) {
            Ok(()) => Ok(Some(Self(pid))),
            Err(Errno::EXIST) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

impl Drop for Reborn {
    fn drop(&mut self) {
        let _ = kill_process(self.0, Signal::KILL);
        let _ = waitpid(Some(self.0), WaitOptions::empty());
    }
}

#[cfg(test)]
mod tests {
    use super::Reborn;
    use crate::{ended_shell, gate, wait_for, wait_until};
    use std::{fs, path::Path};

    #[test]
    fn a_pid_comes_again() {
        if !gate::root() {
            return;
        }
        let pid = ended_shell(0, "the-first");
        let sleep = Path::new("/bin/sleep");
        let start = || Reborn::start(pid, sleep, &["1000"]).expect("root may choose");
        let reborn = wait_for("the pid", start);
        let comm = format!("/proc/{pid}/comm");
        wait_until("the program", || {
            fs::read(&comm).expect("the process exists") == b"sleep\n"
        });
        assert!(start().is_none(), "the pid is used only once");
        drop(reborn);
        assert!(!Path::new(&comm).exists());
    }
}
