//! The columns, for records whose members all differ.

mod members;
