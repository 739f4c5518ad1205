//! Names of users and groups, looked up once each, as in procps.

use std::{
    collections::HashMap,
    ffi::{CStr, CString, c_char},
    sync::{Mutex, PoisonError},
};

/// Bytes that procps has for a name, with the NUL. For a longer name it shows the number.
const ROOM: usize = 33;

type Names = Mutex<Option<HashMap<u32, CString>>>;

/// The name of a user. The string is never moved or freed.
pub(crate) fn user(uid: u32) -> *mut c_char {
    static USERS: Names = Mutex::new(None);
    name(&USERS, uid, |uid| {
        // SAFETY: procps calls it in the same way, in the same threads.
        let entry = unsafe { libc::getpwuid(uid) };
        // SAFETY: null, or valid until the next call.
        unsafe { entry.as_ref() }.map(|entry| entry.pw_name)
    })
}

/// The name of a group. The string is never moved or freed.
pub(crate) fn group(gid: u32) -> *mut c_char {
    static GROUPS: Names = Mutex::new(None);
    name(&GROUPS, gid, |gid| {
        // SAFETY: as for users.
        let entry = unsafe { libc::getgrgid(gid) };
        // SAFETY: as for users.
        unsafe { entry.as_ref() }.map(|entry| entry.gr_name)
    })
}

fn name(names: &Names, id: u32, ask: impl Fn(u32) -> Option<*mut c_char>) -> *mut c_char {
    let mut names = names.lock().unwrap_or_else(PoisonError::into_inner);
    let name = names.get_or_insert_default().entry(id).or_insert_with(|| {
        let name = ask(id).filter(|name| !name.is_null()).map(|name| {
            // SAFETY: an entry's name is a C string.
            unsafe { CStr::from_ptr(name) }.to_owned()
        });
        name.filter(|name| name.count_bytes() < ROOM)
            .or_else(|| CString::new(id.to_string()).ok())
            .unwrap_or_default()
    });
    name.as_ptr().cast_mut()
}
