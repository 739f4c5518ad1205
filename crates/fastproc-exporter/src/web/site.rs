//! What all connections share, and how a reload replaces it.

use std::{
    sync::{Arc, PoisonError, RwLock},
    thread,
    time::Duration,
};

use hyper::header::{HeaderName, HeaderValue};
use tokio::{sync::oneshot, time::timeout};
use tokio_rustls::TlsAcceptor;

use fastproc_metrics::error_chain;

use super::{
    ScraperHandle, WebConfig,
    auth::Gate,
    configuration::{Configuration, Read, Reload},
    tls::ClientChecks,
};

/// The web configuration in use.
pub(super) struct Rulebook {
    pub(super) gate: Arc<Gate>,
    pub(super) headers: Vec<(HeaderName, HeaderValue)>,
    pub(super) tls: Option<TlsAcceptor>,
    clients: ClientChecks,
}

impl Rulebook {
    /// Keeps the gate if the users are the same, since it remembers valid passwords, which take long to check.
    fn new(config: WebConfig, before: Option<&Arc<Gate>>) -> Self {
        let same = before.filter(|gate| gate.is_for(&config.users));
        let new = || Arc::new(Gate::new(config.users, before.map(|gate| &**gate)));
        let gate = same.map_or_else(new, Arc::clone);
        Self {
            gate,
            headers: config.headers,
            tls: config.tls.map(TlsAcceptor::from),
            clients: config.clients,
        }
    }
}

/// What all connections share.
pub(super) struct Site {
    pub(super) scraper: ScraperHandle,
    pub(super) metrics_path: String,
    rulebook: RwLock<Arc<Rulebook>>,
    reload: Option<Reload>,
    /// One reload at a time.
    reloading: tokio::sync::Mutex<()>,
    /// Held by threads that still read.
    reading: Arc<()>,
}

/// The longest time that a reload waits for a file, such as a pipe without a writer. A virtual CPU may stall for many
/// seconds.
const TIMEOUT: Duration = Duration::from_secs(60);

impl Site {
    pub(super) fn new(
        scraper: ScraperHandle,
        metrics_path: String,
        config: WebConfig,
        reload: Option<Reload>,
    ) -> Self {
        Self {
            scraper,
            metrics_path,
            rulebook: RwLock::new(Arc::new(Rulebook::new(config, None))),
            reload,
            reloading: tokio::sync::Mutex::new(()),
            reading: Arc::default(),
        }
    }

    /// The configuration for a connection or request that begins now.
    pub(super) fn rulebook(&self) -> Arc<Rulebook> {
        Arc::clone(&self.rulebook.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether a request may trigger a reload.
    pub(super) fn reloads_by_request(&self) -> bool {
        self.reload.as_ref().is_some_and(|reload| reload.by_request)
    }

    /// Reads the configuration again and uses it from now on; otherwise returns why the old one stays.
    pub(super) async fn reload(self: Arc<Self>) -> Result<(), String> {
        let Some(reload) = &self.reload else {
            return Ok(());
        };
        let _one = self.reloading.lock().await;
        let read = self.read(&reload.read).await;
        let read = read.and_then(|configuration| self.take_over(configuration));
        match &read {
            Ok(()) => (reload.log)("the configuration was read again"),
            Err(reason) => {
                self.scraper.reload(Err(()));
                (reload.log)(&format!(
                    "the configuration stays as it was, because it cannot be read again: {reason}"
                ));
            }
        }
        read
    }

    /// Reads in a separate thread, since reading may block forever.
    async fn read(&self, read: &Read) -> Result<Configuration, String> {
        if Arc::strong_count(&self.reading) > 1 {
            return Err("a file of the last reload has still not been read".into());
        }
        let (reply, answer) = oneshot::channel();
        let (read, reading) = (Arc::clone(read), Arc::clone(&self.reading));
        let thread = thread::Builder::new().name("reload".into()).spawn(move || {
            // The receiver may have given up.
            let _ = reply.send(read().map_err(|error| error_chain(&*error)));
            drop(reading);
        });
        thread.map_err(|error| format!("there is no thread for it: {error}"))?;
        match timeout(TIMEOUT, answer).await {
            Ok(read) => read.unwrap_or_else(|_| Err("reading it has failed".into())),
            Err(_) => Err(format!(
                "a file has not been read for {} s",
                TIMEOUT.as_secs()
            )),
        }
    }

    fn take_over(&self, configuration: Configuration) -> Result<(), String> {
        let web = configuration.web;
        let now = self.rulebook();
        // A file that is being written may be empty for a moment. No reload removes protection.
        if web.has_tls() != now.tls.is_some() {
            return Err("TLS is switched on and off by a restart alone".into());
        }
        if now.gate.asks_for_passwords() && !web.has_users() {
            return Err(
                "all users would be gone, and everybody let in: that takes a restart".into(),
            );
        }
        if web.clients.are_weaker_than(now.clients) {
            return Err(
                "the certificates of clients would be checked less strictly: that takes a restart"
                    .into(),
            );
        }
        let rulebook = Arc::new(Rulebook::new(web, Some(&now.gate)));
        *self
            .rulebook
            .write()
            .unwrap_or_else(PoisonError::into_inner) = rulebook;
        self.scraper.reload(Ok(configuration.rules));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Mutex, mpsc};

    use tokio_rustls::rustls::{ServerConfig, crypto::ring, server::ResolvesServerCertUsingSni};

    use super::*;

    #[test]
    fn a_gate_stays_while_its_users_do() {
        let config = |hash: &str| {
            let mut config = WebConfig::default();
            config.users.insert("a".into(), hash.into());
            config
        };
        let first = Rulebook::new(config("x"), None).gate;
        let again = Rulebook::new(config("x"), Some(&first)).gate;
        let other = Rulebook::new(config("y"), Some(&first)).gate;
        assert!(Arc::ptr_eq(&first, &again));
        assert!(!Arc::ptr_eq(&first, &other));
    }

    #[test]
    fn a_reload_never_checks_clients_less_strictly() {
        let of = |auth, has_sans| {
            let web = WebConfig {
                clients: ClientChecks::new(auth, has_sans),
                ..WebConfig::default()
            };
            Configuration { rules: None, web }
        };
        let (all, any) = ("RequireAndVerifyClientCert", "RequireAnyClientCert");
        let (given, none) = ("VerifyClientCertIfGiven", "NoClientCert");
        for (before, after, is_taken) in [
            ((all, true), (all, true), true),
            ((all, true), (all, false), false),
            ((all, false), (any, false), false),
            ((all, false), (given, false), false),
            ((all, false), (none, false), false),
            ((any, false), (given, false), false),
            ((given, false), (any, false), false),
            ((none, false), (all, true), true),
        ] {
            let web = of(before.0, before.1).web;
            let site = Site::new(ScraperHandle::closed(), "/metrics".into(), web, None);
            let taken = site.take_over(of(after.0, after.1));
            assert_eq!(taken.is_ok(), is_taken, "{before:?} {after:?}: {taken:?}");
            // And what is in use is what the next reload is compared with.
            let kept = if is_taken { after } else { before };
            let kept = ClientChecks::new(kept.0, kept.1);
            assert_eq!(site.rulebook().clients, kept);
        }
    }

    #[test]
    fn a_reload_takes_away_neither_users_nor_encryption() {
        let mut with_users = WebConfig::default();
        with_users.users.insert("a".into(), "x".into());
        let provider = Arc::new(ring::default_provider());
        let tls = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("the provider has them")
            .with_no_client_auth()
            .with_cert_resolver(Arc::new(ResolvesServerCertUsingSni::new()));
        let with_tls = WebConfig {
            tls: Some(Arc::new(tls)),
            ..WebConfig::default()
        };
        for before in [with_users, with_tls] {
            let site = Site::new(ScraperHandle::closed(), "/metrics".into(), before, None);
            let (rules, web) = (None, WebConfig::default());
            assert!(site.take_over(Configuration { rules, web }).is_err());
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_file_that_cannot_be_read_to_its_end_holds_nobody_up() {
        let (end, waiting) = mpsc::channel::<()>();
        let waiting = Mutex::new(waiting);
        let reload = Reload {
            read: Arc::new(move || {
                let _ = waiting.lock().unwrap().recv();
                Ok(Configuration {
                    rules: None,
                    web: WebConfig::default(),
                })
            }),
            log: |_| {},
            by_request: true,
        };
        let (scraper, config) = (ScraperHandle::closed(), WebConfig::default());
        let site = Arc::new(Site::new(scraper, "/metrics".into(), config, Some(reload)));
        let reload = || Arc::clone(&site).reload();
        let first = reload().await.unwrap_err();
        assert!(first.contains("has not been read for 60 s"), "{first}");
        let second = reload().await.unwrap_err();
        assert!(second.contains("the last reload"), "{second}");
        // From now on it is read at once.
        tokio::time::resume();
        drop(end);
        while Arc::strong_count(&site.reading) > 1 {
            thread::yield_now();
        }
        assert_eq!(reload().await, Ok(()));
    }
}
