//! Memory that is not needed any more.

/// Gives back to the kernel what opening took and nobody needs any more: free memory, and pages of code and constants, which
/// come back from their files where they are needed.
pub fn trim() {
    // SAFETY: the function keeps to what it is called for.
    unsafe {
        libc::dl_iterate_phdr(Some(forget_pages), std::ptr::null_mut());
    }
    #[cfg(target_env = "gnu")]
    // SAFETY: it takes no pointer, and glibc's allocator locks for itself.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Forgets the pages of a loaded object that nobody may write to, and that are therefore as in its file.
unsafe extern "C" fn forget_pages(
    info: *mut libc::dl_phdr_info,
    _: libc::size_t,
    _: *mut libc::c_void,
) -> libc::c_int {
    let page = rustix::param::page_size();
    // SAFETY: the caller, the C library, says where the object lies and has so many headers.
    let (base, headers) = unsafe {
        let info = &*info;
        let headers = std::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into());
        (info.dlpi_addr as usize, headers)
    };
    for header in headers {
        if header.p_type != libc::PT_LOAD || header.p_flags & libc::PF_W != 0 {
            continue;
        }
        // The first and the last page may be of other segments, too.
        let start = base + header.p_vaddr as usize;
        let end = (start + header.p_memsz as usize) / page * page;
        let start = start.next_multiple_of(page);
        // SAFETY: the pages are mapped from a file, have not been written to, and are read from it again at the next access.
        unsafe {
            libc::madvise(
                start as *mut libc::c_void,
                end.saturating_sub(start),
                libc::MADV_DONTNEED,
            );
        }
    }
    0
}
