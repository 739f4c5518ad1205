//! What every connection shares, and how a reload replaces it.

use std::sync::{Arc, PoisonError, RwLock};

use hyper::header::{HeaderName, HeaderValue};
use tokio_rustls::TlsAcceptor;

use super::{ScraperHandle, WebConfig, auth::Gate};
use crate::configuration::{Reload, chain};

/// What the web configuration says, in use.
pub(super) struct Rulebook {
    pub(super) gate: Gate,
    pub(super) headers: Vec<(HeaderName, HeaderValue)>,
    pub(super) tls: Option<TlsAcceptor>,
}

impl Rulebook {
    fn new(config: WebConfig) -> Self {
        Self {
            gate: Gate::new(config.users),
            headers: config.headers,
            tls: config.tls.map(TlsAcceptor::from),
        }
    }
}

/// What every connection shares.
pub(super) struct Site {
    pub(super) scraper: ScraperHandle,
    pub(super) metrics_path: String,
    rulebook: RwLock<Arc<Rulebook>>,
    reload: Option<Reload>,
    /// One reload at a time.
    reloading: tokio::sync::Mutex<()>,
}

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
            rulebook: RwLock::new(Arc::new(Rulebook::new(config))),
            reload,
            reloading: tokio::sync::Mutex::new(()),
        }
    }

    /// What counts for a connection or request that begins now.
    pub(super) fn rulebook(&self) -> Arc<Rulebook> {
        Arc::clone(&self.rulebook.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether a request may ask for a reload.
    pub(super) fn reloads_by_request(&self) -> bool {
        self.reload.as_ref().is_some_and(|reload| reload.by_request)
    }

    /// Reads the configuration again, and uses it for whatever begins from now on; or says why it stays as it is.
    pub(super) async fn reload(self: Arc<Self>) -> Result<(), String> {
        let _one = self.reloading.lock().await;
        let site = Arc::clone(&self);
        let read = tokio::task::spawn_blocking(move || site.read()).await;
        let read = read.unwrap_or_else(|_| Err("reading it has failed".into()));
        let Some(reload) = &self.reload else {
            return Ok(());
        };
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

    fn read(&self) -> Result<(), String> {
        let Some(reload) = &self.reload else {
            return Ok(());
        };
        let configuration = (reload.read)().map_err(|error| chain(&*error))?;
        let web = configuration.web;
        let now = self.rulebook();
        // A file that is being written may be empty for a moment. No reload takes away what protects.
        if web.has_tls() != now.tls.is_some() {
            return Err("TLS is switched on and off by a restart alone".into());
        }
        if now.gate.asks_for_passwords() && !web.has_users() {
            return Err(
                "all users would be gone, and everybody let in: that takes a restart".into(),
            );
        }
        let rulebook = Arc::new(Rulebook::new(web));
        *self
            .rulebook
            .write()
            .unwrap_or_else(PoisonError::into_inner) = rulebook;
        self.scraper.reload(Ok(configuration.rules));
        Ok(())
    }
}
