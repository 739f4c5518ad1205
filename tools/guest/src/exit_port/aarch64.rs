//! A semihosting call, which needs no permission of the kernel: qemu allows it in user space if it is started with
//! `-semihosting-config enable=on,userspace=on`.

use std::{arch::asm, io};

/// The call with an exit code, and its reason for an exit code: `ADP_Stopped_ApplicationExit`.
const SYS_EXIT_EXTENDED: u64 = 0x20;
const APPLICATION_EXIT: u64 = 0x2_0026;

/// Permission to end the emulator.
pub struct ExitPort;

impl ExitPort {
    /// No permission is needed.
    #[expect(clippy::unnecessary_wraps, reason = "other architectures have to ask")]
    pub fn open() -> io::Result<Self> {
        Ok(Self)
    }

    /// Ends the emulator: with exit code 3 if all passed, with 5 if not.
    #[expect(
        clippy::unused_self,
        reason = "other architectures need what they were given"
    )]
    pub fn leave(self, passed: bool) -> ! {
        let block = [APPLICATION_EXIT, if passed { 3 } else { 5 }];
        loop {
            // SAFETY: the emulator reads the block and does not return. If it does not know the call, the instruction
            // is illegal and ends this process, which causes a kernel panic.
            unsafe {
                asm!(
                    "hlt #0xf000",
                    inlateout("x0") SYS_EXIT_EXTENDED => _,
                    in("x1") block.as_ptr(),
                );
            }
        }
    }
}
