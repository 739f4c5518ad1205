//! Buffers: made, lent and reused.

use fastproc::{
    Texts,
    source::service::wire::{Reply, Status},
};

use crate::{
    exits::Range,
    holders::{Holders, Watched},
    memory::Memory,
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

/// Which snapshot a buffer holds, and how much of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Contents {
    pub(crate) generation: u64,
    pub(crate) groups: u32,
    pub(crate) texts: Texts,
    pub(crate) texts_max_age_ns: u64,
    pub(crate) exits: Range,
    /// Whether it is of the cgroups, whose generations are numbered apart.
    pub(crate) is_of_cgroups: bool,
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

impl Buffer {
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
    holders: Holders,
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
            holders: Holders::new(),
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
        self.clock += 1;
        let at = match self.find_free(view, bytes, 4 * bytes.max(64 << 10)) {
            Some(at) => at,
            None => self.make(view, bytes)?,
        };
        let buffer = &mut self.all[at];
        buffer.left = buffer.contents.take();
        buffer.used = self.clock;
        Ok(buffer)
    }

    /// Whether [`take`](Self::take) is likely to succeed.
    pub(crate) fn has_room(&mut self, view: View, bytes: usize) -> bool {
        self.find_free(view, bytes, usize::MAX).is_some()
            || self.make_room(view.uid(), with_reserve(bytes))
    }

    /// A buffer that nobody reads, preferably the one that was used last: it is in the caches.
    fn find_free(&self, view: View, bytes: usize, most: usize) -> Option<usize> {
        let fits = |buffer: &Buffer| {
            buffer.lent == 0
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
            && let Some(larger) = self.find_free(view, bytes, usize::MAX)
        {
            return Ok(larger);
        }
        if !self.make_room(uid, bytes) {
            return Err(TakeError::Full);
        }
        self.latest = bytes;
        self.drop_unused(bytes);
        let memory = Memory::new(bytes, &self.holders).map_err(|_| TakeError::Memory)?;
        let id = self.next_id;
        self.next_id += 1;
        self.all.push(Buffer {
            id,
            memory,
            view,
            contents: None,
            left: None,
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
            watched.inspect(|&watched| self.holders.forget(watched));
        }
        drop(buffer);
        self.settle();
    }

    /// Finds out which dropped buffers no reader has any more.
    pub(crate) fn settle(&mut self) {
        let retired = &mut self.retired;
        if !retired.is_empty() {
            self.holders
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
mod tests {
    use fastproc::access::Reader;

    use super::*;

    const SIZE: usize = 1 << 20;
    const LIMITS: Limits = Limits {
        of_user: 16 << 20,
        of_all: 40 << 20,
    };

    fn user(uid: u32) -> View {
        View::Of(Reader {
            pid: 0,
            fsuid: uid,
            fsgid: uid,
            cap_effective: 0,
            user_ns: 1,
            confined: false,
        })
    }

    fn contents(generation: u64) -> Contents {
        Contents {
            generation,
            groups: 3,
            ..Contents::default()
        }
    }

    fn take(buffers: &mut Buffers, view: View, generation: u64) -> Option<u64> {
        let buffer = buffers.take(view, SIZE).ok()?;
        buffer.finish(contents(generation));
        Some(buffer.id)
    }

    #[test]
    fn what_is_lent_is_left_alone_and_what_is_back_is_used_again() {
        let mut buffers = Buffers::new(100, LIMITS);
        let first = take(&mut buffers, View::All, 1).expect("a buffer");
        buffers.lend(first);
        buffers.lend(first);
        let second = take(&mut buffers, View::All, 2).expect("another");
        assert_ne!(first, second);
        buffers.lend(second);
        buffers.give_back(first);
        assert_ne!(
            take(&mut buffers, View::All, 3),
            Some(first),
            "one still reads"
        );
        buffers.give_back(second);
        buffers.give_back(first);
        let again = take(&mut buffers, View::All, 4).expect("a buffer");
        assert!(again <= second + 1, "nothing new was made");
    }

    #[test]
    fn no_view_gets_what_another_has_had() {
        let mut buffers = Buffers::new(1, LIMITS);
        let root = take(&mut buffers, View::All, 1).expect("a buffer");
        let user_a = take(&mut buffers, user(7), 2).expect("a buffer");
        let user_b = take(&mut buffers, user(8), 3).expect("a buffer");
        assert_eq!(take(&mut buffers, View::All, 4), Some(root));
        assert_eq!(take(&mut buffers, user(7), 5), Some(user_a));
        assert_eq!(take(&mut buffers, user(8), 6), Some(user_b));
        assert!(buffers.find(user(8), contents(5)).is_none());
    }

    #[test]
    fn a_user_is_lent_so_much_and_others_are_served() {
        let mut buffers = Buffers::new(1, LIMITS);
        let mut generation = 0;
        let mut lend = |buffers: &mut Buffers, view| {
            generation += 1;
            let id = take(buffers, view, generation)?;
            buffers.lend(id);
            Some(id)
        };
        let lent: Vec<u64> = std::iter::from_fn(|| lend(&mut buffers, user(7))).collect();
        assert!(lent.len() * SIZE <= LIMITS.of_user && lent.len() * SIZE * 2 > LIMITS.of_user);
        assert!(lend(&mut buffers, user(8)).is_some());
        assert!(lend(&mut buffers, View::All).is_some());
        buffers.give_back(lent[0]);
        assert!(lend(&mut buffers, user(7)).is_some());
    }

    /// A descriptor of a buffer, as a reader keeps it.
    fn keep(buffers: &Buffers, id: u64) -> std::os::fd::OwnedFd {
        let buffer = buffers.get(id).expect("the buffer is lent");
        let kept = buffer.memory.file().try_clone_to_owned();
        kept.expect("a descriptor")
    }

    #[test]
    fn what_a_user_has_kept_counts_until_it_lets_go_of_it() {
        let mut buffers = Buffers::new(1, LIMITS);
        let mut generation = 0;
        let mut kept = Vec::new();
        let mut pin = |buffers: &mut Buffers, uid, kept: &mut Vec<_>| {
            // Ever larger ones, so that no returned buffer fits.
            generation += 1;
            let bytes = SIZE + (generation as usize) * (64 << 10);
            let Ok(buffer) = buffers.take(user(uid), bytes) else {
                return false;
            };
            let id = buffer.id;
            buffers.lend(id);
            kept.push(keep(buffers, id));
            buffers.give_back(id);
            true
        };
        while pin(&mut buffers, 7, &mut kept) {
            assert!(kept.len() < 100, "a reader holds more than its limit");
            assert!(buffers.charged(Some(7)) <= LIMITS.of_user);
        }
        // Others are served until all of them together reach the limit.
        let others = (8..40).take_while(|&uid| {
            while pin(&mut buffers, uid, &mut kept) {}
            buffers.charged(Some(uid)) > 0
        });
        assert!((2..20).contains(&others.count()));
        assert!(buffers.charged(None) <= LIMITS.of_all);
        assert!(take(&mut buffers, View::All, 1000).is_some(), "root is");
        kept.clear();
        // A child that another test forks has all descriptors for a moment.
        fastproc_testbed::wait_until("nobody has them", || pin(&mut buffers, 7, &mut kept));
        assert!(pin(&mut buffers, 39, &mut kept));
    }

    #[test]
    fn what_lies_ready_is_bounded() {
        let mut buffers = Buffers::new(
            1,
            Limits {
                of_all: 1 << 30,
                ..LIMITS
            },
        );
        for uid in 1..100 {
            take(&mut buffers, user(uid), u64::from(uid)).expect("a buffer");
            assert!(buffers.sizes()[1].1 <= READY);
        }
        // Also when many come back at once.
        let lent: Vec<u64> = (1..100)
            .map(|uid| {
                let id = take(&mut buffers, user(uid), 1000 + u64::from(uid)).expect("a buffer");
                buffers.lend(id);
                id
            })
            .collect();
        for id in lent {
            buffers.give_back(id);
        }
        assert!(buffers.sizes()[1].1 <= READY);
    }
}
