//! Plays the role for which this process was executed, before `main`: the crate's documentation gives the reason.

use crate::{
    change, fixtures, hung_fuse,
    role::{self, Role},
    storm, supervisor, sys,
};

// The attribute `used` keeps it in every executable that links this crate.
#[used]
#[unsafe(link_section = ".init_array")]
static CONSTRUCTOR: extern "C" fn() = construct;

extern "C" fn construct() {
    let Some((role, argument)) = role::of_this_process() else {
        return;
    };
    let code = match role {
        Some(Role::Supervisor) => supervisor::main(&argument),
        Some(Role::Storm) => storm::main(),
        Some(Role::TestProcess) => fixtures::executed(&argument),
        Some(Role::Change) => change::main(&argument),
        Some(Role::Fuse) => hung_fuse::main(&argument),
        Some(Role::ShortLived) => 0,
        None => {
            eprintln!("fastproc-testbed: no role is called so");
            2
        }
    };
    sys::exit_now(code)
}
