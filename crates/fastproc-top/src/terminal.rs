//! The terminal: taken over while the screen is shown, and restored on every exit.

use std::{
    env,
    io::{self, IsTerminal, Read as _, Write},
    os::{fd::AsFd, unix::net::UnixStream},
    panic,
    sync::{
        Once,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

use ratatui_core::{
    backend::Backend,
    buffer::Buffer,
    layout::{Position, Rect},
};
use ratatui_crossterm::{
    CrosstermBackend,
    crossterm::{
        event::{self, Event},
        terminal::{disable_raw_mode, enable_raw_mode},
    },
};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    termios::{OptionalActions, tcgetattr, tcsetattr},
};
use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGWINCH};

use crate::{canvas::Sheet, error::Error};

/// Use the alternate screen, hide the cursor, do not wrap, report clicks and the wheel (but no movements), and bracket
/// pasted text.
const ENTER: &[u8] = b"\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[?1000h\x1b[?1006h\x1b[?2004h\x1b[2J";
/// Undo all of it.
const LEAVE: &[u8] =
    b"\x1b[?2026l\x1b[?2004l\x1b[?1006l\x1b[?1000l\x1b[?7h\x1b[0m\x1b[?25h\x1b[?1049l";

/// Whether the terminal is taken over now.
static TAKEN: AtomicBool = AtomicBool::new(false);
/// Whether the screen has ended, and restored the terminal.
static LEFT: AtomicBool = AtomicBool::new(false);

/// The most columns and lines that are drawn. A terminal can claim 65,535 of each, which would take 300 GB.
const LARGEST: u16 = 1000;

/// How long the screen may take to react to a signal that ends this program.
const PATIENCE: Duration = Duration::from_secs(5);

/// The last signal of those that end, stop and continue this program.
static END: AtomicUsize = AtomicUsize::new(0);
static STOP: AtomicUsize = AtomicUsize::new(0);
static GO_ON: AtomicUsize = AtomicUsize::new(0);

/// Signals that end the program.
const ENDING: [i32; 4] = [SIGTERM, SIGINT, SIGHUP, SIGQUIT];

/// An event to react to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// A key, a click, or pasted text.
    Event(Event),
    /// The terminal has another size.
    Resized,
    /// A signal requests the end of this program.
    End(i32),
    /// A signal requests a stop.
    Stop,
    /// The program continues after a stop.
    Continued,
}

/// The terminal of this program, restored when this is dropped.
#[derive(Debug)]
pub struct Terminal {
    signals: Signals,
    /// The screen that was drawn last, and the one that is drawn now.
    drawn: Sheet,
    sheet: Sheet,
    size: (u16, u16),
    /// The visible cells of each line, and the next ones.
    shown: Vec<Buffer>,
    next: Vec<Buffer>,
    written: Vec<u8>,
    clear: bool,
}

fn give_back() {
    if TAKEN.swap(false, Ordering::SeqCst) {
        let mut out = io::stdout();
        // If the terminal is gone, there is nothing to restore.
        let _ = out.write_all(LEAVE).and_then(|()| out.flush());
        let _ = disable_raw_mode();
    }
}

fn take() -> io::Result<()> {
    enable_raw_mode()?;
    TAKEN.store(true, Ordering::SeqCst);
    let mut out = io::stdout();
    out.write_all(ENTER)?;
    out.flush()
}

/// Restores the terminal before a panic is reported.
fn guard_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let tell = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            give_back();
            tell(panic);
        }));
    });
}

impl Terminal {
    /// Takes the terminal over.
    pub fn open() -> Result<Self, Error> {
        if !io::stdin().is_terminal() || !io::stdout().is_terminal() {
            return Err(Error::NoTerminal);
        }
        match env::var("TERM") {
            Ok(name) if name == "dumb" => return Err(Error::DumbTerminal(name)),
            _ => {}
        }
        let signals = Signals::open().map_err(Error::Terminal)?;
        LEFT.store(false, Ordering::SeqCst);
        end_if_stuck().map_err(Error::Terminal)?;
        guard_panics();
        let taken = take();
        let terminal = Self {
            signals,
            drawn: Sheet::default(),
            sheet: Sheet::default(),
            size: (0, 0),
            shown: Vec::new(),
            next: Vec::new(),
            written: Vec::new(),
            clear: true,
        };
        taken.map_err(Error::Terminal)?;
        Ok(terminal)
    }

    /// The size in columns and lines, as it is now, at most 1,000 of each.
    pub fn size(&self) -> (u16, u16) {
        let size = rustix::termios::tcgetwinsize(io::stdout());
        match size {
            Ok(size) if size.ws_col > 0 && size.ws_row > 0 => {
                (size.ws_col.min(LARGEST), size.ws_row.min(LARGEST))
            }
            _ => (80, 24),
        }
    }

    /// Whether the size has changed since the last screen.
    pub fn is_resized(&self) -> bool {
        self.size() != self.size
    }

    /// Makes the next screen draw everything.
    pub fn forget(&mut self) {
        self.clear = true;
    }

    /// Shows the result of `draw` on an empty sheet: paints the lines that have changed, and writes the cells that
    /// differ from the visible ones.
    pub fn show(&mut self, draw: impl FnOnce(&mut Sheet)) -> io::Result<()> {
        let size = self.size();
        let (columns, lines) = size;
        if std::mem::replace(&mut self.size, size) != size || self.clear {
            let empty = |line| Buffer::empty(Rect::new(0, line, columns, 1));
            self.shown = (0..lines).map(empty).collect();
            self.next.clone_from(&self.shown);
            self.drawn.reset(columns, lines);
            self.clear = true;
        }
        self.sheet.reset(columns, lines);
        draw(&mut self.sheet);
        self.written.clear();
        // Terminals that support this show the update at once.
        self.written.extend_from_slice(b"\x1b[?2026h");
        if std::mem::take(&mut self.clear) {
            self.written.extend_from_slice(b"\x1b[0m\x1b[2J");
        }
        let changed = |line: &u16| !self.sheet.is_same_line(*line, &self.drawn);
        let changed: Vec<u16> = (0..lines).filter(changed).collect();
        for &line in &changed {
            let next = &mut self.next[usize::from(line)];
            next.reset();
            self.sheet.paint(line, next);
        }
        let (shown, next) = (&self.shown, &self.next);
        let mut backend = CrosstermBackend::new(&mut self.written);
        backend.draw(changed.iter().flat_map(|&line| {
            let line = usize::from(line);
            shown[line].diff_iter(&next[line])
        }))?;
        backend.set_cursor_position(Position::new(0, 0))?;
        self.written.extend_from_slice(b"\x1b[?2026l");
        let mut out = io::stdout().lock();
        out.write_all(&self.written)?;
        out.flush()?;
        for line in changed {
            let line = usize::from(line);
            std::mem::swap(&mut self.shown[line], &mut self.next[line]);
        }
        std::mem::swap(&mut self.drawn, &mut self.sheet);
        Ok(())
    }

    /// Waits for an event, at most for this time.
    pub fn wait(&mut self, timeout: Duration) -> io::Result<Option<Input>> {
        if is_gone()? {
            return Ok(Some(Input::End(SIGHUP)));
        }
        if let Some(input) = pending(Duration::ZERO)? {
            return Ok(Some(input));
        }
        let input = io::stdin();
        let mut ready = [
            PollFd::new(&input, PollFlags::IN),
            PollFd::from_borrowed_fd(self.signals.0.as_fd(), PollFlags::IN),
        ];
        match poll(&mut ready, Some(&timespec(timeout))) {
            Ok(0) | Err(rustix::io::Errno::INTR) => return Ok(None),
            Ok(_) => {}
            Err(error) => return Err(error.into()),
        }
        let [keys, signals] = ready.map(|ready| ready.revents());
        if signals.contains(PollFlags::IN) {
            return Ok(Some(self.signal()));
        }
        if keys.intersects(GONE) {
            return Ok(Some(Input::End(SIGHUP)));
        }
        let mut input = pending(Duration::ZERO)?;
        if input.is_none() {
            // crossterm waits for edges, and misses a key that arrived together with a new size until the next key. Setting
            // the modes again, unchanged, wakes a waiting reader.
            let modes = tcgetattr(io::stdin())?;
            tcsetattr(io::stdin(), OptionalActions::Now, &modes)?;
            input = pending(Duration::ZERO)?;
        }
        Ok(input)
    }

    /// Whether the other end of the terminal is closed.
    pub fn is_gone(&self) -> bool {
        is_gone().unwrap_or(true)
    }

    /// Whether more input has arrived.
    pub fn has_more(&self) -> io::Result<bool> {
        Ok(!is_gone()? && event::poll(Duration::ZERO)?)
    }

    fn signal(&mut self) -> Input {
        self.signals.drain();
        if let Some(signal) = ended_by() {
            Input::End(signal)
        } else if STOP.swap(0, Ordering::SeqCst) != 0 {
            Input::Stop
        } else if GO_ON.swap(0, Ordering::SeqCst) != 0 {
            Input::Continued
        } else {
            Input::Resized
        }
    }

    /// Restores the terminal, and stops this program until it is continued.
    pub fn suspend(&mut self) -> io::Result<()> {
        give_back();
        signal_hook::low_level::emulate_default_handler(SIGTSTP)?;
        self.resume()
    }

    /// Takes the terminal over again, whatever other programs changed.
    pub fn resume(&mut self) -> io::Result<()> {
        give_back();
        self.clear = true;
        take()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        give_back();
        LEFT.store(true, Ordering::SeqCst);
    }
}

const GONE: PollFlags = PollFlags::HUP.union(PollFlags::ERR).union(PollFlags::NVAL);

/// Whether the terminal is gone. Then crossterm must not be called: it would read the end of input for ever.
fn is_gone() -> io::Result<bool> {
    let input = io::stdin();
    let mut ready = [PollFd::new(&input, PollFlags::IN)];
    match poll(&mut ready, Some(&timespec(Duration::ZERO))) {
        Ok(_) => Ok(ready[0].revents().intersects(GONE)),
        Err(rustix::io::Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Input that has already arrived.
fn pending(timeout: Duration) -> io::Result<Option<Input>> {
    if !event::poll(timeout)? {
        return Ok(None);
    }
    Ok(Some(match event::read()? {
        Event::Resize(..) => Input::Resized,
        event => Input::Event(event),
    }))
}

fn timespec(time: Duration) -> Timespec {
    Timespec {
        tv_sec: time.as_secs() as i64,
        tv_nsec: time.subsec_nanos().into(),
    }
}

/// The signal that ends this program, if one came.
fn ended_by() -> Option<i32> {
    match END.load(Ordering::SeqCst) {
        0 => None,
        signal => Some(signal as i32),
    }
}

/// Ends this program after a signal if the screen does not: it may wait for a terminal that nobody reads.
fn end_if_stuck() -> io::Result<()> {
    let (mut read, write) = UnixStream::pair()?;
    for signal in ENDING {
        signal_hook::low_level::pipe::register(signal, write.try_clone()?)?;
    }
    let wait = move || {
        if read.read_exact(&mut [0]).is_err() {
            return;
        }
        thread::sleep(PATIENCE);
        // What comes after the screen, as the rest of a recording, may take longer.
        if LEFT.load(Ordering::SeqCst) {
            return;
        }
        let out = rustix::stdio::stdout();
        let mut ready = [PollFd::from_borrowed_fd(out, PollFlags::OUT)];
        let is_ready = matches!(poll(&mut ready, Some(&timespec(Duration::ZERO))), Ok(1));
        if is_ready && TAKEN.swap(false, Ordering::SeqCst) {
            // The stuck thread may hold the lock of io::stdout().
            let _ = rustix::io::write(out, LEAVE);
        }
        let _ = disable_raw_mode();
        if let Some(signal) = ended_by() {
            let _ = signal_hook::low_level::emulate_default_handler(signal);
        }
    };
    thread::Builder::new().name("signals".into()).spawn(wait)?;
    Ok(())
}

/// Becomes readable when a signal has arrived.
#[derive(Debug)]
pub struct Signals(UnixStream);

impl Signals {
    /// From now on these signals have no effects by themselves.
    pub fn open() -> io::Result<Self> {
        signals().map(Self)
    }

    fn drain(&mut self) {
        let mut bytes = [0; 64];
        // The flags have the signals; the bytes only wake the program.
        let _ = self.0.read(&mut bytes);
    }
}

/// Makes signals store their number, and write a byte to the returned socket.
fn signals() -> io::Result<UnixStream> {
    let (read, write) = UnixStream::pair()?;
    read.set_nonblocking(true)?;
    let end = ENDING.map(|signal| (signal, &END));
    let others = [(SIGTSTP, &STOP), (SIGCONT, &GO_ON)];
    for (signal, flag) in end.into_iter().chain(others) {
        signal_hook::flag::register_usize(signal, flag, signal as usize)?;
        signal_hook::low_level::pipe::register(signal, write.try_clone()?)?;
    }
    signal_hook::low_level::pipe::register(SIGWINCH, write)?;
    Ok(read)
}
