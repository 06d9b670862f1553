//! Random bits by counter, and the tables they are drawn from.
//!
//! Bits are a hash of (key, salt), so any cell of any row can be drawn alone and in any order.
//! A [`Table`] holds one distribution per context as an alias table (Walker 1977; Vose 1991) over the
//! codes it supports: one multiplication, one load and one comparison per draw, for any number of
//! codes. Weights are rounded to integers before the tables are built, so that the last bit of a
//! platform's `exp` cannot change the population.
//! Cost: O(codes) to build a context, 8 bytes per code; about 2 ns a draw.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "hashes and 32-bit fixed point are cut to their low or high bits on purpose"
)]

use chicle_core::random::mix;

/// 64 random bits for a well-mixed `key` and a `salt`: the folded product of wyrand.
#[inline]
pub(super) fn bits(key: u64, salt: u64) -> u64 {
    let z = key.wrapping_add(salt);
    let product = u128::from(z) * u128::from(z ^ 0xe703_7ed1_a0b4_28db);
    (product >> 64) as u64 ^ product as u64
}

/// The salt of a name: FNV-1a, mixed.
pub(super) fn salt(name: &str) -> u64 {
    let hash = name
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    mix(hash)
}

/// `bits` scaled to `0..n`.
#[inline]
pub(super) fn below(bits: u64, n: u16) -> u16 {
    (((bits >> 32) * u64::from(n)) >> 32) as u16
}

#[derive(Clone, Copy)]
struct Entry {
    /// `code` if the low 32 bits are below this, else `alias`.
    threshold: u32,
    code: u16,
    alias: u16,
}

#[derive(Clone, Copy)]
struct Span {
    start: u32,
    len: u32,
}

/// One distribution over codes per context.
#[derive(Default)]
pub(super) struct Table {
    spans: Vec<Span>,
    entries: Vec<Entry>,
}

impl Table {
    /// Contexts, in order, from pairs of first code and weights of the codes from there on.
    pub(super) fn from_weights(contexts: impl IntoIterator<Item = (u16, Vec<f64>)>) -> Self {
        let mut table = Self::default();
        for (first, weights) in contexts {
            table.push(first, &weights);
        }
        table
    }

    /// Append a context: code `first + i` has probability proportional to `weights[i]`.
    ///
    /// Codes whose weight is less than 2^-25 of the largest are left out.
    pub(super) fn push(&mut self, first: u16, weights: &[f64]) {
        let largest = weights.iter().copied().fold(0.0, f64::max);
        let support: Vec<(u16, u64)> = (first..)
            .zip(weights)
            .map(|(code, weight)| (code, (weight / largest * f64::from(1 << 24)).round() as u64))
            .filter(|&(_, weight)| weight > 0)
            .collect();
        assert!(!support.is_empty(), "a distribution needs a positive weight");
        self.spans.push(Span { start: self.entries.len() as u32, len: support.len() as u32 });
        self.entries.extend(alias_entries(&support));
    }

    pub(super) fn contexts(&self) -> usize {
        self.spans.len()
    }

    /// The code of each context if every context has only one: the table is then a function.
    pub(super) fn function(&self) -> Option<Vec<u16>> {
        let certain = self.entries.len() == self.spans.len();
        certain.then(|| self.entries.iter().map(|entry| entry.code).collect())
    }

    #[inline]
    pub(super) fn draw(&self, context: usize, bits: u64) -> u16 {
        let span = self.spans[context];
        let offset = ((bits >> 32) * u64::from(span.len)) >> 32;
        let entry = self.entries[span.start as usize + offset as usize];
        if (bits as u32) < entry.threshold { entry.code } else { entry.alias }
    }
}

/// Vose's construction in integers: fill each short entry up to the mean from a long one.
fn alias_entries(support: &[(u16, u64)]) -> Vec<Entry> {
    let total: u64 = support.iter().map(|&(_, weight)| weight).sum();
    let n = support.len() as u64;
    let mut left: Vec<u64> = support.iter().map(|&(_, weight)| weight * n).collect();
    let whole = |i: usize| Entry { threshold: u32::MAX, code: support[i].0, alias: support[i].0 };
    let mut entries: Vec<Entry> = (0..support.len()).map(whole).collect();
    let (mut short, mut long): (Vec<usize>, Vec<usize>) = (0..support.len()).partition(|&i| left[i] < total);
    while let (Some(i), Some(&j)) = (short.pop(), long.last()) {
        entries[i].threshold = ((u128::from(left[i]) << 32) / u128::from(total)) as u32;
        entries[i].alias = support[j].0;
        left[j] -= total - left[i];
        if left[j] < total {
            long.pop();
            short.push(j);
        }
    }
    entries
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_draws_its_weights() {
        let weights = [1.0, 0.0, 5.0, 0.25, 3.75];
        let table = Table::from_weights([(7, vec![1.0]), (10, weights.to_vec())]);
        let mut counts = [0_u32; 5];
        for i in 0..1_000_000 {
            counts[usize::from(table.draw(1, bits(mix(i), 3)) - 10)] += 1;
            assert_eq!(table.draw(0, bits(mix(i), 4)), 7);
        }
        for (count, weight) in counts.iter().zip(weights) {
            // Six standard deviations of a count of a million draws are at most 3,000.
            assert!((f64::from(*count) - weight * 1e5).abs() < 3_000.0, "{counts:?}");
        }
        assert_eq!(counts[1], 0);
    }

    #[test]
    fn salts_give_unrelated_bits() {
        let ones: u32 = (0..10_000).map(|i| (bits(mix(i), salt("AGE")) ^ bits(mix(i), salt("SEX"))).count_ones()).sum();
        assert!((315_000..325_000).contains(&ones));
    }
}
