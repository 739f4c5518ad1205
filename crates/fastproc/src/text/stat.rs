//! `/proc/PID/stat`: one line of 52 fields (`do_task_stat()` of fs/proc/array.c).

use seqtext::{Dec, Piece, SeqBuf};

use super::{
    cursor::Cursor,
    name,
    render::{RenderError, require},
    units::Units,
};
use crate::base::error::parse::ParseError;
use crate::{
    records::{
        fields::Fields,
        record::{Layout, NAME_LEN, Record, State, mark_rounded},
    },
    rules::access::Access,
    snapshot::process::Process,
};

const FILE: &str = "/proc/PID/stat";
/// The groups that the line shows: of those of the three files, all except users, credentials, nested pid namespaces
/// and memory details.
const SHOWN: Fields = Fields::THREE_FILES.difference(
    Fields::USERS
        .union(Fields::CREDENTIALS)
        .union(Fields::NAMESPACES)
        .union(Fields::MEMORY_DETAILS),
);
/// stat shows only the first 31 signals of a set.
const SHOWN_SIGNALS: u64 = 0x7fff_ffff;
/// What a reader without access sees instead of `start_code` and `end_code`.
const HIDDEN: u64 = 1;

/// Appends the line, as the kernel prints it for a reader with this access.
///
/// # Errors
/// [`RenderError::MissingFields`] if the record lacks groups that the line shows; nothing is written then.
pub fn render(
    process: Process<'_>,
    units: &Units,
    access: Access,
    out: &mut SeqBuf<'_>,
) -> Result<(), RenderError> {
    require(process, SHOWN)?;
    let view = View::new(process, units, access);
    put_ids(&view, out);
    put_times(&view, out);
    put_sizes(&view, out);
    put_code(&view, out);
    put_signals(&view, out);
    put_data(&view, out);
    Ok(())
}

/// A process, and what else decides how it is shown.
#[derive(Clone, Copy)]
struct View<'a> {
    process: Process<'a>,
    record: &'a Record,
    units: &'a Units,
    /// Whether the reader has ptrace access.
    shown: bool,
    mm: bool,
}

impl<'a> View<'a> {
    #[inline(always)]
    fn new(process: Process<'a>, units: &'a Units, access: Access) -> Self {
        let record = process.record();
        Self {
            process,
            record,
            units,
            shown: access == Access::Granted && record.identity.masked == 0,
            mm: record.identity.has_mm != 0,
        }
    }
}

/// From the pid to the flags.
#[inline(always)]
fn put_ids(view: &View<'_>, out: &mut SeqBuf<'_>) {
    let identity = &view.record.identity;
    out.put((Dec(identity.tgid), b" ("));
    name::put_raw(view.process, out);
    out.put((
        (b") ", &state_byte(identity.state())),
        (
            field(identity.ppid),
            field(identity.pgrp as i32),
            field(identity.session as i32),
        ),
        (
            field(identity.tty_nr),
            field(identity.tpgid),
            field(identity.flags),
        ),
    ));
}

/// Faults and CPU times.
#[inline(always)]
fn put_times(view: &View<'_>, out: &mut SeqBuf<'_>) {
    let (cpu, units) = (&view.record.cpu, view.units);
    out.put((
        (
            field(cpu.minflt),
            field(cpu.cminflt),
            field(cpu.majflt),
            field(cpu.cmajflt),
        ),
        (
            field(units.ticks(cpu.utime_ns)),
            field(units.ticks(cpu.stime_ns)),
        ),
        (
            field(units.ticks(cpu.cutime_ns)),
            field(units.ticks(cpu.cstime_ns)),
        ),
    ));
}

/// From the priority to the limit of the resident set.
#[inline(always)]
fn put_sizes(view: &View<'_>, out: &mut SeqBuf<'_>) {
    let Record {
        identity,
        memory,
        scheduling,
        limits,
        ..
    } = view.record;
    let (vsize, rss) = if view.mm {
        (memory.vsize, memory.rss_approx >> view.units.page_shift)
    } else {
        (0, 0)
    };
    out.put((
        (
            field(scheduling.priority),
            field(scheduling.nice),
            field(identity.num_threads),
        ),
        (b" 0", field(view.units.start_ticks(identity.start_ns))),
        (field(vsize), field(rss), field(limits.rss_limit)),
    ));
}

/// From `start_code` to `kstkeip`.
#[inline(always)]
fn put_code(view: &View<'_>, out: &mut SeqBuf<'_>) {
    match &view.record.layout {
        layout if view.mm && view.shown => out.put((
            (
                field(layout.start_code),
                field(layout.end_code),
                field(layout.start_stack),
            ),
            (field(layout.kstkesp), field(layout.kstkeip)),
        )),
        _ if view.mm => out.put(b" 1 1 0 0 0"),
        _ => out.put(b" 0 0 0 0 0"),
    };
}

/// From the pending signals to the guest time of children.
#[inline(always)]
fn put_signals(view: &View<'_>, out: &mut SeqBuf<'_>) {
    let Record {
        identity,
        cpu,
        signals,
        scheduling,
        scheduling_details,
        ..
    } = view.record;
    let units = view.units;
    out.put((
        (
            field(signals.pending & SHOWN_SIGNALS),
            field(signals.blocked & SHOWN_SIGNALS),
        ),
        (
            field(signals.ignored & SHOWN_SIGNALS),
            field(signals.caught & SHOWN_SIGNALS),
        ),
        (
            field(u8::from(view.shown && identity.wchan != 0)),
            b" 0 0",
            field(identity.exit_signal),
        ),
        (
            field(scheduling.processor as i32),
            field(scheduling.rt_priority),
            field(scheduling.policy),
        ),
        (
            field(units.ticks(scheduling_details.blkio_ns)),
            field(units.ticks(cpu.gtime_ns)),
            field(units.ticks(cpu.cgtime_ns)),
        ),
    ));
}

/// From `start_data` to the end of the line.
#[inline(always)]
fn put_data(view: &View<'_>, out: &mut SeqBuf<'_>) {
    match &view.record.layout {
        layout if view.mm && view.shown => out.put((
            (
                field(layout.start_data),
                field(layout.end_data),
                field(layout.start_brk),
            ),
            (
                field(layout.arg_start),
                field(layout.arg_end),
                field(layout.env_start),
                field(layout.env_end),
            ),
        )),
        _ => out.put(b" 0 0 0 0 0 0 0"),
    };
    let exit_code = view.record.identity.exit_code;
    out.put((field(if view.shown { exit_code } else { 0 }), b"\n"));
}

/// A number after a space.
#[inline(always)]
fn field<T>(number: T) -> impl Piece
where
    Dec<T>: Piece,
{
    (b" ", Dec(number))
}

#[inline]
fn state_byte(state: State) -> [u8; 1] {
    [state.letter()]
}

/// Reads the line into `record`: its identity, CPU time and faults, layout, scheduling without masks and NUMA
/// group, the limit of the resident set, and `vsize` and `rss_approx` of memory.
///
/// It sets only the first 31 signals of each signal set; parse [`status`](super::status) afterwards for the
/// others. The name ends at the last `)`: a name may contain one, but no later field does. Fields after the last
/// known one are ignored.
pub fn parse(text: &[u8], units: &Units, record: &mut Record) -> Result<(), ParseError> {
    let mut fields = Cursor::new(FILE, text);
    let identity = &mut record.identity;
    identity.tgid = fields.u32()?;
    fields.byte(b' ', "a space and the name in parentheses")?;
    fields.byte(b'(', "the name in parentheses")?;
    // Names are short, so the parenthesis need not be searched in everything that follows.
    let names = &fields.rest()[..fields.rest().len().min(NAME_LEN)];
    let Some(len) = names.iter().rposition(|&byte| byte == b')') else {
        return Err(fields.error("a name of at most 63 bytes and a closing parenthesis"));
    };
    let end = fields.position() + len;
    name::parse_raw(&mut fields, end, record)?;
    fields.skip(1);
    let identity = &mut record.identity;
    identity.state_bits = parse_state(&mut fields)?;
    identity.ppid = next(&mut fields, Cursor::u32)?;
    identity.pgrp = next(&mut fields, parse_id)?;
    identity.session = next(&mut fields, parse_id)?;
    identity.tty_nr = next(&mut fields, Cursor::i32)?;
    identity.tpgid = next(&mut fields, Cursor::i32)?;
    identity.flags = next(&mut fields, Cursor::u32)?;
    let cpu = &mut record.cpu;
    let ticks = |fields: &mut Cursor<'_>| next(fields, |fields| fields.u64_times(units.tick_ns));
    cpu.minflt = next(&mut fields, Cursor::u64)?;
    cpu.cminflt = next(&mut fields, Cursor::u64)?;
    cpu.majflt = next(&mut fields, Cursor::u64)?;
    cpu.cmajflt = next(&mut fields, Cursor::u64)?;
    cpu.utime_ns = ticks(&mut fields)?;
    cpu.stime_ns = ticks(&mut fields)?;
    cpu.cutime_ns = ticks(&mut fields)?;
    cpu.cstime_ns = ticks(&mut fields)?;
    // These times were already adjusted, and adjusting them again yields the same.
    (cpu.prev_utime_ns, cpu.prev_stime_ns) = (cpu.utime_ns, cpu.stime_ns);
    (cpu.sum_exec_ns, cpu.sampled_utime_ns, cpu.sampled_stime_ns) = (0, 0, 0);
    record.scheduling.priority = next(&mut fields, Cursor::i32)?;
    record.scheduling.nice = next(&mut fields, Cursor::i32)?;
    identity.num_threads = next(&mut fields, Cursor::u32)?;
    identity.seen_threads = identity.num_threads;
    next(&mut fields, Cursor::u64)?; // itrealvalue, not maintained since 2.6.17
    let start_ns = ticks(&mut fields)?.wrapping_sub(units.boot_offset_ns as u64);
    identity.start_ns = mark_rounded(start_ns, units.tick_ns);
    record.memory.vsize = next(&mut fields, Cursor::u64)?;
    record.memory.rss_approx = next(&mut fields, |fields| {
        fields.u64_times(1 << units.page_shift)
    })?;
    record.limits.rss_limit = next(&mut fields, Cursor::u64)?;
    let layout = &mut record.layout;
    layout.start_code = next(&mut fields, Cursor::u64)?;
    layout.end_code = next(&mut fields, Cursor::u64)?;
    layout.start_stack = next(&mut fields, Cursor::u64)?;
    layout.kstkesp = next(&mut fields, Cursor::u64)?;
    layout.kstkeip = next(&mut fields, Cursor::u64)?;
    record.signals.pending = next(&mut fields, Cursor::u64)?;
    record.signals.blocked = next(&mut fields, Cursor::u64)?;
    record.signals.ignored = next(&mut fields, Cursor::u64)?;
    record.signals.caught = next(&mut fields, Cursor::u64)?;
    record.signals.switches = u64::MAX;
    identity.wchan = u8::from(next(&mut fields, Cursor::u64)? != 0);
    next(&mut fields, Cursor::u64)?; // nswap and cnswap, never maintained
    next(&mut fields, Cursor::u64)?;
    identity.exit_signal = next(&mut fields, Cursor::i32)?;
    record.scheduling.processor = next(&mut fields, parse_id)?;
    record.scheduling.rt_priority = next(&mut fields, Cursor::u32)?;
    record.scheduling.policy = next(&mut fields, Cursor::u32)?;
    record.scheduling_details.blkio_ns = ticks(&mut fields)?;
    cpu.gtime_ns = ticks(&mut fields)?;
    cpu.cgtime_ns = ticks(&mut fields)?;
    layout.start_data = next(&mut fields, Cursor::u64)?;
    layout.end_data = next(&mut fields, Cursor::u64)?;
    layout.start_brk = next(&mut fields, Cursor::u64)?;
    layout.arg_start = next(&mut fields, Cursor::u64)?;
    layout.arg_end = next(&mut fields, Cursor::u64)?;
    layout.env_start = next(&mut fields, Cursor::u64)?;
    layout.env_end = next(&mut fields, Cursor::u64)?;
    identity.exit_code = next(&mut fields, Cursor::i32)?;
    if fields.line()?.first().is_some_and(|&byte| byte != b' ') {
        return Err(fields.error("a space or the end of the line"));
    }
    identity.has_mm = u8::from(layout.start_code | layout.end_code | record.memory.vsize != 0);
    record.identity.masked = u8::from(is_masked(record));
    if record.identity.masked != 0 {
        record.layout = Layout::default();
    }
    Ok(())
}

/// Whether the kernel hid from this reader the values that require ptrace access.
///
/// If the process has memory, the kernel then shows both ends of its code as 1. Otherwise, if it has a single thread
/// that does not run, it has a wait channel for readers who may see it. In all other cases only the exit code indicates
/// it, and a zero may be a hidden one.
fn is_masked(record: &Record) -> bool {
    let (identity, layout) = (&record.identity, &record.layout);
    if identity.has_mm != 0 {
        return (layout.start_code, layout.end_code, layout.start_stack) == (HIDDEN, HIDDEN, 0);
    }
    leaves_masked_open(record) && identity.state() != State::Running
}

/// Whether the line of a process without memory may be the same for readers with and without ptrace access: a process
/// that runs or has several threads has no wait channel for any reader, and older kernels also show none for some that
/// sleep.
pub(crate) fn leaves_masked_open(record: &Record) -> bool {
    let identity = &record.identity;
    identity.has_mm == 0 && identity.exit_code == 0 && identity.wchan == 0
}

#[inline(always)]
fn next<'a, T>(
    fields: &mut Cursor<'a>,
    parse: impl FnOnce(&mut Cursor<'a>) -> Result<T, ParseError>,
) -> Result<T, ParseError> {
    fields.byte(b' ', "a space and the next field")?;
    parse(fields)
}

/// An id that is -1 if the process has just lost it.
fn parse_id(fields: &mut Cursor<'_>) -> Result<u32, ParseError> {
    fields.i32().map(|id| id as u32)
}

fn parse_state(fields: &mut Cursor<'_>) -> Result<u32, ParseError> {
    fields.byte(b' ', "a space and the state")?;
    let state = fields
        .peek()
        .and_then(State::from_letter)
        .ok_or_else(|| fields.error("the letter of a state"))?;
    fields.skip(1);
    Ok(state.bits())
}
