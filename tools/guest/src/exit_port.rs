//! Ends the emulator, with an exit code.

#[cfg(target_arch = "aarch64")]
mod aarch64;
#[cfg(target_arch = "x86_64")]
mod x86_64;

#[cfg(target_arch = "aarch64")]
pub use aarch64::ExitPort;
#[cfg(target_arch = "x86_64")]
pub use x86_64::ExitPort;
