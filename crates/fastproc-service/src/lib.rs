//! The resident service: one process reads the process table and shares its snapshots.
//!
//! A reader connects to a socket and requests groups of fields and a greatest age. The service answers with the
//! descriptor of a sealed file with the records, which the reader maps; the file is lent until the reader's next
//! request. One walk serves all readers that wait at once. `docs/dev/protocol.md` describes the messages,
//! `docs/security.md` which readers see what.
//!
//! One thread answers, and sleeps until a request comes. It never blocks: other threads read the texts of processes, and
//! cgroups and open files, and the request is answered when they are done.

mod background;
mod budget;
mod buffers;
mod changes;
mod closing;
mod confine;
mod exits;
mod field_sets;
mod figures;
mod fill;
mod hidepid;
mod idle;
mod memory;
mod message;
mod passed_files;
mod peer;
mod reading;
mod service;
mod settings;
mod socket;
mod status;
mod texts;
mod user_events;
mod view;
mod visibilities;

pub use confine::{confine, confine_to_descriptors, confine_to_folders};
pub use figures::Figures;
pub use service::{Error, Service};
pub use settings::{CONNECTIONS, Settings};
pub use socket::{SocketError, bind, bind_for, passed_by_systemd};
