//! Maps by the ids of cgroups, which are looked up for every cgroup of every snapshot.

use std::{
    collections::HashMap,
    hash::{BuildHasher, Hasher, RandomState},
};

/// A map by ids of cgroups.
pub type Ids<V> = HashMap<u64, V, Seed>;

/// The hash of [`Ids`]: a random factor, so that no user can make cgroups whose ids fall together. A product is a tenth of the instructions
/// of the hash for keys of any kind.
#[derive(Clone, Copy, Debug)]
pub struct Seed(u64);

impl Default for Seed {
    fn default() -> Self {
        Self(RandomState::new().hash_one(0) | 1)
    }
}

impl BuildHasher for Seed {
    type Hasher = Product;

    fn build_hasher(&self) -> Product {
        Product {
            factor: self.0,
            product: 0,
        }
    }
}

/// Hashes one id of [`Ids`].
#[derive(Clone, Copy, Debug)]
pub struct Product {
    factor: u64,
    product: u64,
}

impl Hasher for Product {
    fn finish(&self) -> u64 {
        // The upper bits depend on all bits of the id; the map uses the lower ones first.
        self.product.rotate_left(32)
    }

    fn write_u64(&mut self, id: u64) {
        self.product = (self.product ^ id).wrapping_mul(self.factor);
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(byte.into());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn ids_in_a_row_are_spread() {
        let seed = Seed(0x9e37_79b9_7f4a_7c15);
        let hashes = (0..1000_u64).map(|id| seed.hash_one(id));
        let buckets: HashSet<_> = hashes.map(|hash| hash % 4096).collect();
        assert!(buckets.len() > 800, "{}", buckets.len());
    }

    #[test]
    fn seeds_differ() {
        assert_ne!(Seed::default().0, Seed::default().0);
    }
}
