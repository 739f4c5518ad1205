//! Returns unused memory.

/// Returns to the kernel memory that only opening needed: free memory, and pages of code and constants, which are read
/// from their files again when needed.
pub fn trim() {
    // SAFETY: the function has the required type and follows its rules.
    unsafe {
        libc::dl_iterate_phdr(Some(forget_pages), std::ptr::null_mut());
    }
    #[cfg(target_env = "gnu")]
    // SAFETY: it takes no pointer, and glibc's allocator locks for itself.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Drops the read-only pages of a loaded object, which are the same as in its file.
unsafe extern "C" fn forget_pages(
    info: *mut libc::dl_phdr_info,
    _: libc::size_t,
    _: *mut libc::c_void,
) -> libc::c_int {
    let page = rustix::param::page_size();
    // SAFETY: the caller, the C library, gives the place of the object and the number of its headers.
    let (base, headers) = unsafe {
        let info = &*info;
        let headers = std::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into());
        (info.dlpi_addr as usize, headers)
    };
    for header in headers {
        if header.p_type != libc::PT_LOAD || header.p_flags & libc::PF_W != 0 {
            continue;
        }
        // The first and the last page may also belong to other segments.
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
