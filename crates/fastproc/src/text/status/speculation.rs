//! The two lines on speculation: one answer for the whole machine, or one for each process.

use seqtext::Label;

/// `PFA_*` bits of `task->atomic_flags`.
const STORE_BYPASS_DISABLE: u64 = 1 << 3;
const STORE_BYPASS_FORCE_DISABLE: u64 = 1 << 4;
const INDIRECT_BRANCH_DISABLE: u64 = 1 << 5;
const INDIRECT_BRANCH_FORCE_DISABLE: u64 = 1 << 6;
const STORE_BYPASS_NOEXEC: u64 = 1 << 7;

/// The states of a process, with the flags that cause each; if several apply, the first counts.
type States = [(&'static [u8], u64); 4];

const STORE_BYPASS: States = [
    (
        b"thread force mitigated",
        STORE_BYPASS_FORCE_DISABLE | STORE_BYPASS_DISABLE,
    ),
    (b"vulnerable", STORE_BYPASS_NOEXEC),
    (b"thread mitigated", STORE_BYPASS_DISABLE),
    (b"thread vulnerable", 0),
];
const INDIRECT_BRANCH: States = [
    (
        b"conditional force disabled",
        INDIRECT_BRANCH_FORCE_DISABLE | INDIRECT_BRANCH_DISABLE,
    ),
    (b"conditional disabled", INDIRECT_BRANCH_DISABLE),
    (b"conditional enabled", 0),
    (b"conditional enabled", 0),
];

/// One of the two lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    StoreBypass,
    IndirectBranch,
}

impl Kind {
    const fn states(self) -> &'static States {
        match self {
            Self::StoreBypass => &STORE_BYPASS,
            Self::IndirectBranch => &INDIRECT_BRANCH,
        }
    }

    /// The index of the state for these flags.
    #[inline]
    const fn state(self, atomic_flags: u64) -> usize {
        match self {
            Self::StoreBypass if atomic_flags & STORE_BYPASS_FORCE_DISABLE != 0 => 0,
            Self::StoreBypass if atomic_flags & STORE_BYPASS_NOEXEC != 0 => 1,
            Self::StoreBypass if atomic_flags & STORE_BYPASS_DISABLE != 0 => 2,
            Self::StoreBypass => 3,
            Self::IndirectBranch if atomic_flags & INDIRECT_BRANCH_FORCE_DISABLE != 0 => 0,
            Self::IndirectBranch if atomic_flags & INDIRECT_BRANCH_DISABLE != 0 => 1,
            Self::IndirectBranch => 2,
        }
    }
}

/// How this kernel fills one of the lines.
#[derive(Clone, Debug)]
pub(super) struct Speculation {
    kind: Kind,
    per_process: bool,
    texts: [Label<32>; 4],
}

impl Speculation {
    /// Learns from this process's own line, and from whether prctl(2) says that processes can control speculation.
    /// `None` if the line is unknown.
    pub(super) fn learn(kind: Kind, own: &[u8], controlled: bool) -> Option<Self> {
        let states = kind.states();
        let per_process = controlled
            || states
                .iter()
                .any(|(text, _)| text == &own && text != b"vulnerable");
        if per_process && !states.iter().any(|(text, _)| text == &own) {
            return None;
        }
        let fixed = Label::new(own)?;
        let texts = states
            .map(|(text, _)| if per_process { Label::new(text) } else { None }.unwrap_or(fixed));
        Some(Self {
            kind,
            per_process,
            texts,
        })
    }

    #[inline]
    pub(super) fn text(&self, atomic_flags: u64) -> &Label<32> {
        let state = if self.per_process {
            self.kind.state(atomic_flags)
        } else {
            0
        };
        &self.texts[state]
    }

    /// The flags that a line implies.
    pub(super) fn parse(&self, line: &[u8]) -> Option<u64> {
        if self.per_process {
            self.kind
                .states()
                .iter()
                .find(|(text, _)| *text == line)
                .map(|&(_, flags)| flags)
        } else {
            Some(0)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_answer_for_all() {
        let line =
            Speculation::learn(Kind::StoreBypass, b"vulnerable", false).expect("a known text");
        assert_eq!(line.text(u64::MAX).as_bytes(), b"vulnerable");
        assert_eq!(line.parse(b"vulnerable"), Some(0));
    }

    #[test]
    fn an_answer_for_each() {
        for (kind, own) in [
            (Kind::StoreBypass, &b"thread vulnerable"[..]),
            (Kind::IndirectBranch, b"conditional enabled"),
        ] {
            let line = Speculation::learn(kind, own, false).expect("a known text");
            for &(text, flags) in kind.states() {
                assert_eq!(line.text(flags).as_bytes(), text);
                assert_eq!(line.parse(text), Some(flags));
            }
            assert_eq!(line.parse(b"something else"), None);
        }
        let noexec =
            Speculation::learn(Kind::StoreBypass, b"vulnerable", true).expect("a known text");
        assert_eq!(noexec.text(0).as_bytes(), b"thread vulnerable");
    }

    #[test]
    fn unheard_of() {
        assert!(Speculation::learn(Kind::StoreBypass, b"thread sleepy", true).is_none());
        assert!(Speculation::learn(Kind::StoreBypass, &[b'x'; 33], false).is_none());
    }
}
