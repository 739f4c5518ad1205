//! Strings that live until the next fetch.

use std::ffi::c_char;

const CHUNK: usize = 64 << 10;

/// Memory that is allocated piece by piece and freed as a whole. Pieces do not move.
#[derive(Debug, Default)]
pub(crate) struct Arena {
    chunks: Vec<Vec<u64>>,
    /// The current chunk, and how many of its words are used.
    at: usize,
    used: usize,
}

impl Arena {
    /// Frees everything.
    pub(crate) fn clear(&mut self) {
        (self.at, self.used) = (0, 0);
    }

    /// Allocates this many bytes, aligned for pointers.
    pub(crate) fn room(&mut self, bytes: usize) -> &mut [u8] {
        let words = bytes.div_ceil(8).max(1);
        while self
            .chunks
            .get(self.at)
            .is_some_and(|chunk| chunk.len() - self.used < words)
        {
            (self.at, self.used) = (self.at + 1, 0);
        }
        if self.at == self.chunks.len() {
            self.chunks.push(vec![0; words.max(CHUNK / 8)]);
        }
        let start = self.used;
        self.used += words;
        let room = &mut self.chunks[self.at][start..start + words];
        // SAFETY: words are bytes, and any bytes are words.
        let room = unsafe { std::slice::from_raw_parts_mut(room.as_mut_ptr().cast(), 8 * words) };
        &mut room[..bytes]
    }

    /// Copies the parts into one C string.
    pub(crate) fn string(&mut self, parts: &[&[u8]]) -> *mut c_char {
        let len: usize = parts.iter().map(|part| part.len()).sum();
        let room = self.room(len + 1);
        let mut at = 0;
        for part in parts {
            room[at..at + part.len()].copy_from_slice(part);
            at += part.len();
        }
        room[at] = 0;
        room.as_mut_ptr().cast()
    }

    /// An array of one C string and a null pointer.
    pub(crate) fn vector_of(&mut self, string: *mut c_char) -> *mut *mut c_char {
        let room = self.room(2 * size_of::<*mut c_char>());
        let vector: *mut *mut c_char = room.as_mut_ptr().cast();
        // SAFETY: there is aligned room for both.
        unsafe {
            vector.write(string);
            vector.add(1).write(std::ptr::null_mut());
        }
        vector
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::CStr;

    use super::*;

    #[test]
    fn strings_stay_where_they_are_until_all_are_taken_back() {
        let mut arena = Arena::default();
        let long = vec![b'x'; 3 * CHUNK];
        let made: Vec<_> = (0..5000_u32)
            .map(|i| arena.string(&[b"no ", i.to_string().as_bytes()]))
            .collect();
        let last = arena.string(&[&long]);
        let text = |string: *mut c_char| {
            // SAFETY: the arena made it.
            unsafe { CStr::from_ptr(string) }.to_str().expect("ASCII")
        };
        for (i, &string) in made.iter().enumerate() {
            assert_eq!(text(string), format!("no {i}"));
        }
        assert_eq!(text(last).len(), long.len());
        arena.clear();
        assert_eq!(arena.string(&[b"again"]), made[0]);
    }
}
