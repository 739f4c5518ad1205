//! Names that break those who split at blanks, brackets or lines, or who believe in UTF-8.

use std::ffi::CStr;

use super::{Species, single};
use crate::{
    expect::Expect::{Comm, Status},
    nest::{At, Grown, Nest},
};

macro_rules! named {
    ($label:literal, $name:literal $(, $more:expr)*) => {
        single!($label, [Comm($name.to_bytes()) $(, $more)*], |nest| named(nest, $label, $name))
    };
}

pub const SPECIES: &[Species] = &[
    named!("name-empty", c""),
    named!("name-spaces", c" two  blanks "),
    named!("name-parentheses", c"a) R 1 (b"),
    named!("name-closing", c")))))))))))))))"),
    // status escapes these two, stat does not.
    named!(
        "name-newline",
        c"x\nState:\tZ",
        Status("Name", r"x\nState: Z")
    ),
    named!("name-backslash", c"a\\nb\\", Status("Name", r"a\\nb\\")),
    named!("name-tab", c"a\tb"),
    named!("name-not-utf8", c"\xff\xfe\x80\xc3("),
    named!("name-utf8-cut", c"aaaaaaaaaaaaaa\xc3"),
    named!("name-terminal", c"\x1b[31m\x07\r\x7f"),
    named!("name-quotes", c"\"',;|$`<&>#"),
    named!("name-digits", c"1 (2) 3 4 5 6 7"),
];

fn named(nest: &Nest, label: &str, name: &CStr) -> Grown {
    rustix::thread::set_name(name).at("PR_SET_NAME")?;
    nest.settle(label)
}
