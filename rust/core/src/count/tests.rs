//! The kernels against the oracle, over random problems and over shapes that select each strategy.

#![expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "codes are below their cardinality")]

use std::num::NonZero;
use std::sync::Arc;

use proptest::prelude::*;

use super::stream::Counter;
use super::*;
use crate::Error;
use crate::parallel;
use crate::query::Axis;
use crate::random::Random;
use crate::table::Codes;

#[derive(Debug, Clone)]
struct Owned {
    cardinalities: Vec<u32>,
    columns: Vec<Codes>,
}

impl Owned {
    /// Skewed codes: most records share a few values, the last value occurs too.
    fn new(cardinalities: &[u32], records: usize, seed: u64) -> Self {
        let mut state = seed;
        let mut draw = |cardinality: u32| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let u = f64::from((state >> 33) as u32) / f64::from(1u32 << 31);
            ((u * u * u * f64::from(cardinality)) as u32).min(cardinality - 1)
        };
        let column = |&cardinality: &u32| {
            let codes = (0..records).map(|i| if i == 7 { cardinality - 1 } else { draw(cardinality) });
            match Column::width_for(cardinality) {
                1 => Codes::U8(codes.map(|c| c as u8).collect()),
                2 => Codes::U16(codes.map(|c| c as u16).collect()),
                _ => Codes::U32(codes.collect()),
            }
        };
        Self { columns: cardinalities.iter().map(column).collect(), cardinalities: cardinalities.to_vec() }
    }

    fn table(&self) -> Table<'_> {
        Table::new(self.columns.iter().map(Codes::column).collect(), self.cardinalities.clone()).unwrap()
    }
}

fn count_with(table: &Table<'_>, queries: &[Query], threads: usize) -> Vec<Vec<i64>> {
    let pool = parallel::pool(NonZero::new(threads).unwrap()).unwrap();
    pool.install(|| count(table, queries, MEMORY_LIMIT, &Cancel::default())).unwrap()
}

fn naive(table: &Table<'_>, queries: &[Query]) -> Vec<Vec<i64>> {
    queries.iter().map(|query| naive::count(table, query)).collect()
}

fn marginals(cardinalities: &[u32], cliques: &[Vec<usize>]) -> Vec<Query> {
    cliques.iter().map(|clique| Query::marginal(clique, cardinalities).unwrap()).collect()
}

/// A domain, records and queries over it, of any order, with repeats and permutations.
fn problem() -> impl Strategy<Value = (Owned, Vec<Query>)> {
    let cardinality = prop_oneof![8 => 1u32..12, 3 => 12u32..300, 1 => 300u32..1200, 1 => Just(70_000u32)];
    (prop::collection::vec(cardinality, 1..9), 0usize..6000, any::<u64>()).prop_flat_map(|(domain, n, seed)| {
        let (d, owned) = (domain.len(), Owned::new(&domain, n, seed));
        let attributes: Vec<usize> = (0..d).collect();
        let clique = prop::sample::subsequence(attributes, 0..=d.min(3)).prop_shuffle();
        let small = domain.clone();
        let fits = move |clique: &Vec<usize>| clique.iter().map(|&a| u64::from(small[a])).product::<u64>() < 1 << 22;
        let cliques = prop::collection::vec(clique.prop_filter("small enough to test", fits), 0..12);
        let queries = cliques.prop_map(move |cliques| marginals(&domain, &cliques));
        (Just(owned), queries)
    })
}

/// The same, with attributes in buckets: few bucketings for each attribute, so that queries share some, and any number
/// of buckets, some of them empty. An attribute may be on two axes.
fn problem_in_buckets() -> impl Strategy<Value = (Owned, Vec<Query>)> {
    let cardinality = prop_oneof![8 => 1u32..12, 3 => 12u32..300, 1 => 300u32..1200, 1 => Just(70_000u32)];
    (prop::collection::vec(cardinality, 1..6), 0usize..6000, any::<u64>()).prop_flat_map(|(domain, n, seed)| {
        let ways: Vec<Vec<Axis>> =
            (0..domain.len()).map(|attribute| ways(attribute, domain[attribute], seed)).collect();
        let axis = (0..domain.len(), 0usize..5).prop_map(move |(attribute, way)| ways[attribute][way].clone());
        let sizes = domain.clone();
        let query = prop::collection::vec(axis, 0..4).prop_filter_map("of different axes, small enough", move |axes| {
            Query::new(axes, &sizes).ok().filter(|query| query.cells() < 1 << 18)
        });
        (Just(Owned::new(&domain, n, seed)), prop::collection::vec(query, 0..12))
    })
}

/// An attribute code by code and in four bucketings, the last two with equal content and different memory.
fn ways(attribute: usize, cardinality: u32, seed: u64) -> Vec<Axis> {
    let mut random = Random::new([seed, attribute as u64]);
    let mut buckets = |most: u32| (0..cardinality).map(|_| random.below_u32(most)).collect::<Arc<[u32]>>();
    let (few, many, same) = (buckets(3), buckets(600), buckets(2 + cardinality % 20));
    let copy: Arc<[u32]> = same.iter().copied().collect();
    vec![
        Axis::plain(attribute, cardinality),
        Axis::in_buckets(attribute, few, Some(5)),
        Axis::in_buckets(attribute, many, None),
        Axis::in_buckets(attribute, same, None),
        Axis::in_buckets(attribute, copy, None),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn matches_naive((owned, queries) in problem(), threads in 1usize..4) {
        let table = owned.table();
        prop_assert_eq!(count_with(&table, &queries, threads), naive(&table, &queries));
    }

    #[test]
    fn buckets_match_naive((owned, queries) in problem_in_buckets(), threads in 1usize..4) {
        let table = owned.table();
        let expected = naive(&table, &queries);
        prop_assert_eq!(&count_with(&table, &queries, threads), &expected);
        let pool = parallel::pool(NonZero::new(threads).unwrap()).unwrap();
        let keep = |query: usize, counts: &[i64]| (query, counts.to_vec());
        let each = pool.install(|| count_each(&table, &queries, MEMORY_LIMIT, &Cancel::default(), keep)).unwrap();
        prop_assert_eq!(each, expected.into_iter().enumerate().collect::<Vec<_>>());
    }

    #[test]
    fn streaming_matches_naive((owned, queries) in prop_oneof![problem(), problem_in_buckets()], batch in 1usize..3000) {
        let table = owned.table();
        let cancel = Cancel::default();
        let mut counter = Counter::new(&owned.cardinalities, &queries, MEMORY_LIMIT).unwrap();
        for start in (0..table.records()).step_by(batch) {
            counter.update(&table.slice(start..table.records().min(start + batch)), &cancel).unwrap();
        }
        prop_assert_eq!(counter.result(&cancel).unwrap(), naive(&table, &queries));
    }
}

/// Enough records that blocks grow, lanes vary, records are cut between threads and wide tables occur.
#[test]
fn all_pairs_and_more_are_the_same_for_any_number_of_threads() {
    let owned = Owned::new(&[2, 3, 9, 40, 85, 2, 700, 300, 16, 5], 150_000, 3);
    let table = owned.table();
    let mut cliques: Vec<Vec<usize>> = (0..10).flat_map(|a| (0..a).map(move |b| vec![a, b])).collect();
    cliques.extend([vec![], vec![6], vec![6, 7, 0], vec![0, 1, 2, 5], vec![4, 3, 8]]);
    let mut queries = marginals(&owned.cardinalities, &cliques);
    for with_buckets in [false, true] {
        if with_buckets {
            let axes: Vec<Vec<Axis>> = (0..10).map(|a| ways(a, owned.cardinalities[a], 1)).collect();
            let pairs = (0..10).flat_map(|a| (0..a).map(move |b| (a, b)));
            let coarse = pairs.map(|(a, b)| vec![axes[a][1 + b % 3].clone(), axes[b][a % 4].clone()]);
            queries.extend(coarse.map(|axes| Query::new(axes, &owned.cardinalities).unwrap()));
        }
        let expected = naive(&table, &queries);
        for threads in [1, 2, 8] {
            assert_eq!(count_with(&table, &queries, threads), expected, "{threads} threads");
        }
    }
    let alone = marginals(&owned.cardinalities, &[vec![3, 4]]);
    assert_eq!(count_with(&table, &alone, 8), naive(&table, &alone));
}

#[test]
fn equal_buckets_are_made_once() {
    let domain = [50, 70_000];
    let [_, few, many, same, copy] = &ways(0, 50, 3)[..] else { unreachable!("five ways") };
    let queries: Vec<Query> = [few, many, same, copy, same]
        .map(|axis| Query::new(vec![axis.clone(), Axis::plain(1, 70_000)], &domain).unwrap())
        .into();
    let plan = Plan::new(&domain, &queries, 1_000, MEMORY_LIMIT).unwrap();
    assert_eq!(plan.buckets.len(), 3);
    assert_eq!(plan.sizes[2..], [5, many.size, same.size]);
    assert!(plan.records_per_piece < 10_000, "or tests see no pieces");
    let without = Plan::new(&domain, &queries[..0], 1_000, MEMORY_LIMIT).unwrap();
    assert_eq!((without.buckets.len(), without.records_per_piece), (0, usize::MAX));
}

#[test]
fn long_batches_are_counted_where_they_lie_and_short_ones_are_gathered() {
    let owned = Owned::new(&[2, 30], 20_000, 5);
    let (table, cancel) = (owned.table(), Cancel::default());
    let queries = marginals(&[2, 30], &[vec![1, 0]]);
    let mut counter = Counter::new(&[2, 30], &queries, MEMORY_LIMIT).unwrap();
    assert!((1000..4000).contains(&counter.rows_per_pass()), "or the test does not test");
    for range in [0..100, 100..9_000, 9_000..10_000, 10_000..11_900, 11_900..20_000] {
        counter.update(&table.slice(range), &cancel).unwrap();
    }
    assert_eq!(counter.result(&cancel).unwrap(), naive(&table, &queries));
}

#[test]
fn pairs_share_blocks() {
    let cliques: Vec<Vec<usize>> = (0..16).flat_map(|a| (0..a).map(move |b| vec![a, b])).collect();
    let queries = marginals(&[2; 16], &cliques);
    let plan = Plan::new(&[2; 16], &queries, 1_000_000, MEMORY_LIMIT).unwrap();
    assert!(plan.blocks.len() <= 4, "{} blocks for 120 binary pairs", plan.blocks.len());
    let few = Plan::new(&[2; 16], &queries, 10, MEMORY_LIMIT).unwrap();
    assert_eq!(few.blocks.len(), 120, "with few records each clique is its own block");
}

#[test]
fn a_table_above_the_limit_is_refused_with_its_size() {
    let owned = Owned::new(&[1000, 1000, 1000], 10, 0);
    let queries = marginals(&owned.cardinalities, &[vec![0], vec![0, 1, 2]]);
    let error = count(&owned.table(), &queries, 1 << 20, &Cancel::default()).unwrap_err();
    let (cells, bytes) = (1_000_000_000, 8_000_008_000);
    assert_eq!(error, Error::TableTooLarge { query: 1, cells, bytes, limit: 1 << 20 });
}

#[test]
fn a_cancelled_count_is_an_error_and_its_counter_stays_broken() {
    let owned = Owned::new(&[3], 100, 0);
    let (cancelled, calm) = (Cancel::default(), Cancel::default());
    cancelled.cancel();
    let queries = marginals(&[3], &[vec![0]]);
    assert_eq!(count(&owned.table(), &queries, MEMORY_LIMIT, &cancelled), Err(Error::Interrupted));
    let mut counter = Counter::new(&[3], &queries, MEMORY_LIMIT).unwrap();
    counter.update(&owned.table(), &calm).unwrap();
    assert_eq!(counter.result(&cancelled), Err(Error::Interrupted));
    assert_eq!(counter.result(&calm), Err(Error::CounterIncomplete));
}
