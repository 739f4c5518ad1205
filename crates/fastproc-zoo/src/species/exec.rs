//! What only a program that was executed has: a long command line, a title written over it, a deleted executable.

use std::{
    env, fs,
    os::unix::{ffi::OsStrExt, process::CommandExt},
    path::PathBuf,
};

use super::{Species, single};
use crate::{
    expect::{
        Expect::{CmdlineAtLeast, CmdlineStarts, ExeDeleted, State},
        Stat,
    },
    nest::{At, Grown, Nest, Trouble},
    role, sys,
};

/// Where the link is that a program deletes when it has been executed by it.
const LINK: &str = "FASTPROC_ZOO_LINK";

pub const SPECIES: &[Species] = &[
    single!(
        "long-cmdline",
        [State('S'), CmdlineAtLeast(100_000)],
        |nest| {
            nest.execute("long-cmdline", |command| {
                role::silent(command).args((0..3_000).map(|number| {
                    format!("--argument-{number:04}=a word\n and\t\u{1b}[1m another")
                }));
            })
        }
    ),
    // Empty arguments count; the kernel ends each with a NUL.
    single!("empty-arguments", [CmdlineStarts(b"\0\0\0")], |nest| {
        nest.execute("empty-arguments", |command| {
            role::silent(command).arg0("").args(["", "", ""]);
        })
    }),
    // As mail and database servers do. With no NUL at the end of the arguments the kernel reads on.
    single!(
        "own-title",
        [CmdlineStarts(b"zoo: an animal with a title")],
        |nest| {
            nest.execute("own-title", |command| {
                role::silent(command).arg0("x".repeat(100));
            })
        }
    ),
    single!("deleted-exe", [State('S'), ExeDeleted], |nest| {
        let link = link_to_this_program()?;
        nest.execute("deleted-exe", |command| {
            *command = {
                let mut other = std::process::Command::new(&link);
                other
                    .envs(
                        command
                            .get_envs()
                            .filter_map(|(key, value)| Some((key, value?))),
                    )
                    .env(LINK, &link);
                role::silent(&mut other);
                other
            };
        })
        .inspect_err(|_| {
            let _ = fs::remove_file(&link);
        })
    }),
];

/// The executed program goes on here; `argument` is the label and the descriptors of the nest.
pub fn executed(argument: &str) -> i32 {
    let mut words = argument.split(' ');
    let (Some(label), Some(Ok(keeper)), Some(Ok(parent))) = (
        words.next(),
        words.next().map(str::parse),
        words.next().map(str::parse),
    ) else {
        eprintln!("fastproc-zoo: not an animal: {argument}");
        return 2;
    };
    let nest = Nest::inherited(keeper, parent);
    match grow(&nest, label) {
        Err(trouble) => nest.give_up(&trouble),
    }
}

fn grow(nest: &Nest, label: &str) -> Grown {
    match label {
        "deleted-exe" => {
            let link =
                env::var_os(LINK).ok_or_else(|| Trouble::broken(format!("{LINK} is not set")))?;
            fs::remove_file(link).at("unlink")?;
        }
        "own-title" => {
            let stat = Stat::read(std::process::id()).map_err(Trouble::broken)?;
            let field = |number| {
                stat.field(number)
                    .map(|value| value as usize)
                    .map_err(Trouble::broken)
            };
            let (start, end) = (field(48)?, field(49)?);
            if start == 0 || end <= start {
                return Err(Trouble::unsupported("arg_start is not shown"));
            }
            sys::overwrite_arguments(start, end, b"zoo: an animal with a title");
        }
        _ => {}
    }
    nest.settle(label)
}

/// A second name for this executable, or a copy where the file system allows no link.
fn link_to_this_program() -> Result<PathBuf, Trouble> {
    let this = fs::read_link("/proc/self/exe").at("readlink /proc/self/exe")?;
    let name = format!(".fastproc-zoo-{}", std::process::id());
    if !this.as_os_str().as_bytes().ends_with(b" (deleted)") {
        let link = this.with_file_name(&name);
        if fs::hard_link(&this, &link).is_ok() {
            return Ok(link);
        }
    }
    let copy = env::temp_dir().join(name);
    fs::copy("/proc/self/exe", &copy).at("copy of /proc/self/exe")?;
    Ok(copy)
}
