//! The architectures for which kernels are booted, and their names.

/// An architecture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Architecture {
    /// x86-64.
    Amd64,
    /// 64-bit Arm.
    Arm64,
}

impl Architecture {
    /// All architectures.
    pub const ALL: [Self; 2] = [Self::Amd64, Self::Arm64];

    /// Its name in Debian's archive.
    pub const fn debian(self) -> &'static str {
        match self {
            Self::Amd64 => "amd64",
            Self::Arm64 => "arm64",
        }
    }

    /// Rust's target.
    pub const fn target(self) -> &'static str {
        match self {
            Self::Amd64 => "x86_64-unknown-linux-gnu",
            Self::Arm64 => "aarch64-unknown-linux-gnu",
        }
    }

    /// The emulator, and Debian's package of it.
    pub const fn emulator(self) -> (&'static str, &'static str) {
        match self {
            Self::Amd64 => ("qemu-system-x86_64", "qemu-system-x86"),
            Self::Arm64 => ("qemu-system-aarch64", "qemu-system-arm"),
        }
    }

    /// Its name for people.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Amd64 => "x86-64",
            Self::Arm64 => "arm64",
        }
    }

    /// The name of a file that each architecture has: that of x86-64 has no suffix.
    pub fn own(self, name: &str) -> String {
        match self {
            Self::Amd64 => name.into(),
            Self::Arm64 => format!("{name}-{}", self.debian()),
        }
    }
}

/// A build of Debian's kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Flavour {
    /// The cloud kernel of x86-64.
    Amd64,
    /// The cloud kernel of arm64, with pages of 4 KiB.
    Arm64,
    /// The kernel of arm64 with pages of 16 KiB.
    Arm64Pages16K,
}

impl Flavour {
    /// All flavours; the first has no name of its own.
    pub const ALL: [Self; 3] = [Self::Amd64, Self::Arm64, Self::Arm64Pages16K];

    /// The end of its releases.
    pub const fn ending(self) -> &'static str {
        match self {
            Self::Amd64 => "-cloud-amd64",
            Self::Arm64 => "-cloud-arm64",
            Self::Arm64Pages16K => "-arm64-16k",
        }
    }

    /// The suffix of the number of its series.
    pub const fn mark(self) -> &'static str {
        match self {
            Self::Amd64 => "",
            Self::Arm64 => "-arm64",
            Self::Arm64Pages16K => "-16k-arm64",
        }
    }

    /// Splits a text into the number of a series, or the text in its place, and the flavour.
    pub fn split(text: &str) -> (&str, Self) {
        // The longest mark first.
        let mut marked = Self::ALL.into_iter().rev();
        marked
            .find_map(|flavour| Some((text.strip_suffix(flavour.mark())?, flavour)))
            .unwrap_or((text, Self::Amd64))
    }

    /// The architecture.
    pub const fn architecture(self) -> Architecture {
        match self {
            Self::Amd64 => Architecture::Amd64,
            Self::Arm64 | Self::Arm64Pages16K => Architecture::Arm64,
        }
    }
}
