//! The first rows of each person, in batches, in bounded memory.
//!
//! Persons are identified by a keyed 128-bit hash of their id ([`hashes`]); [`FirstRows`] counts the rows of each
//! person. A table of all persons may not fit into memory, so it covers a range of hashes. When it is full, the range
//! is halved and the persons outside it are dropped; a later pass over the same rows counts them. One pass is enough if
//! all fit.
//! Cost: O(rows) a pass, with a cache miss each; at most about 50 bytes for each person held. Oracle: a map of whole
//! ids.

use std::collections::HashMap;
use std::num::NonZero;

use rayon::prelude::*;
use siphasher::sip128::SipHasher24;

use crate::error::{Error, Result};
use crate::parallel::Cancel;

/// Rows between two checks of the cancel flag.
const SPAN: usize = 1 << 16;

/// The hash of an id.
pub type Hash = [u64; 2];

/// The ids of some rows.
#[derive(Debug, Clone, Copy)]
pub enum Ids<'a> {
    /// Numbers, or anything else of 64 bits.
    Words(&'a [u64]),
    /// Texts one after the other; each begins at its offset and ends at the next one.
    Texts {
        /// One more than there are texts.
        offsets: &'a [i64],
        /// The bytes that the offsets point into.
        bytes: &'a [u8],
    },
}

/// Hash each id: SipHash-2-4 of 128 bits.
///
/// # Errors
/// [`Error::InvalidParameter`] for offsets that do not rise within the bytes.
pub fn hashes(ids: Ids<'_>, key: Hash) -> Result<Vec<Hash>> {
    let hasher = SipHasher24::new_with_keys(key[0], key[1]);
    let hash = |id: &[u8]| <[u64; 2]>::from(hasher.hash(id).as_u64());
    match ids {
        Ids::Words(words) => Ok(words.par_iter().map(|word| hash(&word.to_le_bytes())).collect()),
        Ids::Texts { offsets, bytes } => offsets
            .par_windows(2)
            .map(|ends| {
                let range = usize::try_from(ends[0]).ok().zip(usize::try_from(ends[1]).ok());
                let text = range.and_then(|(begin, end)| bytes.get(begin..end));
                text.map(hash).ok_or_else(|| Error::InvalidParameter("offsets must rise within the bytes".to_owned()))
            })
            .collect(),
    }
}

/// The number of rows of each person so far.
#[derive(Debug, Clone)]
pub struct FirstRows {
    most: u32,
    persons: usize,
    low: u64,
    high: u64,
    met: HashMap<Hash, u32>,
}

impl FirstRows {
    /// Keep the first `most` rows of each person, holding up to about `persons` persons at a time.
    #[must_use]
    pub fn new(most: NonZero<u32>, persons: usize) -> Self {
        Self { most: most.get(), persons, low: 0, high: u64::MAX, met: HashMap::new() }
    }

    /// For each row whether it may be kept: false after the first `most` rows of its person in this pass.
    ///
    /// Persons outside the range of this pass are not counted, and their rows are true.
    ///
    /// # Errors
    /// [`Error::Interrupted`].
    pub fn update(&mut self, hashes: &[Hash], cancel: &Cancel) -> Result<Vec<bool>> {
        let mut kept = vec![true; hashes.len()];
        for (hashes, kept) in hashes.chunks(SPAN).zip(kept.chunks_mut(SPAN)) {
            cancel.check()?;
            for (hash, kept) in hashes.iter().zip(kept) {
                if (self.low..=self.high).contains(&hash[0]) {
                    let met = self.met.entry(*hash).or_insert(0);
                    *kept = *met < self.most;
                    *met = met.saturating_add(1);
                    if self.met.len() > self.persons {
                        self.forget();
                    }
                }
            }
        }
        Ok(kept)
    }

    /// Start another pass over the same rows, for the persons that this pass has left out; false if there are none.
    pub fn next_pass(&mut self) -> bool {
        self.met.clear();
        let Some(low) = self.high.checked_add(1) else { return false };
        let width = self.high - self.low;
        (self.low, self.high) = (low, low.saturating_add(width));
        true
    }

    /// Halve the range until the persons in it fit.
    fn forget(&mut self) {
        while self.met.len() > self.persons && self.low < self.high {
            self.high = self.low + (self.high - self.low) / 2;
            self.met.retain(|hash, _| hash[0] <= self.high);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const KEY: Hash = [3, 5];

    fn naive(ids: &[u64], most: u32) -> Vec<bool> {
        let first = |(row, id): (usize, &u64)| ids[..row].iter().filter(|other| *other == id).count() < most as usize;
        ids.iter().enumerate().map(first).collect()
    }

    proptest! {
        #[test]
        fn matches_naive(
            ids in prop::collection::vec(0_u64..40, 0..300),
            most in 1_u32..5,
            persons in 1_usize..60,
            batch in 1_usize..50,
        ) {
            let hashes = hashes(Ids::Words(&ids), KEY).unwrap();
            let mut first = FirstRows::new(NonZero::new(most).unwrap(), persons);
            let mut kept = vec![true; ids.len()];
            loop {
                let parts = hashes.chunks(batch).map(|part| first.update(part, &Cancel::default()).unwrap());
                let pass: Vec<bool> = parts.flatten().collect();
                kept.iter_mut().zip(pass).for_each(|(kept, this)| *kept &= this);
                prop_assert!(first.met.len() <= persons);
                if !first.next_pass() {
                    break;
                }
            }
            prop_assert_eq!(kept, naive(&ids, most));
        }
    }

    #[test]
    fn texts_are_hashed_whole() {
        let texts = Ids::Texts { offsets: &[0, 1, 2, 2, 4], bytes: b"aaaa" };
        let [a, again, empty, two] = hashes(texts, KEY).unwrap()[..] else { panic!("four texts") };
        assert_eq!(a, again);
        assert!(a != empty && a != two && empty != two);
        assert_ne!(hashes(texts, [3, 6]).unwrap()[0], a, "the key matters");
        assert_eq!(hashes(Ids::Texts { offsets: &[], bytes: b"" }, KEY).unwrap().len(), 0);
        assert!(hashes(Ids::Texts { offsets: &[0, 9], bytes: b"a" }, KEY).is_err());
        assert!(hashes(Ids::Texts { offsets: &[-1, 1], bytes: b"a" }, KEY).is_err());
        assert!(hashes(Ids::Texts { offsets: &[1, 0], bytes: b"a" }, KEY).is_err());
    }
}
