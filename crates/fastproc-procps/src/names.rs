//! Names of users and groups. procps looks each up once; here a name is asked for again when its file changes.

use std::{
    ffi::{CStr, CString, c_char},
    sync::{Mutex, PoisonError},
};

use fastproc::kept::Kept;

/// Bytes that procps has for a name, with the NUL. For a longer name it shows the number.
const ROOM: usize = 33;

type Names = Mutex<Option<Kept<&'static CStr>>>;

/// The name of a user. The string is never moved or freed.
pub(crate) fn user(uid: u32) -> *mut c_char {
    static USERS: Names = Mutex::new(None);
    name(&USERS, "/etc/passwd", uid, |uid| {
        // SAFETY: procps calls it in the same way, in the same threads.
        let entry = unsafe { libc::getpwuid(uid) };
        // SAFETY: null, or valid until the next call.
        unsafe { entry.as_ref() }.map(|entry| entry.pw_name)
    })
}

/// The name of a group. The string is never moved or freed.
pub(crate) fn group(gid: u32) -> *mut c_char {
    static GROUPS: Names = Mutex::new(None);
    name(&GROUPS, "/etc/group", gid, |gid| {
        // SAFETY: as for users.
        let entry = unsafe { libc::getgrgid(gid) };
        // SAFETY: as for users.
        unsafe { entry.as_ref() }.map(|entry| entry.gr_name)
    })
}

fn name(
    names: &Names,
    file: &str,
    id: u32,
    ask: impl Fn(u32) -> Option<*mut c_char>,
) -> *mut c_char {
    let mut names = names.lock().unwrap_or_else(PoisonError::into_inner);
    let names = names.get_or_insert_with(|| Kept::new(file));
    let name = names.get(id, |before| {
        let name = ask(id).filter(|name| !name.is_null()).map(|name| {
            // SAFETY: an entry's name is a C string.
            unsafe { CStr::from_ptr(name) }.to_owned()
        });
        let found = name.is_some();
        let name = name
            .filter(|name| name.count_bytes() < ROOM)
            .or_else(|| CString::new(id.to_string()).ok())
            .unwrap_or_default();
        // The caller may still hold the name that it got before.
        let same = before.copied().filter(|before| **before == *name);
        (
            same.unwrap_or_else(|| Box::leak(name.into_boxed_c_str())),
            found,
        )
    });
    name.as_ptr().cast_mut()
}
