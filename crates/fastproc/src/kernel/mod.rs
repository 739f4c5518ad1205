//! What every BPF program needs: the kernel's type information, loading, maps as memory, and what this kernel
//! supports.

mod btf;
mod cut;
mod elf;
mod log;
mod mapping;
mod names;
mod object;
mod object_file;
mod program;
mod ring;
mod section;
pub(crate) mod shapes;
pub(crate) mod support;
mod types;
mod types_in_one_pass;
pub(crate) mod walk;

pub(crate) use mapping::Mapping;
pub(crate) use object::{Loader, run};
pub(crate) use object_file::{ObjectFile, object_file};
pub(crate) use program::iterate;
pub(crate) use ring::MappedRing;
pub(crate) use types::{KernelTypes, PerCpu, Wanted};
