//! The screen of `fastproc top`: processes and the machine, refreshed up to ten times a second for a few percent of a CPU.
//!
//! Data flows one way:
//! - A [`Feed`] provides a [`View`]: the last two snapshots, and numbers of the machine. Its source is this machine
//!   now, or a history of one.
//! - A [`State`] has the user's choices. Keys change it, through the table in [`keys`].
//! - `draw` makes a screen from both. It writes only the visible rows.
//!
//! [`Screen`] combines them.

mod act;
mod canvas;
mod cgroups;
mod chosen;
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
mod machine;
mod observation;
mod options;
mod overlay;
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
    options::{Options, Place},
    screen::{Left, Screen},
    settings::{Settings, default_path},
    state::State,
    terminal::Terminal,
};
