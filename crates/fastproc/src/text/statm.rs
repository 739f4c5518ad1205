//! `/proc/PID/statm`: one line of sizes in pages (`proc_pid_statm()` of fs/proc/array.c).

use seqtext::{Dec, SeqBuf};

use super::{
    cursor::Cursor,
    render::{RenderError, require},
    units::Units,
};
use crate::base::error::parse::ParseError;
use crate::{
    records::{
        fields::Fields,
        record::{Memory, Record},
    },
    snapshot::process::Process,
};

const FILE: &str = "/proc/PID/statm";

/// Appends the line.
///
/// # Errors
/// [`RenderError::MissingFields`] if the record does not hold the memory; nothing is written then.
pub fn render(
    process: Process<'_>,
    units: &Units,
    out: &mut SeqBuf<'_>,
) -> Result<(), RenderError> {
    require(process, Fields::MEMORY)?;
    let record = process.record();
    if record.identity.has_mm == 0 {
        out.put(b"0 0 0 0 0 0 0\n");
        return Ok(());
    }
    let memory = &record.memory;
    let pages = |bytes: u64| Dec(bytes >> units.page_shift);
    out.put((
        (
            pages(memory.vsize),
            b" ",
            pages(memory.rss()),
            b" ",
            pages(memory.shared()),
            b" ",
        ),
        (
            pages(memory.text),
            b" 0 ",
            pages(memory.data.wrapping_add(memory.stack)),
            b" 0\n",
        ),
    ));
    Ok(())
}

/// Reads the line into the memory of `record`.
///
/// The line does not distinguish files from shared memory, or data from stack, and lacks the other sizes: parse
/// [`status`](super::status) afterwards. Until then all shared memory counts as files, and data with stack as data.
pub fn parse(text: &[u8], units: &Units, record: &mut Record) -> Result<(), ParseError> {
    let mut fields = Cursor::new(FILE, text);
    let mut pages = [0; 7];
    for (index, size) in pages.iter_mut().enumerate() {
        if index > 0 {
            fields.byte(b' ', "a space and the next field")?;
        }
        *size = fields.size(1 << units.page_shift)?;
    }
    fields.newline()?;
    let [vsize, resident, shared, text_size, _, data, _] = pages;
    let rss_anon = resident
        .checked_sub(shared)
        .ok_or_else(|| fields.error_at(0, "no more shared than resident pages"))?;
    record.identity.has_mm = u8::from(pages != [0; 7]);
    record.memory = Memory {
        vsize,
        rss_anon,
        rss_file: shared,
        rss_shmem: 0,
        text: text_size,
        data,
        stack: 0,
        ..record.memory
    };
    Ok(())
}
