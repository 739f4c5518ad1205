//! The thread that takes snapshots, and what others get from it.

use std::{
    io::Write,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    time::{Duration, Instant},
};

use bytes::Bytes;
use flate2::{Compression, write::GzEncoder};
use tokio::sync::oneshot;

use crate::{configuration::Reloaded, exporter::Exporter, exposition::Format, naming::Rules};

/// Requests that wait for the thread. There are no more than connections.
const WAITING: usize = 1024;

/// Asks for a scrape.
#[derive(Debug)]
struct Request {
    format: Format,
    gzip: bool,
    arrived: Instant,
    reply: oneshot::Sender<Bytes>,
}

/// Where scrapes are asked for.
#[derive(Clone, Debug)]
pub struct ScraperHandle {
    requests: mpsc::SyncSender<Request>,
    ready: Arc<AtomicBool>,
    news: Arc<Mutex<News>>,
}

/// What a reload leaves for the thread that takes snapshots.
#[derive(Debug)]
struct News {
    rules: Option<Rules>,
    reloaded: Reloaded,
}

impl News {
    fn new() -> Arc<Mutex<Self>> {
        Arc::new(Mutex::new(Self {
            rules: None,
            reloaded: Reloaded::now(),
        }))
    }
}

fn lock(news: &Mutex<News>) -> MutexGuard<'_, News> {
    news.lock().unwrap_or_else(PoisonError::into_inner)
}

/// There is no answer now: the scraper has ended, or too many wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no scrape can be had now")]
pub struct Unavailable;

impl ScraperHandle {
    /// The metrics in this format: of a snapshot that is made now, or of one that is younger than the minimum interval.
    pub(super) async fn scrape(&self, format: Format, gzip: bool) -> Result<Bytes, Unavailable> {
        let (reply, answer) = oneshot::channel();
        let request = Request {
            format,
            gzip,
            arrived: Instant::now(),
            reply,
        };
        self.requests.try_send(request).map_err(|_| Unavailable)?;
        answer.await.map_err(|_| Unavailable)
    }

    /// Hands over a configuration that was read again, or that it could not be used. The next snapshot is made by it.
    pub(super) fn reload(&self, read: Result<Option<Rules>, ()>) {
        let mut news = lock(&self.news);
        match read {
            Ok(rules) => {
                if rules.is_some() {
                    news.rules = rules;
                }
                news.reloaded = Reloaded::now();
            }
            Err(()) => news.reloaded = news.reloaded.failed(),
        }
    }

    /// A handle to nobody, for tests of what asks for no scrape.
    #[cfg(test)]
    pub(super) fn closed() -> Self {
        Self {
            requests: mpsc::sync_channel(1).0,
            ready: Arc::default(),
            news: News::new(),
        }
    }

    /// Whether there has been a snapshot.
    pub(super) fn is_ready(&self) -> bool {
        self.ready.load(Ordering::Acquire)
    }
}

/// The other end: it owns the exporter, and runs on one thread.
#[derive(Debug)]
pub struct Scraper {
    exporter: Exporter,
    requests: mpsc::Receiver<Request>,
    ready: Arc<AtomicBool>,
    news: Arc<Mutex<News>>,
    min_interval: Duration,
    started: Option<Instant>,
    /// What is rendered of the last snapshot: by format, plain and compressed.
    bodies: [[Option<Bytes>; 2]; 2],
    failing: bool,
    /// Of the last text.
    length: usize,
    /// The memory of a text that nobody reads any more. With thousands of groups it is large, and to ask for it anew each
    /// time would leave holes in the heap that are as large.
    spare: Vec<u8>,
}

/// A scraper, and a handle to it.
pub fn scraper(exporter: Exporter, min_interval: Duration) -> (Scraper, ScraperHandle) {
    let (sender, requests) = mpsc::sync_channel(WAITING);
    let ready = Arc::new(AtomicBool::new(false));
    let news = News::new();
    let handle = ScraperHandle {
        requests: sender,
        ready: Arc::clone(&ready),
        news: Arc::clone(&news),
    };
    let scraper = Scraper {
        exporter,
        requests,
        ready,
        news,
        min_interval,
        started: None,
        bodies: Default::default(),
        failing: false,
        length: 0,
        spare: Vec::new(),
    };
    (scraper, handle)
}

impl Scraper {
    /// Takes a first snapshot, then answers until every handle is gone. `log` hears of a failure once.
    pub fn run(mut self, mut log: impl FnMut(&dyn std::error::Error)) {
        self.collect(&mut log);
        // The first snapshot names every process, and reads what it needs for that but once.
        self.bodies = Default::default();
        self.started = None;
        trim_memory();
        self.ready.store(true, Ordering::Release);
        // A request that came while costly values were read.
        let mut waiting = None;
        while let Some(request) = waiting.take().or_else(|| self.requests.recv().ok()) {
            // Whoever asked has gone away meanwhile.
            if request.reply.is_closed() {
                continue;
            }
            if !self.is_fresh_for(&request) {
                self.collect(&mut log);
            }
            let body = self.body(request.format, request.gzip);
            // Nobody to tell: that is all right.
            let _ = request.reply.send(body);
            let requests = &self.requests;
            self.exporter.refresh_costly(|| {
                waiting = requests.try_recv().ok();
                waiting.is_some()
            });
        }
    }

    /// A snapshot serves whoever asked before it was made, and whoever asks soon after.
    fn is_fresh_for(&self, request: &Request) -> bool {
        self.started.is_some_and(|started| {
            request.arrived <= started || started.elapsed() < self.min_interval
        })
    }

    fn collect(&mut self, log: &mut impl FnMut(&dyn std::error::Error)) {
        for [plain, _] in std::mem::take(&mut self.bodies) {
            // Whoever still takes it keeps it.
            if let Some(Ok(text)) = plain.map(Bytes::try_into_mut) {
                self.spare = text.into();
            }
        }
        self.started = Some(Instant::now());
        {
            let mut news = lock(&self.news);
            let reloaded = news.reloaded;
            self.exporter.reload(news.rules.take(), reloaded);
        }
        match self.exporter.collect() {
            Ok(()) => self.failing = false,
            Err(error) => {
                if !self.failing {
                    log(&error);
                }
                self.failing = true;
            }
        }
        for left_out in self.exporter.left_out() {
            log(&left_out);
        }
    }

    fn body(&mut self, format: Format, gzip: bool) -> Bytes {
        let kept = &self.bodies[format as usize][usize::from(gzip)];
        if let Some(body) = kept {
            return body.clone();
        }
        let plain = self.bodies[format as usize][0].clone();
        let plain = plain.unwrap_or_else(|| {
            let mut memory = std::mem::take(&mut self.spare);
            memory.clear();
            // About as long as the last one, so that memory is not asked for again and again. What is not written to takes
            // none.
            let expected = match self.length {
                0 => self.exporter.expected_length(),
                length => length + length / 32,
            };
            memory.reserve(expected);
            let text = self.exporter.write(format, memory);
            self.length = text.len();
            text.into()
        });
        let body = if gzip { compress(&plain) } else { plain };
        self.bodies[format as usize][usize::from(gzip)] = Some(body.clone());
        body
    }
}

/// The fastest level: it saves nine tenths of these texts, and the next ones little more.
fn compress(plain: &[u8]) -> Bytes {
    let mut encoder = GzEncoder::new(Vec::with_capacity(plain.len() / 8), Compression::new(1));
    // Memory takes all that is written.
    let _ = encoder.write_all(plain);
    encoder.finish().unwrap_or_default().into()
}

/// Gives back to the kernel what opening took and nobody needs any more: free memory, and pages of code and constants, which
/// come back from their files where they are needed.
fn trim_memory() {
    // SAFETY: the function keeps to what it is called for.
    unsafe {
        libc::dl_iterate_phdr(Some(forget_pages), std::ptr::null_mut());
    }
    #[cfg(target_env = "gnu")]
    // SAFETY: it takes no pointer, and glibc's allocator locks for itself.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Forgets the pages of a loaded object that nobody may write to, and that are therefore as in its file.
unsafe extern "C" fn forget_pages(
    info: *mut libc::dl_phdr_info,
    _: libc::size_t,
    _: *mut libc::c_void,
) -> libc::c_int {
    let page = rustix::param::page_size();
    // SAFETY: the caller, the C library, says where the object lies and has so many headers.
    let (base, headers) = unsafe {
        let info = &*info;
        let headers = std::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into());
        (info.dlpi_addr as usize, headers)
    };
    for header in headers {
        if header.p_type != libc::PT_LOAD || header.p_flags & libc::PF_W != 0 {
            continue;
        }
        // The first and the last page may be of other segments, too.
        let start = base + header.p_vaddr as usize;
        let end = (start + header.p_memsz as usize) / page * page;
        let start = start.next_multiple_of(page);
        // SAFETY: the pages are mapped from a file, have not been written to, and are read from it again at the next access.
        unsafe {
            libc::madvise(
                start as *mut libc::c_void,
                end.saturating_sub(start),
                libc::MADV_DONTNEED,
            );
        }
    }
    0
}
