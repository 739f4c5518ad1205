//! Sequences of calls: wrong ones, differences, a fork, and many snapshots.

use std::{
    alloc::{GlobalAlloc, Layout, System},
    ffi::{CStr, c_char, c_int},
    fs,
    process::{Child, Command, Stdio},
    ptr,
    sync::atomic::{AtomicUsize, Ordering},
};

use fastproc_c::*;
use fastproc_testbed::{alone, gate, own_process};

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

fn open(fields: u32, source: Option<&CStr>) -> Result<*mut Fastproc, c_int> {
    let mut handle = ptr::null_mut();
    let source = source.map_or(ptr::null(), CStr::as_ptr);
    // SAFETY: as the header requires.
    match unsafe { fastproc_open(&raw mut handle, fields, source, 0) } {
        FASTPROC_OK => Ok(handle),
        error => {
            assert!(handle.is_null());
            Err(error)
        }
    }
}

fn message() -> String {
    // SAFETY: a string of the library.
    let message = unsafe { CStr::from_ptr(fastproc_error()) };
    message.to_str().expect("text").to_owned()
}

/// A value, or the error.
fn value<T: Default>(get: impl FnOnce(*mut T) -> c_int) -> Result<T, c_int> {
    let mut value = T::default();
    match get(&raw mut value) {
        FASTPROC_OK => Ok(value),
        error => Err(error),
    }
}

/// An idle process, killed when this is dropped, even if a test fails.
struct Sleeper(Child);

impl Sleeper {
    fn start() -> Self {
        let mut command = Command::new("sleep");
        command
            .arg("1000")
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        Self(command.spawn().expect("the program starts"))
    }

    fn id(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn wrong_arguments_return_an_error_with_a_message() {
    // SAFETY: as the header requires, except for the calls that must be refused.
    unsafe {
        assert_eq!(
            fastproc_open(ptr::null_mut(), 0, ptr::null(), 0),
            FASTPROC_ERROR_ARGUMENT
        );
        assert_eq!(open(1 << 30, None), Err(FASTPROC_ERROR_ARGUMENT));
        assert!(message().contains("0x40000000"), "{}", message());
        assert_eq!(open(0, Some(c"magic")), Err(FASTPROC_ERROR_ARGUMENT));
        assert!(
            message().contains("service, bpf, bpf-iter and procfs"),
            "{}",
            message()
        );

        let mut field = 7;
        assert_eq!(
            fastproc_field(c"Memory_Details".as_ptr(), &raw mut field),
            FASTPROC_OK
        );
        assert_eq!(field, FASTPROC_MEMORY_DETAILS);
        assert_eq!(fastproc_field(c"exe".as_ptr(), &raw mut field), FASTPROC_OK);
        assert_eq!(field, FASTPROC_EXE);
        assert_eq!(
            fastproc_field(c"memroy".as_ptr(), &raw mut field),
            FASTPROC_ERROR_ARGUMENT
        );
        assert_eq!(field, 0);
        assert!(message().contains("memory-details"), "{}", message());
        assert_eq!(
            fastproc_field(ptr::null(), &raw mut field),
            FASTPROC_ERROR_ARGUMENT
        );

        let handle = open(FASTPROC_MEMORY, Some(c"procfs")).expect("it needs nothing");
        assert_eq!(fastproc_count(handle), 0);
        assert!(message().contains("fastproc_snapshot()"), "{}", message());
        assert_eq!(fastproc_difference(handle), FASTPROC_ERROR_NO_SNAPSHOT);
        assert_eq!(fastproc_snapshot(handle), FASTPROC_OK);
        assert_eq!(
            value(|to| fastproc_find(handle, u32::MAX, to)),
            Err(FASTPROC_ERROR_NO_PROCESS)
        );
        assert!(message().contains("4294967295"), "{}", message());
        assert_eq!(
            value(|to| fastproc_cpu_utime_ns(handle, 0, to)),
            Err(FASTPROC_ERROR_NOT_ASKED)
        );
        assert!(message().contains("FASTPROC_CPU"), "{}", message());
        assert_eq!(fastproc_thread_count(handle), 0);
        assert!(message().contains("FASTPROC_THREADS"), "{}", message());
        let own = value(|to| fastproc_find(handle, std::process::id(), to))
            .expect("the process is shown");
        assert_eq!(
            value(|to| fastproc_change_born(handle, own, to)),
            Err(FASTPROC_ERROR_NO_SNAPSHOT)
        );
        assert!(message().contains("fastproc_difference()"), "{}", message());
        let (mut text, mut length) = (ptr::null::<c_char>(), 7_usize);
        assert_eq!(
            fastproc_name(handle, own, ptr::null_mut(), &raw mut length),
            FASTPROC_ERROR_ARGUMENT
        );
        assert_eq!(
            fastproc_name(handle, usize::MAX, &raw mut text, &raw mut length),
            FASTPROC_ERROR_ARGUMENT
        );
        assert_eq!((CStr::from_ptr(text), length), (c"", 0));
        assert_eq!(
            fastproc_status_text(handle, own, &raw mut text, ptr::null_mut()),
            FASTPROC_ERROR_NOT_ASKED
        );
        assert_eq!(
            fastproc_name(handle, own, &raw mut text, ptr::null_mut()),
            FASTPROC_OK
        );
        let comm = fs::read_to_string("/proc/self/comm").expect("/proc is mounted");
        assert_eq!(CStr::from_ptr(text).to_str(), Ok(comm.trim_end()));

        assert_eq!(fastproc_close(handle), FASTPROC_OK);
        assert_eq!(fastproc_close(handle), FASTPROC_ERROR_CLOSED);
        assert_eq!(fastproc_snapshot(handle), FASTPROC_ERROR_CLOSED);
        assert_eq!(
            fastproc_name(handle, own, &raw mut text, ptr::null_mut()),
            FASTPROC_ERROR_CLOSED
        );
        assert!(fastproc_source(handle).is_null());
        assert_eq!(fastproc_close(ptr::null_mut()), FASTPROC_OK);
        assert_eq!(fastproc_snapshot(ptr::null_mut()), FASTPROC_ERROR_ARGUMENT);
    }
    gate::ran();
}

#[test]
fn a_child_is_told_to_open_its_own() {
    let handle = open(0, Some(c"procfs")).expect("it needs nothing");
    // SAFETY: as the header requires; the child exits at once, and does nothing that a fork of a threaded process must
    // not do.
    unsafe {
        assert_eq!(fastproc_snapshot(handle), FASTPROC_OK);
        let child = libc::fork();
        if child == 0 {
            let mut place = 0;
            let is_told = fastproc_find(handle, 1, &raw mut place) == FASTPROC_ERROR_FORKED
                && fastproc_snapshot(handle) == FASTPROC_ERROR_FORKED
                && fastproc_count(handle) == 0;
            libc::_exit(c_int::from(is_told));
        }
        let mut status = 0;
        assert_eq!(libc::waitpid(child, &raw mut status, 0), child);
        assert!(
            libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 1,
            "{status:#x}"
        );
        assert_eq!(fastproc_snapshot(handle), FASTPROC_OK);
        assert_eq!(fastproc_close(handle), FASTPROC_OK);
    }
    gate::ran();
}

#[test]
fn a_difference_tells_who_worked_who_was_born_and_who_is_gone() {
    let old = Sleeper::start();
    let handle = open(FASTPROC_CPU | FASTPROC_THREADS, None).expect("a source");
    // SAFETY: as the header requires.
    unsafe {
        assert_eq!(fastproc_snapshot(handle), FASTPROC_OK);
        assert_eq!(fastproc_difference(handle), FASTPROC_OK);
        let place = value(|to| fastproc_find(handle, old.id(), to)).expect("the process is shown");
        assert_eq!(
            value(|to| fastproc_change_cpu_share(handle, place, to)),
            Err(FASTPROC_UNKNOWN)
        );
        assert!(message().contains("no earlier snapshot"), "{}", message());
        assert_eq!(fastproc_gone_count(handle), 0);

        let gone = old.id();
        drop(old);
        let new = Sleeper::start();
        let used = || {
            let mut usage = std::mem::zeroed();
            assert_eq!(libc::getrusage(libc::RUSAGE_SELF, &raw mut usage), 0);
            usage.ru_utime.tv_sec * 1_000_000 + usage.ru_utime.tv_usec
        };
        let start = used();
        while used() - start < 60_000 {}

        assert_eq!(fastproc_snapshot(handle), FASTPROC_OK);
        let own = value(|to| fastproc_find(handle, std::process::id(), to))
            .expect("the process is shown");
        assert_eq!(
            value(|to| fastproc_change_born(handle, own, to)),
            Err(FASTPROC_ERROR_NO_SNAPSHOT)
        );
        for _ in 0..2 {
            // The second time there is nothing to compare.
            assert_eq!(fastproc_difference(handle), FASTPROC_OK);
            assert_eq!(value(|to| fastproc_change_born(handle, own, to)), Ok(false));
            let cpu_ns = value(|to| fastproc_change_cpu_ns(handle, own, to)).expect("known");
            assert!(cpu_ns >= 50_000_000, "{cpu_ns}");
            let share = value(|to| fastproc_change_cpu_share(handle, own, to)).expect("known");
            assert!(share > 0.0, "{share}");
            assert_eq!(
                value(|to| fastproc_change_read_bytes_per_second(handle, own, to)),
                Err(FASTPROC_UNKNOWN)
            );
            let place =
                value(|to| fastproc_find(handle, new.id(), to)).expect("the process is shown");
            assert_eq!(
                value(|to| fastproc_change_born(handle, place, to)),
                Ok(true)
            );
            let pids = (0..fastproc_gone_count(handle))
                .map(|at| value(|to| fastproc_gone_pid(handle, at, to)));
            assert!(pids.into_iter().any(|pid| pid == Ok(gone)));
        }
        // This thread did the work.
        let tid = libc::gettid() as u32;
        let places = 0..fastproc_thread_count(handle);
        let mut own =
            places.filter(|&place| value(|to| fastproc_thread_tid(handle, place, to)) == Ok(tid));
        let own = own.next().expect("the cgroup has a record");
        let cpu_ns = value(|to| fastproc_thread_change_cpu_ns(handle, own, to)).expect("known");
        assert!(cpu_ns >= 50_000_000, "{cpu_ns}");
        drop(new);
        assert_eq!(fastproc_close(handle), FASTPROC_OK);
    }
    gate::ran();
}

/// Requests everything that a program may read after each snapshot. Returns the number of processes.
unsafe fn look(handle: *mut Fastproc) -> usize {
    // SAFETY: as the header requires.
    unsafe {
        assert_eq!(fastproc_snapshot(handle), FASTPROC_OK, "{}", message());
        assert_eq!(fastproc_difference(handle), FASTPROC_OK);
        let count = fastproc_count(handle);
        for place in 0..count {
            let (mut text, mut number) = (ptr::null(), 0);
            fastproc_name(handle, place, &raw mut text, ptr::null_mut());
            fastproc_rss_bytes(handle, place, &raw mut number);
            let mut share = 0.0;
            fastproc_change_cpu_share(handle, place, &raw mut share);
            for render in [
                fastproc_stat_text,
                fastproc_statm_text,
                fastproc_status_text,
            ] {
                assert_eq!(
                    render(handle, place, &raw mut text, ptr::null_mut()),
                    FASTPROC_OK,
                    "{}",
                    message()
                );
            }
        }
        count
    }
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
    if !gate::bpf() || !own_process(nothing_is_allocated_for_a_process) {
        return;
    }
    let _alone = alone();
    let handle = open(FASTPROC_THREE_FILES, Some(c"bpf")).expect("BPF can be used");
    let sleepers: Vec<Sleeper> = (0..100).map(|_| Sleeper::start()).collect();
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
                assert_eq!(fastproc_snapshot(handle), FASTPROC_OK);
            }
            resident_bytes().saturating_sub(before)
        });
        let least = grown.into_iter().min().expect("four");
        assert!(least < 1 << 18, "{grown:?} bytes in 2,500 snapshots each");
        assert_eq!(fastproc_close(handle), FASTPROC_OK);
    }
}

#[test]
fn handles_can_be_opened_again_and_again() {
    if !own_process(handles_can_be_opened_again_and_again) {
        return;
    }
    let descriptors = || {
        fs::read_dir("/proc/self/fd")
            .expect("/proc is mounted")
            .count()
    };
    // SAFETY: as the header requires.
    unsafe {
        let first = open(0, Some(c"procfs")).expect("it needs nothing");
        assert_eq!(fastproc_close(first), FASTPROC_OK);
        let before = descriptors();
        for round in 0..600 {
            let handle = open(0, Some(c"procfs")).expect("it needs nothing");
            // A handle is not used again soon after it was closed.
            assert!(round > 255 || handle != first);
            assert_eq!(fastproc_snapshot(handle), FASTPROC_OK);
            assert_eq!(fastproc_close(handle), FASTPROC_OK);
        }
        assert_eq!(descriptors(), before);
    }
    gate::ran();
}
