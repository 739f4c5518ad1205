//! The screen of `fastproc top`: processes and the machine, refreshed up to ten times a second for a few percent of a CPU.
//!
//! Data flows one way:
//! - A [`Feed`] gives a [`View`]: the last snapshot, the one before, and numbers about the machine. It is this machine,
//!   or a recording of one.
//! - A [`State`] is what the user has chosen. Keys change it, by the one table in [`keys`].
//! - `draw` makes a screen of the two. It writes the rows that can be seen, and no others.
//!
//! [`Screen`] puts them together.

mod act;
mod canvas;
mod cgroups;
mod clock;
mod details;
mod draw;
mod error;
mod exited;
mod feed;
mod group;
mod history;
mod id;
pub mod keys;
mod locale;
pub mod machine;
mod observation;
mod options;
pub mod record;
mod rows;
mod sampler;
mod screen;
mod settings;
mod signals;
mod state;
mod target;
mod terminal;
mod view;
mod window;

pub use self::{
    error::Error,
    feed::Feed,
    observation::View,
    options::Options,
    screen::{Left, Screen},
    settings::{Settings, default_path},
    state::State,
    terminal::Terminal,
};
