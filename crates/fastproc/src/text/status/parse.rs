//! Reading status into a record.

use super::{
    format::Format,
    lines::{Line, SHADOW_STACK, SHADOW_STACK_WORD, WRSS, WRSS_WORD},
    mask::{self, take},
};
use crate::{
    base::error::parse::ParseError,
    records::record::{Credentials, Identity, Layout, Memory, Namespaces, Record, State, Users},
    text::{cursor::Cursor, name},
};

pub(super) const FILE: &str = "/proc/PID/status";
/// `PF_KTHREAD`.
const KERNEL_THREAD: u32 = 0x0020_0000;

/// Reads the known lines into `record`, and lists of variable length into `pool`. Skips the other lines.
///
/// Parse [`stat`](crate::text::stat) and [`statm`](crate::text::statm) first: this replaces their coarser values (the
/// resident set, the first 31 signals, data and stack together). It cannot determine `Memory::text`, only the part of
/// it that is executable memory; see [`tells_text`].
pub fn parse(
    text: &[u8],
    format: &Format,
    record: &mut Record,
    pool: &mut Vec<u64>,
) -> Result<(), ParseError> {
    let mut cursor = Cursor::new(FILE, text);
    let mut seen = 0;
    let mut expected = format.entries.as_slice();
    record.identity.has_mm = 0;
    record.credentials.umask = -1;
    record.namespaces = Namespaces::default();
    while !cursor.is_at_end() {
        let rest = cursor.rest();
        let found = expected.iter().position(|entry| entry.label.starts(rest));
        let line = if let Some(skipped) = found {
            let entry = &expected[skipped];
            expected = &expected[skipped + 1..];
            cursor.skip(entry.label.len());
            entry.line
        } else {
            unexpected_line(&mut cursor)
        };
        match line {
            Some(line) => {
                seen |= 1_u64 << line as u32;
                parse_line(line, &mut cursor, format, record, pool)?;
            }
            None => drop(cursor.line()?),
        }
    }
    if record.identity.has_mm == 0 {
        (record.memory, record.layout) = (Memory::default(), Layout::default());
    }
    let needed = format.needed_lines(record.identity.has_mm != 0);
    if needed & !seen == 0 {
        Ok(())
    } else {
        Err(cursor.error("all the lines that this kernel prints"))
    }
}

/// The rights of a process: all users and groups, permitted and effective capabilities, and `no_new_privs`. `None`: the
/// text lacks one of them. Other lines may be of any kernel.
pub fn parse_rights(text: &[u8]) -> Option<(Users, Credentials)> {
    const NEEDED: [Line; 5] = [
        Line::Uid,
        Line::Gid,
        Line::CapPrm,
        Line::CapEff,
        Line::NoNewPrivs,
    ];
    let (mut cursor, mut record) = (Cursor::new(FILE, text), Record::default());
    let (format, mut pool, mut missing) = (Format::default(), Vec::new(), NEEDED.to_vec());
    // The name of the process comes first, and cannot contain a line end.
    cursor.line().ok()?;
    while !cursor.is_at_end() {
        match unexpected_line(&mut cursor).filter(|line| NEEDED.contains(line)) {
            Some(line) => {
                missing.retain(|of| *of != line);
                parse_line(line, &mut cursor, &format, &mut record, &mut pool).ok()?;
            }
            None => drop(cursor.line().ok()?),
        }
    }
    missing
        .is_empty()
        .then_some((record.users, record.credentials))
}

/// Whether the status that was parsed last also determines [`Memory::text`]: if there is other executable memory, the
/// program's text is only executable memory. Otherwise only [`statm`](crate::text::statm) has it.
pub const fn tells_text(record: &Record) -> bool {
    record.memory.lib > 0 || record.identity.has_mm == 0
}

/// A line that is not where the format has it.
#[cold]
fn unexpected_line(cursor: &mut Cursor<'_>) -> Option<Line> {
    let rest = cursor.rest();
    let colon = rest.iter().take(64).position(|&byte| byte == b':')?;
    let line = Line::with_label(&rest[..colon]).filter(|_| rest.get(colon + 1) == Some(&b'\t'))?;
    cursor.skip(colon + 2);
    Some(line)
}

/// Parses the value after the label, and the end of the line.
#[inline]
pub(super) fn parse_line(
    line: Line,
    cursor: &mut Cursor<'_>,
    format: &Format,
    record: &mut Record,
    pool: &mut Vec<u64>,
) -> Result<(), ParseError> {
    let Record {
        identity,
        cpu,
        memory,
        users,
        credentials,
        signals,
        namespaces,
        scheduling_details,
        limits,
        ..
    } = record;
    match line {
        Line::Name => return name::parse_escaped(cursor, record),
        Line::State => return parse_state(cursor, identity),
        Line::Groups => return parse_groups(cursor, record, pool),
        Line::Speculation_Store_Bypass | Line::SpeculationIndirectBranch => {
            return parse_speculation(line, cursor, format, &mut credentials.atomic_flags);
        }
        Line::Cpus_allowed => {
            (scheduling_details.cpus_allowed, scheduling_details.cpus_at) =
                mask::parse(cursor, pool)?;
            return Ok(());
        }
        Line::Mems_allowed => {
            (scheduling_details.mems_allowed, scheduling_details.mems_at) =
                mask::parse(cursor, pool)?;
            return Ok(());
        }
        // The same value again.
        Line::Cpus_allowed_list | Line::Mems_allowed_list => return cursor.line().map(drop),
        Line::Umask => credentials.umask = cursor.octal()?.min(i32::MAX as u32) as i32,
        Line::Tgid | Line::Pid => identity.tgid = cursor.u32()?,
        Line::Ngid => scheduling_details.ngid = cursor.u32()?,
        Line::PPid => identity.ppid = cursor.u32()?,
        Line::TracerPid => identity.tracer_pid = cursor.u32()?,
        Line::Uid => {
            [users.uid, users.euid, users.suid, users.fsuid] = four(cursor)?;
        }
        Line::Gid => {
            [users.gid, users.egid, users.sgid, users.fsgid] = four(cursor)?;
        }
        Line::FDSize => limits.fd_size = cursor.u32()?,
        Line::NStgid => {
            identity.tgid = cursor.u32()?;
            parse_first_ids(cursor, record, pool)?;
        }
        Line::NSpid => {
            cursor.u32()?;
            parse_ids(
                cursor,
                namespaces.level,
                namespaces.ids_at,
                pool,
                |ids, pid| ids[0] |= pid << 32,
            )?;
        }
        Line::NSpgid => {
            identity.pgrp = cursor.u32()?;
            parse_ids(
                cursor,
                namespaces.level,
                namespaces.ids_at,
                pool,
                |ids, pgrp| ids[1] |= pgrp,
            )?;
        }
        Line::NSsid => {
            identity.session = cursor.u32()?;
            parse_ids(
                cursor,
                namespaces.level,
                namespaces.ids_at,
                pool,
                |ids, session| ids[1] |= session << 32,
            )?;
        }
        Line::Kthread => {
            identity.flags =
                identity.flags & !KERNEL_THREAD | if flag(cursor)? { KERNEL_THREAD } else { 0 };
        }
        Line::VmPeak => memory.peak_vsize = kib(cursor)?,
        Line::VmSize => {
            identity.has_mm = 1;
            memory.vsize = kib(cursor)?;
        }
        Line::VmLck => memory.locked = kib(cursor)?,
        Line::VmPin => memory.pinned = kib(cursor)?,
        Line::VmHWM => memory.peak_rss = kib(cursor)?,
        // The sum of the three after it.
        Line::VmRSS => drop(kib(cursor)?),
        Line::RssAnon => memory.rss_anon = kib(cursor)?,
        Line::RssFile => memory.rss_file = kib(cursor)?,
        Line::RssShmem => memory.rss_shmem = kib(cursor)?,
        Line::VmData => memory.data = kib(cursor)?,
        Line::VmStk => memory.stack = kib(cursor)?,
        Line::VmExe => {
            memory.exe = kib(cursor)?;
            memory.text = memory.exe;
        }
        Line::VmLib => memory.lib = kib(cursor)?,
        Line::VmPTE => record.memory_details.page_tables = kib(cursor)?,
        Line::VmSwap => memory.swap = kib(cursor)?,
        Line::HugetlbPages => record.memory_details.hugetlb = kib(cursor)?,
        Line::CoreDumping => identity.core_dumping = flag(cursor)?.into(),
        Line::THP_enabled => {
            record.memory_details.mm_flags = if flag(cursor)? {
                0
            } else {
                format.facts.thp_disabled()
            };
        }
        Line::untag_mask => {
            cursor.byte(b'0', "0x")?;
            cursor.byte(b'x', "0x")?;
            record.memory_details.untag_mask = cursor.hex()?;
        }
        Line::Threads => identity.num_threads = cursor.u32()?,
        Line::SigQ => {
            signals.queued = cursor.u32()?.into();
            cursor.byte(b'/', "a slash and the limit")?;
            signals.queue_limit = cursor.u64()?;
        }
        Line::SigPnd => signals.pending = cursor.set()?,
        Line::ShdPnd => signals.shared_pending = cursor.set()?,
        Line::SigBlk => signals.blocked = cursor.set()?,
        Line::SigIgn => signals.ignored = cursor.set()?,
        Line::SigCgt => {
            signals.caught = cursor.set()?;
            signals.switches = u64::MAX;
        }
        Line::CapInh => credentials.cap_inheritable = cursor.set()?,
        Line::CapPrm => credentials.cap_permitted = cursor.set()?,
        Line::CapEff => credentials.cap_effective = cursor.set()?,
        Line::CapBnd => credentials.cap_bounding = cursor.set()?,
        Line::CapAmb => credentials.cap_ambient = cursor.set()?,
        Line::NoNewPrivs => credentials.atomic_flags = flag(cursor)?.into(),
        Line::Seccomp => credentials.seccomp_mode = cursor.u32()?,
        Line::Seccomp_filters => credentials.seccomp_filters = cursor.u32()?,
        Line::x86_Thread_features | Line::x86_Thread_features_locked => {
            let bits = parse_features(cursor);
            if line == Line::x86_Thread_features {
                credentials.thread_features = bits;
            } else {
                credentials.thread_features_locked = bits;
            }
            // A later kernel may have more words. They matter only if the line will be rendered.
            if !format.thread_features() {
                return cursor.line().map(drop);
            }
        }
        Line::voluntary_ctxt_switches => cpu.nvcsw = cursor.u64()?,
        Line::nonvoluntary_ctxt_switches => cpu.nivcsw = cursor.u64()?,
    }
    cursor.newline()
}

fn four(cursor: &mut Cursor<'_>) -> Result<[u32; 4], ParseError> {
    let mut ids = [0; 4];
    for (index, id) in ids.iter_mut().enumerate() {
        if index > 0 {
            cursor.byte(b'\t', "a tab and the next id")?;
        }
        *id = cursor.u32()?;
    }
    Ok(ids)
}

#[inline]
fn kib(cursor: &mut Cursor<'_>) -> Result<u64, ParseError> {
    let size = cursor.padded_size(1024)?;
    if cursor.rest().starts_with(b" kB") {
        cursor.skip(3);
        Ok(size)
    } else {
        Err(cursor.error("kB"))
    }
}

fn flag(cursor: &mut Cursor<'_>) -> Result<bool, ParseError> {
    if cursor.eat(b'1') {
        return Ok(true);
    }
    cursor.byte(b'0', "0 or 1").map(|()| false)
}

/// A word for each feature, in the order of their bits, each followed by a space.
fn parse_features(cursor: &mut Cursor<'_>) -> u64 {
    let words = [
        (&SHADOW_STACK_WORD[..], SHADOW_STACK),
        (&WRSS_WORD[..], WRSS),
    ];
    words.iter().fold(0, |bits, &(word, bit)| {
        if cursor.rest().starts_with(word) {
            cursor.skip(word.len());
            bits | bit
        } else {
            bits
        }
    })
}

fn parse_state(cursor: &mut Cursor<'_>, identity: &mut Identity) -> Result<(), ParseError> {
    let start = cursor.position();
    let line = cursor.line()?;
    let state = line.first().copied().and_then(State::from_letter);
    let Some(state) = state.filter(|state| state.name().as_bytes() == line) else {
        return Err(cursor.error_at(start, "a state and its name in parentheses"));
    };
    identity.state_bits = state.bits();
    Ok(())
}

/// Each group is followed by a space; so is an empty list.
fn parse_groups(
    cursor: &mut Cursor<'_>,
    record: &mut Record,
    pool: &mut Vec<u64>,
) -> Result<(), ParseError> {
    let credentials = &mut record.credentials;
    (credentials.ngroups, credentials.groups_at) = (0, 0);
    if !cursor.eat(b' ') {
        credentials.groups_at = take(pool, 0) as u32;
        while cursor.peek() != Some(b'\n') {
            let group = u64::from(cursor.u32()?);
            if credentials.ngroups.is_multiple_of(2) {
                take(pool, 1);
            }
            if let Some(word) = pool.last_mut() {
                *word |= group << (32 * (credentials.ngroups % 2));
            }
            credentials.ngroups += 1;
            cursor.byte(b' ', "a space")?;
        }
    }
    cursor.newline()
}

fn parse_speculation(
    line: Line,
    cursor: &mut Cursor<'_>,
    format: &Format,
    atomic_flags: &mut u64,
) -> Result<(), ParseError> {
    let start = cursor.position();
    let text = cursor.line()?;
    let known = if line == Line::Speculation_Store_Bypass {
        format.store_bypass()
    } else {
        format.indirect_branch()
    };
    match known.map(|known| known.parse(text)) {
        Some(Some(flags)) => *atomic_flags |= flags,
        Some(None) => return Err(cursor.error_at(start, "what this kernel says of speculation")),
        None => {}
    }
    Ok(())
}

/// The number of ids after the first one is the number of pid namespaces below the reader's.
fn parse_first_ids(
    cursor: &mut Cursor<'_>,
    record: &mut Record,
    pool: &mut Vec<u64>,
) -> Result<(), ParseError> {
    let namespaces = &mut record.namespaces;
    (namespaces.level, namespaces.ids_at) = (0, 0);
    while cursor.eat(b'\t') {
        let tgid = cursor.u32()?;
        let at = take(pool, 2);
        pool[at] = tgid.into();
        if namespaces.level == 0 {
            namespaces.ids_at = at as u32;
        }
        namespaces.level += 1;
    }
    Ok(())
}

fn parse_ids(
    cursor: &mut Cursor<'_>,
    level: u32,
    ids_at: u32,
    pool: &mut [u64],
    store: impl Fn(&mut [u64], u64),
) -> Result<(), ParseError> {
    for index in 0..level as usize {
        cursor.byte(b'\t', "a tab and the id in the next pid namespace")?;
        let id = cursor.u32()?;
        let at = ids_at as usize + 2 * index;
        if let Some(ids) = pool.get_mut(at..at + 2) {
            store(ids, id.into());
        }
    }
    Ok(())
}
