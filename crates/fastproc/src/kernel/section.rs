//! What a program attaches to, as the name of its section says.

/// What a program is for, by the name of its section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind<'a> {
    /// Run by a system call.
    Syscall,
    /// Run for each element that the iterator of this name meets.
    Iterator(&'a str),
    /// Run at the tracepoint of this name.
    Tracepoint(&'a str),
}

impl<'a> Kind<'a> {
    pub(super) fn from_section(name: &'a str) -> Option<Self> {
        match name.split_once('/') {
            None if name == "syscall" => Some(Self::Syscall),
            Some(("iter", name)) => Some(Self::Iterator(name)),
            Some(("tp_btf", name)) => Some(Self::Tracepoint(name)),
            _ => None,
        }
    }

    /// The kernel's name of what it attaches to: a function for an iterator, a type for a tracepoint.
    pub(super) fn target(self) -> Option<String> {
        match self {
            Self::Syscall => None,
            Self::Iterator(name) => Some(format!("bpf_iter_{name}")),
            Self::Tracepoint(name) => Some(format!("btf_trace_{name}")),
        }
    }

    pub(super) const fn attach_type(self) -> u32 {
        match self {
            Self::Syscall => 0,
            Self::Iterator(_) => libbpf_sys::BPF_TRACE_ITER,
            Self::Tracepoint(_) => libbpf_sys::BPF_TRACE_RAW_TP,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_section_says_what_a_program_attaches_to() {
        let target = |section| Kind::from_section(section).map(Kind::target);
        assert_eq!(target("syscall"), Some(None));
        assert_eq!(target("iter/task"), Some(Some("bpf_iter_task".into())));
        assert_eq!(
            target("tp_btf/task_newtask"),
            Some(Some("btf_trace_task_newtask".into()))
        );
        assert_eq!(target(".text"), None);
        assert_eq!(target("kprobe/x"), None);
    }
}
