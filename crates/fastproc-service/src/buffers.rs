//! Buffers: made, lent and reused.

use fastproc::{
    Texts,
    source::service::wire::{Op, Reply, Status},
};

use crate::{
    exits::Range,
    memory::{Counts, Memory},
    passed_files::{PassedFiles, Watched},
    view::View,
};

/// Bytes that may lie ready without being lent, or two buffers of the size that was made last if that is more.
const READY: usize = 24 << 20;
/// The most bytes, besides a sixteenth, that a buffer is larger than needed.
const RESERVE: usize = 4 << 20;
/// A buffer is charged at least this much, so that there are never more buffers than descriptors.
const LEAST: usize = 128 << 10;
/// Root may hold this many times what another user may.
const OF_ROOT: usize = 4;

/// How much memory readers may hold.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// By the readers of one user other than root.
    pub(crate) of_user: usize,
    /// By the readers of all of these users together.
    pub(crate) of_all: usize,
}

impl Limits {
    /// The largest number of buffers.
    pub(crate) const fn buffers(self) -> usize {
        (self.of_all + OF_ROOT * self.of_user) / LEAST
    }
}

/// What a snapshot is of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Subject {
    Cgroups,
    Files,
    #[default]
    Processes,
}

impl Subject {
    pub(crate) fn of(op: Op) -> Self {
        match op {
            Op::Cgroups => Self::Cgroups,
            Op::Files => Self::Files,
            _ => Self::Processes,
        }
    }
}

/// Which snapshot a buffer holds, and how much of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Contents {
    pub(crate) generation: u64,
    /// The collector that walked.
    pub(crate) field_set: usize,
    pub(crate) groups: u32,
    pub(crate) texts: Texts,
    pub(crate) texts_max_age_ns: u64,
    pub(crate) exits: Range,
    /// Generations are numbered apart for each.
    pub(crate) subject: Subject,
}

/// A buffer of one view. A reader that was lent it once may have kept it, for as long as the buffer lives.
#[derive(Debug)]
pub(crate) struct Buffer {
    pub(crate) id: u64,
    pub(crate) memory: Memory,
    view: View,
    contents: Option<Contents>,
    /// What it held before it was taken, and still holds until it is written to.
    pub(crate) left: Option<Contents>,
    /// Its records, as long as no later buffer of this view follows them.
    pub(crate) latest: Option<(Contents, Counts)>,
    /// The answer that refers to it.
    pub(crate) reply: Reply,
    lent: usize,
    /// Whether a reader received it.
    passed: bool,
    used: u64,
}

/// There is no buffer for this view.
#[derive(Debug)]
pub(crate) enum TakeError {
    /// The readers hold as much as they may, until they give some back.
    Full,
    /// The kernel gave no memory.
    Memory,
}

impl From<TakeError> for Status {
    fn from(error: TakeError) -> Self {
        match error {
            TakeError::Full => Self::Busy,
            TakeError::Memory => Self::Failed,
        }
    }
}

impl Contents {
    /// Whether both are records of the same groups from the same collector, so that its walks tell which are unchanged.
    pub(crate) fn follows(self, before: Self) -> bool {
        let kind = |of: Self| (of.field_set, of.groups, of.subject);
        self.generation != 0 && before.generation != 0 && kind(self) == kind(before)
    }
}

impl Buffer {
    /// What it holds. `None` until [`finish`](Self::finish).
    pub(crate) fn contents(&self) -> Option<Contents> {
        self.contents
    }

    fn charge(&self) -> usize {
        self.memory.bytes().max(LEAST)
    }

    /// Sets what was written into it.
    pub(crate) fn finish(&mut self, contents: Contents) {
        self.contents = Some(contents);
    }

    /// Whether dropping it frees memory or lets the service learn when it does.
    fn may_go(&self) -> bool {
        self.lent == 0 && (!self.passed || self.memory.watched().is_some())
    }
}

/// A buffer that the service has dropped. Its memory stays as long as a reader has it.
#[derive(Debug)]
struct Retired {
    /// `None`: the service cannot learn when no reader has it any more.
    watched: Option<Watched>,
    uid: u32,
    charge: usize,
}

/// All buffers. A buffer is charged to its user until no reader has it any more, lent or not: a reader that was lent it
/// may have kept it.
#[derive(Debug)]
pub(crate) struct Buffers {
    limits: Limits,
    passed_files: PassedFiles,
    all: Vec<Buffer>,
    retired: Vec<Retired>,
    next_id: u64,
    clock: u64,
    /// Bytes of the buffer that was made last.
    latest: usize,
}

impl Buffers {
    /// Ids begin at `first_id`, so that each run of the service uses different ones.
    pub(crate) fn new(first_id: u64, limits: Limits) -> Self {
        Self {
            limits,
            passed_files: PassedFiles::new(),
            all: Vec::new(),
            retired: Vec::new(),
            next_id: first_id.max(1),
            clock: 0,
            latest: 0,
        }
    }

    /// The buffer that already holds these contents.
    pub(crate) fn find(&mut self, view: View, contents: Contents) -> Option<&mut Buffer> {
        let found = self.all.iter_mut();
        found
            .into_iter()
            .find(|buffer| buffer.view == view && buffer.contents == Some(contents))
    }

    /// A buffer of at least so many bytes that nobody reads. It has no contents until [`Buffer::finish`].
    pub(crate) fn take(&mut self, view: View, bytes: usize) -> Result<&mut Buffer, TakeError> {
        let at = self.take_but(None, view, bytes)?;
        Ok(&mut self.all[at])
    }

    /// The same for a snapshot of a user, and the buffer with the last one that these contents follow.
    pub(crate) fn take_after(
        &mut self,
        contents: Contents,
        view: View,
        bytes: usize,
    ) -> Result<(&mut Buffer, Option<&mut Buffer>), TakeError> {
        let is_latest = |of: &&Buffer| {
            let latest = of.latest.filter(|_| of.view == view);
            latest.is_some_and(|(of, _)| contents.follows(of))
        };
        let latest = self.all.iter().find(is_latest).map(|buffer| buffer.id);
        let at = self.take_but(latest, view, bytes)?;
        let latest = self.all.iter().position(|of| Some(of.id) == latest);
        match latest.filter(|&latest| latest != at) {
            Some(latest) => {
                let both = self.all.get_disjoint_mut([at, latest]);
                let [buffer, latest] = both.map_err(|_| TakeError::Memory)?;
                Ok((buffer, Some(latest)))
            }
            None => Ok((&mut self.all[at], None)),
        }
    }

    /// Takes another buffer than this one, if there is memory for that.
    fn take_but(&mut self, not: Option<u64>, view: View, bytes: usize) -> Result<usize, TakeError> {
        self.clock += 1;
        let at = match self.find_free(not, view, bytes, 4 * bytes.max(64 << 10)) {
            Some(at) => at,
            None => self.make(view, bytes)?,
        };
        let buffer = &mut self.all[at];
        buffer.left = buffer.contents.take();
        buffer.latest = None;
        buffer.used = self.clock;
        Ok(at)
    }

    /// Whether [`take`](Self::take) is likely to succeed.
    pub(crate) fn has_room(&mut self, view: View, bytes: usize) -> bool {
        self.find_free(None, view, bytes, usize::MAX).is_some()
            || self.make_room(view.uid(), with_reserve(bytes))
    }

    /// A buffer that nobody reads, preferably the one that was used last: it is in the caches.
    fn find_free(&self, not: Option<u64>, view: View, bytes: usize, most: usize) -> Option<usize> {
        let fits = |buffer: &Buffer| {
            buffer.lent == 0
                && Some(buffer.id) != not
                && buffer.view == view
                && (bytes..=most).contains(&buffer.memory.bytes())
        };
        let all = self.all.iter().enumerate();
        all.filter(|(_, buffer)| fits(buffer))
            .max_by_key(|(_, buffer)| buffer.used)
            .map(|(at, _)| at)
    }

    fn make(&mut self, view: View, bytes: usize) -> Result<usize, TakeError> {
        let uid = view.uid();
        let bytes = with_reserve(bytes);
        if !self.has_place(uid, bytes)
            && let Some(larger) = self.find_free(None, view, bytes, usize::MAX)
        {
            return Ok(larger);
        }
        if !self.make_room(uid, bytes) {
            return Err(TakeError::Full);
        }
        self.latest = bytes;
        self.drop_unused(bytes);
        let memory = Memory::new(bytes, &self.passed_files).map_err(|_| TakeError::Memory)?;
        let id = self.next_id;
        self.next_id += 1;
        self.all.push(Buffer {
            id,
            memory,
            view,
            contents: None,
            left: None,
            latest: None,
            reply: Reply::empty(Status::Ok),
            lent: 0,
            passed: false,
            used: self.clock,
        });
        Ok(self.all.len() - 1)
    }

    /// Bytes that the readers of this user hold or may have kept; with `None`, of all users but root.
    fn charged(&self, uid: Option<u32>) -> usize {
        let counts = |of: u32| uid.map_or(of != 0, |uid| uid == of);
        let all = self.all.iter();
        let all = all.map(|buffer| (buffer.view.uid(), buffer.charge()));
        let retired = self.retired.iter();
        let retired = retired.map(|retired| (retired.uid, retired.charge));
        all.chain(retired)
            .filter(|&(of, _)| counts(of))
            .map(|(_, charge)| charge)
            .sum()
    }

    fn has_place_of_user(&self, uid: u32, bytes: usize) -> bool {
        let most = self.limits.of_user;
        let most = if uid == 0 { OF_ROOT * most } else { most };
        let charged = self.charged(Some(uid));
        // A user may always have one buffer, however large.
        charged == 0 || charged + bytes <= most
    }

    fn has_place(&self, uid: u32, bytes: usize) -> bool {
        self.has_place_of_user(uid, bytes)
            && (uid == 0 || self.charged(None) + bytes <= self.limits.of_all)
    }

    /// Drops buffers that this user's readers have given back, and those of others if all users together hold too much.
    /// A buffer that a reader has kept is still charged.
    fn make_room(&mut self, uid: u32, bytes: usize) -> bool {
        self.settle();
        while !self.has_place(uid, bytes) {
            let own = !self.has_place_of_user(uid, bytes);
            let unused = self.all.iter().enumerate().filter(|(_, buffer)| {
                let of = buffer.view.uid();
                buffer.may_go() && if own { of == uid } else { of != 0 }
            });
            let Some((at, _)) = unused.min_by_key(|(_, buffer)| buffer.used) else {
                return false;
            };
            self.retire(at);
        }
        true
    }

    /// Drops unused buffers until `more` bytes may lie ready, the least recently used first.
    fn drop_unused(&mut self, more: usize) {
        let most = READY.max(2 * self.latest);
        loop {
            let free = || self.all.iter().enumerate().filter(|(_, of)| of.may_go());
            let ready: usize = free().map(|(_, buffer)| buffer.memory.bytes()).sum();
            let oldest = free().min_by_key(|(_, buffer)| buffer.used);
            match oldest.map(|(at, _)| at) {
                Some(at) if ready + more > most => self.retire(at),
                _ => return,
            }
        }
    }

    /// Drops a buffer. It is charged until no reader has it.
    fn retire(&mut self, at: usize) {
        let buffer = self.all.swap_remove(at);
        let watched = buffer.memory.watched();
        if buffer.passed {
            self.retired.push(Retired {
                watched,
                uid: buffer.view.uid(),
                charge: buffer.charge(),
            });
        } else {
            watched.inspect(|&watched| self.passed_files.forget(watched));
        }
        drop(buffer);
        self.settle();
    }

    /// Finds out which dropped buffers no reader has any more.
    pub(crate) fn settle(&mut self) {
        let retired = &mut self.retired;
        if !retired.is_empty() {
            self.passed_files
                .gone(|gone| retired.retain(|retired| retired.watched != Some(gone)));
        }
    }

    /// Lends a buffer once more.
    pub(crate) fn lend(&mut self, id: u64) {
        if let Some(buffer) = self.get_mut(id) {
            buffer.lent += 1;
            buffer.passed = true;
        }
    }

    /// Keeps a buffer from being taken until it is given back.
    pub(crate) fn hold(&mut self, id: u64) {
        if let Some(buffer) = self.get_mut(id) {
            buffer.lent += 1;
        }
    }

    /// Takes a buffer back from one reader.
    pub(crate) fn give_back(&mut self, id: u64) {
        if let Some(buffer) = self.get_mut(id) {
            buffer.lent = buffer.lent.saturating_sub(1);
        }
        self.drop_unused(0);
    }

    /// Drops a buffer that a reader may still read although it has disconnected. It is not written to again.
    pub(crate) fn give_up(&mut self, id: u64) {
        if let Some(at) = self.all.iter().position(|buffer| buffer.id == id) {
            self.retire(at);
        }
    }

    pub(crate) fn get_mut(&mut self, id: u64) -> Option<&mut Buffer> {
        self.all.iter_mut().find(|buffer| buffer.id == id)
    }

    pub(crate) fn get(&self, id: u64) -> Option<&Buffer> {
        self.all.iter().find(|buffer| buffer.id == id)
    }

    pub(crate) fn lent_bytes(&self) -> usize {
        let lent = self.all.iter().filter(|of| of.lent > 0);
        lent.map(|of| of.memory.bytes()).sum()
    }

    /// Number and bytes of the buffers that are lent, that lie ready, and that readers have kept.
    pub(crate) fn sizes(&mut self) -> [(usize, usize); 3] {
        self.settle();
        let kept = self.retired.iter().map(|retired| retired.charge);
        let mut sizes = [(0, 0), (0, 0), (kept.len(), kept.sum())];
        for buffer in &self.all {
            let size = &mut sizes[usize::from(buffer.lent == 0)];
            size.0 += 1;
            size.1 += buffer.memory.bytes();
        }
        sizes
    }
}

/// A quarter more than needed, or less if that would be much, so that a growing table does not need a new buffer soon.
fn with_reserve(bytes: usize) -> usize {
    bytes + (bytes / 4).min(RESERVE + bytes / 16)
}

#[cfg(test)]
mod tests;
