//! The kernel against the oracle, over domains and over rows.

use std::num::NonZero;

use proptest::prelude::*;

use super::*;
use crate::parallel;
use crate::query::Axis;

const LIMIT: u64 = 1 << 30;

/// Points, their rows, cells and queries of them, and a distribution that answers are measured of.
#[derive(Debug, Clone)]
struct Problem {
    points: Points,
    rows: Vec<Vec<u32>>,
    weights: Vec<f64>,
    cells: Vec<Cell>,
    targets: Vec<Target>,
    measured: Vec<f64>,
}

impl Problem {
    fn new(domain: &[u32], given_rows: Option<usize>, seed: u64) -> Self {
        let mut random = Random::new([seed]);
        let (points, rows) = match given_rows {
            None => (Points::domain(domain.to_vec(), 1 << 24).unwrap(), naive::all_rows(domain)),
            Some(number) => {
                let row = |random: &mut Random| domain.iter().map(|&size| random.below_u32(size)).collect::<Vec<_>>();
                let rows: Vec<_> = (0..number).map(|_| row(&mut random)).collect();
                let columns =
                    domain.iter().enumerate().map(|(a, &size)| Codes::of(size, rows.iter().map(|row| row[a])).unwrap());
                (Points::rows(domain.to_vec(), columns.collect()).unwrap(), rows)
            }
        };
        let mut positive = || -> Vec<f64> { rows.iter().map(|_| 0.05 + random.unit()).collect() };
        let (weights, truth) = (positive(), positive());
        let normalised = |weights: Vec<f64>| {
            let total: f64 = weights.iter().sum();
            weights.into_iter().map(|weight| weight / total).collect::<Vec<f64>>()
        };
        let (weights, truth) = (normalised(weights), normalised(truth));
        let clique = |random: &mut Random| {
            let mut attributes: Vec<usize> = (0..domain.len()).collect();
            random.shuffle(&mut attributes);
            attributes.truncate(random.below(domain.len().min(3) + 1));
            attributes
        };
        let mut cells: Vec<Cell> = Vec::new();
        let mut targets = Vec::new();
        for _ in 0..6 {
            cells.push(clique(&mut random).into_iter().map(|a| (a, random.below_u32(domain[a]))).collect());
            let attributes = clique(&mut random);
            let axis = |attribute: usize| {
                let size = domain[attribute].div_ceil(2);
                let coarse = random.unit() < 0.3;
                let buckets = coarse.then(|| (0..domain[attribute]).map(|_| random.below_u32(size)).collect());
                Axis { attribute, buckets, size: if coarse { size } else { domain[attribute] } }
            };
            let query = Query::new(attributes.into_iter().map(axis).collect(), domain).unwrap();
            let values = naive::table(&rows, &truth, &query);
            targets.push(Target::new(query, values, 1.0).unwrap());
        }
        let noise: Vec<f64> = cells.iter().map(|_| 0.02 * (random.unit() - 0.5)).collect();
        let measured = cells.iter().zip(noise).map(|(cell, noise)| naive::answer(&rows, &truth, cell) + noise);
        Self { measured: measured.collect(), points, rows, weights, cells, targets }
    }

    fn reweight(&self) -> Reweight {
        let mut kernel = Reweight::new(self.points.clone(), Some(&self.weights)).unwrap();
        for cell in &self.cells {
            kernel.tell(cell.clone()).unwrap();
        }
        kernel
    }
}

fn problem() -> impl Strategy<Value = Problem> {
    let size = prop_oneof![8 => 1u32..6, 1 => Just(300u32)];
    let cells = |domain: &Vec<u32>| domain.iter().map(|&size| u64::from(size)).product::<u64>();
    let domain = prop::collection::vec(size, 1..6).prop_filter("small", move |domain| cells(domain) < 5_000);
    (domain, prop::option::of(1usize..60), any::<u64>())
        .prop_map(|(domain, rows, seed)| Problem::new(&domain, rows, seed))
}

fn assert_near(one: &[f64], other: &[f64]) {
    assert_eq!(one.len(), other.len());
    for (a, b) in one.iter().zip(other) {
        assert!((a - b).abs() <= 1e-9 * (1e-3 + a.abs()), "{a} is not {b}");
    }
}

fn with_threads<T: Send>(threads: usize, job: impl FnOnce() -> T + Send) -> T {
    parallel::pool(NonZero::new(threads).unwrap()).unwrap().install(job)
}

proptest! {
    #[test]
    fn answers_and_tables_match_naive(problem in problem()) {
        let kernel = problem.reweight();
        let expected: Vec<f64> = problem.cells.iter().map(|c| naive::answer(&problem.rows, &problem.weights, c)).collect();
        assert_near(&kernel.answers(), &expected);
        let queries: Vec<Query> = problem.targets.iter().map(|target| target.query.clone()).collect();
        let tables = kernel.tables(&queries, LIMIT, &Cancel::default()).unwrap();
        for (table, query) in tables.iter().zip(&queries) {
            assert_near(table, &naive::table(&problem.rows, &problem.weights, query));
        }
    }

    #[test]
    fn updates_match_naive(problem in problem(), seed in any::<u64>()) {
        let (rows, cells, measured) = (&problem.rows, &problem.cells, &problem.measured);
        let mut kernel = problem.reweight();
        kernel.mwem(measured, seed).unwrap();
        let mut expected = problem.weights.clone();
        naive::mwem(rows, &mut expected, cells, measured, seed);
        assert_near(kernel.weights(), &expected);

        let tolerances: Vec<f64> = (0..problem.targets.len()).map(|i| if i % 2 == 0 { 0.0 } else { 0.01 }).collect();
        kernel.fit(&problem.targets, &tolerances, 3, &Cancel::default()).unwrap();
        naive::fit(rows, &mut expected, &problem.targets, &tolerances, 3);
        assert_near(kernel.weights(), &expected);
    }

    #[test]
    fn a_projection_matches_naive_and_is_exact(problem in problem(), steps in 1usize..8) {
        // One by one, since the worst of two equal errors is a matter of rounding.
        let mut kernel = problem.reweight();
        let mut expected = problem.weights.clone();
        for (i, cell) in problem.cells.iter().enumerate() {
            let mut one = Reweight::new(problem.points.clone(), Some(kernel.weights())).unwrap();
            one.tell(cell.clone()).unwrap();
            one.pep(&problem.measured[i..=i], 1, &Cancel::default()).unwrap();
            naive::pep(&problem.rows, &mut expected, std::slice::from_ref(cell), &problem.measured[i..=i], 1);
            assert_near(one.weights(), &expected);
            kernel = one;
        }
        // Answers that are kept up to date are those of the weights.
        let mut kernel = problem.reweight();
        let left = kernel.pep(&problem.measured, steps, &Cancel::default()).unwrap();
        let worst = kernel.answers().iter().zip(&problem.measured).map(|(q, a)| (q - a).abs()).fold(0.0, f64::max);
        prop_assert!((left - worst).abs() < 1e-9, "{left} is not {worst}");
    }

    #[test]
    fn records_follow_the_weights(problem in problem(), n in 0usize..400, seed in any::<u64>()) {
        let kernel = problem.reweight();
        let columns = kernel.draw(n, seed).unwrap();
        prop_assert!(columns.iter().all(|codes| codes.column().len() == n));
        let drawn: Vec<Vec<u32>> = (0..n).map(|r| columns.iter().map(|c| c.column().code(r)).collect()).collect();
        let mut share: std::collections::BTreeMap<&Vec<u32>, f64> = std::collections::BTreeMap::new();
        for (row, weight) in problem.rows.iter().zip(&problem.weights) {
            *share.entry(row).or_default() += weight;
        }
        for (row, share) in share {
            #[expect(clippy::cast_precision_loss, reason = "small numbers")]
            let (count, n) = (drawn.iter().filter(|other| *other == row).count() as f64, n as f64);
            // Each point's count is rounded up or down; a row may be several points.
            let points = problem.rows.iter().filter(|other| *other == row).count();
            #[expect(clippy::cast_precision_loss, reason = "small numbers")]
            let most = points as f64 + 1e-6;
            prop_assert!((count - n * share).abs() <= most, "{count} of {}", n * share);
        }
    }
}

#[test]
fn threads_change_nothing() {
    // Large enough that margins are cut into pieces.
    let domain = [16, 3, 40, 7, 5, 9];
    for rows in [None, Some(100_000)] {
        let run = |threads| {
            with_threads(threads, || {
                let problem = Problem::new(&domain, rows, 5);
                let mut kernel = problem.reweight();
                kernel.mwem(&problem.measured, 3).unwrap();
                kernel.pep(&problem.measured, 12, &Cancel::default()).unwrap();
                kernel.fit(&problem.targets, &[0.0; 6], 2, &Cancel::default()).unwrap();
                let queries: Vec<Query> = problem.targets.iter().map(|target| target.query.clone()).collect();
                let tables = kernel.tables(&queries, LIMIT, &Cancel::default()).unwrap();
                let drawn = kernel.draw(5_000, 9).unwrap();
                (kernel.weights().to_vec(), tables, format!("{drawn:?}"))
            })
        };
        let one = run(1);
        for threads in [2, 8] {
            assert!(run(threads) == one, "another result with {threads} threads");
        }
    }
}

#[test]
fn all_triples_share_their_work_and_are_right() {
    let problem = Problem::new(&[3, 4, 2, 5, 3, 2], None, 1);
    let mut queries = Vec::new();
    for a in 0..6 {
        for b in 0..a {
            for c in 0..b {
                queries.push(Query::marginal(&[a, c, b], &[3, 4, 2, 5, 3, 2]).unwrap());
            }
        }
    }
    let tables = problem.reweight().tables(&queries, LIMIT, &Cancel::default()).unwrap();
    for (table, query) in tables.iter().zip(&queries) {
        assert_near(table, &naive::table(&problem.rows, &problem.weights, query));
    }
}

#[test]
fn a_fit_ends_within_its_tolerance() {
    let problem = Problem::new(&[4, 5, 3], None, 2);
    let mut kernel = problem.reweight();
    let worst = kernel.fit(&problem.targets, &[1e-4; 6], 500, &Cancel::default()).unwrap();
    assert!(worst < 1e-9, "{worst}");
    let queries: Vec<Query> = problem.targets.iter().map(|target| target.query.clone()).collect();
    for (table, target) in kernel.tables(&queries, LIMIT, &Cancel::default()).unwrap().iter().zip(&problem.targets) {
        assert!(table.iter().zip(&target.values).all(|(have, want)| (have - want).abs() < 1.001e-4));
    }
}

#[test]
fn what_does_not_fit_is_named() {
    assert!(
        matches!(Points::domain(vec![1 << 16, 1 << 9], 1 << 24), Err(Error::ModelTooLarge { cells, .. }) if cells == 1 << 25)
    );
    assert!(matches!(Points::domain(vec![u32::MAX; 9], u64::MAX), Err(Error::ModelTooLarge { .. })));
    assert!(matches!(Points::rows(vec![2], vec![Codes::U8(vec![])]), Err(Error::InvalidParameter(_))));
    let points = || Points::domain(vec![2, 3], 6).unwrap();
    for weights in [&[1.0; 5][..], &[0.0; 6], &[1.0, 1.0, 1.0, 1.0, 1.0, -1.0], &[f64::NAN; 6], &[f64::INFINITY; 6]] {
        assert!(matches!(Reweight::new(points(), Some(weights)), Err(Error::InvalidParameter(_))));
    }
    let mut kernel = Reweight::new(points(), None).unwrap();
    assert_eq!(kernel.tell(vec![(2, 0)]), Err(Error::NoSuchAttribute { attribute: 2, attributes: 2 }));
    assert_eq!(kernel.tell(vec![(1, 3)]), Err(Error::CodeOutOfDomain { attribute: 1, cardinality: 3 }));
    assert_eq!(kernel.tell(vec![(1, 2), (1, 2)]), Err(Error::AttributeTwice { attribute: 1 }));
    kernel.tell(vec![(1, 2)]).unwrap();
    assert!(matches!(kernel.mwem(&[], 0), Err(Error::InvalidParameter(_))));
    assert!(matches!(kernel.pep(&[f64::NAN], 1, &Cancel::default()), Err(Error::InvalidParameter(_))));
    let query = Query::marginal(&[0], &[2, 3]).unwrap();
    let refused = kernel.tables(&[query], 8, &Cancel::default());
    assert!(matches!(refused, Err(Error::TableTooLarge { query: 0, .. })));
}
