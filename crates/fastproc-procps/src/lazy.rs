//! Strings that are read at the first access.
//!
//! ps requests the command line and the environment of every process, whatever it shows. So these strings are in memory
//! without access: the first access causes a fault, whose handler reads the strings of all processes of the fetch and
//! returns, and the program goes on. The handler runs on the program's own stack, interrupting the program's own code
//! that reads a string, and so may call malloc(3). Other faults go to the previous handler.

use std::{
    ffi::{CStr, c_char, c_int, c_void},
    mem::MaybeUninit,
    panic::{AssertUnwindSafe, catch_unwind},
    ptr,
    sync::atomic::{AtomicBool, AtomicPtr, Ordering},
};

use crate::{
    abi::{Functions, PidsResult},
    items::{Item, Kind, Table},
    real::Companion,
};

/// Bytes for a string: the longest that procps makes. Unused pages need no memory.
const SLOT: usize = 128 << 10;

/// A process whose string was not read yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Waiting {
    pub(crate) pid: u32,
    pub(crate) comm: [u8; 16],
    pub(crate) is_zombie: bool,
}

/// The strings of one item for all processes of a fetch.
#[derive(Debug)]
pub(crate) struct Area {
    functions: &'static Functions,
    item: Item,
    /// The items that procps reads, this one first.
    items: Vec<u32>,
    table: &'static Table,
    start: *mut u8,
    slots: usize,
    readable: bool,
    waiting: Vec<Waiting>,
}

/// The areas that the handler checks. Only the first places are used in practice.
static AREAS: [AtomicPtr<Area>; 64] = [const { AtomicPtr::new(ptr::null_mut()) }; 64];

impl Area {
    /// `None`: strings cannot be read lazily here, and must be read at once.
    pub(crate) fn open(
        functions: &'static Functions,
        table: &'static Table,
        item: Item,
        with: Option<Item>,
    ) -> Option<Box<Self>> {
        let items = [Some(item), with].into_iter().flatten();
        let mut area = Box::new(Self {
            functions,
            item,
            items: items.map(|item| table.number(item)).collect(),
            table,
            start: ptr::null_mut(),
            slots: 0,
            readable: false,
            waiting: Vec::new(),
        });
        let place: *mut Self = &raw mut *area;
        let is_free = |at: &&AtomicPtr<Self>| {
            let null = ptr::null_mut();
            at.compare_exchange(null, place, Ordering::SeqCst, Ordering::SeqCst)
                .is_ok()
        };
        AREAS.iter().find(is_free).map(|_| area)
    }

    /// Begins a fetch of at most this number of processes. `false`: there is no room for it.
    pub(crate) fn begin(&mut self, processes: usize) -> bool {
        self.waiting.clear();
        if processes > self.slots {
            self.unmap();
            let slots = processes + processes / 4;
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
            // SAFETY: a new mapping touches no memory that is in use.
            let start =
                unsafe { libc::mmap(ptr::null_mut(), slots * SLOT, libc::PROT_NONE, flags, -1, 0) };
            if start == libc::MAP_FAILED {
                return false;
            }
            // SAFETY: our own mapping. A huge page for every slot or two would take all memory.
            unsafe { libc::madvise(start, slots * SLOT, libc::MADV_NOHUGEPAGE) };
            (self.start, self.slots) = (start.cast(), slots);
        } else if self.readable {
            let (start, bytes) = (self.start.cast::<c_void>(), self.slots * SLOT);
            // SAFETY: our own mapping; its old contents are not read after a new fetch.
            let closed = unsafe {
                libc::madvise(start, bytes, libc::MADV_DONTNEED) == 0
                    && libc::mprotect(start, bytes, libc::PROT_NONE) == 0
            };
            if !closed {
                return false;
            }
        }
        self.readable = false;
        true
    }

    /// The place for the string of this process.
    pub(crate) fn add(&mut self, process: Waiting) -> *mut c_char {
        let slot = self.slot(self.waiting.len());
        self.waiting.push(process);
        slot.cast()
    }

    fn slot(&self, at: usize) -> *mut u8 {
        debug_assert!(at < self.slots, "begin() was told of fewer");
        // SAFETY: within the mapping.
        unsafe { self.start.add(at * SLOT) }
    }

    fn holds(&self, address: usize) -> bool {
        let start = self.start as usize;
        !self.readable && (start..start + self.slots * SLOT).contains(&address)
    }

    /// Reads all strings. `false`: the kernel gave no memory.
    fn fill(&mut self) -> bool {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: our own mapping, which nothing has read yet.
        if unsafe { libc::mprotect(self.start.cast(), self.slots * SLOT, protection) } != 0 {
            return false;
        }
        self.readable = true;
        let pids: Vec<u32> = self.waiting.iter().map(|process| process.pid).collect();
        let mut read = vec![false; pids.len()];
        let companion = Companion::new(self.functions, self.table, &self.items);
        if let Some(mut companion) = companion {
            companion.read(&pids, |pid, results| {
                if let Ok(at) = pids.binary_search(&pid) {
                    read[at] = true;
                    // SAFETY: a row begins with the item.
                    self.put(at, unsafe { &*results });
                }
            });
        }
        for at in (0..read.len()).filter(|&at| !read[at]) {
            self.put_gone(at);
        }
        true
    }

    fn put(&self, at: usize, result: &PidsResult) {
        if self.item.kind() == Kind::StrV {
            self.put_vector(at, result.value as *const *const c_char);
        } else {
            let string = result.value as *const c_char;
            if !string.is_null() {
                // SAFETY: a string of procps's.
                self.put_string(at, unsafe { CStr::from_ptr(string) }.to_bytes());
            }
        }
    }

    /// For an exited process: what procps shows if it exits between two of its files.
    fn put_gone(&self, at: usize) {
        let process = self.waiting[at];
        let comm = process
            .comm
            .split(|&byte| byte == 0)
            .next()
            .unwrap_or_default();
        match self.item.file() {
            crate::items::File::Cmdline => {
                let shown = |&byte: &u8| {
                    if (b' '..=b'~').contains(&byte) {
                        byte
                    } else {
                        b'?'
                    }
                };
                let comm: Vec<u8> = comm.iter().map(shown).collect();
                let end: &[u8] = if process.is_zombie {
                    b"] <defunct>"
                } else {
                    b"]"
                };
                self.put_string(at, &[b"[", &comm[..], end].concat());
            }
            _ if self.item.kind() == Kind::StrV => {
                let dash = [c"-".as_ptr(), ptr::null()];
                self.put_vector(at, dash.as_ptr());
            }
            _ => self.put_string(at, b"-"),
        }
    }

    fn put_string(&self, at: usize, string: &[u8]) {
        let len = string.len().min(SLOT - 1);
        // SAFETY: the slot is as long, and zero.
        unsafe { ptr::copy_nonoverlapping(string.as_ptr(), self.slot(at), len) };
    }

    /// The pointers, followed by their strings.
    fn put_vector(&self, at: usize, vector: *const *const c_char) {
        let slot = self.slot(at);
        let strings = (0..).map_while(|i| {
            // SAFETY: the vector ends with a null pointer, at which this stops.
            let string = unsafe { vector.add(i).read() };
            // SAFETY: a string of the vector.
            (!vector.is_null() && !string.is_null()).then(|| unsafe { CStr::from_ptr(string) })
        });
        let strings: Vec<&CStr> = strings.collect();
        let mut end = (strings.len() + 1) * size_of::<*const c_char>();
        for (i, string) in strings.iter().enumerate() {
            let bytes = string.to_bytes_with_nul();
            if end + bytes.len() > SLOT {
                break;
            }
            // SAFETY: both lie within the slot, the pointers at its aligned beginning.
            unsafe {
                let copy = slot.add(end);
                ptr::copy_nonoverlapping(bytes.as_ptr(), copy, bytes.len());
                slot.cast::<c_void>().cast::<*mut u8>().add(i).write(copy);
            }
            end += bytes.len();
        }
    }

    fn unmap(&mut self) {
        if !self.start.is_null() {
            // SAFETY: our own mapping, which is not read any more.
            unsafe { libc::munmap(self.start.cast(), self.slots * SLOT) };
        }
        (self.start, self.slots) = (ptr::null_mut(), 0);
    }
}

impl Drop for Area {
    fn drop(&mut self) {
        let place: *mut Self = self;
        for at in &AREAS {
            let _ = at.compare_exchange(place, ptr::null_mut(), Ordering::SeqCst, Ordering::SeqCst);
        }
        self.unmap();
    }
}

/// The action before ours.
static BEFORE: AtomicPtr<libc::sigaction> = AtomicPtr::new(ptr::null_mut());
static FAILED: AtomicBool = AtomicBool::new(false);

/// Makes sure that the handler is installed. `false`: faults would not reach it.
pub(crate) fn watch() -> bool {
    if FAILED.load(Ordering::Relaxed) {
        return false;
    }
    // SAFETY: reads the mask and the action, and sets the action; all structures are ours.
    unsafe {
        let mut mask = MaybeUninit::zeroed().assume_init();
        libc::pthread_sigmask(libc::SIG_BLOCK, ptr::null(), &raw mut mask);
        if libc::sigismember(&raw const mask, libc::SIGSEGV) != 0 {
            return false;
        }
        let handler = on_fault as extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void);
        let mut now: libc::sigaction = MaybeUninit::zeroed().assume_init();
        libc::sigaction(libc::SIGSEGV, ptr::null(), &raw mut now);
        if now.sa_sigaction == handler as usize {
            return true;
        }
        // The previous one is not freed: the handler may be reading it.
        BEFORE.store(Box::into_raw(Box::new(now)), Ordering::SeqCst);
        let mut ours: libc::sigaction = MaybeUninit::zeroed().assume_init();
        ours.sa_sigaction = handler as usize;
        ours.sa_flags = libc::SA_SIGINFO | libc::SA_NODEFER | libc::SA_ONSTACK;
        libc::sigaction(libc::SIGSEGV, &raw const ours, ptr::null_mut()) == 0
    }
}

extern "C" fn on_fault(signal: c_int, info: *mut libc::siginfo_t, _context: *mut c_void) {
    // SAFETY: this thread's own; the interrupted program may be about to read it.
    let errno = unsafe { *libc::__errno_location() };
    // SAFETY: the kernel fills both in.
    let (address, code) = unsafe { ((*info).si_addr() as usize, (*info).si_code) };
    let areas = AREAS.iter().map(|area| area.load(Ordering::SeqCst));
    // SAFETY: an area removes itself before it is freed; the accessed one belongs to the program's own thread.
    let touched = areas
        .filter(|area| !area.is_null())
        .find(|&area| code > 0 && unsafe { (*area).holds(address) });
    if let Some(area) = touched {
        // SAFETY: as above; nothing else uses it while its owner is in this handler.
        let filled = catch_unwind(AssertUnwindSafe(|| unsafe { (*area).fill() }));
        if filled.is_ok_and(|filled| filled) {
            crate::abi::set_errno(errno);
            return;
        }
    }
    // Not ours, or reading failed: the fault happens once more, with the previous action.
    FAILED.store(true, Ordering::Relaxed);
    let before = BEFORE.load(Ordering::SeqCst);
    // SAFETY: the action is never freed.
    unsafe {
        libc::sigaction(libc::SIGSEGV, before, ptr::null_mut());
        if code <= 0 {
            libc::raise(signal);
        }
    }
    crate::abi::set_errno(errno);
}
