//! The kernel against the oracle, and the path for tables too long for a test.

use std::num::NonZero;

use proptest::prelude::*;

use super::*;
use crate::count::{self, MEMORY_LIMIT};
use crate::parallel;
use crate::query::{Axis, Query};
use crate::random::Random;
use crate::table::{Codes, Column};

#[derive(Debug, Clone)]
struct Owned {
    cardinalities: Vec<u32>,
    columns: Vec<Codes>,
    axes: Vec<Axis>,
    shares: Vec<Vec<f64>>,
}

impl Owned {
    fn new(cardinalities: &[u32], records: usize, seed: u64) -> Self {
        Self::in_buckets(cardinalities, records, seed, 0)
    }

    /// Attributes whose bit is set are in buckets, about half as many as codes.
    fn in_buckets(cardinalities: &[u32], records: usize, seed: u64, coarse: u32) -> Self {
        let mut state = seed;
        let mut draw = move || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            f64::from((state >> 33) as u32) / f64::from(1_u32 << 31)
        };
        let mut column = |&cardinality: &u32| {
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "codes are below their cardinality"
            )]
            let codes: Vec<u32> = (0..records).map(|_| (draw().powi(3) * f64::from(cardinality)) as u32).collect();
            match Column::width_for(cardinality) {
                1 => Codes::U8(codes.into_iter().map(|c| u8::try_from(c).unwrap()).collect()),
                2 => Codes::U16(codes.into_iter().map(|c| u16::try_from(c).unwrap()).collect()),
                _ => Codes::U32(codes),
            }
        };
        let columns = cardinalities.iter().map(&mut column).collect();
        let view = |(attribute, &cardinality): (usize, &u32)| match coarse >> attribute & 1 {
            0 => Axis::plain(attribute, cardinality),
            _ => Axis::in_buckets(attribute, (0..cardinality).map(|code| code * 5 / 9).collect(), None),
        };
        let axes: Vec<Axis> = cardinalities.iter().enumerate().map(view).collect();
        let shares = axes.iter().map(|axis| {
            let raw: Vec<f64> = (0..axis.size).map(|_| (draw() - 0.3).max(0.0) + 1e-9).collect();
            let sum: f64 = raw.iter().sum();
            raw.iter().map(|share| share / sum).collect()
        });
        let shares = shares.collect();
        Self { cardinalities: cardinalities.to_vec(), columns, axes, shares }
    }

    fn table(&self) -> Table<'_> {
        Table::new(self.columns.iter().map(Codes::column).collect(), self.cardinalities.clone()).unwrap()
    }

    fn shares(&self) -> Vec<&[f64]> {
        self.shares.iter().map(Vec::as_slice).collect()
    }
}

/// All pairs of attributes, in buckets where there are any.
fn all_pairs(owned: &Owned) -> Vec<Query> {
    let attributes = owned.cardinalities.len();
    let pair = |a: usize, b: usize| {
        Query::new(vec![owned.axes[a].clone(), owned.axes[b].clone()], &owned.cardinalities).unwrap()
    };
    let others = |a: usize| (0..attributes).filter(move |&b| b != a);
    (0..attributes).flat_map(|a| others(a).map(move |b| (a, b))).map(|(a, b)| pair(a, b)).collect()
}

fn indif_with(table: &Table<'_>, pairs: &[Query], reference: Reference<'_>, threads: usize) -> Vec<i64> {
    let pool = parallel::pool(NonZero::new(threads).unwrap()).unwrap();
    pool.install(|| indif(table, pairs, reference, MEMORY_LIMIT, &Cancel::default())).unwrap()
}

fn problem() -> impl Strategy<Value = (Owned, f64)> {
    let cardinality = prop_oneof![4 => 1_u32..8, 2 => 1_u32..40, 1 => 200_u32..400, 1 => 60_000_u32..70_000];
    let domain = prop::collection::vec(cardinality, 1..6)
        .prop_filter("small enough to test", |domain| domain.iter().filter(|&&c| c > 50).count() < 2);
    let total = prop_oneof![Just(0.0), 0.0..1e4, Just(34_359_738_368.0)];
    let coarse = prop_oneof![Just(0), any::<u32>()];
    (domain, 0_usize..3000, any::<u64>(), coarse, total)
        .prop_map(|(domain, records, seed, coarse, total)| (Owned::in_buckets(&domain, records, seed, coarse), total))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn matches_naive((owned, total) in problem(), threads in 1_usize..4) {
        let (table, shares) = (owned.table(), owned.shares());
        let pairs = all_pairs(&owned);
        for reference in [Reference::Own, Reference::Given { shares: &shares, total }] {
            let expected: Vec<i64> = pairs.iter().map(|pair| naive::indif(&table, pair, reference)).collect();
            prop_assert_eq!(&indif_with(&table, &pairs, reference, threads), &expected);
            let counted: Vec<_> = pairs.iter().map(|pair| count::naive::count(&table, pair)).collect();
            let tables: Vec<_> = counted.iter().map(Vec::as_slice).collect();
            let records = table.records() as u64;
            let scores = indif_of_counts(&tables, &pairs, records, reference, &Cancel::default());
            prop_assert_eq!(scores.unwrap(), expected);
        }
    }

    #[test]
    fn distances_match_naive((owned, total) in problem(), threads in 1_usize..4, seed in any::<u64>()) {
        let table = owned.table();
        let attributes = owned.cardinalities.len();
        let mut cliques: Vec<Vec<usize>> = (0..attributes).map(|a| vec![a]).collect();
        cliques.extend((2..attributes).map(|c| vec![c, 0, 1]));
        cliques.push(vec![]);
        let axes = |clique: &Vec<usize>| clique.iter().map(|&a| owned.axes[a].clone()).collect();
        let query = |clique: &Vec<usize>| Query::new(axes(clique), table.cardinalities()).unwrap();
        let queries: Vec<Query> = cliques.iter().map(query).chain(all_pairs(&owned)).collect();
        let mut random = Random::new([seed]);
        let references: Vec<Vec<f64>> = (queries.iter())
            .map(|query| {
                let cells = usize::try_from(query.cells()).unwrap();
                #[expect(clippy::cast_precision_loss, reason = "small numbers")]
                let most = total / cells as f64;
                (0..cells).map(|_| most * random.unit()).collect()
            })
            .collect();
        let references: Vec<&[f64]> = references.iter().map(Vec::as_slice).collect();
        let expected: Vec<i64> =
            queries.iter().zip(&references).map(|(query, reference)| naive::distance(&table, query, reference)).collect();
        let pool = parallel::pool(NonZero::new(threads).unwrap()).unwrap();
        let found = pool.install(|| distance::distances(&table, &queries, &references, MEMORY_LIMIT, &Cancel::default()));
        prop_assert_eq!(found.unwrap(), expected.clone());
        let counted: Vec<_> = queries.iter().map(|query| count::naive::count(&table, query)).collect();
        let tables: Vec<_> = counted.iter().map(Vec::as_slice).collect();
        let records = table.records() as u64;
        let found = distance::distances_of_counts(&tables, &references, records, &Cancel::default());
        prop_assert_eq!(found.unwrap(), expected);
    }

    #[test]
    fn the_wide_sum_is_the_narrow_one(rows in 1_usize..9, columns in 1_usize..9, seed in any::<u64>(), size in 0_u32..20) {
        let counts: Vec<i64> = (0..rows * columns)
            .map(|i| (seed.rotate_left(u32::try_from(7 * i).unwrap()) % (1 << size)).cast_signed())
            .collect();
        let n = counts.iter().sum::<i64>().cast_unsigned();
        prop_assume!(n > 0);
        prop_assert!(n <= NARROW_RECORDS);
        prop_assert_eq!(own(&counts, columns, n), own_wide(&counts, columns, n));
    }
}

#[test]
fn more_records_than_the_narrow_sum_takes() {
    // Two values that imply each other: n/2 on the diagonal against n/4 everywhere makes a score of n.
    for n in [NARROW_RECORDS, 2 * NARROW_RECORDS, MAX_RECORDS] {
        let half = (n / 2).cast_signed();
        assert_eq!(own(&[half, 0, 0, half], 2, n), i64::from(UNITS) * n.cast_signed());
    }
}

#[test]
fn the_same_for_any_number_of_threads() {
    let owned = Owned::in_buckets(&[2, 3, 9, 40, 85, 2, 700, 300, 16, 5, 1], 150_000, 3, 0b101_0000);
    let (table, shares) = (owned.table(), owned.shares());
    let pairs = all_pairs(&owned);
    for reference in [Reference::Own, Reference::Given { shares: &shares, total: 150_321.0 }] {
        let one = indif_with(&table, &pairs, reference, 1);
        for threads in [2, 8] {
            assert_eq!(indif_with(&table, &pairs, reference, threads), one, "{threads} threads");
        }
    }
}

#[test]
fn bad_references_are_refused() {
    let owned = Owned::new(&[2, 3], 10, 0);
    let table = owned.table();
    let refused = |shares: &[&[f64]], total: f64| {
        let result = indif(
            &table,
            &all_pairs(&owned)[..1],
            Reference::Given { shares, total },
            MEMORY_LIMIT,
            &Cancel::default(),
        );
        matches!(result, Err(Error::InvalidParameter(_)))
    };
    let good: [&[f64]; 2] = [&[0.5, 0.5], &[0.2, 0.2, 0.6]];
    assert!(!refused(&good, 10.0));
    assert!(refused(&good, f64::NAN));
    assert!(refused(&good, -1.0));
    assert!(refused(&good, 1e12));
    assert!(refused(&good[..1], 10.0));
    assert!(refused(&[good[0], &[0.5, 0.5]], 10.0));
    assert!(refused(&[good[0], &[0.5, 0.5, 0.5]], 10.0));
    assert!(refused(&[good[0], &[-0.5, 0.5, 0.5]], 10.0));
    assert!(refused(&[good[0], &[f64::NAN, 0.5, 0.5]], 10.0));
}

#[test]
fn references_that_are_none_are_refused() {
    let owned = Owned::new(&[2, 3], 10, 0);
    let refused = |references: &[&[f64]]| {
        let queries = [0, 1].map(|a| Query::marginal(&[a], &owned.cardinalities).unwrap());
        let found = distance::distances(&owned.table(), &queries, references, MEMORY_LIMIT, &Cancel::default());
        matches!(found, Err(Error::InvalidParameter(_)))
    };
    assert!(!refused(&[&[5.0, 5.0], &[0.0, 0.0, 0.0]]));
    assert!(refused(&[&[5.0, 5.0]]));
    assert!(refused(&[&[5.0, 5.0], &[0.0, 0.0]]));
    assert!(refused(&[&[5.0, -5.0], &[0.0, 0.0, 0.0]]));
    assert!(refused(&[&[5.0, f64::NAN], &[0.0, 0.0, 0.0]]));
    assert!(refused(&[&[3e10, 3e10], &[0.0, 0.0, 0.0]]));
}

#[test]
fn the_limit_is_for_each_pair() {
    let owned = Owned::new(&[100, 100, 200], 10, 0);
    let pairs = [[0, 1], [1, 0], [0, 2]].map(|pair| Query::marginal(&pair, &owned.cardinalities).unwrap());
    let run = |limit| indif(&owned.table(), &pairs, Reference::Own, limit, &Cancel::default());
    assert!(run(160_000).is_ok());
    assert_eq!(
        run(159_999).unwrap_err(),
        Error::TableTooLarge { query: 2, cells: 20_000, bytes: 160_000, limit: 159_999 }
    );
}

#[test]
fn a_cancelled_call_is_an_error() {
    let owned = Owned::new(&[3, 3], 100, 0);
    let cancel = Cancel::default();
    cancel.cancel();
    assert_eq!(
        indif(&owned.table(), &all_pairs(&owned), Reference::Own, MEMORY_LIMIT, &cancel),
        Err(Error::Interrupted)
    );
}

#[test]
fn only_pairs_have_an_indif() {
    let owned = Owned::new(&[2, 3, 4], 10, 0);
    let refused = |clique: &[usize]| {
        let query = Query::marginal(clique, &owned.cardinalities).unwrap();
        indif(&owned.table(), &[query], Reference::Own, MEMORY_LIMIT, &Cancel::default()).is_err()
    };
    assert!(refused(&[0]) && refused(&[0, 1, 2]) && !refused(&[0, 2]));
}
