//! The kernel against the oracle, and what must hold for any targets.

#![expect(clippy::cast_possible_truncation, reason = "codes are below their cardinality")]

use std::num::NonZero;

use proptest::prelude::*;

use super::problem::{fixed, one};
use super::*;
use crate::Error;
use crate::parallel;
use crate::query::{Axis, Query};

const LIMIT: u64 = 1 << 30;

/// A domain, records to start from, and targets that other records have.
#[derive(Debug, Clone)]
struct Problem {
    cardinalities: Vec<u32>,
    columns: Vec<Codes>,
    targets: Vec<Target>,
}

fn column(cardinality: u32, records: usize, random: &mut Random) -> Codes {
    let codes: Vec<u32> = (0..records).map(|_| skewed(cardinality, random)).collect();
    match crate::table::Column::width_for(cardinality) {
        1 => Codes::U8(codes.iter().map(|&c| c as u8).collect()),
        2 => Codes::U16(codes.iter().map(|&c| c as u16).collect()),
        _ => Codes::U32(codes),
    }
}

fn skewed(cardinality: u32, random: &mut Random) -> u32 {
    let n = cardinality as usize;
    random.below(random.clone().below(n) + 1).min(n - 1) as u32
}

impl Problem {
    /// Targets over `cliques`; an axis is coarsened where `coarse` says so. `noise` makes them fractional and uneven.
    fn new(cardinalities: &[u32], records: usize, cliques: &[Vec<usize>], coarse: u64, noise: bool, seed: u64) -> Self {
        let mut random = Random::new([seed]);
        let columns = cardinalities.iter().map(|&c| column(c, records, &mut random)).collect();
        let truth: Vec<_> = cardinalities.iter().map(|&c| column(c, records, &mut random)).collect();
        let mut targets = Vec::new();
        for (i, clique) in cliques.iter().enumerate() {
            let axes = clique.iter().enumerate().map(|(j, &attribute)| {
                let cardinality = cardinalities[attribute];
                let size = cardinality.div_ceil(2);
                let coarsened = coarse >> ((i + 5 * j) % 64) & 1 == 1;
                let buckets = coarsened.then(|| (0..cardinality).map(|_| random.below(size as usize) as u32).collect());
                Axis { attribute, buckets, size: if coarsened { size } else { cardinality } }
            });
            let query = Query::new(axes.collect(), cardinalities).unwrap();
            let cells = usize::try_from(query.cells()).unwrap();
            let empty = Target::new(query, vec![0.0; cells], 1.0).unwrap();
            let [counts] = &naive::residuals(&rows(&truth), std::slice::from_ref(&empty))[..] else { unreachable!() };
            let mut wanted = |&count: &f64| count + if noise { 10.0 * (random.unit() - 0.5) } else { 0.0 };
            let values = counts.iter().map(&mut wanted).collect();
            let weight = if noise { 1.0 / (1.0 + 20.0 * random.unit()) } else { 1.0 };
            targets.push(Target { values, weight, ..empty });
        }
        Self { cardinalities: cardinalities.to_vec(), columns, targets }
    }

    fn descent(&self, seed: u64) -> Descent {
        Descent::new(self.columns.clone(), &self.cardinalities, self.targets.clone(), seed, LIMIT).unwrap()
    }

    fn placed(&self, seed: u64, noise: f64) -> Descent {
        let (columns, targets, bar) = (self.columns.clone(), self.targets.clone(), (1.0, noise));
        Descent::placed(columns, &self.cardinalities, targets, seed, LIMIT, bar, &Cancel::default()).unwrap()
    }
}

fn rows(columns: &[Codes]) -> naive::Rows {
    let records = columns[0].column().len();
    (0..records).map(|r| columns.iter().map(|codes| codes.column().code(r)).collect()).collect()
}

fn with_threads<T: Send>(threads: usize, job: impl FnOnce() -> T + Send) -> T {
    parallel::pool(NonZero::new(threads).unwrap()).unwrap().install(job)
}

/// The residuals are what recounting gives, and so is the fit.
fn assert_exact(descent: &Descent, targets: &[Target]) {
    let records = descent.records;
    let one = one(targets, records);
    let rounded = |value: &f64| f64::from(fixed(*value, one)) / f64::from(one);
    let rounded: Vec<Target> = targets
        .iter()
        .map(|target| Target { values: target.values.iter().map(rounded).collect(), ..target.clone() })
        .collect();
    let expected = naive::residuals(&rows(&descent.columns), &rounded);
    let mut loss = 0.0;
    for ((marginal, expected), target) in descent.marginals.iter().zip(&expected).zip(targets) {
        let residuals: Vec<f64> = marginal.residual.iter().map(|&r| f64::from(r) / f64::from(one)).collect();
        assert_eq!(&residuals, expected);
        loss += target.weight * expected.iter().map(|r| r * r).sum::<f64>();
    }
    let fit = descent.fit();
    assert!((fit.loss - loss).abs() <= 1e-9 * loss, "{} is not {loss}", fit.loss);
}

/// Domains, cliques of one to four attributes over them, sizes and which axes are coarsened.
fn problem(noise: bool) -> impl Strategy<Value = Problem> {
    let cardinality = prop_oneof![6 => 1u32..7, 3 => 12u32..40, 1 => Just(130u32), 1 => Just(300u32)];
    let size = prop_oneof![2 => 0usize..4, 6 => 4usize..500, 1 => 5000usize..6000];
    let coarse = prop_oneof![Just(0), any::<u64>()];
    (prop::collection::vec(cardinality, 1..6), size, coarse, any::<u64>()).prop_flat_map(
        move |(domain, n, coarse, seed)| {
            let attributes: Vec<usize> = (0..domain.len()).collect();
            let clique = prop::sample::subsequence(attributes, 1..=domain.len().min(4)).prop_shuffle();
            let sizes = domain.clone();
            let small = move |clique: &Vec<usize>| clique.iter().map(|&a| sizes[a]).product::<u32>() <= 12_000;
            let cliques = prop::collection::vec(clique.prop_filter("small enough to test", small), 1..7);
            // Above 256 values the kernel only estimates what a coarsened move costs.
            let coarse = if !noise && domain.iter().any(|&c| c > 256) { 0 } else { coarse };
            // The oracle costs values for each record.
            let n = if domain.iter().any(|&c| c > 40) { n.min(600) } else { n };
            cliques.prop_map(move |cliques| Problem::new(&domain, n, &cliques, coarse, noise, seed))
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn moves_are_the_oracles(
        problem in problem(false),
        threads in 1usize..4,
        seed in any::<u64>(),
        noise in prop_oneof![Just(0.0), 0.0..8.0],
    ) {
        // What a coarsened move costs is rounded, so there only whole numbers are proposed alike.
        let coarse = problem.targets.iter().any(|target| !target.query.is_plain());
        let noise = if coarse { 0.0 } else { noise };
        let mut descent = problem.descent(seed);
        let mut expected = rows(&problem.columns);
        for number in 0..2 {
            let mut groups = descent.groups.clone();
            Random::new([seed, number]).shuffle(&mut groups);
            let order = groups.concat();
            naive::sweep(&mut expected, &problem.targets, &descent.views, &order, [seed, number], noise, false);
            with_threads(threads, || descent.sweep(1.0, noise, &Cancel::default())).unwrap();
            prop_assert_eq!(&rows(&descent.columns), &expected);
        }
    }

    #[test]
    fn placing_moves_are_the_oracles(
        problem in problem(false),
        threads in 1usize..4,
        seed in any::<u64>(),
        noise in prop_oneof![Just(0.0), 0.0..8.0],
    ) {
        let coarse = problem.targets.iter().any(|target| !target.query.is_plain());
        let noise = if coarse { 0.0 } else { noise };
        let place = || problem.placed(seed, noise);
        let descent = with_threads(threads, place);
        let mut expected = rows(&problem.columns);
        let order = descent.largest_first().concat();
        let mut reached: Vec<usize> = (0..descent.views.len()).filter(|a| !order.contains(a)).collect();
        for a in order {
            reached.push(a);
            let seen = |target: &&Target| target.query.attributes().all(|b| reached.contains(&b));
            let targets: Vec<Target> = problem.targets.iter().filter(seen).cloned().collect();
            if targets.iter().any(|target| target.query.attributes().any(|b| b == a)) {
                naive::sweep(&mut expected, &targets, &descent.views, &[a], [seed, PLACING], CAUTION * noise, true);
            }
        }
        prop_assert_eq!(&rows(&descent.columns), &expected);
        assert_exact(&descent, &problem.targets);
    }

    #[test]
    fn polishing_moves_are_the_oracles(
        problem in problem(false),
        threads in 1usize..4,
        seed in any::<u64>(),
        strength in 0.1..3.0,
    ) {
        let pull = Pull { strength, sigma: 1.5 };
        let amounts = amounts(&problem.cardinalities, seed);
        let mut descent = problem.descent(seed);
        descent.sweep(1.0, 0.0, &Cancel::default()).unwrap();
        let mut expected = rows(&descent.columns);
        // The oracle recounts for every move.
        prop_assume!(expected.len() < 600);
        let mut groups = descent.groups.clone();
        Random::new([seed, 1]).shuffle(&mut groups);
        let order = groups.concat();
        let nearest = naive::polish(&mut expected, &problem.targets, &descent.views, &order, [seed, 1], &amounts, pull);
        prop_assume!(nearest > 1e-3);
        with_threads(threads, || descent.polish(&amounts, pull, 1.0, 0.0, &Cancel::default())).unwrap();
        prop_assert_eq!(&rows(&descent.columns), &expected);
        assert_exact(&descent, &problem.targets);
    }

    #[test]
    fn residuals_are_exact_and_the_loss_falls(problem in problem(true), threads in 1usize..4, seed in any::<u64>()) {
        let mut descent = problem.descent(seed);
        assert_exact(&descent, &problem.targets);
        for _ in 0..5 {
            let before = descent.fit().loss;
            let moves = with_threads(threads, || descent.sweep(1.0, 0.0, &Cancel::default())).unwrap();
            assert_exact(&descent, &problem.targets);
            let after = descent.fit().loss;
            prop_assert!(if moves > 0 { after < before } else { after <= before }, "{} after {}", after, before);
        }
    }
}

/// Numbers for about two thirds of the attributes, without equal steps.
fn amounts(cardinalities: &[u32], seed: u64) -> Vec<Option<Vec<f64>>> {
    let mut random = Random::new([seed, 5]);
    let some = |&cardinality: &u32| {
        let mut total = 0.0;
        let numbers = (0..cardinality).map(|_| {
            total += 0.1 + random.unit();
            total
        });
        let numbers = numbers.collect();
        (random.below(3) > 0).then_some(numbers)
    };
    cardinalities.iter().map(some).collect()
}

/// A trend along an order that is tiny in each cell, where descent stalls.
#[test]
fn polish_removes_a_trend() {
    let domain = [40, 40, 3];
    let n = 20_000;
    let mut problem = Problem::new(&domain, n, &[vec![0, 1], vec![1, 2], vec![0, 2]], 0, false, 3);
    let counts = naive::residuals(&rows(&problem.columns), &problem.targets);
    for (target, counts) in problem.targets.iter_mut().zip(counts) {
        for (value, count) in target.values.iter_mut().zip(counts) {
            *value += count;
        }
    }
    let numbers: Vec<f64> = (0..40).map(f64::from).collect();
    let amounts = [Some(numbers.clone()), Some(numbers.clone()), None];
    let z = naive::standardised(&numbers, &vec![1.0; 40]);
    for (cell, value) in problem.targets[0].values.iter_mut().enumerate() {
        *value += 0.3 * z[cell / 40] * z[cell % 40];
    }
    let trend = |descent: &Descent| {
        let cells = descent.marginals[0].residual.iter().enumerate();
        let sum: f64 = cells.map(|(cell, &r)| z[cell / 40] * z[cell % 40] * f64::from(r) / 256.0).sum();
        sum.abs() / f64::from(20_000).sqrt()
    };
    let mut descent = problem.descent(0);
    for _ in 0..4 {
        descent.sweep(1.0, 0.0, &Cancel::default()).unwrap();
    }
    let before = trend(&descent);
    let pull = Pull { strength: 0.3, sigma: 1.0 };
    let moves = descent.polish(&amounts, pull, 1.0, 0.0, &Cancel::default()).unwrap();
    assert_exact(&descent, &problem.targets);
    assert!(moves > 0 && before > 1.0 && trend(&descent) < before / 2.0, "{} after {before}", trend(&descent));
    // Where descent has nothing left to do, the cells pay for it: a little.
    assert!(descent.fit().error < 0.03, "{}", descent.fit().error);
}

#[test]
fn polish_leaves_alone_what_has_no_order() {
    let problem = Problem::new(&[9, 9, 1], 3000, &[vec![0, 1], vec![1, 2]], 0, false, 3);
    let pull = Pull { strength: 1.0, sigma: 1.0 };
    let unknown = Some(vec![f64::NAN; 9]);
    for amounts in [[None, None, None], [unknown.clone(), unknown, None], [None, None, Some(vec![1.0])]] {
        let mut descent = problem.descent(0);
        assert_eq!(descent.polish(&amounts, pull, 1.0, 0.0, &Cancel::default()), Ok(0));
        assert_exact(&descent, &problem.targets);
    }
}

/// A dense graph, where blocks are shared out, and a sparse one, where attributes are.
#[test]
fn the_number_of_threads_changes_nothing() {
    let domain = [2, 30, 9, 140, 5, 300, 16, 3];
    let dense: Vec<Vec<usize>> = (0..8).flat_map(|a| (0..a).map(move |b| vec![a, b])).collect();
    let sparse = vec![vec![0, 1], vec![2, 3], vec![4, 5, 0], vec![6, 7], vec![1]];
    for cliques in [dense, sparse] {
        let problem = Problem::new(&domain, 20_000, &cliques, 0b100, true, 1);
        let run = |threads| {
            let mut descent = with_threads(threads, || problem.placed(9, 0.5));
            let moves: Vec<_> = (0..4)
                .map(|_| with_threads(threads, || descent.sweep(1.0, 0.0, &Cancel::default())).unwrap())
                .collect();
            let pull = Pull { strength: 0.5, sigma: 3.0 };
            let polishing = || descent.polish(&amounts(&domain, 4), pull, 1.0, 0.0, &Cancel::default());
            let polished = with_threads(threads, polishing).unwrap();
            (moves, polished, rows(&descent.columns))
        };
        let expected = run(1);
        assert!(expected.0[0] > 2_000 && expected.1 > 20, "or hardly anything happened");
        for threads in [2, 8] {
            assert!(run(threads) == expected, "{threads} threads");
        }
    }
}

#[test]
fn the_targets_are_reached() {
    let cliques: Vec<Vec<usize>> = (0..6).flat_map(|a| (0..a).map(move |b| vec![a, b])).collect();
    for coarse in [0, u64::MAX] {
        let problem = Problem::new(&[2, 30, 9, 14, 5, 70], 50_000, &cliques, coarse, false, 4);
        let mut descent = problem.descent(0);
        let before = descent.fit().error;
        for _ in 0..8 {
            descent.sweep(1.0, 0.0, &Cancel::default()).unwrap();
        }
        let after = descent.fit().error;
        assert!(after < 0.005 && after < before / 10.0, "{after} after {before}");
    }
}

/// Records that fit up to noise do not move, if moves must stand out from noise.
#[test]
fn noise_moves_few_records() {
    let cliques: Vec<Vec<usize>> = (0..6).flat_map(|a| (0..a).map(move |b| vec![a, b])).collect();
    let mut problem = Problem::new(&[2, 30, 9, 14, 5, 70], 50_000, &cliques, 0, false, 4);
    let mut random = Random::new([7]);
    let counts = naive::residuals(&rows(&problem.columns), &problem.targets);
    for (target, counts) in problem.targets.iter_mut().zip(counts) {
        // The records' own counts, plus noise of standard deviation 20 or so.
        for (value, count) in target.values.iter_mut().zip(counts) {
            *value += count + 70.0 * (random.unit() - 0.5);
        }
    }
    let moves = |noise| problem.descent(0).sweep(1.0, noise, &Cancel::default()).unwrap();
    assert!(moves(40.0) * 10 < moves(0.0), "{} of {}", moves(40.0), moves(0.0));
}

#[test]
fn huge_domains_and_huge_targets_are_fine() {
    let mut problem = Problem::new(&[70_000, 1, 3], 3000, &[vec![0], vec![2, 0], vec![1, 2]], 0, false, 2);
    problem.targets[2].values[1] = 1e9;
    problem.targets[0].values[69_999] = -1e9;
    let mut descent = problem.descent(0);
    let before = descent.fit().loss;
    for _ in 0..3 {
        descent.sweep(1.0, 0.0, &Cancel::default()).unwrap();
        assert_exact(&descent, &problem.targets);
    }
    assert!(descent.fit().loss < before);
    assert!(rows(&descent.columns).iter().all(|row| row[2] == 1), "all records follow the huge target");
}

#[test]
fn an_interrupted_sweep_leaves_exact_residuals() {
    let problem = Problem::new(&[20, 30], 5000, &[vec![0, 1]], 0, true, 2);
    let mut descent = problem.descent(0);
    let cancel = Cancel::default();
    cancel.cancel();
    assert_eq!(descent.sweep(1.0, 0.0, &cancel), Err(Error::Interrupted));
    assert_exact(&descent, &problem.targets);
    assert!(descent.sweep(1.0, 0.0, &Cancel::default()).unwrap() > 0);
}

#[test]
fn targets_above_the_memory_limit_are_refused() {
    let target = |axis: Axis| {
        let values = vec![0.0; axis.size as usize];
        Target::new(Query::new(vec![axis], &[100_000]).unwrap(), values, 1.0).unwrap()
    };
    let columns = vec![Codes::U32(vec![0; 3])];
    let refused = |target| Descent::new(columns.clone(), &[100_000], vec![target], 0, 1 << 19).map(|_| ());
    let error = refused(target(Axis::plain(0, 100_000)));
    assert!(matches!(error, Err(Error::TableTooLarge { query: 0, cells: 100_000, .. })), "{error:?}");
    let error = refused(target(Axis::in_buckets(0, vec![0; 100_000].into(), None)));
    assert!(matches!(error, Err(Error::TableTooLarge { .. })), "its working copy has a lane for each code: {error:?}");
}

#[test]
fn an_attribute_on_two_axes_is_refused() {
    let coarse = Axis::in_buckets(0, [0, 0, 1].into(), None);
    let query = Query::new(vec![Axis::plain(0, 3), coarse], &[3]).unwrap();
    let target = Target::new(query, vec![0.0; 6], 1.0).unwrap();
    let refused = Descent::new(vec![Codes::U8(vec![0; 3])], &[3], vec![target], 0, LIMIT).map(|_| ());
    assert_eq!(refused, Err(Error::AttributeTwice { attribute: 0 }));
}

/// Found by fuzzing: a division by the size of the axis.
#[test]
fn an_attribute_without_codes_has_no_records_and_no_cells() {
    let cardinalities = [0, 2];
    for clique in [vec![0], vec![1, 0]] {
        let query = Query::marginal(&clique, &cardinalities).unwrap();
        let target = Target::new(query, Vec::new(), 1.0).unwrap();
        let columns = vec![Codes::U8(Vec::new()); 2];
        let mut descent = Descent::new(columns, &cardinalities, vec![target], 0, LIMIT).unwrap();
        assert_eq!(descent.sweep(0.0, 0.5, &Cancel::default()), Ok(0));
        assert!(descent.fit().loss.abs() < 1e-12);
    }
}
