//! The kernel's own rules over records: who may see what, and how CPU time is shown.

pub mod access;
pub mod cputime;
pub mod rights;
