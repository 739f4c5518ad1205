//! The web server: one scrape at a time, and nobody can hold it up.

mod answer;
mod auth;
mod config;
pub mod configuration;
mod connections;
mod plain;
mod scraper;
mod server;
mod site;
mod timed;
mod tls;

pub use self::{
    config::WebConfig,
    scraper::{ScrapeError, Scraper, ScraperHandle, scraper},
    server::{Limits, ServeError, Server},
};
