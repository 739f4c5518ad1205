//! The resident service: one reader of the process table that shares its snapshots.
//!
//! A reader connects to a socket and asks for groups of fields and a greatest age. It is answered with the descriptor of
//! a sealed file that the records lie in, which it maps; the file is lent to it until its next request. All who wait at
//! once are served by one walk. `docs/protocol.md` describes the messages, `docs/security.md` who is shown what.
//!
//! One thread answers, and sleeps until somebody asks. It never waits: texts of processes are read by threads of their own, and
//! the request is answered when they are done.

mod blame;
mod budget;
mod buffers;
mod changes;
mod closing;
mod confine;
mod exits;
mod figures;
mod fill;
mod hidepid;
mod holders;
mod left;
mod memory;
mod message;
mod peer;
mod reading;
mod rest;
mod service;
mod settings;
mod socket;
mod status;
mod texts;
mod tiers;
mod view;

pub use confine::{confine, confine_to_descriptors};
pub use figures::Figures;
pub use service::{Error, Service};
pub use settings::{CONNECTIONS, Settings};
pub use socket::{SocketError, bind, bind_for, passed_by_systemd};
