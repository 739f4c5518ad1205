//! Buffers: made, lent, used again.

use fastproc::{
    Texts,
    source::service::wire::{Reply, Status},
};

use crate::{exits::Range, memory::Memory, view::View};

/// What may be lent to the readers of one user, in bytes.
const LENT_TO_USER: usize = 64 << 20;
/// The same for root.
const LENT_TO_ROOT: usize = 256 << 20;
/// What may lie ready without being lent, in bytes.
const READY: usize = 24 << 20;

/// Which snapshot a buffer holds, and how much of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Contents {
    pub(crate) generation: u64,
    pub(crate) groups: u32,
    pub(crate) texts: Texts,
    pub(crate) texts_max_age_ns: u64,
    pub(crate) exits: Range,
}

/// A buffer of one view, for as long as it lives: who had it once may have kept it.
#[derive(Debug)]
pub(crate) struct Buffer {
    pub(crate) id: u64,
    pub(crate) memory: Memory,
    view: View,
    contents: Option<Contents>,
    /// The answer that names it.
    pub(crate) reply: Reply,
    lent: usize,
    used: u64,
}

/// Readers of this view have as much as they may.
#[derive(Debug)]
pub(crate) enum TakeError {
    /// Until some of it is back.
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

/// All buffers.
#[derive(Debug)]
pub(crate) struct Buffers {
    all: Vec<Buffer>,
    next_id: u64,
    clock: u64,
}

impl Buffers {
    /// Ids begin at `first_id`, so that another run of the service gives others.
    pub(crate) fn new(first_id: u64) -> Self {
        Self {
            all: Vec::new(),
            next_id: first_id.max(1),
            clock: 0,
        }
    }

    /// The buffer that holds this already.
    pub(crate) fn find(&mut self, view: View, contents: Contents) -> Option<&mut Buffer> {
        let found = self.all.iter_mut();
        found
            .into_iter()
            .find(|buffer| buffer.view == view && buffer.contents == Some(contents))
    }

    /// A buffer that nobody reads, of at least so many bytes, for what will be written into it.
    pub(crate) fn take(
        &mut self,
        view: View,
        contents: Contents,
        bytes: usize,
    ) -> Result<&mut Buffer, TakeError> {
        self.clock += 1;
        let fits = |buffer: &Buffer| {
            buffer.lent == 0
                && buffer.view == view
                && buffer.memory.bytes() >= bytes
                && buffer.memory.bytes() / 4 <= bytes.max(64 << 10)
        };
        // The one that was used last is warm.
        let free = self
            .all
            .iter()
            .enumerate()
            .filter(|(_, buffer)| fits(buffer))
            .max_by_key(|(_, buffer)| buffer.used)
            .map(|(at, _)| at);
        let at = match free {
            Some(at) => at,
            None => self.make(view, bytes)?,
        };
        let buffer = &mut self.all[at];
        buffer.contents = Some(contents);
        buffer.used = self.clock;
        Ok(buffer)
    }

    fn make(&mut self, view: View, bytes: usize) -> Result<usize, TakeError> {
        let uid = view.uid();
        let most = if uid == 0 { LENT_TO_ROOT } else { LENT_TO_USER };
        let lent = self.all.iter();
        let lent = lent.filter(|buffer| buffer.lent > 0 && buffer.view.uid() == uid);
        let lent: usize = lent.map(|buffer| buffer.memory.bytes()).sum();
        // The table grows; a quarter more saves making another one soon.
        let bytes = bytes + bytes / 4;
        if lent + bytes > most {
            return Err(TakeError::Full);
        }
        self.drop_unused(bytes);
        let memory = Memory::new(bytes).map_err(|_| TakeError::Memory)?;
        let id = self.next_id;
        self.next_id += 1;
        self.all.push(Buffer {
            id,
            memory,
            view,
            contents: None,
            reply: Reply::empty(Status::Ok),
            lent: 0,
            used: self.clock,
        });
        Ok(self.all.len() - 1)
    }

    /// Makes room among what lies ready for `more` bytes: what was used longest ago goes first.
    fn drop_unused(&mut self, more: usize) {
        loop {
            let free = || self.all.iter().filter(|buffer| buffer.lent == 0);
            let ready: usize = free().map(|buffer| buffer.memory.bytes()).sum();
            let oldest = free().min_by_key(|buffer| buffer.used);
            let Some(oldest) = oldest
                .map(|buffer| buffer.id)
                .filter(|_| ready + more > READY)
            else {
                return;
            };
            self.all.retain(|buffer| buffer.id != oldest);
        }
    }

    /// Lends a buffer once more.
    pub(crate) fn lend(&mut self, id: u64) {
        if let Some(buffer) = self.all.iter_mut().find(|buffer| buffer.id == id) {
            buffer.lent += 1;
        }
    }

    /// Takes a buffer back from one reader.
    pub(crate) fn give_back(&mut self, id: u64) {
        if let Some(buffer) = self.all.iter_mut().find(|buffer| buffer.id == id) {
            buffer.lent = buffer.lent.saturating_sub(1);
        }
        self.drop_unused(0);
    }

    pub(crate) fn get(&self, id: u64) -> Option<&Buffer> {
        self.all.iter().find(|buffer| buffer.id == id)
    }

    /// Number and bytes of those that are lent, and of those that lie ready.
    pub(crate) fn sizes(&self) -> [(usize, usize); 2] {
        let mut sizes = [(0, 0); 2];
        for buffer in &self.all {
            let size = &mut sizes[usize::from(buffer.lent == 0)];
            size.0 += 1;
            size.1 += buffer.memory.bytes();
        }
        sizes
    }
}

#[cfg(test)]
mod tests {
    use fastproc::access::Reader;

    use super::*;

    const SIZE: usize = 1 << 20;

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
        let buffer = buffers.take(view, contents(generation), SIZE).ok()?;
        Some(buffer.id)
    }

    #[test]
    fn what_is_lent_is_left_alone_and_what_is_back_is_used_again() {
        let mut buffers = Buffers::new(100);
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
        let mut buffers = Buffers::new(1);
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
        let mut buffers = Buffers::new(1);
        let mut generation = 0;
        let mut lend = |buffers: &mut Buffers, view| {
            generation += 1;
            let id = take(buffers, view, generation)?;
            buffers.lend(id);
            Some(id)
        };
        let lent: Vec<u64> = std::iter::from_fn(|| lend(&mut buffers, user(7))).collect();
        let bytes = buffers.sizes()[0].1;
        assert!(bytes <= LENT_TO_USER && bytes * 2 > LENT_TO_USER, "{bytes}");
        assert!(lend(&mut buffers, user(8)).is_some());
        assert!(lend(&mut buffers, View::All).is_some());
        buffers.give_back(lent[0]);
        assert!(lend(&mut buffers, user(7)).is_some());
    }

    #[test]
    fn what_lies_ready_is_bounded() {
        let mut buffers = Buffers::new(1);
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
