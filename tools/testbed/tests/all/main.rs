//! The testbed keeps its promises.

mod gone;
mod storm;
mod testbed;
