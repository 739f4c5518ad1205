//! The programs of an object: loaded, attached, run.
//!
//! libbpf prepares an object up to the last instruction, and could load it. But to find what a program attaches to and
//! which functions it calls, it reads all of the kernel's type information, in which `types.rs` has already searched.

use std::{
    ffi::{CStr, CString, OsStr},
    fs::File,
    io::{self, Read},
    os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd},
    ptr,
};

use libbpf_rs::{AsRawLibbpf, OpenObject, OpenProgram, ProgramType};
use libbpf_sys::{bpf_insn, bpf_prog_load_opts};

use super::{
    log,
    object_file::{FUNCTION_IDS, ObjectFile},
    section::Kind,
    types::KernelTypes,
};
use crate::base::timing;

/// `BPF_JMP | BPF_CALL`.
const CALL: u8 = 0x85;
/// `BPF_PSEUDO_KFUNC_CALL`.
const KERNEL_FUNCTION: u8 = 2;
/// A function that no kernel has. Only unreachable code may call it; older kernels require it to be a helper.
const NO_FUNCTION: i32 = i32::MAX;
/// The size of the verifier's log, which is more than anyone reads.
const LOG_BYTES: usize = 1 << 20;

/// The kernel's ids of the called functions, by the offset of each in the constant that names them.
pub(super) struct Functions(Vec<(i32, u32)>);

impl Functions {
    pub(super) fn new(file: &ObjectFile, types: &KernelTypes) -> Self {
        let names = file.members(FUNCTION_IDS).into_iter();
        Self(
            names
                .map(|(name, place)| (place as i32, types.function_id(name)))
                .collect(),
        )
    }

    fn put_into(&self, instructions: &mut [bpf_insn]) {
        let calls = instructions
            .iter_mut()
            .filter(|it| it.code == CALL && it.src_reg() == KERNEL_FUNCTION);
        for call in calls {
            let mut known = self.0.iter().filter(|(_, id)| *id != 0);
            if let Some((_, id)) = known.find(|(place, _)| *place == call.imm) {
                call.imm = *id as i32;
            } else {
                call.set_src_reg(0);
                call.imm = NO_FUNCTION;
            }
        }
    }
}

/// A program that the kernel has accepted.
#[derive(Debug)]
pub(super) struct Program {
    pub(super) name: String,
    pub(super) fd: OwnedFd,
    attach_type: u32,
}

impl Program {
    /// Attaches it until the returned descriptor is closed.
    pub(super) fn attach(&self) -> io::Result<OwnedFd> {
        // SAFETY: the descriptor is a program's; no options are given.
        owned(unsafe {
            libbpf_sys::bpf_link_create(self.fd.as_raw_fd(), 0, self.attach_type, ptr::null())
        })
    }
}

/// Prepares the object, and loads its programs separately: the object itself loads none.
pub(super) fn load(
    open: &mut OpenObject,
    licence: &CStr,
    functions: &Functions,
    types: &KernelTypes,
) -> io::Result<Vec<Program>> {
    for mut program in open.progs_mut().filter(|program| program.autoload()) {
        // For this type libbpf does not search for what a program attaches to.
        program.set_prog_type(ProgramType::Syscall);
    }
    let object = open.as_libbpf_object().as_ptr();
    // SAFETY: the object is open, and nothing else uses it.
    checked(unsafe { libbpf_sys::bpf_object__prepare(object) })?;
    timing::done("relocations, maps");
    // SAFETY: the object is open.
    let btf = unsafe { libbpf_sys::bpf_object__btf_fd(object) };
    let mut loaded = Vec::new();
    for program in open.progs().filter(OpenProgram::autoload) {
        let prepared = Prepared::new(&program, btf, functions, types)?;
        loaded.push(prepared.load(licence)?);
    }
    for mut program in open.progs_mut() {
        program.set_autoload(false);
    }
    Ok(loaded)
}

/// A program with its final instructions, while its object is open.
struct Prepared<'a> {
    name: &'a OsStr,
    kind: Kind<'a>,
    instructions: Vec<bpf_insn>,
    options: bpf_prog_load_opts,
    program: &'a OpenProgram<'a>,
}

impl<'a> Prepared<'a> {
    fn new(
        program: &'a OpenProgram<'a>,
        btf: i32,
        functions: &Functions,
        types: &KernelTypes,
    ) -> io::Result<Self> {
        let section = program.section().to_str().unwrap_or_default();
        let kind = Kind::from_section(section).ok_or(io::ErrorKind::Unsupported)?;
        let mut options = bpf_prog_load_opts {
            sz: size_of::<bpf_prog_load_opts>() as _,
            expected_attach_type: kind.attach_type(),
            ..Default::default()
        };
        let target = kind.target().unwrap_or_default();
        match kind {
            Kind::Syscall => options.prog_flags = libbpf_sys::BPF_F_SLEEPABLE,
            Kind::Iterator(_) => options.attach_btf_id = types.function_id(&target),
            Kind::Tracepoint(_) => options.attach_btf_id = types.id(&target),
        }
        if let Ok(btf) = u32::try_from(btf) {
            let program = program.as_libbpf_object().as_ptr();
            options.prog_btf_fd = btf;
            // SAFETY: the program's object is open, so the targets of the pointers remain.
            unsafe {
                options.func_info = libbpf_sys::bpf_program__func_info(program).cast();
                options.func_info_cnt = libbpf_sys::bpf_program__func_info_cnt(program);
            }
            options.func_info_rec_size = size_of::<libbpf_sys::bpf_func_info>() as u32;
        }
        let mut instructions = program.insns().to_vec();
        functions.put_into(&mut instructions);
        Ok(Self {
            name: program.name(),
            kind,
            instructions,
            options,
            program,
        })
    }

    fn load(mut self, licence: &CStr) -> io::Result<Program> {
        let fd = self.try_to(licence).or_else(|_| {
            // Once more with the verifier's log. It contains source lines, which take time to load.
            let mut log = vec![0; LOG_BYTES];
            let program = self.program.as_libbpf_object().as_ptr();
            // SAFETY: as in `new`.
            unsafe {
                self.options.line_info = libbpf_sys::bpf_program__line_info(program).cast();
                self.options.line_info_cnt = libbpf_sys::bpf_program__line_info_cnt(program);
            }
            self.options.line_info_rec_size = size_of::<libbpf_sys::bpf_line_info>() as u32;
            self.options.log_level = 1;
            self.options.log_buf = log.as_mut_ptr().cast();
            self.options.log_size = log.len() as u32;
            let fd = self.try_to(licence);
            let log = CStr::from_bytes_until_nul(&log).unwrap_or_default();
            log::add(&log.to_string_lossy());
            fd
        })?;
        Ok(Program {
            name: self.name.to_string_lossy().into_owned(),
            fd,
            attach_type: self.kind.attach_type(),
        })
    }

    fn try_to(&mut self, licence: &CStr) -> io::Result<OwnedFd> {
        let prog_type = match self.kind {
            Kind::Syscall => libbpf_sys::BPF_PROG_TYPE_SYSCALL,
            Kind::Iterator(_) | Kind::Tracepoint(_) => libbpf_sys::BPF_PROG_TYPE_TRACING,
        };
        let name = CString::new(self.name.as_encoded_bytes())?;
        // SAFETY: name, licence, instructions and what the options point to outlive the call.
        owned(unsafe {
            libbpf_sys::bpf_prog_load(
                prog_type,
                name.as_ptr(),
                licence.as_ptr(),
                self.instructions.as_ptr(),
                self.instructions.len() as _,
                &raw mut self.options,
            )
        })
    }
}

/// Runs an attached iterator, by reading its file.
pub(crate) fn iterate(link: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: the descriptor is that of a link.
    owned(unsafe { libbpf_sys::bpf_iter_create(link.as_raw_fd()) })
        .and_then(|file| drain(File::from(file)))
}

/// Reads until the end. The program writes nothing to the file, so every read is empty or an error.
fn drain(mut iterator: impl Read) -> io::Result<()> {
    let mut nothing = [0; 64];
    loop {
        match iterator.read(&mut nothing) {
            Ok(0) => return Ok(()),
            Ok(_) => {}
            // During a long walk the kernel returns this, so that the scheduler can run.
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock
                ) => {}
            Err(error) => return Err(error),
        }
    }
}

/// Converts libbpf's results.
fn checked(result: i32) -> io::Result<i32> {
    if result < 0 {
        Err(io::Error::from_raw_os_error(-result))
    } else {
        Ok(result)
    }
}

fn owned(result: i32) -> io::Result<OwnedFd> {
    // SAFETY: a new descriptor, which nothing else uses.
    checked(result).map(|fd| unsafe { OwnedFd::from_raw_fd(fd) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(source: u8, imm: i32) -> bpf_insn {
        let mut instruction = bpf_insn {
            code: CALL,
            imm,
            ..Default::default()
        };
        instruction.set_src_reg(source);
        instruction
    }

    #[test]
    fn calls_get_the_ids_of_the_functions_that_they_name() {
        let functions = Functions(vec![(0, 111), (4, 0), (8, 222)]);
        // A helper, a subprogram, two functions of the kernel, one that it lacks, one without a name.
        let mut instructions = [
            call(0, 8),
            call(1, 8),
            call(KERNEL_FUNCTION, 0),
            call(KERNEL_FUNCTION, 8),
            call(KERNEL_FUNCTION, 4),
            call(KERNEL_FUNCTION, 12),
        ];
        functions.put_into(&mut instructions);
        let found = instructions.map(|call| (call.src_reg(), call.imm));
        assert_eq!(found[..2], [(0, 8), (1, 8)]);
        assert_eq!(
            found[2..4],
            [(KERNEL_FUNCTION, 111), (KERNEL_FUNCTION, 222)]
        );
        assert_eq!(found[4..], [(0, NO_FUNCTION); 2]);
    }
}
