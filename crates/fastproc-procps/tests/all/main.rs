//! The substitute of procps's library.

mod tools;
