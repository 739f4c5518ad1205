//! The process that collects, as the one that serves asks it to.

use std::{io, os::fd::OwnedFd};

use crate::{
    exporter::Exporter,
    exposition::Format,
    link::{Link, Page, Scrape, take},
    memory,
    naming::{Item, Rules},
};

/// What is told of rules that came and are of no use.
#[derive(Debug, thiserror::Error)]
#[error("rules of groups came that cannot be used")]
struct WrongRules(#[source] Box<dyn std::error::Error + Send + Sync>);

/// Owns the exporter, and runs on one thread.
#[derive(Debug)]
pub struct Collecting {
    exporter: Exporter,
    link: Link,
    page: Page,
    /// Whether the other process has the page.
    shown: bool,
    failing: bool,
    /// The memory of the last text. With thousands of groups it is large, and to ask for it anew each time would leave holes in
    /// the heap that are as large.
    spare: Vec<u8>,
    /// Of the last text.
    length: usize,
}

impl Collecting {
    /// Answers what is asked through this link.
    pub fn new(exporter: Exporter, link: Link) -> io::Result<Self> {
        Ok(Self {
            exporter,
            link,
            page: Page::new()?,
            shown: false,
            failing: false,
            spare: Vec::new(),
            length: 0,
        })
    }

    /// Answers until the other process has ended. `log` hears of a failure once.
    pub fn run(
        mut self,
        mut log: impl FnMut(&(dyn std::error::Error + 'static)),
    ) -> io::Result<()> {
        let mut first = true;
        while let Some(message) = self.link.receive()? {
            let scrape = Scrape::of(message.words);
            self.exporter.count_as_own(scrape.used);
            if scrape.collects {
                let rules = message.descriptor.map(rules).transpose();
                let rules = rules.unwrap_or_else(|error| {
                    log(&error);
                    None
                });
                self.exporter.reload(rules, scrape.reloaded);
                self.collect(&mut log);
            }
            let length = match scrape.format {
                None => 0,
                Some(format) => self.write(format)?,
            };
            let shown = (!self.shown).then(|| self.page.shown());
            if self.link.send([length as u64, 0, 0, 0], shown).is_err() {
                break;
            }
            self.shown = true;
            if std::mem::take(&mut first) {
                // What opening took and nobody needs any more.
                memory::trim();
            } else {
                let (link, mut asked) = (&self.link, 0_u32);
                self.exporter.refresh_costly(|| {
                    asked += 1;
                    // Asking the kernel costs about as much as some of these values.
                    asked % 8 == 0 && link.has_news()
                });
            }
        }
        Ok(())
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
    }

    /// Writes the text of what was seen last, and says how long it is.
    fn write(&mut self, format: Format) -> io::Result<usize> {
        let mut memory = std::mem::take(&mut self.spare);
        memory.clear();
        // About as long as the last one, so that memory is not asked for again and again. What is not written to takes none.
        memory.reserve(match self.length {
            0 => self.exporter.expected_length(),
            length => length + length / 32,
        });
        let text = self.exporter.write(format, memory);
        self.page.write(&text)?;
        self.length = text.len();
        self.spare = text;
        Ok(self.length)
    }
}

fn rules(text: OwnedFd) -> Result<Rules, WrongRules> {
    let text = take(text).map_err(|error| WrongRules(error.into()))?;
    let items = Item::from_bytes(&text).ok_or_else(|| WrongRules("they are cut short".into()))?;
    Rules::of_items(&items).map_err(|error| WrongRules(error.into()))
}
