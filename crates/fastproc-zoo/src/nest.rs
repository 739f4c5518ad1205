//! Where an animal grows up: how it says that it is ready or why it cannot be, and how it has children of its own.

use std::{convert::Infallible, ffi::c_int, ffi::c_void, io, time::Duration};

use rustix::{
    fd::{AsRawFd, OwnedFd},
    io::Errno,
    net::{
        AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendFlags,
        SocketFlags, SocketType, recvmsg, send, socketpair, sockopt::set_socket_passcred,
    },
    process::{
        Pid, PidfdFlags, Signal, getpid, getppid, pidfd_open, set_parent_process_death_signal,
    },
};

use crate::{
    role::{self, Role, ready},
    sys,
    zoo::Why,
};

/// What sets an animal up. It returns only if it cannot.
pub type Raise = fn(&Nest) -> Grown;

/// An animal that is grown never returns.
pub type Grown = Result<Infallible, Trouble>;

/// Why an animal cannot be had here.
#[derive(Clone, Debug)]
pub struct Trouble {
    pub why: Why,
    pub text: String,
}

impl Trouble {
    /// This machine does not have what it needs.
    pub fn unsupported(text: impl Into<String>) -> Self {
        Self {
            why: Why::Unsupported,
            text: text.into(),
        }
    }

    /// The zoo itself failed.
    pub fn broken(text: impl Into<String>) -> Self {
        Self {
            why: Why::Broken,
            text: text.into(),
        }
    }
}

/// Names the step at which an error occurred.
pub trait At<T> {
    /// Sorts the error by its number: what was not allowed, what this kernel does not have, and the rest.
    fn at(self, step: &str) -> Result<T, Trouble>;
}

impl<T> At<T> for Result<T, Errno> {
    fn at(self, step: &str) -> Result<T, Trouble> {
        self.map_err(|errno| Trouble {
            why: match errno {
                Errno::PERM | Errno::ACCESS => Why::Privilege,
                Errno::NOSYS
                | Errno::INVAL
                | Errno::OPNOTSUPP
                | Errno::NODEV
                | Errno::NOENT
                | Errno::NXIO => Why::Unsupported,
                _ => Why::Broken,
            },
            text: format!("{step}: {errno}"),
        })
    }
}

impl<T> At<T> for io::Result<T> {
    fn at(self, step: &str) -> Result<T, Trouble> {
        self.map_err(|error| match Errno::from_io_error(&error) {
            Some(errno) => Err::<T, _>(errno)
                .at(step)
                .err()
                .unwrap_or_else(|| Trouble::broken(step)),
            None => Trouble::broken(format!("{step}: {error}")),
        })
    }
}

/// An animal's end of the socket to the keeper, and its parent.
pub struct Nest {
    keeper: OwnedFd,
    parent: OwnedFd,
}

impl Nest {
    /// Says that this process is the animal `label`, ready. May be said by a thread.
    ///
    /// The keeper learns the pid from the socket, in its own pid namespace, whatever this process takes it for. Nothing is
    /// allocated: the memory may be another process's too.
    pub fn announce(&self, label: &str) -> Result<(), Trouble> {
        // Changing credentials disarms it.
        self.arm()?;
        send(&self.keeper, label.as_bytes(), SendFlags::NOSIGNAL).at("send to the keeper")?;
        Ok(())
    }

    /// Announces, and waits for the end.
    pub fn settle(&self, label: &str) -> Grown {
        self.announce(label)?;
        idle()
    }

    /// This process dies when its parent does, even if that has just happened.
    pub fn arm(&self) -> Result<(), Trouble> {
        set_parent_process_death_signal(Some(Signal::KILL)).at("PR_SET_PDEATHSIG")?;
        if ready(&self.parent, Duration::ZERO) {
            sys::exit_now(1);
        }
        Ok(())
    }

    /// Waits for the parent's end, and is as [`Nest::arm`]ed as before with the next one.
    pub fn adopted(&self) -> Result<Self, Trouble> {
        if !ready(&self.parent, Duration::from_secs(10)) {
            return Err(Trouble::broken("the parent does not end"));
        }
        let parent = getppid().ok_or_else(|| Trouble::broken("adopted from outside"))?;
        let parent = pidfd_open(parent, PidfdFlags::empty()).at("pidfd_open")?;
        let nest = Self {
            keeper: self.keeper.try_clone().at("dup")?,
            parent,
        };
        nest.arm()?;
        Ok(nest)
    }

    /// Tells the keeper why there will be no animal, and ends.
    pub fn give_up(&self, trouble: &Trouble) -> ! {
        let message = format!("\0{}{}", trouble.why.letter(), trouble.text);
        // If the keeper is gone, then this process is about to be, too.
        let _ = send(&self.keeper, message.as_bytes(), SendFlags::NOSIGNAL);
        sys::exit_now(1)
    }

    fn child(&self) -> Result<Self, Trouble> {
        let keeper = self.keeper.try_clone().at("dup")?;
        Ok(Self {
            keeper,
            parent: me()?,
        })
    }

    /// Starts a child that dies with this process.
    pub fn fork(&self, body: impl FnOnce(&Self) -> Grown) -> Result<Pid, Trouble> {
        let nest = self.child()?;
        Ok(match sys::fork().at("fork")? {
            Some(pid) => pid,
            None => nest.live(body),
        })
    }

    fn live(&self, body: impl FnOnce(&Self) -> Grown) -> ! {
        match self.arm().and_then(|()| body(self)) {
            Err(trouble) => self.give_up(&trouble),
        }
    }

    /// Starts a child that shares with this process what `flags` of clone(2) say. If that is the memory, `body` must keep
    /// to system calls and this process must do nothing but wait from here on.
    pub fn clone_sharing(&self, flags: c_int, body: Raise) -> Result<Pid, Trouble> {
        extern "C" fn start(argument: *mut c_void) -> c_int {
            let (nest, body) = sys::argument::<(Nest, Raise)>(argument);
            nest.live(body)
        }
        let pair = Box::leak(Box::new((self.child()?, body)));
        sys::clone_sharing(flags, start, pair).at("clone")
    }

    /// Executes this program again as the animal `label`, which goes on in [`crate::species::executed`].
    pub fn execute(&self, label: &str, prepare: impl FnOnce(&mut std::process::Command)) -> Grown {
        use std::os::unix::process::CommandExt;
        for fd in [&self.keeper, &self.parent] {
            rustix::io::fcntl_setfd(fd, rustix::io::FdFlags::empty()).at("FD_CLOEXEC")?;
        }
        let argument = format!(
            "{label} {} {}",
            self.keeper.as_raw_fd(),
            self.parent.as_raw_fd()
        );
        let mut command = role::command(Role::Animal, &argument);
        prepare(&mut command);
        Err(command.exec()).at("execve")
    }

    /// The other end of [`Nest::execute`].
    pub fn inherited(keeper: i32, parent: i32) -> Self {
        Self {
            keeper: sys::inherited(keeper),
            parent: sys::inherited(parent),
        }
    }
}

fn me() -> Result<OwnedFd, Trouble> {
    pidfd_open(getpid(), PidfdFlags::empty()).at("pidfd_open")
}

/// Waits until killed.
pub fn idle() -> ! {
    loop {
        rustix::event::pause();
    }
}

/// What the keeper hears.
#[derive(Debug)]
pub enum Heard {
    /// This process is the animal of this label.
    Ready(String, u32),
    /// There will be none.
    Trouble(Trouble),
    /// Nobody is left who could say anything.
    Silence,
    /// Nobody says anything.
    Late,
}

/// The keeper's end.
pub struct Ear(OwnedFd);

impl Ear {
    /// Starts a child that sets animals up.
    pub fn raise(raise: Raise) -> Result<(Self, Pid), Trouble> {
        let (ours, theirs) = socketpair(
            AddressFamily::UNIX,
            SocketType::SEQPACKET,
            SocketFlags::CLOEXEC,
            None,
        )
        .at("socketpair")?;
        set_socket_passcred(&ours, true).at("SO_PASSCRED")?;
        let nest = Nest {
            keeper: theirs,
            parent: me()?,
        };
        if let Some(pid) = sys::fork().at("fork")? {
            return Ok((Self(ours), pid));
        }
        drop(ours);
        role::leave_pipes();
        nest.live(raise)
    }

    /// Waits for the next message.
    pub fn listen(&self, limit: Duration) -> Result<Heard, Trouble> {
        if !ready(&self.0, limit) {
            return Ok(Heard::Late);
        }
        let mut bytes = [0; 1024];
        let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmCredentials(1))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let message = recvmsg(
            &self.0,
            &mut [io::IoSliceMut::new(&mut bytes)],
            &mut control,
            RecvFlags::empty(),
        )
        .at("recvmsg")?;
        let text = String::from_utf8_lossy(&bytes[..message.bytes]);
        if let Some(trouble) = text.strip_prefix('\0') {
            let why = trouble
                .chars()
                .next()
                .and_then(Why::from_letter)
                .unwrap_or(Why::Broken);
            return Ok(Heard::Trouble(Trouble {
                why,
                text: trouble.get(1..).unwrap_or("").to_owned(),
            }));
        }
        if message.bytes == 0 {
            return Ok(Heard::Silence);
        }
        let sender = control.drain().find_map(|message| match message {
            RecvAncillaryMessage::ScmCredentials(credentials) => {
                Some(credentials.pid.as_raw_nonzero().get() as u32)
            }
            _ => None,
        });
        match sender {
            Some(pid) => Ok(Heard::Ready(text.into_owned(), pid)),
            None => Err(Trouble::broken(
                "a message without its sender's credentials",
            )),
        }
    }
}
