//! The kernel against the oracle, over random problems and over shapes that select each path.

use std::num::NonZero;

use proptest::prelude::*;

use super::naive::Noisy;
use super::*;
use crate::Error;
use crate::parallel;
use crate::query::{Axis, Query};

const LIMIT: u64 = 1 << 30;

fn projection(cardinalities: &[u32], tables: &[Noisy], total: Option<f64>, rule: Rule) -> Projection {
    let target = |table: &Noisy| {
        let query = Query::marginal(&table.clique, cardinalities).unwrap();
        Target::new(query, table.values.clone(), 1.0 / (table.sigma * table.sigma)).unwrap()
    };
    let targets = tables.iter().map(target).collect();
    let problem = Problem { cardinalities, targets, total, rule, memory_limit: LIMIT };
    Projection::new(problem, &Cancel::default()).unwrap()
}

fn results(tables: &[Noisy], projection: &Projection) -> Vec<Noisy> {
    let values = projection.tables(&Cancel::default()).unwrap();
    let with = |(table, values): (&Noisy, Vec<f64>)| Noisy { values, ..table.clone() };
    tables.iter().zip(values).map(with).collect()
}

/// Sweep until tables disagree by less than `tolerance`; returns the result and the number of sweeps.
fn run(cardinalities: &[u32], tables: &[Noisy], rule: Rule, tolerance: f64, most: usize) -> (Vec<Noisy>, usize) {
    let mut projection = projection(cardinalities, tables, None, rule);
    let mut sweeps = 1;
    while projection.sweep(&Cancel::default()).unwrap() > tolerance && sweeps < most {
        sweeps += 1;
    }
    (results(tables, &projection), sweeps)
}

fn stream(seed: u64) -> impl FnMut() -> f64 {
    let mut state = seed;
    move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        f64::from(u32::try_from(state >> 33).unwrap()) / f64::from(1u32 << 31)
    }
}

/// Margins of one random table over all attributes: they agree, and no cell is negative.
fn feasible(cardinalities: &[u32], cliques: &[Vec<usize>], total: f64, seed: u64) -> Vec<Noisy> {
    let mut draw = stream(seed);
    let all: Vec<usize> = (0..cardinalities.len()).collect();
    let cells: u32 = cardinalities.iter().product();
    let values: Vec<f64> = (0..cells).map(|_| draw().powi(6)).collect();
    let sum: f64 = values.iter().sum();
    let joint = Noisy { clique: all, values: values.iter().map(|v| v / sum * total).collect(), sigma: 1.0 };
    let mut draw = stream(seed ^ 1);
    let margin = |clique: &Vec<usize>| {
        let mut values = vec![0.0; clique.iter().map(|&a| cardinalities[a] as usize).product()];
        for (cell, value) in joint.values.iter().enumerate() {
            let mut rest = cell;
            let mut codes = vec![0; cardinalities.len()];
            for a in (0..cardinalities.len()).rev() {
                codes[a] = rest % cardinalities[a] as usize;
                rest /= cardinalities[a] as usize;
            }
            values[clique.iter().fold(0, |owner, &a| owner * cardinalities[a] as usize + codes[a])] += value;
        }
        Noisy { clique: clique.clone(), values, sigma: 1.0 + 9.0 * draw() }
    };
    cliques.iter().map(margin).collect()
}

fn noisy(cardinalities: &[u32], cliques: &[Vec<usize>], total: f64, seed: u64) -> Vec<Noisy> {
    let mut tables = feasible(cardinalities, cliques, total, seed);
    let mut draw = stream(seed ^ 2);
    for table in &mut tables {
        let scale = table.sigma;
        table.values.iter_mut().for_each(|value| *value += scale * 3.4 * (draw() - 0.5));
    }
    tables
}

/// A domain and cliques over it, of any order, nested, repeated and permuted, with noisy tables.
fn problem() -> impl Strategy<Value = (Vec<u32>, Vec<Noisy>, u64)> {
    let cardinality = prop_oneof![1 => Just(1u32), 8 => 2u32..5, 2 => 5u32..12];
    (prop::collection::vec(cardinality, 1..6), 1.0f64..200.0, any::<u64>()).prop_flat_map(|(domain, total, seed)| {
        let attributes: Vec<usize> = (0..domain.len()).collect();
        let clique = prop::sample::subsequence(attributes, 0..=domain.len().min(4)).prop_shuffle();
        prop::collection::vec(clique, 1..8).prop_map(move |cliques| {
            let tables = noisy(&domain, &cliques, total, seed);
            (domain.clone(), tables, seed)
        })
    })
}

fn assert_close(a: &[Noisy], b: &[Noisy], tolerance: f64) -> std::result::Result<(), TestCaseError> {
    for (a, b) in a.iter().zip(b) {
        prop_assert_eq!(a.values.len(), b.values.len());
        for (x, y) in a.values.iter().zip(&b.values) {
            prop_assert!((x - y).abs() <= tolerance, "{} and {} in {:?}", x, y, &a.clique);
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn one_pass_matches_naive((domain, tables, _) in problem(), total in prop::option::of(0.0f64..100.0)) {
        let mut expected = tables.clone();
        naive::agree(&domain, &mut expected, total.unwrap_or_else(|| naive::total(&tables)));
        let mut projection = projection(&domain, &tables, total, Rule::None);
        let error = projection.sweep(&Cancel::default()).unwrap();
        prop_assert!(error < 1e-9, "one pass is enough: {}", error);
        let found = results(&tables, &projection);
        assert_close(&found, &expected, 1e-9)?;
        prop_assert!(naive::disagreement(&domain, &found) < 1e-8, "on every shared set, not only on the largest");
    }

    #[test]
    fn alternating_matches_naive((domain, tables, _) in problem()) {
        let total = naive::total(&tables).max(0.0);
        prop_assume!(total > 0.0);
        let mut expected = tables.clone();
        let mut projection = projection(&domain, &tables, None, Rule::NormSub);
        for _ in 0..7 {
            naive::agree(&domain, &mut expected, total);
            for table in &mut expected {
                naive::norm_sub(&mut table.values, total);
            }
            projection.sweep(&Cancel::default()).unwrap();
            assert_close(&results(&tables, &projection), &expected, 1e-9)?;
        }
    }

    /// No feasible tables are nearer: every feasible direction leads away from the measured values.
    #[test]
    fn joint_is_the_nearest((domain, tables, seed) in problem()) {
        let total = naive::total(&tables).max(0.0);
        let (found, sweeps) = run(&domain, &tables, Rule::Joint, 1e-10, 50_000);
        prop_assert!(sweeps < 50_000);
        let slack = 1e-7 * total.max(1.0);
        prop_assert!(naive::disagreement(&domain, &found) <= slack);
        let cliques: Vec<_> = tables.iter().map(|table| table.clique.clone()).collect();
        for table in &found {
            prop_assert!((table.values.iter().sum::<f64>() - total).abs() <= slack);
            prop_assert!(table.values.iter().all(|&value| value >= 0.0));
        }
        for other in 0..4 {
            let others = feasible(&domain, &cliques, total, seed ^ (77 + other));
            let away = others.iter().zip(&found).zip(&tables).map(|((z, x), y)| {
                let cells = z.values.iter().zip(&x.values).zip(&y.values);
                cells.map(|((z, x), y)| (x - y) * (z - x)).sum::<f64>() / (y.sigma * y.sigma)
            });
            prop_assert!(away.sum::<f64>() >= -1e-6 * total.max(1.0).powi(2));
        }
    }

    #[test]
    fn other_rules_keep_totals((domain, tables, _) in problem()) {
        let total = naive::total(&tables).max(0.0);
        for rule in [Rule::NormMul, Rule::NormCut, Rule::BasePos] {
            let mut projection = projection(&domain, &tables, None, rule);
            for _ in 0..3 {
                projection.sweep(&Cancel::default()).unwrap();
            }
            for table in results(&tables, &projection) {
                let sum: f64 = table.values.iter().sum();
                prop_assert!(table.values.iter().all(|&value| value >= 0.0));
                prop_assert!(rule == Rule::BasePos || (sum - total).abs() <= 1e-9 * total.max(1.0), "{:?}", rule);
            }
        }
    }
}

fn bits(tables: &[Noisy]) -> Vec<Vec<u64>> {
    tables.iter().map(|table| table.values.iter().map(|value| value.to_bits()).collect()).collect()
}

/// Tables in one part and in several, with slots of every kind.
#[test]
fn results_are_the_same_for_any_number_of_threads() {
    let domain = [40, 60, 50, 3, 2, 300, 400];
    let cliques =
        [vec![0, 1, 2], vec![2, 0], vec![5, 6], vec![3, 6, 1, 0], vec![4, 3], vec![6], vec![1, 6], vec![6, 1]];
    let mut draw = stream(5);
    let table = |clique: &Vec<usize>| {
        let cells: u32 = clique.iter().map(|&a| domain[a]).product();
        let sigma = 0.5 + draw();
        Noisy { clique: clique.clone(), values: (0..cells).map(|_| 9.0 * draw() - 4.0).collect(), sigma }
    };
    let tables: Vec<_> = cliques.iter().map(table).collect();
    for rule in [Rule::Joint, Rule::NormSub] {
        let results = [1, 2, 8].map(|threads| {
            let pool = parallel::pool(NonZero::new(threads).unwrap()).unwrap();
            pool.install(|| run(&domain, &tables, rule, 0.0, 3).0)
        });
        assert_eq!(bits(&results[0]), bits(&results[1]), "{rule:?}");
        assert_eq!(bits(&results[0]), bits(&results[2]), "{rule:?}");
    }
    let mut expected = tables.clone();
    let total = naive::total(&tables);
    naive::agree(&domain, &mut expected, total);
    let (agreed, _) = run(&domain, &tables, Rule::None, 1e-9, 1);
    assert_close(&agreed, &expected, 1e-8).unwrap();
    for table in &mut expected {
        naive::norm_sub(&mut table.values, total);
    }
    for rule in [Rule::Joint, Rule::NormSub] {
        assert_close(&run(&domain, &tables, rule, 0.0, 1).0, &expected, 1e-8).unwrap();
    }
}

#[test]
fn norm_cut_drops_the_smallest() {
    let mut cells = [5.0, -3.0, 1.0, 4.0, 1.0, 2.0];
    cut::keep_largest(&mut cells, 10.0);
    assert_eq!(cells.map(f64::to_bits), [5.0, 0.0, 0.0, 4.0, 0.0, 1.0].map(f64::to_bits));
    cut::keep_largest(&mut cells, 0.0);
    assert_eq!(cells.map(f64::to_bits), [0; 6]);
}

#[test]
fn a_total_of_zero_leaves_nothing() {
    let tables = [Noisy { clique: vec![0], values: vec![-5.0, 3.0, -2.0], sigma: 1.0 }];
    for rule in [Rule::Joint, Rule::NormSub, Rule::NormCut, Rule::NormMul, Rule::BasePos] {
        let (found, sweeps) = run(&[3], &tables, rule, 1e-9, 5);
        assert_eq!((&found[0].values[..], sweeps), (&[0.0; 3][..], 1), "{rule:?}");
    }
}

/// Norms that start from a level far off, on either side.
#[test]
fn levels_are_found_from_anywhere() {
    for offset in [-1e9, 0.0, 1e9] {
        let values: Vec<f64> = (0..1000).map(|i| offset + f64::from(i)).collect();
        let tables = [Noisy { clique: vec![0], values: values.clone(), sigma: 1.0 }];
        let mut expected = values;
        naive::norm_sub(&mut expected, 50.0);
        let mut projection = projection(&[1000], &tables, Some(50.0), Rule::Joint);
        projection.sweep(&Cancel::default()).unwrap();
        assert_close(&results(&tables, &projection), &[Noisy { values: expected, ..tables[0].clone() }], 1e-5).unwrap();
    }
}

#[test]
fn too_much_memory_and_buckets_are_refused() {
    let refused = |cardinalities: &[u32], axes: Vec<Axis>| {
        let query = Query::new(axes, cardinalities).unwrap();
        let values = vec![0.0; usize::try_from(query.cells()).unwrap()];
        let targets = vec![Target::new(query, values, 1.0).unwrap()];
        let problem = Problem { cardinalities, targets, total: None, rule: Rule::Joint, memory_limit: 1 << 20 };
        Projection::new(problem, &Cancel::default()).map(|_| ()).unwrap_err()
    };
    let large = refused(&[300, 300], vec![Axis::plain(0, 300), Axis::plain(1, 300)]);
    assert_eq!(large, Error::TableTooLarge { query: 0, cells: 90_000, bytes: 2_160_000, limit: 1 << 20 });
    let coarse = refused(&[3], vec![Axis::in_buckets(0, [0, 0, 1].into(), None)]);
    assert_eq!(coarse, Error::InBuckets { attribute: 0 });
}

#[test]
fn a_cancelled_sweep_stops() {
    let tables = [Noisy { clique: vec![0], values: vec![1.0, 2.0], sigma: 1.0 }];
    let mut projection = projection(&[2], &tables, None, Rule::Joint);
    let cancel = Cancel::default();
    cancel.cancel();
    assert_eq!(projection.sweep(&cancel), Err(Error::Interrupted));
}
