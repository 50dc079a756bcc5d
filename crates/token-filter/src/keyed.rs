//! Maps whose keys are hashes already: one multiplication instead of a hash of the hash.
//!
//! The factor is drawn once per map from the standard library's random state, so an output cannot be written to make
//! keys collide. Nothing iterates over these maps: results do not depend on the draw.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, Hasher, RandomState};

/// A map from 64-bit hashes.
pub(crate) type KeyMap<V> = HashMap<u64, V, Keyed>;
/// A set of 64-bit hashes.
pub(crate) type KeySet = HashSet<u64, Keyed>;

#[derive(Debug, Clone)]
pub(crate) struct Keyed(u64);

impl Default for Keyed {
    fn default() -> Self {
        Self(RandomState::new().hash_one(0_u64) | 1)
    }
}

impl BuildHasher for Keyed {
    type Hasher = KeyHasher;

    fn build_hasher(&self) -> KeyHasher {
        KeyHasher { factor: self.0, state: 0 }
    }
}

#[derive(Debug)]
pub(crate) struct KeyHasher {
    factor: u64,
    state: u64,
}

impl Hasher for KeyHasher {
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(u64::from(byte));
        }
    }

    fn write_u64(&mut self, key: u64) {
        let mixed = (self.state ^ key).wrapping_mul(self.factor);
        self.state = mixed ^ (mixed >> 32);
    }

    fn finish(&self) -> u64 {
        self.state
    }
}
