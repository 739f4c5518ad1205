//! Groups and metrics of artificial snapshots, and their page.

mod docs;
mod groups;
