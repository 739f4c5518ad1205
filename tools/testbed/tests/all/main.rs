//! The testbed keeps its promises.

mod command;
mod gone;
mod storm;
mod testbed;
