//! The functions that the shim calls.

use std::{
    ffi::{c_int, c_uint},
    panic::{AssertUnwindSafe, catch_unwind},
    ptr,
    sync::OnceLock,
};

use crate::{
    abi::{
        Fetch, Functions, Info, SELECT_MOST, SELECT_PID, SELECT_UID, Stack, TASKS_ONLY,
        THREADS_TOO, WITH_THREADS, set_errno,
    },
    context::Context,
    items::{Item, Table},
    real::Real,
    sort::sort,
};

/// procps's own functions, and the items of its version.
#[derive(Debug)]
struct Library {
    real: Functions,
    table: Table,
}

static LIBRARY: OnceLock<Library> = OnceLock::new();

/// Takes over from procps's own functions, for the library with this soname.
///
/// Returns null if it is another library than the one that this was made for, or if anything else is wrong. Then
/// procps's own functions continue.
///
/// # Safety
/// `real` are procps's functions, and remain valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fastproc_procps_open(
    real: *const Functions,
    soname: c_uint,
) -> *const Functions {
    static OURS: Functions = Functions {
        new,
        reference,
        unref,
        get,
        reap,
        reset,
        select,
        sort: sort_stacks,
        fatal_proc_unmounted,
    };
    let opened = catch_unwind(|| {
        // This library has its own copy of the standard library, so only its own panics are silenced.
        std::panic::set_hook(Box::new(|_| ()));
        // SAFETY: the caller says so.
        let real = unsafe { real.read() };
        let library = LIBRARY.get_or_init(|| Library {
            real,
            table: Table::new(soname),
        });
        library.is_known()
    });
    if opened.unwrap_or(false) {
        &raw const OURS
    } else {
        ptr::null()
    }
}

impl Library {
    /// Whether procps's library knows exactly the items that we expect.
    fn is_known(&'static self) -> bool {
        let end = self.table.end();
        Real::new(&self.real, &[end - 1]).is_some() && Real::new(&self.real, &[end]).is_none()
    }

    fn knows(&self, items: *const c_uint, count: c_int) -> Option<&[u32]> {
        // As in procps, a number may have been passed in place of an address.
        if count < 1 || (items as usize) < 0x8000 {
            return None;
        }
        // SAFETY: the caller gives the number of items.
        let items = unsafe { std::slice::from_raw_parts(items, count as usize) };
        items
            .iter()
            .all(|&item| item < self.table.end())
            .then_some(items)
    }
}

/// Runs `body`, and returns `otherwise` if it panics.
fn guarded<T>(otherwise: T, body: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or(otherwise)
}

/// # Safety
/// `info` is the caller's context, or null.
unsafe fn context<'a>(info: *mut Info) -> Option<&'a mut Context> {
    // SAFETY: `new` made it.
    unsafe { info.cast::<Context>().as_mut() }
}

unsafe extern "C" fn new(info: *mut *mut Info, items: *mut c_uint, count: c_int) -> c_int {
    guarded(-libc::ENOMEM, || {
        // SAFETY: null, or a place for a pointer.
        let (Some(library), Some(info)) = (LIBRARY.get(), unsafe { info.as_mut() }) else {
            return -libc::EINVAL;
        };
        let given = if items.is_null() || count == 0 {
            Some(&[][..])
        } else {
            library.knows(items, count)
        };
        match given {
            Some(items) if info.is_null() => {
                let context = Context::new(&library.real, &library.table, items);
                *info = Box::into_raw(Box::new(context)).cast();
                0
            }
            _ => -libc::EINVAL,
        }
    })
}

unsafe extern "C" fn reference(info: *mut Info) -> c_int {
    // SAFETY: the caller's context.
    let Some(context) = (unsafe { context(info) }) else {
        return -libc::EINVAL;
    };
    context.references += 1;
    context.references
}

unsafe extern "C" fn unref(info: *mut *mut Info) -> c_int {
    guarded(0, || {
        // SAFETY: null, or a place with the caller's context.
        let Some(context) = (unsafe { info.as_mut().and_then(|info| context(*info)) }) else {
            return -libc::EINVAL;
        };
        context.references -= 1;
        if context.references > 0 {
            return context.references;
        }
        let context = ptr::from_mut(context);
        // SAFETY: not null, as above.
        unsafe { *info = ptr::null_mut() };
        // SAFETY: `new` made it, and this was its last reference.
        drop(unsafe { Box::from_raw(context) });
        0
    })
}

/// A context with items, for a fetch. Sets errno as procps does.
///
/// # Safety
/// As for [`context`].
unsafe fn ready<'a>(info: *mut Info, is_valid: bool) -> Option<&'a mut Context> {
    set_errno(libc::EINVAL);
    // SAFETY: the caller's context.
    let context = unsafe { context(info) }.filter(|context| is_valid && context.has_items())?;
    set_errno(0);
    Some(context)
}

unsafe extern "C" fn get(info: *mut Info, which: c_uint) -> *mut Stack {
    guarded(ptr::null_mut(), || {
        // SAFETY: the caller's context.
        let context = unsafe { ready(info, which == TASKS_ONLY || which == THREADS_TOO) };
        context.map_or(ptr::null_mut(), |context| context.get(which))
    })
}

unsafe extern "C" fn reap(info: *mut Info, which: c_uint) -> *mut Fetch {
    guarded(ptr::null_mut(), || {
        // SAFETY: the caller's context.
        let context = unsafe { ready(info, which == TASKS_ONLY || which == THREADS_TOO) };
        context.map_or(ptr::null_mut(), |context| context.reap(which))
    })
}

unsafe extern "C" fn reset(info: *mut Info, items: *mut c_uint, count: c_int) -> c_int {
    guarded(-libc::ENOMEM, || {
        // SAFETY: the caller's context.
        let context = unsafe { context(info) };
        let items = LIBRARY
            .get()
            .and_then(|library| library.knows(items, count));
        match (context, items) {
            (Some(context), Some(items)) => context.reset(items),
            _ => -libc::EINVAL,
        }
    })
}

unsafe extern "C" fn select(
    info: *mut Info,
    ids: *mut c_uint,
    count: c_int,
    which: c_uint,
) -> *mut Fetch {
    guarded(ptr::null_mut(), || {
        let is_valid = !ids.is_null()
            && usize::try_from(count).is_ok_and(|count| (1..=SELECT_MOST).contains(&count))
            && [SELECT_PID, SELECT_UID].contains(&(which & !WITH_THREADS));
        // SAFETY: the caller's context.
        let Some(context) = (unsafe { ready(info, is_valid) }) else {
            return ptr::null_mut();
        };
        // SAFETY: the caller gives the number of ids.
        let ids = unsafe { std::slice::from_raw_parts(ids, count as usize) };
        context.select(ids, which)
    })
}

unsafe extern "C" fn sort_stacks(
    info: *mut Info,
    stacks: *mut *mut Stack,
    count: c_int,
    item: c_uint,
    order: c_int,
) -> *mut *mut Stack {
    guarded(ptr::null_mut(), || {
        set_errno(libc::EINVAL);
        // SAFETY: the caller's context.
        let Some(context) = (unsafe { context(info) }) else {
            return ptr::null_mut();
        };
        let table = context.table();
        let (Some(kind), false, 1 | -1) =
            (table.item(item).map(Item::kind), stacks.is_null(), order)
        else {
            return ptr::null_mut();
        };
        if count < 2 {
            return stacks;
        }
        // SAFETY: the caller gives the number of rows.
        let rows = unsafe { std::slice::from_raw_parts_mut(stacks, count as usize) };
        // SAFETY: a row ends with an invalid item.
        let item_at = |at| unsafe { (*(*rows[0]).head.add(at)).item };
        let mut at = 0;
        while item_at(at) != item {
            if item_at(at) >= table.end() {
                return ptr::null_mut();
            }
            at += 1;
        }
        set_errno(0);
        // SAFETY: the caller guarantees that all rows are alike.
        unsafe { sort(rows, at, kind, order < 0) };
        stacks
    })
}

unsafe extern "C" fn fatal_proc_unmounted(info: *mut Info, return_self: c_int) -> *mut Stack {
    guarded(ptr::null_mut(), || {
        let Some(library) = LIBRARY.get() else {
            return ptr::null_mut();
        };
        // It ends the program if there is no /proc, and with these arguments does nothing else.
        // SAFETY: no context is allowed.
        unsafe { (library.real.fatal_proc_unmounted)(ptr::null_mut(), 0) };
        if return_self == 0 {
            return ptr::null_mut();
        }
        // SAFETY: the caller's context.
        let Some(context) = (unsafe { ready(info, true) }) else {
            return ptr::null_mut();
        };
        // SAFETY: null, or just made.
        let fetch = unsafe { context.select(&[std::process::id()], SELECT_PID).as_ref() };
        fetch.map_or(ptr::null_mut(), |fetch| {
            // SAFETY: at least the null pointer at the end.
            unsafe { *fetch.stacks }
        })
    })
}
