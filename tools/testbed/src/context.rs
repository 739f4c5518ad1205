//! What a test process uses during setup: to announce itself or report an error, and to start children.

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
    error::Why,
    role::{self, Role, ready},
    sys,
    wait::GUARD,
};

/// Sets a test process up. It returns only if it fails.
pub type SetUp = fn(&Context) -> Outcome;

/// A test process that has been set up never returns.
pub type Outcome = Result<Infallible, SetUpError>;

/// Why a test process cannot be set up here.
#[derive(Clone, Debug)]
pub struct SetUpError {
    pub why: Why,
    pub text: String,
}

impl SetUpError {
    /// This machine lacks what the process needs.
    pub fn unsupported(text: impl Into<String>) -> Self {
        Self {
            why: Why::Unsupported,
            text: text.into(),
        }
    }

    /// The testbed itself failed.
    pub fn broken(text: impl Into<String>) -> Self {
        Self {
            why: Why::Broken,
            text: text.into(),
        }
    }
}

/// Names the step at which an error occurred.
pub trait At<T> {
    /// Classifies the error by its number: not permitted, not supported by this kernel, or other.
    fn at(self, step: &str) -> Result<T, SetUpError>;
}

impl<T> At<T> for Result<T, Errno> {
    fn at(self, step: &str) -> Result<T, SetUpError> {
        self.map_err(|errno| SetUpError {
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
    fn at(self, step: &str) -> Result<T, SetUpError> {
        self.map_err(|error| match Errno::from_io_error(&error) {
            Some(errno) => Err::<T, _>(errno)
                .at(step)
                .err()
                .unwrap_or_else(|| SetUpError::broken(step)),
            None => SetUpError::broken(format!("{step}: {error}")),
        })
    }
}

/// A test process's end of the socket to the supervisor, and its parent.
pub struct Context {
    supervisor: OwnedFd,
    parent: OwnedFd,
}

impl Context {
    /// Announces that this process is the test process `label`, and ready. A thread may announce itself.
    ///
    /// The supervisor gets the pid from the socket, in its own pid namespace, whichever pid this process has in its
    /// own. This allocates nothing: another process may share the memory.
    pub fn announce(&self, label: &str) -> Result<(), SetUpError> {
        // Changing credentials disarms it.
        self.arm()?;
        send(&self.supervisor, label.as_bytes(), SendFlags::NOSIGNAL)
            .at("send to the supervisor")?;
        Ok(())
    }

    /// Announces, and waits for the end.
    pub fn settle(&self, label: &str) -> Outcome {
        self.announce(label)?;
        idle()
    }

    /// Makes this process die when its parent does, even if that has just died.
    pub fn arm(&self) -> Result<(), SetUpError> {
        set_parent_process_death_signal(Some(Signal::KILL)).at("PR_SET_PDEATHSIG")?;
        if ready(&self.parent, Duration::ZERO) {
            sys::exit_now(1);
        }
        Ok(())
    }

    /// Waits until the parent ends, and arms itself as [`Context::arm`] does for the next parent.
    pub fn adopted(&self) -> Result<Self, SetUpError> {
        if !ready(&self.parent, GUARD) {
            return Err(SetUpError::broken("the parent does not end"));
        }
        let parent = getppid().ok_or_else(|| SetUpError::broken("adopted from outside"))?;
        let parent = pidfd_open(parent, PidfdFlags::empty()).at("pidfd_open")?;
        let context = Self {
            supervisor: self.supervisor.try_clone().at("dup")?,
            parent,
        };
        context.arm()?;
        Ok(context)
    }

    /// Reports to the supervisor why there will be no test process, and ends.
    pub fn give_up(&self, error: &SetUpError) -> ! {
        let message = format!("\0{}{}", error.why.letter(), error.text);
        // If the supervisor has ended, this process is about to end, too.
        let _ = send(&self.supervisor, message.as_bytes(), SendFlags::NOSIGNAL);
        sys::exit_now(1)
    }

    fn child(&self) -> Result<Self, SetUpError> {
        let supervisor = self.supervisor.try_clone().at("dup")?;
        Ok(Self {
            supervisor,
            parent: me()?,
        })
    }

    /// Starts a child that dies with this process.
    pub fn fork(&self, body: impl FnOnce(&Self) -> Outcome) -> Result<Pid, SetUpError> {
        let context = self.child()?;
        Ok(match sys::fork().at("fork")? {
            Some(pid) => pid,
            None => context.live(body),
        })
    }

    fn live(&self, body: impl FnOnce(&Self) -> Outcome) -> ! {
        match self.arm().and_then(|()| body(self)) {
            Err(error) => self.give_up(&error),
        }
    }

    /// Starts a child that shares with this process what the `flags` of clone(2) name. If it shares the memory, `body`
    /// must only make system calls, and from then on this process must only wait.
    pub fn clone_sharing(&self, flags: c_int, body: SetUp) -> Result<Pid, SetUpError> {
        extern "C" fn start(argument: *mut c_void) -> c_int {
            let (context, body) = sys::argument::<(Context, SetUp)>(argument);
            context.live(body)
        }
        let pair = Box::leak(Box::new((self.child()?, body)));
        sys::clone_sharing(flags, start, pair).at("clone")
    }

    /// Executes this program again as the test process `label`, which continues in [`crate::fixtures::executed`].
    pub fn execute(
        &self,
        label: &str,
        prepare: impl FnOnce(&mut std::process::Command),
    ) -> Outcome {
        use std::os::unix::process::CommandExt;
        for fd in [&self.supervisor, &self.parent] {
            rustix::io::fcntl_setfd(fd, rustix::io::FdFlags::empty()).at("FD_CLOEXEC")?;
        }
        let argument = format!(
            "{label} {} {}",
            self.supervisor.as_raw_fd(),
            self.parent.as_raw_fd()
        );
        let mut command = role::command(Role::TestProcess, &argument);
        prepare(&mut command);
        Err(command.exec()).at("execve")
    }

    /// The other end of [`Context::execute`].
    pub fn inherited(supervisor: i32, parent: i32) -> Self {
        Self {
            supervisor: sys::inherited(supervisor),
            parent: sys::inherited(parent),
        }
    }
}

fn me() -> Result<OwnedFd, SetUpError> {
    pidfd_open(getpid(), PidfdFlags::empty()).at("pidfd_open")
}

/// Waits until killed.
pub fn idle() -> ! {
    loop {
        rustix::event::pause();
    }
}

/// What the supervisor receives.
#[derive(Debug)]
pub enum Message {
    /// The process with this pid is the test process of this label.
    Ready(String, u32),
    /// The test process cannot be set up.
    SetUpError(SetUpError),
    /// No process is left that could send a message.
    Silence,
    /// No message came in time.
    Late,
}

/// The supervisor's end.
pub struct Listener(OwnedFd);

impl Listener {
    /// Starts a child that sets test processes up.
    pub fn spawn(set_up: SetUp) -> Result<(Self, Pid), SetUpError> {
        let (ours, theirs) = socketpair(
            AddressFamily::UNIX,
            SocketType::SEQPACKET,
            SocketFlags::CLOEXEC,
            None,
        )
        .at("socketpair")?;
        set_socket_passcred(&ours, true).at("SO_PASSCRED")?;
        let context = Context {
            supervisor: theirs,
            parent: me()?,
        };
        if let Some(pid) = sys::fork().at("fork")? {
            return Ok((Self(ours), pid));
        }
        drop(ours);
        role::leave_pipes();
        context.live(set_up)
    }

    /// Waits for the next message.
    pub fn listen(&self, limit: Duration) -> Result<Message, SetUpError> {
        if !ready(&self.0, limit) {
            return Ok(Message::Late);
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
        if let Some(error) = text.strip_prefix('\0') {
            let why = error
                .chars()
                .next()
                .and_then(Why::from_letter)
                .unwrap_or(Why::Broken);
            return Ok(Message::SetUpError(SetUpError {
                why,
                text: error.get(1..).unwrap_or("").to_owned(),
            }));
        }
        if message.bytes == 0 {
            return Ok(Message::Silence);
        }
        let sender = control.drain().find_map(|message| match message {
            RecvAncillaryMessage::ScmCredentials(credentials) => {
                Some(credentials.pid.as_raw_nonzero().get() as u32)
            }
            _ => None,
        });
        match sender {
            Some(pid) => Ok(Message::Ready(text.into_owned(), pid)),
            None => Err(SetUpError::broken(
                "a message without its sender's credentials",
            )),
        }
    }
}
