//! The collecting process, which answers the serving one.

use std::{
    io,
    os::fd::OwnedFd,
    time::{Duration, Instant},
};

use crate::{
    exporter::Exporter,
    exposition::{Exposition, Format},
    link::{Link, Scrape, take},
    memory,
    naming::{Item, NameError, Rules},
    page::{Page, Pages},
    reloaded::Reloaded,
};

/// Rules that were sent cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("the exporter sent rules of groups that cannot be used")]
struct Refused(#[source] Box<dyn std::error::Error + Send + Sync>);

/// Limits on what the serving process may request. It faces the network, so this process enforces them.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Whether it may send other rules: only if there is a file for them.
    pub regroups: bool,
    /// The least time between two snapshots.
    pub min_interval: Duration,
}

/// Owns the exporter, and runs on one thread.
#[derive(Debug)]
pub struct Collecting {
    exporter: Exporter,
    link: Link,
    bounds: Bounds,
    /// Rules for the next snapshot.
    rules: Option<OwnedFd>,
    /// When everything was read last.
    collected: Option<Instant>,
    /// When and how the configuration in use was read; whether the rules of a later one were refused.
    reloaded: Reloaded,
    refused: bool,
    name_error: Option<NameError>,
    pages: Pages,
    failing: bool,
}

impl Collecting {
    /// Answers the requests that come through this link.
    pub fn new(exporter: Exporter, link: Link, bounds: Bounds) -> Self {
        Self {
            exporter,
            link,
            bounds,
            rules: None,
            collected: None,
            reloaded: Reloaded::now(),
            refused: false,
            name_error: None,
            pages: Pages::default(),
            failing: false,
        }
    }

    /// Answers until the serving process exits. `log` receives each failure once.
    pub fn run(
        mut self,
        mut log: impl FnMut(&(dyn std::error::Error + 'static)),
    ) -> io::Result<()> {
        let mut first = true;
        while let Some(message) = self.link.receive()? {
            let scrape = Scrape::of(message.words);
            self.exporter.count_as_own(scrape.used);
            if scrape.regroups != message.descriptor.is_some() {
                let reason = "rules of groups are announced and do not come, or come unannounced";
                return Err(io::Error::new(io::ErrorKind::InvalidData, reason));
            }
            if scrape.regroups {
                self.rules = message.descriptor;
            }
            let due = self
                .collected
                .is_none_or(|at| at.elapsed() >= self.bounds.min_interval);
            if scrape.collects && due {
                self.collected = Some(Instant::now());
                self.reload(scrape.reloaded, &mut log);
                self.collect(&mut log);
            }
            let ([mut length, mut of_parts], mut shown) = ([0; 2], None);
            if let Some(format) = scrape.format {
                let (page, is_new) = self.pages.page(scrape.page)?;
                [length, of_parts] = write(&mut self.exporter, format, page)?;
                shown = is_new.then(|| page.shown());
            }
            match self.link.send([length, of_parts, 0, 0], shown) {
                Ok(()) => {}
                Err(error) if Link::is_end(&error) => break,
                Err(error) => return Err(error),
            }
            if std::mem::take(&mut first) {
                // Memory that only opening needed.
                memory::trim();
            } else {
                let (link, mut asked) = (&self.link, 0_u32);
                self.exporter.refresh_costly(|| {
                    asked += 1;
                    // Asking the kernel costs about as much as reading some of these values.
                    asked % 8 == 0 && link.has_news()
                });
            }
        }
        Ok(())
    }

    /// Applies rules that have arrived since the last snapshot.
    fn reload(
        &mut self,
        reloaded: Reloaded,
        log: &mut impl FnMut(&(dyn std::error::Error + 'static)),
    ) {
        let regroups = self.bounds.regroups;
        let rules = self.rules.take().map(|text| rules(text, regroups));
        let rules = rules.transpose().unwrap_or_else(|error| {
            log(&error);
            self.refused = true;
            None
        });
        if rules.is_some() {
            self.refused = false;
        }
        if !self.refused {
            self.reloaded = reloaded;
        }
        let told = if self.refused {
            self.reloaded.failed()
        } else {
            self.reloaded
        };
        self.exporter.reload(rules, told);
    }

    fn collect(&mut self, log: &mut impl FnMut(&(dyn std::error::Error + 'static))) {
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
        // Once for each template, unless several alternate.
        if let Some(error) = self.exporter.take_name_error()
            && self.name_error.as_ref() != Some(&error)
        {
            log(&error);
            self.name_error = Some(error);
        }
    }
}

/// Writes the text of the last snapshot, with its parts behind it, and returns the lengths of both.
fn write(exporter: &mut Exporter, format: Format, page: &mut Page) -> io::Result<[u64; 2]> {
    let mut text = Exposition::to_page(format, page);
    exporter.write(&mut text);
    text.finish_page()
}

fn rules(text: OwnedFd, allowed: bool) -> Result<Rules, Refused> {
    if !allowed {
        return Err(Refused("there is no file that has any".into()));
    }
    let text = take(text).map_err(|error| Refused(error.into()))?;
    let items = Item::from_bytes(&text).map_err(|error| Refused(error.into()))?;
    Rules::of_items(&items).map_err(|error| Refused(error.into()))
}
