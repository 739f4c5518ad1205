//! Stores of a fixed width, which may reach past the text that they mean to write.

/// Stores the low `N` bytes of `bytes` at `at`, whatever its alignment.
///
/// # Safety
/// `at` is valid for writes of `N` bytes.
#[inline(always)]
pub(crate) unsafe fn store<const N: usize>(at: *mut u8, bytes: [u8; N]) {
    // SAFETY: the caller's promise; an array of bytes has no alignment.
    unsafe { at.cast::<[u8; N]>().write(bytes) }
}
