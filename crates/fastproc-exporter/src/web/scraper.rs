//! The thread that requests snapshots, and the handle by which others use it.

use std::{
    fs::File,
    io::{self, Write},
    os::{fd::AsFd, unix::fs::FileExt},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    time::{Duration, Instant},
};

use bytes::Bytes;
use fastproc_metrics::{
    exposition::Format,
    link::{Link, Scrape, Used, lend},
    memory,
    naming::Item,
    page::{PAGES, Shown},
    reloaded::Reloaded,
};
use flate2::{Compression, write::GzEncoder};
use rustix::{
    param::page_size,
    time::{ClockId, clock_gettime},
};
use tokio::sync::oneshot;

/// The most requests that wait for the thread, at least as many as connections.
const WAITING: usize = 1024;

/// The page for texts while those in all others are still being sent: texts from it are copied.
const LAST_PAGE: usize = PAGES - 1;

/// A request for a scrape.
#[derive(Debug)]
struct Request {
    format: Format,
    gzip: bool,
    arrived: Instant,
    reply: oneshot::Sender<Bytes>,
}

/// The handle for requesting scrapes.
#[derive(Clone, Debug)]
pub struct ScraperHandle {
    requests: mpsc::SyncSender<Request>,
    ready: Arc<AtomicBool>,
    news: Arc<Mutex<News>>,
}

/// What a reload leaves for the scraping thread.
#[derive(Debug)]
struct News {
    rules: Option<Vec<Item>>,
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

/// Scrapes are unavailable: the scraper has ended, or too many requests wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no scrape is available now")]
pub struct Unavailable;

impl ScraperHandle {
    /// The metrics in this format, from a new snapshot or from one that is younger than the minimum interval.
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

    /// Hands over a configuration that was read again, or a failure. It counts from the next snapshot on.
    pub(super) fn reload(&self, read: Result<Option<Vec<Item>>, ()>) {
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

    /// A handle without a scraper, for tests that scrape nothing.
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

/// Why there are no more metrics.
#[derive(Debug, thiserror::Error)]
pub enum ScrapeError {
    /// The process that collects has ended.
    #[error("the collecting process has ended")]
    Ended,
    /// The link to it failed, although it has not exited.
    #[error("the collecting process cannot be reached")]
    Failed(#[from] io::Error),
}

/// The other end of the handle: asks the collecting process, and runs on one thread.
#[derive(Debug)]
pub struct Scraper {
    link: Link,
    /// The memory into which that process writes its texts.
    pages: [Option<Shown>; PAGES],
    /// The file with the memory of this process.
    statm: Option<File>,
    requests: mpsc::Receiver<Request>,
    ready: Arc<AtomicBool>,
    news: Arc<Mutex<News>>,
    min_interval: Duration,
    started: Option<Instant>,
    /// The texts of the last snapshot: by format, plain and compressed.
    bodies: [[Option<Bytes>; 2]; 2],
}

/// A scraper that asks through this link, and a handle to it.
pub fn scraper(link: Link, min_interval: Duration) -> (Scraper, ScraperHandle) {
    let (sender, requests) = mpsc::sync_channel(WAITING);
    let ready = Arc::new(AtomicBool::new(false));
    let news = News::new();
    let handle = ScraperHandle {
        requests: sender,
        ready: Arc::clone(&ready),
        news: Arc::clone(&news),
    };
    let scraper = Scraper {
        link,
        pages: Default::default(),
        // Later no file can be opened.
        statm: File::open("/proc/self/statm").ok(),
        requests,
        ready,
        news,
        min_interval,
        started: None,
        bodies: Default::default(),
    };
    (scraper, handle)
}

impl Scraper {
    /// Requests a first snapshot, then answers until every handle is gone.
    pub fn run(mut self) -> Result<(), ScrapeError> {
        // The first snapshot names every process, and needs memory for that only once.
        self.ask(true, None)?;
        memory::trim();
        self.ready.store(true, Ordering::Release);
        while let Ok(request) = self.requests.recv() {
            // The client has gone meanwhile.
            if request.reply.is_closed() {
                continue;
            }
            let body = self.body(&request)?;
            // A closed channel is fine.
            let _ = request.reply.send(body);
        }
        Ok(())
    }

    /// A snapshot serves requests from before it was made, and from shortly after.
    fn is_fresh_for(&self, request: &Request) -> bool {
        self.started.is_some_and(|started| {
            request.arrived <= started || started.elapsed() < self.min_interval
        })
    }

    /// The text for a request, from a new snapshot unless the last one will do.
    fn body(&mut self, request: &Request) -> Result<Bytes, ScrapeError> {
        let collects = !self.is_fresh_for(request);
        if collects {
            self.bodies = Default::default();
            self.started = Some(Instant::now());
        }
        let format = request.format as usize;
        if let Some(body) = &self.bodies[format][usize::from(request.gzip)] {
            return Ok(body.clone());
        }
        let plain = match &self.bodies[format][0] {
            Some(plain) => plain.clone(),
            None => self.ask(collects, Some(request.format))?,
        };
        self.bodies[format][0] = Some(plain.clone());
        if !request.gzip {
            return Ok(plain);
        }
        let body = compress(&plain);
        self.bodies[format][1] = Some(body.clone());
        Ok(body)
    }

    fn used(&self) -> Used {
        let cpu = clock_gettime(ClockId::ProcessCPUTime);
        let mut text = [0; 128];
        let read = self.statm.as_ref().map(|file| file.read_at(&mut text, 0));
        let read = read.and_then(Result::ok).unwrap_or(0);
        let text = str::from_utf8(&text[..read]).unwrap_or_default();
        let pages = text.split(' ').nth(1).and_then(|pages| pages.parse().ok());
        Used {
            cpu_ns: cpu.tv_sec as u64 * 1_000_000_000 + cpu.tv_nsec as u64,
            resident_bytes: pages.unwrap_or(0_u64) * page_size() as u64,
        }
    }

    /// Sends this request to the collecting process. Returns the text that it wrote.
    fn ask(&mut self, collects: bool, format: Option<Format>) -> Result<Bytes, ScrapeError> {
        let (rules, reloaded) = {
            let mut news = lock(&self.news);
            let rules = if collects { news.rules.take() } else { None };
            (rules, news.reloaded)
        };
        let rules = rules.map(|rules| lend(&Item::to_bytes(&rules)));
        let rules = rules.transpose()?;
        // A text that is still being sent keeps its page.
        let free = |page: &mut Option<Shown>| page.as_mut().is_none_or(Shown::is_free);
        let number = self.pages.iter_mut().position(free).unwrap_or(LAST_PAGE);
        let scrape = Scrape {
            collects,
            regroups: rules.is_some(),
            format,
            page: number,
            reloaded,
            used: self.used(),
        };
        let answer = self
            .link
            .ask(scrape.words(), rules.as_ref().map(AsFd::as_fd))
            .map_err(|error| {
                if Link::is_end(&error) {
                    ScrapeError::Ended
                } else {
                    ScrapeError::Failed(error)
                }
            })?;
        if let Some(page) = answer.descriptor {
            self.pages[number] = Some(Shown::new(page)?);
        }
        let (Some(page), Some(_)) = (&mut self.pages[number], format) else {
            return Ok(Bytes::new());
        };
        let text = page.text(answer.words[0])?;
        Ok(if number == LAST_PAGE {
            Bytes::copy_from_slice(text.as_ref())
        } else {
            Bytes::from_owner(text)
        })
    }
}

/// The fastest level: it saves nine tenths, and the next levels little more.
fn compress(plain: &[u8]) -> Bytes {
    let mut encoder = GzEncoder::new(Vec::with_capacity(plain.len() / 8), Compression::new(1));
    // Writing to memory does not fail.
    let _ = encoder.write_all(plain);
    encoder.finish().unwrap_or_default().into()
}
