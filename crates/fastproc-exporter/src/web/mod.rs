//! The web server. It takes one scrape at a time, and no client can block it.

mod answer;
mod auth;
mod config;
pub mod configuration;
mod connections;
mod plain;
mod scraper;
mod selection;
mod server;
mod site;
mod timed;
mod tls;

pub use self::{
    config::WebConfig,
    scraper::{ScrapeError, Scraper, ScraperHandle, scraper},
    server::{Limits, ServeError, Server},
};
