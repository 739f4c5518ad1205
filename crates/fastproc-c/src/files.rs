//! A collector of open files, and those of its last snapshot by their places.

use fastproc::files::{Address, Fields, File, Files, Holder, Mode, Slot, Socket, Source};

use crate::{
    constants::{
        FASTPROC_FD_CWD, FASTPROC_FD_PROGRAM, FASTPROC_FD_ROOT, FASTPROC_TEXT_FILE_KIND,
        FASTPROC_TEXT_FILE_NAME, FASTPROC_TEXT_SOCKET_LOCAL, FASTPROC_TEXT_SOCKET_NETID,
        FASTPROC_TEXT_SOCKET_PEER, FASTPROC_TEXT_SOCKET_STATE,
    },
    failure::Failure,
    structures::{FastprocFile, FastprocSnapshot},
};

const NOT_KNOWN: Failure = Failure::Unknown(
    c"the value is not known: the file has none, the kernel does not show it, or its fields were not asked for",
);

/// The kinds of texts of a file, in the order of `Open::texts`.
const TEXTS: [u32; 6] = [
    FASTPROC_TEXT_FILE_NAME,
    FASTPROC_TEXT_FILE_KIND,
    FASTPROC_TEXT_SOCKET_NETID,
    FASTPROC_TEXT_SOCKET_STATE,
    FASTPROC_TEXT_SOCKET_LOCAL,
    FASTPROC_TEXT_SOCKET_PEER,
];

/// An open file, and where each of its texts ends in all texts.
#[derive(Debug)]
struct Open {
    file: FastprocFile,
    starts: usize,
    ends: [Option<usize>; TEXTS.len()],
}

/// The state behind a handle.
#[derive(Debug)]
pub(crate) struct Reader {
    files: Files,
    open: Vec<Open>,
    texts: Vec<u8>,
    /// Whether the last attempt to make a snapshot succeeded.
    is_there: bool,
}

impl Reader {
    /// `pid`: the only process to read; 0 for all.
    pub(crate) fn open(fields: u32, pid: u32, source: Option<&[u8]>) -> Result<Self, Failure> {
        let Some(fields) = Fields::from_bits(fields) else {
            let unknown = fields & !Fields::all().bits();
            return Err(Failure::Argument(format!(
                "no field has the bits {unknown:#x}: combine the FASTPROC_FILES_* of fastproc.h that this version of the library \
                 knows"
            )));
        };
        let source = match source {
            None | Some(b"auto") => None,
            Some(name) => {
                let source = String::from_utf8_lossy(name).parse::<Source>();
                Some(source.map_err(|error| Failure::Argument(error.to_string()))?)
            }
        };
        let pids = (pid != 0).then(|| vec![pid]);
        let builder = Files::builder().fields(fields).source(source).pids(pids);
        Ok(Self {
            files: builder.open()?,
            open: Vec::new(),
            texts: Vec::new(),
            is_there: false,
        })
    }

    pub(crate) fn take_snapshot(&mut self) -> Result<FastprocSnapshot, Failure> {
        self.is_there = false;
        self.open.clear();
        self.texts.clear();
        let snapshot = self.files.snapshot()?;
        let source = match snapshot.source() {
            Source::Bpf => c"bpf",
            Source::Service => c"service",
            _ => c"procfs",
        };
        for (holder, file) in snapshot.files() {
            self.open.push(Open::new(holder, file, &mut self.texts));
        }
        self.is_there = true;
        Ok(FastprocSnapshot {
            count: self.open.len(),
            began_ns: snapshot.began_ns(),
            source: source.as_ptr(),
            ..FastprocSnapshot::default()
        })
    }

    fn at(&self, place: usize) -> Result<&Open, Failure> {
        if !self.is_there {
            return Err(Failure::NoSnapshot);
        }
        self.open.get(place).ok_or(Failure::Place)
    }

    pub(crate) fn file(&self, place: usize) -> Result<FastprocFile, Failure> {
        Ok(self.at(place)?.file)
    }

    /// A text of the file at this place, followed by a NUL.
    pub(crate) fn text(&self, kind: u32, place: usize) -> Result<&[u8], Failure> {
        let open = self.at(place)?;
        let at = TEXTS.iter().position(|&known| known == kind);
        let at = at.ok_or_else(|| {
            let texts = "a file has the texts FASTPROC_TEXT_FILE_* and FASTPROC_TEXT_SOCKET_*";
            Failure::Argument(texts.into())
        })?;
        let before = open.ends[..at].iter().flatten().max();
        let start = before.copied().unwrap_or(open.starts);
        let end = open.ends[at].ok_or(NOT_KNOWN)?;
        Ok(&self.texts[start..end])
    }
}

impl Open {
    fn new(holder: Holder<'_>, file: File<'_>, texts: &mut Vec<u8>) -> Self {
        let socket = file.socket();
        let starts = texts.len();
        let mut ends = [None; TEXTS.len()];
        let mut add = |at: usize, write: &mut dyn FnMut(&mut Vec<u8>) -> bool| {
            if write(texts) {
                texts.push(0);
                ends[at] = Some(texts.len());
            }
        };
        add(0, &mut |to| file.write_name(to));
        add(1, &mut |to| put(to, Some(file.kind().name())));
        add(2, &mut |to| put(to, socket.map(Socket::netid)));
        add(3, &mut |to| put(to, socket.map(Socket::state_name)));
        for (at, address) in [
            (4, socket.and_then(Socket::local)),
            (5, socket.and_then(Socket::peer)),
        ] {
            add(at, &mut |to| {
                address.inspect(|address| address.write(to)).is_some()
            });
        }
        let port = |address: Option<Address<'_>>| address.and_then(Address::port).map(u32::from);
        let device = file.device();
        let value = FastprocFile {
            pid: holder.pid(),
            fd: match file.slot() {
                Slot::Descriptor(number) => number,
                Slot::CurrentDirectory => FASTPROC_FD_CWD,
                Slot::Root => FASTPROC_FD_ROOT,
                _ => FASTPROC_FD_PROGRAM,
            },
            uid: holder.uid(),
            flags: file.flags().unwrap_or(u32::MAX),
            reads: file.mode().is_some_and(|mode| mode != Mode::Write),
            writes: file.mode().is_some_and(|mode| mode != Mode::Read),
            deleted: file.is_deleted().unwrap_or(false),
            listens: socket.is_some_and(Socket::listens),
            device_major: device.map_or(u32::MAX, |device| device.major),
            device_minor: device.map_or(u32::MAX, |device| device.minor),
            local_port: port(socket.and_then(Socket::local)).unwrap_or(u32::MAX),
            peer_port: port(socket.and_then(Socket::peer)).unwrap_or(u32::MAX),
            receive_queue: socket.and_then(Socket::receive_queue).unwrap_or(u32::MAX),
            send_queue: socket.and_then(Socket::send_queue).unwrap_or(u32::MAX),
            netns: socket
                .and_then(Socket::network_namespace)
                .unwrap_or(u32::MAX),
            inode: file.inode().unwrap_or(u64::MAX),
            size: file.size().unwrap_or(u64::MAX),
            position: file.position().unwrap_or(u64::MAX),
        };
        Self {
            file: value,
            starts,
            ends,
        }
    }
}

fn put(to: &mut Vec<u8>, text: Option<&str>) -> bool {
    to.extend_from_slice(text.unwrap_or_default().as_bytes());
    text.is_some()
}

#[cfg(test)]
mod tests {
    use std::{ffi::CStr, net::TcpListener, os::fd::AsRawFd, ptr};

    use super::*;
    use crate::{
        constants::{FASTPROC_ERROR_ARGUMENT, FASTPROC_ERROR_NO_SNAPSHOT, FASTPROC_OK},
        exports::*,
        structures::NO_FILE,
    };

    #[test]
    fn a_socket_has_its_address_and_a_file_its_name() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let port = listener.local_addr().expect("it is bound").port();
        let mut handle = ptr::null_mut();
        // SAFETY: as the header requires.
        unsafe {
            let (fields, pid) = (Fields::all().bits(), std::process::id());
            let opened =
                fastproc_open_files(&raw mut handle, fields, pid, c"procfs".as_ptr(), SIZES);
            assert_eq!(opened, FASTPROC_OK);
            let mut file = NO_FILE;
            let early = fastproc_get_file(handle, 0, &raw mut file);
            assert_eq!(early, FASTPROC_ERROR_NO_SNAPSHOT);
            let mut taken = FastprocSnapshot::default();
            assert_eq!(fastproc_snapshot(handle, &raw mut taken), FASTPROC_OK);
            let text = |place, kind| {
                let mut text = ptr::null();
                let result = fastproc_text(handle, place, kind, &raw mut text, ptr::null_mut());
                let text = CStr::from_ptr(text).to_string_lossy().into_owned();
                (result == FASTPROC_OK).then_some(text)
            };
            let (mut sockets, mut programs) = (0, 0);
            for place in 0..taken.count {
                let copied = fastproc_get_file(handle, place, &raw mut file);
                assert_eq!((copied, file.pid), (FASTPROC_OK, pid));
                if file.fd == listener.as_raw_fd() as u32 {
                    let local = format!("127.0.0.1:{port}");
                    assert_eq!(text(place, FASTPROC_TEXT_SOCKET_LOCAL), Some(local));
                    assert_eq!(text(place, FASTPROC_TEXT_SOCKET_PEER), None);
                    let kind = text(place, FASTPROC_TEXT_FILE_KIND);
                    assert_eq!(kind.as_deref(), Some("socket"));
                    assert_eq!((file.local_port, file.size), (port.into(), u64::MAX));
                    assert!(file.listens && file.reads && file.writes);
                    sockets += 1;
                }
                if file.fd == FASTPROC_FD_PROGRAM {
                    let own = std::env::current_exe().expect("the test has a program");
                    let own = own.to_string_lossy().into_owned();
                    assert_eq!(text(place, FASTPROC_TEXT_FILE_NAME), Some(own));
                    assert_eq!(text(place, FASTPROC_TEXT_SOCKET_STATE), None);
                    programs += 1;
                }
            }
            assert_eq!((sockets, programs), (1, 1));
            let beyond = fastproc_get_file(handle, taken.count, &raw mut file);
            assert_eq!((beyond, file.fd), (FASTPROC_ERROR_ARGUMENT, u32::MAX));
            let mut at = 0;
            let other = fastproc_find(handle, 1, &raw mut at);
            assert_eq!(other, FASTPROC_ERROR_ARGUMENT);
            assert_eq!(fastproc_close(handle), FASTPROC_OK);
        }
        let refused = Reader::open(1 << 30, 0, None);
        assert!(matches!(refused, Err(Failure::Argument(_))), "{refused:?}");
    }
}
