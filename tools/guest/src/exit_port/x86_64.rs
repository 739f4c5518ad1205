//! qemu's `isa-debug-exit`: a port that ends qemu with `2 × value + 1`.
//!
//! Distribution kernels are built without `/dev/port`, so this program requests the port by ioperm(2). A locked-down
//! kernel refuses that, so the port is opened before anything else.

use std::{arch::asm, io};

const PORT: u16 = 0xf4;

/// Permission to end the emulator.
pub struct ExitPort {
    /// The port that ioperm(2) has granted.
    granted: u16,
}

impl ExitPort {
    /// Requests the port from the kernel.
    pub fn open() -> io::Result<Self> {
        // SAFETY: it touches no memory; it lets this thread write to one I/O port, which belongs to isa-debug-exit.
        let result = unsafe { libc::ioperm(PORT.into(), 1, 1) };
        if result == 0 {
            Ok(Self { granted: PORT })
        } else {
            Err(io::Error::last_os_error())
        }
    }

    /// Ends the emulator: with exit code 3 if all passed, with 5 if not.
    pub fn leave(self, passed: bool) -> ! {
        let value: u8 = if passed { 1 } else { 2 };
        loop {
            // SAFETY: the port was granted; the instruction touches no memory and no flags.
            unsafe {
                asm!(
                    "out dx, al",
                    in("dx") self.granted,
                    in("al") value,
                    options(nomem, nostack, preserves_flags),
                );
            }
        }
    }
}
