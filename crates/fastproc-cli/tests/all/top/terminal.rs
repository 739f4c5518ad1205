//! A real pseudoterminal with the command, and the screen that a user would see.

use std::{
    fs::File,
    io::{Read, Write},
    os::fd::{AsFd, OwnedFd},
    process::{Child, Command, ExitStatus, Stdio},
    time::Duration,
};

use fastproc_testbed::wait_for;

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::{Mode, OFlags},
    process::{Pid, Signal, kill_process},
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
    termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize},
};

/// A terminal and its command.
pub struct Terminal {
    ours: File,
    /// Kept open, so that its modes can be read when the command has ended.
    theirs: OwnedFd,
    parser: vt100::Parser,
    /// All data that were written and processed.
    written: Vec<u8>,
    /// Data that were written after that.
    ahead: Vec<u8>,
    child: Child,
}

/// The beginning and the end of a screen.
const SCREEN_BEGINS: &[u8] = b"\x1b[?2026h";
const SCREEN_ENDS: &[u8] = b"\x1b[?2026l";

fn size(lines: u16, columns: u16) -> Winsize {
    Winsize {
        ws_row: lines,
        ws_col: columns,
        ws_xpixel: 0,
        ws_ypixel: 0,
    }
}

impl Terminal {
    /// Runs `fastproc top` on a terminal of this size.
    pub fn top(lines: u16, columns: u16, arguments: &[&str]) -> Self {
        Self::run(lines, columns, Self::command(arguments))
    }

    /// `fastproc top` without a user's settings.
    pub fn command(arguments: &[&str]) -> Command {
        let mut command = Command::new("setsid");
        command.args(["--ctty", "--wait", env!("CARGO_BIN_EXE_fastproc"), "top"]);
        command.args(arguments);
        command.env("XDG_CONFIG_HOME", "/proc/nowhere");
        command.env_remove("NO_COLOR").env("TZ", "UTC");
        command.env("LC_ALL", "C.UTF-8");
        command
    }

    /// Runs a command on a terminal of this size, which setsid(1) makes its controlling terminal.
    pub fn run(lines: u16, columns: u16, mut command: Command) -> Self {
        let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)
            .expect("there are terminals");
        grantpt(&ours).expect("the terminal can be granted");
        unlockpt(&ours).expect("the terminal can be unlocked");
        tcsetwinsize(&ours, size(lines, columns)).expect("the size is set");
        let name = ptsname(&ours, Vec::new()).expect("the terminal has a name");
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let theirs =
            rustix::fs::open(&name, flags, Mode::empty()).expect("the terminal can be opened");
        let end = || Stdio::from(theirs.try_clone().expect("a descriptor"));
        let child = command
            .env("TERM", "xterm-256color")
            .stdin(end())
            .stdout(end())
            .stderr(end())
            .spawn()
            .expect("setsid(1) of util-linux is there");
        Self {
            ours: ours.into(),
            theirs,
            parser: vt100::Parser::new(lines, columns, 0),
            written: Vec::new(),
            ahead: Vec::new(),
            child,
        }
    }

    /// Sends keys.
    pub fn press(&mut self, keys: &str) {
        self.ours
            .write_all(keys.as_bytes())
            .expect("the terminal takes the keys");
    }

    /// Closes the terminal like a window.
    pub fn hang_up(&mut self) {
        self.ours = File::open("/dev/null").expect("the file is opened");
    }

    /// Changes its size.
    pub fn resize(&mut self, lines: u16, columns: u16) {
        tcsetwinsize(&self.ours, size(lines, columns)).expect("the size is set");
        self.parser.screen_mut().set_size(lines, columns);
    }

    /// Claims a size to the command, of which only a corner is looked at.
    pub fn claim(&mut self, lines: u16, columns: u16) {
        tcsetwinsize(&self.ours, size(lines, columns)).expect("the size is set");
    }

    /// Processes written data up to the end of one screen, waiting at most this long. Returns whether there were any.
    /// So a test sees every screen, even if it is late: some messages are shown only for a while.
    pub fn take(&mut self, timeout: Duration) -> bool {
        if self.ahead.is_empty() && !self.read(timeout) {
            return false;
        }
        let mut windows = self.ahead.windows(SCREEN_ENDS.len());
        let end = windows.position(|window| window == SCREEN_ENDS);
        let end = end.map_or(self.ahead.len(), |at| at + SCREEN_ENDS.len());
        let taken: Vec<u8> = self.ahead.drain(..end).collect();
        self.parser.process(&taken);
        self.written.extend(taken);
        true
    }

    /// Whether data came within this time.
    fn read(&mut self, timeout: Duration) -> bool {
        let timeout = Timespec::try_from(timeout).expect("it is short");
        let mut ready = [PollFd::from_borrowed_fd(self.ours.as_fd(), PollFlags::IN)];
        if !matches!(poll(&mut ready, Some(&timeout)), Ok(1..)) {
            return false;
        }
        let mut bytes = vec![0; 1 << 16];
        let read = self.ours.read(&mut bytes).unwrap_or(0);
        self.ahead.extend_from_slice(&bytes[..read]);
        read > 0
    }

    /// The screen as text.
    pub fn text(&self) -> String {
        text(self.parser.screen())
    }

    /// Every screen so far, of a terminal that has not changed its size.
    pub fn screens(&self) -> Vec<String> {
        let (lines, columns) = self.parser.screen().size();
        let mut parser = vt100::Parser::new(lines, columns, 0);
        let (mut screens, mut start) = (Vec::new(), 0);
        for at in 0..self.written.len() {
            if self.written[at..].starts_with(SCREEN_ENDS) {
                let piece = &self.written[start..at];
                parser.process(piece);
                let mut windows = piece.windows(SCREEN_BEGINS.len());
                if windows.any(|window| window == SCREEN_BEGINS) {
                    screens.push(text(parser.screen()));
                }
                start = at;
            }
        }
        screens
    }

    /// The parsed screen.
    pub fn screen(&self) -> &vt100::Screen {
        self.parser.screen()
    }

    /// Waits until the screen satisfies `is`.
    pub fn until(&mut self, what: &str, is: impl Fn(&str) -> bool) -> String {
        wait_for(what, || {
            let text = self.text();
            if is(&text) {
                return Some(text);
            }
            self.take(Duration::from_millis(50));
            None
        })
    }

    /// Waits until this text is on the screen.
    pub fn until_shown(&mut self, text: &str) -> String {
        self.until(&format!("shown: {text}"), |screen| screen.contains(text))
    }

    /// Process id of the command itself, below setsid(1).
    pub fn pid(&self) -> u32 {
        let path = format!("/proc/{0}/task/{0}/children", self.child.id());
        wait_for("the command begins", || {
            let children = std::fs::read_to_string(&path).unwrap_or_default();
            let child = children.split(' ').next().and_then(|pid| pid.parse().ok());
            // setsid(1) forks only if it is the leader of a group; otherwise it becomes the command.
            let comm = std::fs::read_to_string(format!("/proc/{}/comm", self.child.id()));
            let is_it = comm.is_ok_and(|comm| comm == "fastproc\n");
            child.or(is_it.then(|| self.child.id()))
        })
    }

    /// Ends it with a signal.
    pub fn end(&mut self) {
        let pid = Pid::from_raw(self.pid() as i32).expect("a pid");
        kill_process(pid, Signal::TERM).expect("the signal is sent");
        self.wait();
    }

    /// Waits for its end.
    pub fn wait(&mut self) -> ExitStatus {
        wait_for("the command ends", || {
            let status = self.child.try_wait().expect("it is our child");
            // Read, since a process that waits for a reader does not exit.
            self.take(Duration::from_millis(if status.is_some() { 0 } else { 20 }));
            while status.is_some() && self.take(Duration::ZERO) {}
            status
        })
    }

    /// Waits for its end, and reads nothing.
    pub fn wait_unread(&mut self) -> ExitStatus {
        wait_for("the command ends, unread", || {
            self.child.try_wait().expect("it is our child")
        })
    }

    /// Whether the terminal has the modes that it had before.
    pub fn has_its_modes(&self) -> bool {
        let modes = tcgetattr(&self.theirs)
            .expect("the terminal has modes")
            .local_modes;
        modes.contains(LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG)
    }

    /// Whether the terminal is restored: its modes, the main screen, a visible cursor, no mouse reports.
    pub fn is_given_back(&self) -> bool {
        let screen = self.parser.screen();
        self.has_its_modes()
            && !screen.alternate_screen()
            && !screen.hide_cursor()
            && !screen.bracketed_paste()
            && screen.mouse_protocol_mode() == vt100::MouseProtocolMode::None
    }
}

fn text(screen: &vt100::Screen) -> String {
    let (_, columns) = screen.size();
    let rows = screen.rows(0, columns);
    let rows: Vec<_> = rows.map(|row| row.trim_end().to_owned()).collect();
    rows.join("\n")
}

impl Drop for Terminal {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the screen is:\n{}", self.text());
        }
        // A failed test leaves nothing behind, since a command that loses its terminal exits.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
