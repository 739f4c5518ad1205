//! What processes have open: how many descriptors, how many sockets, at which ports they listen, and their use of GPUs.

use std::collections::HashMap;

use fastproc::{
    Process, SourceKind,
    difference::is_same_start,
    files::{Address, Fields, Files, GpuClient, Holder, Kind, Socket, Source, has_gpu},
};

/// `TCP_CLOSE` of `include/net/tcp_states.h`: the state of a UDP socket that is not connected.
const CLOSE: u8 = 7;

/// What a process has open. `None`: the kernel hides it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Open {
    start_ns: u64,
    pub(crate) descriptors: Option<u32>,
    pub(crate) sockets: Option<u32>,
    /// In ascending order, each once.
    pub(crate) ports: Option<Vec<u32>>,
    /// Of all clients of GPUs: bytes, nanoseconds, and the share of an engine in percent since the previous snapshot.
    pub(crate) gpu_memory: Option<u64>,
    pub(crate) gpu_time: Option<u64>,
    pub(crate) gpu: Option<f64>,
}

/// The clients of GPUs at a time since boot.
#[derive(Debug, Default)]
struct Gpus {
    at_ns: u64,
    clients: Vec<GpuClient>,
}

/// What processes have open, read at the first request for a snapshot: of all of them.
#[derive(Debug, Default)]
pub struct OpenFiles {
    /// `None` if they cannot be read.
    files: Option<Files>,
    /// The groups of fields for which it is open. `None`: it is not open yet.
    fields: Option<Fields>,
    source: Option<Source>,
    once: bool,
    pids: Option<Vec<u32>>,
    is_read: bool,
    /// Whether this machine has a GPU.
    has_gpu: Option<bool>,
    gpus: Gpus,
    of: HashMap<u32, Open>,
}

impl OpenFiles {
    /// Those of a recording, which has none.
    pub(crate) fn recorded() -> Self {
        Self {
            fields: Some(Fields::all()),
            ..Self::default()
        }
    }

    /// Uses the source that processes are read from, if only that may be used.
    pub fn read_from(&mut self, processes: Option<SourceKind>) {
        self.source = match processes {
            Some(SourceKind::Bpf) => Some(Source::Bpf),
            Some(SourceKind::Service) => Some(Source::Service),
            Some(SourceKind::Procfs) => Some(Source::Procfs),
            _ => None,
        };
    }

    /// There is only one snapshot, so the cheaper source is used. `pids`: only these processes are asked for.
    pub fn once(&mut self, pids: Option<Vec<u32>>) {
        (self.once, self.pids) = (true, pids);
    }

    /// Makes the next request read them again.
    pub(crate) fn renew(&mut self) {
        self.is_read = false;
        self.has_gpu = None;
    }

    /// What a process has open, with what these groups of fields show. `None`: it is younger than what was read.
    pub(crate) fn get(&mut self, process: Process<'_>, needs: Fields) -> Option<&Open> {
        if needs.contains(Fields::GPUS) && !*self.has_gpu.get_or_insert_with(has_gpu) {
            return None;
        }
        if !self.fields.is_some_and(|fields| fields.contains(needs)) {
            let needs = self.fields.unwrap_or(needs) | needs;
            let builder = Files::builder().fields(needs).once(self.once);
            let builder = builder.pids(self.pids.clone()).source(self.source);
            self.files = builder.open().ok();
            self.fields = Some(needs);
            self.is_read = false;
        }
        if !std::mem::replace(&mut self.is_read, true) {
            self.read();
        }
        let open = self.of.get(&process.pid())?;
        is_same_start(open.start_ns, process.identity().start_ns).then_some(open)
    }

    fn read(&mut self) {
        self.of.clear();
        if let Some(Ok(snapshot)) = self.files.as_mut().map(Files::snapshot) {
            let before = std::mem::take(&mut self.gpus);
            self.gpus.at_ns = snapshot.began_ns();
            for holder in snapshot.processes() {
                let open = open(holder, &before, &mut self.gpus);
                self.of.insert(holder.pid(), open);
            }
        }
    }
}

fn open(holder: Holder<'_>, before: &Gpus, gpus: &mut Gpus) -> Open {
    let is_known = !holder.is_incomplete();
    let sockets = holder.count(Kind::Socket).filter(|_| is_known);
    let ports = holder.files().filter_map(|file| port(file.socket()?));
    let mut ports: Vec<u32> = ports.map(u32::from).collect();
    ports.sort_unstable();
    ports.dedup();
    let clients: Vec<&GpuClient> = holder.gpus().collect();
    let sum = |of: fn(&GpuClient) -> Option<u64>| {
        let values = clients.iter().filter_map(|client| of(client));
        values.reduce(u64::saturating_add)
    };
    let elapsed_ns = gpus.at_ns.saturating_sub(before.at_ns).max(1);
    let busy = clients.iter().filter_map(|client| {
        let before = before
            .clients
            .iter()
            .find(|before| before.is_same(client))?;
        client.busy_since(before, elapsed_ns)
    });
    let busy = busy.reduce(u64::saturating_add);
    gpus.clients.extend(clients.iter().copied().cloned());
    Open {
        gpu_memory: sum(GpuClient::memory),
        gpu_time: sum(GpuClient::busy_ns),
        gpu: busy.map(|busy_ns| 100.0 * busy_ns as f64 / elapsed_ns as f64),
        start_ns: holder.start_ns(),
        descriptors: holder.open().filter(|_| is_known),
        sockets,
        ports: sockets.filter(|_| !holder.lacks_sockets()).map(|_| ports),
    }
}

/// The port at which a socket waits for others: of TCP, and of UDP if it is not connected.
fn port(socket: Socket<'_>) -> Option<u16> {
    let is_udp = || socket.netid() == "udp" && socket.state() == CLOSE;
    let port = socket.local().and_then(Address::port)?;
    (port != 0 && (socket.listens() || is_udp())).then_some(port)
}

#[cfg(test)]
mod tests {
    use std::{
        net::{Ipv4Addr, TcpListener, TcpStream, UdpSocket},
        os::unix::net::UnixStream,
    };

    use fastproc::{Collector, SourceKind};

    use super::*;

    #[test]
    fn ports_are_those_at_which_others_reach_the_process() {
        let any = (Ipv4Addr::LOCALHOST, 0);
        let listener = TcpListener::bind(any).expect("a socket");
        let same = listener.try_clone().expect("a descriptor");
        let address = listener.local_addr().expect("an address");
        let client = TcpStream::connect(address).expect("the socket accepts connections");
        let open_udp = UdpSocket::bind(any).expect("a socket");
        let connected = UdpSocket::bind(any).expect("a socket");
        connected.connect(address).expect("an address");
        let pair = UnixStream::pair().expect("a pair");
        let procfs = Collector::builder().source(Some(SourceKind::Procfs));
        let mut collector = procfs.open().expect("/proc is there");
        let snapshot = collector.snapshot().expect("a snapshot");
        let own = snapshot.get(std::process::id()).expect("it is shown");
        let mut files = OpenFiles::default();
        files.once(Some(vec![own.pid()]));
        let counted = files.get(own, Fields::empty()).expect("it is read").clone();
        let open = files.get(own, Fields::SOCKETS).expect("it is read").clone();
        let ports = open.ports.expect("its own are never hidden");
        let of = |socket: &UdpSocket| socket.local_addr().expect("an address").port();
        let has = |port: u16| ports.contains(&port.into());
        assert!(has(address.port()) && has(of(&open_udp)));
        assert!(!has(of(&connected)));
        assert!(!has(client.local_addr().expect("an address").port()));
        assert!(ports.is_sorted() && !has(0));
        assert!(open.sockets >= Some(7) && open.descriptors > open.sockets);
        assert!(counted.sockets >= Some(7));
        let held = files.of.len();
        assert_eq!(held, 1, "only what was asked for is read");
        let none = OpenFiles::recorded().get(own, Fields::SOCKETS).cloned();
        assert_eq!(none, None);
        drop((same, pair));
    }
}
