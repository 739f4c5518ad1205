//! The catalogue of the fields of open files and sockets.

use fastproc::files::{Address, Device, Fields, File, GpuClient, Holder, Kind, Mode, Slot, Socket};

use super::{Lookup, OpenFiles, Row};
use crate::{
    field::{Field, groups},
    value::{
        Unit,
        Value::{self, Text, Truth},
    },
};

/// A value of the process: `process!(holder => holder.pid())`.
macro_rules! process {
    ($holder:ident => $value:expr) => {
        |row, _| Value::known(row.holder.map(|$holder| $value), Into::into)
    };
}

/// The same for a value that may be hidden.
macro_rules! some_of_process {
    ($holder:ident => $value:expr) => {
        |row, _| Value::known(row.holder.and_then(|$holder| $value), Into::into)
    };
}

/// A value of the file that may be unknown.
macro_rules! file {
    ($file:ident => $value:expr) => {
        |row, _| Value::known(row.file.and_then(|$file| $value), Into::into)
    };
}

/// A text of the file that may be unknown.
macro_rules! word {
    ($file:ident => $value:expr) => {
        |row, _| {
            Value::known(row.file.and_then(|$file| $value), |word: &'static str| {
                Text(word.as_bytes())
            })
        }
    };
}

/// A truth about the file; a table shows yes or no.
macro_rules! truth {
    ($group:ident, $name:literal, $help:literal, $file:ident => $value:expr) => {
        $group($name, Unit::Truth, $help, |row, _| {
            Value::known(row.file.and_then(|$file| $value), Truth)
        })
        .in_table(|row, _| {
            let word = |truth| Text(if truth { b"yes" } else { b"no" });
            Value::known(row.file.and_then(|$file| $value), word)
        })
    };
}

/// A value of the socket.
macro_rules! socket {
    ($socket:ident => $value:expr) => {
        |row, _| Value::known(row.socket.and_then(|$socket| $value), Into::into)
    };
}

/// What a GPU did for a file, or for all files of a process.
macro_rules! gpu {
    ($client:ident => $value:expr) => {
        |row, _| Value::known(sum_of_gpus(row, |$client| $value), Into::into)
    };
}

/// All fields, in the order of the help.
#[rustfmt::skip]
pub static COLUMNS: &[Field<OpenFiles>] = &[
    // The process
    general("pid", Unit::Number, "process id", process!(holder => holder.pid())).id(),
    general("comm", Unit::Text, "name of the process", |row, _| Value::known(row.holder.map(Holder::comm), Text)).also(&["command", "program"]),
    general("uid", Unit::Number, "effective user id of the process", process!(holder => holder.uid())).id(),
    general("user", Unit::Text, "effective user of the process", |row, lookup| lookup.user(row.holder.map(Holder::uid))),
    general("container", Unit::Text, "id of the container of the process", |row, lookup| lookup.container(row.holder)),
    general("fds", Unit::Number, "open descriptors of the process", some_of_process!(holder => holder.open())),
    general("regular", Unit::Number, "those that are regular files", some_of_process!(holder => holder.count(Kind::File))).heading("FILES"),
    general("sockets", Unit::Number, "those that are sockets", some_of_process!(holder => holder.count(Kind::Socket))),
    general("pipes", Unit::Number, "those that are pipes", some_of_process!(holder => holder.count(Kind::Pipe))),
    general("anonymous", Unit::Number, "those that are eventfds, epoll sets, BPF objects and so on", some_of_process!(holder => holder.count(Kind::Anonymous))).heading("ANON"),
    general("pidfds", Unit::Number, "those that are processes", some_of_process!(holder => holder.count(Kind::Pidfd))),
    // The file
    of_file("fd", Unit::Number, "number of the descriptor; in a table also cwd, rtd (root directory) and txt (program)", file!(file => file.descriptor()))
        .in_table(|row, lookup| match row.file.map(File::slot) {
            Some(Slot::Descriptor(number)) => number.into(),
            Some(slot) => lookup.text(slot_name(slot)),
            None => Value::Unknown,
        })
        .id(),
    of_file("held_as", Unit::Text, "fd, cwd, rtd or txt", word!(file => Some(slot_name(file.slot())))).heading("HELD"),
    of_file("mode", Unit::Text, "r to read, w to write, u for both", word!(file => file.mode().map(mode_name))),
    of_file("kind", Unit::Text, "file, directory, character, block, fifo, pipe, socket, anonymous, namespace, pidfd, link, bound (socket), other", word!(file => Some(file.kind().name()))).also(&["type"]),
    by_stat("device", Unit::Text, "device of its file system, as major:minor", |row, lookup| lookup.device(row.file.and_then(File::device))),
    by_stat("inode", Unit::Number, "inode number", |row, _| {
        let of_socket = || row.socket.map(Socket::inode).filter(|&inode| inode != 0);
        Value::known(row.file.and_then(File::inode).or_else(of_socket), Into::into)
    }).also(&["node"]).id(),
    of_file("rdev", Unit::Text, "the device that it is, as major:minor", |row, lookup| lookup.device(row.file.and_then(File::special_device))),
    by_stat("size", Unit::Bytes, "size of a regular file", file!(file => file.size())),
    of_file("pos", Unit::Bytes, "where the next read or write begins", file!(file => file.position())).also(&["offset", "position"]),
    of_file("flags", Unit::Octal, "flags of open(2) in octal, as in fdinfo", file!(file => file.flags())),
    truth!(of_file, "cloexec", "whether execve(2) closes it", file => file.is_close_on_exec()),
    truth!(of_file, "path_only", "whether it only names a file (O_PATH)", file => file.is_path_only()),
    truth!(of_path, "deleted", "whether its path was removed", file => file.is_deleted()),
    of_path("name", Unit::Text, "its path, or what it is", |row, lookup| lookup.name(row)).also(&["path"]),
    of_gpu("gpu_driver", Unit::Text, "driver of the GPU", |row, _| Value::known(row.file.and_then(File::gpu), |client| Text(client.driver().as_bytes()))).heading("GPUDRIVER"),
    of_gpu("gpu_client", Unit::Number, "number of the client of the GPU; descriptors of one client have the same", |row, _| Value::known(row.file.and_then(File::gpu).map(GpuClient::id), Into::into)).heading("GPUCLIENT").id(),
    of_gpu("gpu_memory", Unit::Bytes, "memory of its buffers of the GPU, as far as it is not swapped out", gpu!(client => client.memory())).heading("GPUMEM"),
    of_gpu("gpu_time", Unit::Time, "how long engines of the GPU have worked for it", gpu!(client => client.busy_ns())).heading("GPUTIME"),
    // The socket
    of_socket("netid", Unit::Text, "tcp, udp, u_str (unix stream), u_dgr, u_seq, raw, nl (netlink), and so on", |row, _| Value::known(row.socket.map(Socket::netid), |name| Text(name.as_bytes()))).also(&["proto"]),
    of_socket("state", Unit::Text, "its state in the words of ss(8): ESTAB, LISTEN, UNCONN, …", |row, _| Value::known(row.socket.map(Socket::state_name), |name| Text(name.as_bytes()))),
    of_socket("listen", Unit::Truth, "whether it waits for connections", |row, _| Value::known(row.socket.map(Socket::listens), Truth))
        .in_table(|row, _| Value::known(row.socket.map(Socket::listens), |truth| Text(if truth { b"yes" } else { b"no" }))),
    of_socket("recv_q", Unit::Number, "bytes that were not read yet; of a listening TCP socket, connections to be accepted", socket!(socket => socket.receive_queue())).heading("RECV-Q"),
    of_socket("send_q", Unit::Number, "bytes that were not sent or not acknowledged yet; not known of a listening socket", socket!(socket => socket.send_queue())).heading("SEND-Q"),
    of_socket("local", Unit::Text, "its address, with the port; the path or @name of a unix socket", |row, lookup| lookup.address(row.socket.and_then(Socket::local))).also(&["local_address"]),
    of_socket("local_port", Unit::Number, "port of its address", socket!(socket => socket.local().and_then(Address::port).map(u32::from))).also(&["lport"]).heading("LPORT").id(),
    of_socket("peer", Unit::Text, "address of the other end; * and the inode number of a unix socket", |row, lookup| lookup.address(row.socket.and_then(Socket::peer))).also(&["peer_address"]),
    of_socket("peer_port", Unit::Number, "port of the other end", socket!(socket => socket.peer().and_then(Address::port).map(u32::from))).also(&["rport"]).heading("RPORT").id(),
    of_socket("peer_inode", Unit::Number, "inode number of the other end of a unix socket", socket!(socket => peer_inode(socket))).heading("PEERINO").id(),
    of_socket("family", Unit::Number, "number of its address family, AF_*", socket!(socket => Some(u64::from(socket.family())))).id(),
    of_socket("protocol", Unit::Number, "number of its protocol, IPPROTO_*", socket!(socket => Some(socket.protocol()))).id(),
    of_socket("owner", Unit::Text, "user who made it", |row, lookup| lookup.user(row.socket.and_then(Socket::uid))),
    of_socket("netns", Unit::Number, "inode number of its network namespace", socket!(socket => socket.network_namespace())).id(),
];

fn sum_of_gpus(row: &Row<'_>, value: impl Fn(&GpuClient) -> Option<u64>) -> Option<u64> {
    match row.file {
        Some(file) => value(file.gpu()?),
        None => row
            .holder?
            .gpus()
            .filter_map(value)
            .reduce(u64::saturating_add),
    }
}

fn slot_name(slot: Slot) -> &'static str {
    match slot {
        Slot::CurrentDirectory => "cwd",
        Slot::Root => "rtd",
        Slot::Program => "txt",
        _ => "fd",
    }
}

fn mode_name(mode: Mode) -> &'static str {
    match mode {
        Mode::Read => "r",
        Mode::Write => "w",
        Mode::Both => "u",
    }
}

fn peer_inode(socket: Socket<'_>) -> Option<u64> {
    match socket.peer()? {
        Address::Inode(inode) => Some(inode),
        _ => None,
    }
}

impl Lookup {
    fn text<'x>(&'x mut self, text: &str) -> Value<'x> {
        self.text.clear();
        self.text.extend_from_slice(text.as_bytes());
        Text(&self.text)
    }

    fn user(&mut self, uid: Option<u32>) -> Value<'_> {
        match uid {
            Some(uid) => Text(self.users.name(uid)),
            None => Value::Unknown,
        }
    }

    fn device(&mut self, device: Option<Device>) -> Value<'_> {
        match device {
            Some(Device { major, minor }) => self.text(&format!("{major}:{minor}")),
            None => Value::Unknown,
        }
    }

    fn address(&mut self, address: Option<Address<'_>>) -> Value<'_> {
        let Some(address) = address else {
            return Value::Unknown;
        };
        self.text.clear();
        address.write(&mut self.text);
        Text(&self.text)
    }

    fn name(&mut self, row: &Row<'_>) -> Value<'_> {
        self.text.clear();
        let is_known = row.file.is_some_and(|file| file.write_name(&mut self.text));
        if is_known {
            Text(&self.text)
        } else {
            Value::Unknown
        }
    }
}

groups! {
    OpenFiles;
    general: ;
    of_file: needs(Fields::FILES);
    by_stat: needs(Fields::FILES.union(Fields::STAT));
    of_path: needs(Fields::FILES.union(Fields::PATHS));
    of_gpu: needs(Fields::GPUS);
    of_socket: needs(Fields::SOCKETS);
}
