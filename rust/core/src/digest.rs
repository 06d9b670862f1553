//! A keyed digest of rows that does not depend on their order: whether a table is the same when it is read again.
//!
//! Each code becomes a 64-bit number under the key of its column (one step of `SplitMix64`). The digest of a column is the
//! sum of its numbers. A row is the sum of its own numbers, mixed once more, and the digest of the rows is the sum of
//! these: it also sees values that changed places between rows. Sums wrap, so they are the same in any order.
//! Keys are secret and random: two different tables have the same digest with probability about 2^-64. It finds
//! accidents; it is no defence against somebody who knows the keys.
//! Cost: one multiplication chain a code, far less than counting pairs. Oracle: one row at a time, in the tests.

use rayon::prelude::*;

use crate::error::{Error, Result};
use crate::parallel::Cancel;
use crate::table::{Column, Table};

/// Rows at a time: their sums stay in the nearest cache.
const SPAN: usize = 1 << 10;

/// The digest of some rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Digest {
    /// For each column the sum of its numbers.
    pub columns: Vec<u64>,
    /// The sum of all rows.
    pub rows: u64,
}

/// Digest all rows of a table, with a key for each column.
///
/// # Errors
/// [`Error::InvalidParameter`] unless there is a key for each column; [`Error::Interrupted`].
pub fn digest(table: &Table<'_>, keys: &[u64], cancel: &Cancel) -> Result<Digest> {
    if keys.len() != table.columns().len() {
        return Err(Error::InvalidParameter("a digest needs a key for each column".to_owned()));
    }
    let none = || Digest { columns: vec![0; keys.len()], rows: 0 };
    let spans = table.records().div_ceil(SPAN);
    let digest = (0..spans)
        .into_par_iter()
        .fold(none, |mut sums, span| {
            if !cancel.is_cancelled() {
                let begin = span * SPAN;
                add(&mut sums, table, keys, begin..table.records().min(begin + SPAN));
            }
            sums
        })
        .reduce(none, |mut sums, other| {
            sums.columns.iter_mut().zip(&other.columns).for_each(|(sum, more)| *sum = sum.wrapping_add(*more));
            sums.rows = sums.rows.wrapping_add(other.rows);
            sums
        });
    cancel.check()?;
    Ok(digest)
}

fn add(sums: &mut Digest, table: &Table<'_>, keys: &[u64], range: std::ops::Range<usize>) {
    let mut rows = [0_u64; SPAN];
    let rows = &mut rows[..range.len()];
    for ((column, &key), sum) in table.columns().iter().zip(keys).zip(&mut sums.columns) {
        let added = match column.slice(range.clone()) {
            Column::U8(codes) => add_column(rows, codes, key),
            Column::U16(codes) => add_column(rows, codes, key),
            Column::U32(codes) => add_column(rows, codes, key),
        };
        *sum = sum.wrapping_add(added);
    }
    sums.rows = rows.iter().fold(sums.rows, |sum, &row| sum.wrapping_add(mix(row)));
}

fn add_column<C: Copy + Into<u64>>(rows: &mut [u64], codes: &[C], key: u64) -> u64 {
    let mut sum = 0_u64;
    for (row, &code) in rows.iter_mut().zip(codes) {
        let number = mix(key.wrapping_add(code.into()));
        *row = row.wrapping_add(number);
        sum = sum.wrapping_add(number);
    }
    sum
}

/// One step of `SplitMix64`: a bijection in which each bit depends on all.
fn mix(number: u64) -> u64 {
    let z = number.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::parallel::pool;

    const SIZES: [u32; 3] = [3, 300, 70_000];
    const KEYS: [u64; 3] = [11, u64::MAX, 5 << 40];

    type Row = (u8, u16, u32);

    fn of(rows: &[Row]) -> Digest {
        let (a, (b, c)): (Vec<_>, (Vec<_>, Vec<_>)) = rows.iter().map(|&(a, b, c)| (a, (b, c))).unzip();
        let columns = vec![Column::U8(&a), Column::U16(&b), Column::U32(&c)];
        let table = Table::new(columns, SIZES.to_vec()).unwrap();
        digest(&table, &KEYS, &Cancel::default()).unwrap()
    }

    fn naive(rows: &[Row]) -> Digest {
        let mut sums = Digest { columns: vec![0; 3], rows: 0 };
        for &(a, b, c) in rows {
            let codes: [u64; 3] = [a.into(), b.into(), c.into()];
            let numbers: Vec<u64> = codes.iter().zip(KEYS).map(|(code, key)| mix(key.wrapping_add(*code))).collect();
            sums.columns.iter_mut().zip(&numbers).for_each(|(sum, number)| *sum = sum.wrapping_add(*number));
            sums.rows = sums.rows.wrapping_add(mix(numbers.iter().fold(0, |row, number| row.wrapping_add(*number))));
        }
        sums
    }

    proptest! {
        #[test]
        fn matches_naive_in_any_order(rows in prop::collection::vec((0_u8..3, 0_u16..300, 0_u32..70_000), 0..3000)) {
            let expected = naive(&rows);
            for threads in [1, 2, 8] {
                let pool = pool(std::num::NonZero::new(threads).unwrap()).unwrap();
                prop_assert_eq!(&pool.install(|| of(&rows)), &expected);
            }
            let turned: Vec<Row> = rows.iter().rev().copied().collect();
            prop_assert_eq!(of(&turned), expected);
        }
    }

    #[test]
    fn every_change_shows() {
        let rows = [(0, 1, 2), (1, 2, 3), (2, 3, 4)];
        let before = of(&rows);
        assert_ne!(of(&rows[..2]).rows, before.rows);
        let changed = of(&[(0, 1, 2), (1, 2, 3), (2, 3, 5)]);
        assert!(changed.rows != before.rows && changed.columns[2] != before.columns[2]);
        assert_eq!(changed.columns[..2], before.columns[..2]);
        let swapped = of(&[(1, 1, 2), (0, 2, 3), (2, 3, 4)]);
        assert_eq!(swapped.columns, before.columns);
        assert_ne!(swapped.rows, before.rows, "values that changed places");
    }
}
