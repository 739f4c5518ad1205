//! Sessions, process groups and terminals.

use rustix::{
    fd::OwnedFd,
    fs::{Mode, OFlags, open, openat},
    process::{ioctl_tiocsctty, setpgid, setsid},
    pty::{OpenptFlags, ioctl_tiocgptpeer, unlockpt},
    termios::tcsetpgrp,
};

use super::{Species, single, unattached};
use crate::{
    expect::Expect::{Stat, StatAtLeast, StatOwnPid, State},
    nest::{At, Grown, Nest, Trouble},
};

pub const SPECIES: &[Species] = &[
    single!(
        "session-leader",
        [StatOwnPid(5), StatOwnPid(6), Stat(7, 0), Stat(8, -1)],
        |nest| {
            setsid().at("setsid")?;
            nest.settle("session-leader")
        }
    ),
    single!("group-leader", [StatOwnPid(5)], |nest| {
        setpgid(None, None).at("setpgid")?;
        nest.settle("group-leader")
    }),
    // tty_nr, and tpgid, the terminal's foreground group, which all three share. Major 136 is that of /dev/pts.
    Species {
        animals: &[
            (
                "terminal-leader",
                &[
                    StatOwnPid(6),
                    State('S'),
                    StatAtLeast(7, 136 << 8),
                    StatAtLeast(8, 1),
                ],
            ),
            (
                "terminal-foreground",
                &[
                    StatOwnPid(5),
                    StatOwnPid(8),
                    State('S'),
                    StatAtLeast(7, 136 << 8),
                    StatAtLeast(8, 1),
                ],
            ),
            (
                "terminal-background",
                &[
                    StatOwnPid(5),
                    State('S'),
                    StatAtLeast(7, 136 << 8),
                    StatAtLeast(8, 1),
                ],
            ),
        ],
        raise: terminal,
    },
];

fn terminal(nest: &Nest) -> Grown {
    let controller = open_terminal()?;
    unlockpt(&controller).at("unlockpt")?;
    let terminal = ioctl_tiocgptpeer(&controller, OpenptFlags::RDWR | OpenptFlags::NOCTTY)
        .at("TIOCGPTPEER")?;
    setsid().at("setsid")?;
    ioctl_tiocsctty(&terminal).at("TIOCSCTTY")?;
    let (go, hold) = rustix::pipe::pipe().at("pipe")?;
    // Each waits until its group is what it should be, so that what it announces is true.
    let member = |label: &'static str| {
        nest.fork(|nest| {
            rustix::io::read(&go, &mut [0; 1]).at("read")?;
            nest.settle(label)
        })
    };
    let foreground = member("terminal-foreground")?;
    setpgid(Some(foreground), Some(foreground)).at("setpgid")?;
    let background = member("terminal-background")?;
    setpgid(Some(background), Some(background)).at("setpgid")?;
    tcsetpgrp(&terminal, foreground).at("tcsetpgrp")?;
    rustix::io::write(&hold, b"!!").at("write")?;
    nest.settle("terminal-leader")
}

/// A new terminal's controlling side. Where no devpts is mounted, one that is mounted nowhere serves as well.
fn open_terminal() -> Result<OwnedFd, Trouble> {
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    open("/dev/ptmx", flags, Mode::empty())
        .or_else(|_| {
            let mount = unattached("devpts")?;
            openat(&mount, "ptmx", flags, Mode::empty())
        })
        .at("a terminal, from /dev/ptmx or a new devpts")
}
