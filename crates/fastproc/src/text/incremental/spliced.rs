//! A text in segments, each of which can be replaced.

use std::ops::Range;

/// The text, without gaps.
#[derive(Clone, Debug)]
pub(super) struct Spliced {
    text: Vec<u8>,
    /// Where each segment ends.
    ends: Box<[u16]>,
}

impl Spliced {
    /// The most bytes of text.
    pub(super) const LARGEST: usize = 8192;
    /// What a text is given to grow by.
    const ROOM: usize = 64;

    /// A text and where its segments end. `None`: it is longer than [`LARGEST`](Self::LARGEST) bytes.
    pub(super) fn new(text: &[u8], ends: &[usize]) -> Option<Self> {
        if text.len() > Self::LARGEST {
            return None;
        }
        let mut memory = Vec::with_capacity(text.len() + Self::ROOM);
        memory.extend_from_slice(text);
        Some(Self {
            text: memory,
            ends: ends.iter().map(|&end| end as u16).collect(),
        })
    }

    /// Replaces a segment. `false`: the text would grow past [`LARGEST`](Self::LARGEST), and nothing has changed.
    #[inline]
    pub(super) fn replace(&mut self, segment: usize, with: &[u8]) -> bool {
        let end = usize::from(self.ends[segment]);
        let start = segment
            .checked_sub(1)
            .map_or(0, |before| usize::from(self.ends[before]));
        if with.len() == end - start {
            self.text[start..end].copy_from_slice(with);
            return true;
        }
        self.resize(segment, start, with)
    }

    fn resize(&mut self, segment: usize, start: usize, with: &[u8]) -> bool {
        let old_end = usize::from(self.ends[segment]);
        let new_end = start + with.len();
        let old_len = self.text.len();
        let new_len = old_len - old_end + new_end;
        if new_len > Self::LARGEST {
            return false;
        }
        if new_len > old_len {
            if self.text.capacity() < new_len {
                self.text.reserve_exact(new_len - old_len + Self::ROOM);
            }
            self.text.resize(new_len, 0);
        }
        self.text.copy_within(old_end..old_len, new_end);
        self.text.truncate(new_len);
        self.text[start..new_end].copy_from_slice(with);
        let moved = (new_end as u16).wrapping_sub(old_end as u16);
        for end in &mut self.ends[segment..] {
            *end = end.wrapping_add(moved);
        }
        true
    }

    /// The text of segments that follow one another.
    #[inline]
    pub(super) fn text(&self, segments: &Range<usize>) -> &[u8] {
        let end = |segments: usize| {
            segments
                .checked_sub(1)
                .map_or(0, |last| usize::from(self.ends[last]))
        };
        &self.text[end(segments.start)..end(segments.end)]
    }

    /// Bytes of memory.
    pub(super) fn memory_bytes(&self) -> usize {
        self.text.capacity() + size_of_val(&*self.ends)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_is_its_segments(
            segments in prop::collection::vec("[a-z]{0,20}", 1..10),
            replaced in prop::collection::vec((any::<prop::sample::Index>(), "[A-Z]{0,30}"), 0..20),
        ) {
            let mut segments = segments;
            let mut len = 0;
            let ends: Vec<usize> = segments.iter().map(|segment| { len += segment.len(); len }).collect();
            let mut spliced = Spliced::new(segments.concat().as_bytes(), &ends).expect("it is short");
            for (at, with) in replaced {
                let at = at.index(segments.len());
                prop_assert!(spliced.replace(at, with.as_bytes()));
                segments[at] = with;
                let joined = segments.concat();
                prop_assert_eq!(spliced.text(&(0..segments.len())), joined.as_bytes());
                for (index, segment) in segments.iter().enumerate() {
                    prop_assert_eq!(spliced.text(&(index..index + 1)), segment.as_bytes());
                }
            }
        }
    }

    #[test]
    fn what_would_grow_too_large_stays_as_it_is() {
        assert!(Spliced::new(&[b'x'; Spliced::LARGEST + 1], &[Spliced::LARGEST + 1]).is_none());
        let mut spliced = Spliced::new(b"ab", &[1, 2]).expect("it is short");
        assert!(!spliced.replace(0, &[b'x'; Spliced::LARGEST]));
        assert_eq!(spliced.text(&(0..2)), b"ab");
        assert!(spliced.replace(0, &[b'x'; Spliced::LARGEST - 1]));
        assert_eq!(spliced.text(&(0..2)).len(), Spliced::LARGEST);
        assert_eq!(spliced.text(&(1..2)), b"b");
    }
}
