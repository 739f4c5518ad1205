//! Sequences of calls: wrong ones, differences, a fork, and many snapshots.

use std::{
    alloc::{GlobalAlloc, Layout, System},
    ffi::{CStr, c_char, c_int},
    fs,
    mem::MaybeUninit,
    ptr,
    sync::atomic::{AtomicUsize, Ordering},
};

use fastproc::{
    Fields,
    cgroups::{self, record::Device},
    record::{Record, ThreadRecord},
    text::Files,
};
use fastproc_c::{
    FASTPROC_ERROR_ARGUMENT as ARGUMENT, FASTPROC_ERROR_CLOSED as CLOSED,
    FASTPROC_ERROR_FORKED as FORKED, FASTPROC_ERROR_NO_PROCESS as NO_PROCESS,
    FASTPROC_ERROR_NO_SNAPSHOT as NO_SNAPSHOT, FASTPROC_ERROR_NOT_ASKED as NOT_ASKED,
    FASTPROC_ERROR_SIZES as SIZES, FASTPROC_OK as OK, *,
};
use fastproc_testbed::{Running, Sleepers, alone, gate, needs, own_process};

/// Counts allocated bytes.
struct Counting;

static ALLOCATED: AtomicUsize = AtomicUsize::new(0);

// SAFETY: forwards to the system's allocator, and adds to a number.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATED.fetch_add(1, Ordering::Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn open(fields: Fields, source: Option<&CStr>) -> Result<*mut Fastproc, c_int> {
    let mut handle = ptr::null_mut();
    let source = source.map_or(ptr::null(), CStr::as_ptr);
    // SAFETY: as the header requires.
    match unsafe { fastproc_open(&raw mut handle, fields.bits(), source, 0, sizes_of_header()) } {
        OK => Ok(handle),
        error => {
            assert!(handle.is_null());
            Err(error)
        }
    }
}

/// `FASTPROC_SIZES` of the header.
fn sizes_of_header() -> u64 {
    let others = size_of::<Device>()
        + size_of::<FastprocSnapshot>()
        + size_of::<FastprocChange>()
        + size_of::<FastprocFile>();
    let all = [
        size_of::<Record>(),
        size_of::<ThreadRecord>(),
        size_of::<cgroups::record::Record>(),
        others,
    ];
    let all = all.iter().rev();
    all.fold(0, |all, &size| all << 16 | size as u64)
}

/// Makes a snapshot, which must succeed.
fn snapshot(handle: *mut Fastproc) -> FastprocSnapshot {
    let mut taken = FastprocSnapshot::default();
    // SAFETY: as the header requires.
    let result = unsafe { fastproc_snapshot(handle, &raw mut taken) };
    assert_eq!(result, OK, "{}", message());
    taken
}

fn find(handle: *mut Fastproc, id: u32) -> Result<usize, c_int> {
    // SAFETY: as the header requires.
    value(|to| unsafe { fastproc_find(handle, id.into(), to) })
}

fn difference(handle: *mut Fastproc) -> Result<usize, c_int> {
    // SAFETY: as the header requires.
    value(|to| unsafe { fastproc_difference(handle, to) })
}

fn change(handle: *mut Fastproc, place: usize) -> Result<FastprocChange, c_int> {
    let mut change = MaybeUninit::uninit();
    // SAFETY: as the header requires; the function writes the change in any case.
    unsafe {
        match fastproc_get_change(handle, place, change.as_mut_ptr()) {
            OK => Ok(change.assume_init()),
            error => Err(error),
        }
    }
}

fn message() -> String {
    // SAFETY: a string of the library.
    let message = unsafe { CStr::from_ptr(fastproc_error()) };
    message.to_str().expect("text").to_owned()
}

#[track_caller]
fn says(part: &str) {
    let message = message();
    assert!(message.contains(part), "{message}");
}

/// A value, or the error.
fn value<T: Default>(get: impl FnOnce(*mut T) -> c_int) -> Result<T, c_int> {
    let mut value = T::default();
    match get(&raw mut value) {
        OK => Ok(value),
        error => Err(error),
    }
}

#[test]
fn wrong_arguments_return_an_error_with_a_message() {
    // SAFETY: as the header requires, except for the calls that must be refused.
    unsafe {
        assert_eq!(
            fastproc_open(ptr::null_mut(), 0, ptr::null(), 0, sizes_of_header()),
            ARGUMENT
        );
        assert_eq!(open(Fields::from_bits_retain(1 << 30), None), Err(ARGUMENT));
        says("0x40000000");
        assert_eq!(open(Fields::empty(), Some(c"magic")), Err(ARGUMENT));
        says("service, bpf, bpf-iter and procfs");

        let field = |name: &CStr| value(|to| fastproc_field(name.as_ptr(), to));
        assert_eq!(field(c"Memory_Details"), Ok(Fields::MEMORY_DETAILS.bits()));
        assert_eq!(field(c"exe"), Ok(FASTPROC_EXE));
        assert_eq!(field(c"memroy"), Err(ARGUMENT));
        says("memory-details");
        let mut bits = 7;
        assert_eq!(fastproc_field(ptr::null(), &raw mut bits), ARGUMENT);
        assert_eq!(bits, 0);

        let handle = open(Fields::MEMORY, Some(c"procfs")).expect("it needs nothing");
        assert_eq!(find(handle, 1), Err(NO_SNAPSHOT));
        says("fastproc_snapshot()");
        assert_eq!(difference(handle), Err(NO_SNAPSHOT));
        assert_eq!(snapshot(handle).threads, 0);
        assert_eq!(find(handle, u32::MAX), Err(NO_PROCESS));
        says("4294967295");
        let own = find(handle, std::process::id()).expect("the process is shown");
        let mut record = Record::default();
        assert_eq!(fastproc_get(handle, own, &raw mut record), OK);
        assert_eq!(record.identity.tgid, std::process::id());
        assert!(record.memory.vsize > 0 && record.cpu.utime_ns == u64::MAX);
        assert_eq!(fastproc_get(handle, usize::MAX, &raw mut record), ARGUMENT);
        assert_eq!(record.identity.tgid, 0);
        let mut thread = ThreadRecord::default();
        assert_eq!(fastproc_get_thread(handle, 0, &raw mut thread), NOT_ASKED);
        says("FASTPROC_THREADS");
        let ids = value(|to| fastproc_list(handle, own, FASTPROC_LIST_IDS, 0, to));
        assert_eq!(ids, Err(NOT_ASKED));
        says("FASTPROC_NAMESPACES");
        let list = value(|to| fastproc_list(handle, own, 9, 0, to));
        assert_eq!(list, Err(ARGUMENT));
        assert!(matches!(change(handle, own), Err(NO_SNAPSHOT)));
        says("fastproc_difference()");
        let (mut text, mut length) = (ptr::null::<c_char>(), 7_usize);
        let name = FASTPROC_TEXT_NAME;
        assert_eq!(
            fastproc_text(handle, own, name, ptr::null_mut(), &raw mut length),
            ARGUMENT
        );
        for (place, kind) in [(usize::MAX, name), (own, 99)] {
            assert_eq!(
                fastproc_text(handle, place, kind, &raw mut text, &raw mut length),
                ARGUMENT
            );
            assert_eq!((CStr::from_ptr(text), length), (c"", 0));
        }
        let status = FASTPROC_TEXT_STATUS;
        assert_eq!(
            fastproc_text(handle, own, status, &raw mut text, ptr::null_mut()),
            NOT_ASKED
        );
        assert_eq!(
            fastproc_text(handle, own, name, &raw mut text, ptr::null_mut()),
            OK
        );
        let comm = fs::read_to_string("/proc/self/comm").expect("/proc is mounted");
        assert_eq!(CStr::from_ptr(text).to_str(), Ok(comm.trim_end()));
        let mut cgroup = cgroups::record::Record::default();
        assert_eq!(fastproc_get_cgroup(handle, own, &raw mut cgroup), ARGUMENT);
        says("fastproc_open_cgroups()");

        assert_eq!(fastproc_close(handle), OK);
        assert_eq!(fastproc_close(handle), CLOSED);
        assert_eq!(find(handle, 1), Err(CLOSED));
        assert_eq!(
            fastproc_text(handle, own, name, &raw mut text, ptr::null_mut()),
            CLOSED
        );
        assert_eq!(fastproc_close(ptr::null_mut()), OK);
        let mut taken = FastprocSnapshot::default();
        assert_eq!(fastproc_snapshot(ptr::null_mut(), &raw mut taken), ARGUMENT);
    }
    gate::ran();
}

#[test]
fn a_program_that_was_compiled_with_records_of_another_size_is_refused() {
    for sizes in [0, sizes_of_header() + 8, sizes_of_header() - (8 << 32)] {
        let mut handle = ptr::null_mut();
        for open in [fastproc_open, fastproc_open_cgroups] {
            // SAFETY: as the header requires.
            let opened = unsafe { open(&raw mut handle, 0, ptr::null(), 0, sizes) };
            assert_eq!(opened, SIZES);
            assert!(handle.is_null());
            says("FASTPROC_SIZES");
        }
    }
    gate::ran();
}

#[test]
fn a_child_is_told_to_open_its_own() {
    let handle = open(Fields::empty(), Some(c"procfs")).expect("it needs nothing");
    // SAFETY: as the header requires; the child exits at once, and does nothing that a fork of a threaded process must
    // not do.
    unsafe {
        snapshot(handle);
        let child = libc::fork();
        if child == 0 {
            let mut place = 0;
            let mut taken = FastprocSnapshot::default();
            let is_told = fastproc_find(handle, 1, &raw mut place) == FORKED
                && fastproc_snapshot(handle, &raw mut taken) == FORKED;
            libc::_exit(c_int::from(is_told));
        }
        let mut status = 0;
        assert_eq!(libc::waitpid(child, &raw mut status, 0), child);
        assert!(
            libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 1,
            "{status:#x}"
        );
        snapshot(handle);
        assert_eq!(fastproc_close(handle), OK);
    }
    gate::ran();
}

#[test]
fn a_difference_tells_who_worked_who_was_born_and_who_is_gone() {
    let old = Running::sleep("1000");
    let handle = open(Fields::CPU | Fields::THREADS, None).expect("a source");
    // SAFETY: as the header requires.
    unsafe {
        snapshot(handle);
        assert_eq!(difference(handle), Ok(0));
        let place = find(handle, old.id()).expect("the process is shown");
        assert!(matches!(change(handle, place), Err(FASTPROC_UNKNOWN)));
        says("no earlier snapshot");

        let gone = old.id();
        drop(old);
        let new = Running::sleep("1000");
        let used = || {
            let mut usage = std::mem::zeroed();
            assert_eq!(libc::getrusage(libc::RUSAGE_SELF, &raw mut usage), 0);
            usage.ru_utime.tv_sec * 1_000_000 + usage.ru_utime.tv_usec
        };
        let start = used();
        while used() - start < 60_000 {}

        let taken = snapshot(handle);
        let own = find(handle, std::process::id()).expect("the process is shown");
        assert!(matches!(change(handle, own), Err(NO_SNAPSHOT)));
        for _ in 0..2 {
            // The second time there is nothing to compare.
            let all_gone = difference(handle).expect("there is a snapshot");
            let change_of = |place| change(handle, place).expect("there is an earlier snapshot");
            let of_own = change_of(own);
            assert!(!of_own.born && of_own.cpu_ns >= 50_000_000, "{of_own:?}");
            assert!(of_own.cpu_share > 0.0, "{of_own:?}");
            assert!(of_own.read_bytes_per_second.is_nan(), "{of_own:?}");
            assert!(change_of(find(handle, new.id()).expect("the process is shown")).born);
            let mut start_ns = 0;
            let mut pids = (0..all_gone)
                .map(|at| value(|to| fastproc_get_gone(handle, at, to, &raw mut start_ns)));
            assert!(pids.any(|pid| pid == Ok(gone)));
            assert!(start_ns > 0);
        }
        // This thread did the work.
        let tid = libc::gettid() as u32;
        let mut thread = ThreadRecord::default();
        let mut own = (0..taken.threads).filter(|&place| {
            let copied = fastproc_get_thread(handle, place, &raw mut thread);
            copied == OK && thread.tid == tid
        });
        let own = own.next().expect("the thread is shown");
        let mut of_own = MaybeUninit::uninit();
        let told = fastproc_get_thread_change(handle, own, of_own.as_mut_ptr());
        assert_eq!(told, OK);
        let cpu_ns = of_own.assume_init().cpu_ns;
        assert!(cpu_ns >= 50_000_000, "{cpu_ns}");
        drop(new);
        assert_eq!(fastproc_close(handle), OK);
    }
    gate::ran();
}

/// Requests everything that a program may read after each snapshot. Returns the number of processes.
unsafe fn look(handle: *mut Fastproc) -> usize {
    let taken = snapshot(handle);
    difference(handle).expect("there is a snapshot");
    let mut record = Record::default();
    for place in 0..taken.count {
        let mut text = ptr::null();
        // SAFETY: as the header requires.
        unsafe {
            assert_eq!(fastproc_get(handle, place, &raw mut record), OK);
            let _ = change(handle, place);
            for kind in [
                FASTPROC_TEXT_NAME,
                FASTPROC_TEXT_STAT,
                FASTPROC_TEXT_STATM,
                FASTPROC_TEXT_STATUS,
            ] {
                assert_eq!(
                    fastproc_text(handle, place, kind, &raw mut text, ptr::null_mut()),
                    OK,
                    "{}",
                    message()
                );
            }
        }
    }
    taken.count
}

fn resident_bytes() -> u64 {
    let statm = fs::read_to_string("/proc/self/statm").expect("/proc is mounted");
    let pages = statm
        .split(' ')
        .nth(1)
        .and_then(|pages| pages.parse::<u64>().ok());
    pages.expect("a number") * 4096
}

#[test]
fn nothing_is_allocated_for_a_process() {
    needs!(gate::bpf(), own_process(nothing_is_allocated_for_a_process));
    let _alone = alone();
    let handle = open(Files::FIELDS, Some(c"bpf")).expect("BPF can be used");
    let sleepers = Sleepers::start(100);
    // SAFETY: as the header requires.
    unsafe {
        for _ in 0..20 {
            look(handle);
        }
        // Some snapshots list /proc, or read torn records from there.
        let mut fewest = usize::MAX;
        let mut processes = 0;
        for _ in 0..100 {
            let before = ALLOCATED.load(Ordering::Relaxed);
            processes = look(handle);
            fewest = fewest.min(ALLOCATED.load(Ordering::Relaxed) - before);
        }
        assert!(processes >= 100);
        assert!(
            fewest < 20,
            "{fewest} allocations for {processes} processes"
        );
        drop(sleepers);
        // With more processes on the machine memory grows once; a leak shows each time.
        let grown = [(); 4].map(|()| {
            let before = resident_bytes();
            for _ in 0..2500 {
                snapshot(handle);
            }
            resident_bytes().saturating_sub(before)
        });
        let least = grown.into_iter().min().expect("four");
        assert!(least < 1 << 18, "{grown:?} bytes in 2,500 snapshots each");
        assert_eq!(fastproc_close(handle), OK);
    }
}

#[test]
fn handles_can_be_opened_again_and_again() {
    needs!(own_process(handles_can_be_opened_again_and_again));
    let descriptors = || {
        fs::read_dir("/proc/self/fd")
            .expect("/proc is mounted")
            .count()
    };
    // SAFETY: as the header requires.
    unsafe {
        let first = open(Fields::empty(), Some(c"procfs")).expect("it needs nothing");
        assert_eq!(fastproc_close(first), OK);
        let before = descriptors();
        for round in 0..600 {
            let handle = open(Fields::empty(), Some(c"procfs")).expect("it needs nothing");
            // A handle is not used again soon after it was closed.
            assert!(round > 255 || handle != first);
            snapshot(handle);
            assert_eq!(fastproc_close(handle), OK);
        }
        assert_eq!(descriptors(), before);
    }
    gate::ran();
}
