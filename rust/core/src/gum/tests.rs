//! Plans against their formulas, `apply` against the oracle, and whole passes for any number of threads.

#![expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "codes, cells and records are few"
)]

use std::num::NonZero;

use proptest::prelude::*;

use super::plan::{Growth, Pairing, Plan, Removal};
use super::*;
use crate::parallel;
use crate::query::{Axis, Query};
use crate::table::Column;

const PUBLISHED: Step = Step {
    alpha: 1.0,
    duplicate: 0.5,
    growth: Growth::Multiplicative,
    removal: Removal::Capped,
    pairing: Pairing::Random,
};

const TUNED: Step = Step {
    alpha: 0.7,
    duplicate: 0.1,
    growth: Growth::Proportional,
    removal: Removal::Excess,
    pairing: Pairing::Matched,
};

const MCF: Step = Step { alpha: 1.0, duplicate: 0.0, pairing: Pairing::Flow, ..TUNED };

fn steps() -> impl Strategy<Value = Step> {
    let growth = prop_oneof![Just(Growth::Multiplicative), Just(Growth::Proportional)];
    let removal = prop_oneof![Just(Removal::Capped), Just(Removal::Excess)];
    let pairing = prop_oneof![Just(Pairing::Random), Just(Pairing::Matched), Just(Pairing::Flow)];
    let duplicate = prop_oneof![Just(0.0), Just(1.0), 0.0..1.0];
    (0.05f64..3.0, duplicate, growth, removal, pairing).prop_map(|(alpha, duplicate, growth, removal, pairing)| Step {
        alpha,
        duplicate,
        growth,
        removal,
        pairing,
    })
}

/// Skewed codes.
fn codes(cardinality: u32, records: usize, random: &mut Random) -> Codes {
    let mut draw = || ((random.unit().powi(3) * f64::from(cardinality)) as u32).min(cardinality - 1);
    match Column::width_for(cardinality) {
        1 => Codes::U8((0..records).map(|_| draw() as u8).collect()),
        2 => Codes::U16((0..records).map(|_| draw() as u16).collect()),
        _ => Codes::U32((0..records).map(|_| draw()).collect()),
    }
}

fn table<'a>(columns: &'a [Codes], cardinalities: &[u32]) -> Table<'a> {
    Table::new(columns.iter().map(Codes::column).collect(), cardinalities.to_vec()).unwrap()
}

fn target(clique: &[usize], cardinalities: &[u32], values: Vec<f64>) -> Target {
    Target::new(Query::marginal(clique, cardinalities).unwrap(), values, 1.0).unwrap()
}

/// Targets that add up to `total`; some cells want nothing.
fn targets(cells: usize, total: usize, random: &mut Random) -> Vec<f64> {
    let weights: Vec<f64> = (0..cells).map(|_| (random.unit() - 0.3).max(0.0).powi(2)).collect();
    let sum: f64 = weights.iter().sum();
    let even = 1.0 / cells as f64;
    weights.iter().map(|w| if sum > 0.0 { w / sum } else { even } * total as f64).collect()
}

/// A domain of a few attributes, records over it, and a clique.
#[derive(Debug, Clone)]
struct Problem {
    cardinalities: Vec<u32>,
    clique: Vec<usize>,
    records: usize,
    seed: u64,
}

fn problem() -> impl Strategy<Value = Problem> {
    let cardinality = prop_oneof![6 => 1u32..9, 2 => 9u32..300, 1 => Just(300u32), 1 => Just(70_000u32)];
    (prop::collection::vec(cardinality, 1..5), 0usize..3000, any::<u64>()).prop_flat_map(|(domain, records, seed)| {
        let attributes: Vec<usize> = (0..domain.len()).collect();
        let small = domain.clone();
        let fits = move |clique: &Vec<usize>| clique.iter().map(|&a| u64::from(small[a])).product::<u64>() < 200_000;
        let clique = prop::sample::subsequence(attributes, 0..=domain.len().min(3)).prop_shuffle();
        clique.prop_filter("small enough to test", fits).prop_map(move |clique| Problem {
            cardinalities: domain.clone(),
            clique,
            records,
            seed,
        })
    })
}

/// The cell of each record.
fn cells_of(columns: &[Codes], marginal: &Marginal) -> Vec<u32> {
    let records = columns[0].column().len();
    let cell = |record: usize| {
        let axes = marginal.attributes.iter().enumerate();
        axes.map(|(axis, &a)| columns[a].column().code(record) * marginal.stride(axis)).sum()
    };
    (0..records).map(cell).collect()
}

fn tally(cells: usize, numbers: &[u32]) -> Vec<u32> {
    let mut counts = vec![0; cells];
    for &cell in numbers {
        counts[cell as usize] += 1;
    }
    counts
}

fn sum(counts: &[u32]) -> u64 {
    counts.iter().map(|&count| u64::from(count)).sum()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    /// Amounts are the formulas', rounded up or down, and everything adds up.
    #[test]
    fn plans_follow_the_formulas(
        shape in prop::collection::vec(1u32..6, 1..4), records in 0usize..2000, step in steps(), seed in any::<u64>(),
    ) {
        let mut random = Random::new([seed, 0, 0]);
        let cells = shape.iter().product::<u32>();
        let numbers: Vec<u32> = (0..records).map(|_| random.below_u32(cells).min(random.below_u32(cells))).collect();
        let counts = tally(cells as usize, &numbers);
        let targets = targets(cells as usize, records, &mut random);
        let axes: Vec<usize> = (0..shape.len()).collect();
        let plan = plan(&counts, &targets, &shape, &axes, &step, &mut random);

        let alpha = step.alpha.min(1.0);
        let growth: Vec<f64> = counts.iter().zip(&targets).map(|(&s, &t)| match step.growth {
            _ if t <= f64::from(s) => 0.0,
            Growth::Multiplicative if s > 0 => (t - f64::from(s)).min(step.alpha * f64::from(s)),
            _ => alpha * (t - f64::from(s)),
        }).collect();
        let total: f64 = growth.iter().sum();
        let loss = |beta: f64| counts.iter().zip(&targets).map(move |(&s, &t)| match step.removal {
            Removal::Capped => (f64::from(s) - t).min(beta * f64::from(s)).max(0.0),
            Removal::Excess => (f64::from(s) - t).max(0.0) * beta,
        });
        // The beta by bisection.
        let (mut low, mut high) = (0.0, 1.0);
        for _ in 0..60 {
            let middle = f64::midpoint(low, high);
            if loss(middle).sum::<f64>() < total { low = middle } else { high = middle }
        }
        let loss: Vec<f64> = loss(high).collect();

        let rewritten_to = tally(cells as usize, &plan.fates);
        let mut apart = 0.0;
        for cell in 0..cells as usize {
            let added = f64::from(plan.duplicate[cell] + rewritten_to[cell]);
            let removed = f64::from(plan.remove[cell]);
            apart += f64::from(u8::from((added - growth[cell]).abs() > 1.0 + 1e-6))
                + f64::from(u8::from((removed - loss[cell]).abs() > 1.0 + 1e-6));
            prop_assert!(plan.remove[cell] <= counts[cell]);
            prop_assert!(plan.rewrite[cell] <= plan.remove[cell]);
            prop_assert!(counts[cell] > 0 || plan.duplicate[cell] == 0);
            prop_assert!(plan.remove[cell] == 0 || plan.duplicate[cell] + rewritten_to[cell] == 0);
            let copies = if counts[cell] > 0 { step.duplicate * added } else { 0.0 };
            prop_assert!((f64::from(plan.duplicate[cell]) - copies).abs() < 1.0 + 1e-6);
        }
        prop_assert!(apart < 2.0, "balancing the totals may cost one cell one record");
        prop_assert_eq!(sum(&plan.remove), sum(&plan.duplicate) + plan.fates.len() as u64);
        prop_assert_eq!(sum(&plan.rewrite), plan.fates.len() as u64);
    }

    /// The cells are those of the oracle; codes outside the clique come from existing records.
    #[test]
    fn apply_matches_naive(problem in problem(), step in steps()) {
        let Problem { cardinalities, clique, records, seed } = problem;
        let mut random = Random::new([seed, 0, 0]);
        let columns: Vec<Codes> = cardinalities.iter().map(|&c| codes(c, records, &mut random)).collect();
        let cells = clique.iter().map(|&a| cardinalities[a] as usize).product();
        let marginal = Marginal::new(target(&clique, &cardinalities, targets(cells, records, &mut random))).unwrap();
        let mut rows = Rows::new(columns.clone(), records);
        let (mut scratch, cancel) = (Scratch::default(), Cancel::default());
        for _ in 0..3 {
            // Rows have weights by the second round.
            let before = rows.clone();
            let counts = rows.count(&marginal, &mut scratch, &cancel);
            let mut unfolded = before.clone();
            unfolded.unfold();
            let numbers = cells_of(&unfolded.columns, &marginal);
            prop_assert_eq!(&counts.all, &tally(cells, &numbers));
            if records == 0 {
                break;
            }
            let plan = plan(&counts.all, &marginal.targets, &marginal.shape, &marginal.axes, &step, &mut random);
            rows.apply(&marginal, &counts, &plan, &mut random, &mut scratch);
            let after = rows.count(&marginal, &mut scratch, &cancel);
            prop_assert_eq!(after.all, tally(cells, &naive::apply(&numbers, &plan)));
            prop_assert_eq!(rows.weights.iter().map(|&w| usize::from(w)).sum::<usize>(), records);
        }
        rows.unfold();
        let others: Vec<usize> = (0..cardinalities.len()).filter(|a| !marginal.attributes.contains(a)).collect();
        let rest = |columns: &[Codes], row: usize| -> Vec<u32> {
            others.iter().map(|&a| columns[a].column().code(row)).collect()
        };
        let known: std::collections::HashSet<_> = (0..records).map(|row| rest(&columns, row)).collect();
        prop_assert!((0..records).all(|row| known.contains(&rest(&rows.columns, row))));
    }
}

/// Rounding and sampling are right in expectation: each record of a cell is freed equally often.
#[test]
fn records_of_a_cell_are_freed_alike() {
    let cardinalities = [2, 64];
    let columns = [Codes::U8((0..64).map(|i| u8::from(i % 3 == 0)).collect()), Codes::U8((0..64).collect())];
    // Cell 0 has 42 records and should have 31.5: on average 10.5 are rewritten, each with chance 1/4.
    let wanted = target(&[0], &cardinalities, vec![31.5, 32.5]);
    let mut freed = [0; 64];
    for seed in 0..4000 {
        let mut gum = Gum::new(&table(&columns, &cardinalities), vec![wanted.clone()], &[0, 0], seed).unwrap();
        gum.pass(&[0], 0, &MCF, &Cancel::default()).unwrap();
        let Codes::U8(first) = &gum.records()[0] else { unreachable!("two values") };
        for (row, &code) in first.iter().enumerate() {
            freed[row] += i32::from(row % 3 != 0 && code == 1);
        }
    }
    // Six standard deviations of 4,000 draws of chance 1/4 are 164.
    for (row, &count) in freed.iter().enumerate().filter(|(row, _)| row % 3 != 0) {
        assert!((count - 1000).abs() < 164, "row {row}: {count}");
    }
}

/// Either attribute could be rewritten: it is the one of lower rank, and the other keeps its codes.
#[test]
fn the_attribute_that_gives_way_is_rewritten() {
    let cardinalities = [2, 2, 5];
    let codes: Vec<u8> = (0..100).map(|row| row % 2).collect();
    let columns = [Codes::U8(codes.clone()), Codes::U8(codes), Codes::U8(vec![0; 100])];
    let wanted = target(&[0, 1], &cardinalities, vec![0.0, 50.0, 50.0, 0.0]);
    for ranks in [[0, 1, 2], [1, 0, 2]] {
        let mut gum = Gum::new(&table(&columns, &cardinalities), vec![wanted.clone()], &ranks, 3).unwrap();
        gum.pass(&[0], 0, &Step { alpha: 1.0, duplicate: 0.0, ..TUNED }, &Cancel::default()).unwrap();
        assert_eq!(gum.errors(&Cancel::default()).unwrap(), [0.0]);
        let is_kept = |(now, then): (&Codes, &Codes)| (0..100).all(|i| now.column().code(i) == then.column().code(i));
        let kept = gum.records().iter().zip(&columns).map(is_kept);
        assert_eq!(kept.collect::<Vec<_>>(), [ranks[0] == 1, ranks[1] == 1, true]);
    }
}

/// A weight holds at most 255; more copies of a row take more rows.
#[test]
fn a_row_can_fill_the_table() {
    let cardinalities = [2, 2];
    let mut first = vec![0; 2000];
    first[1234] = 1;
    let columns = [Codes::U8(first.clone()), Codes::U8(first)];
    let wanted = target(&[0], &cardinalities, vec![0.0, 2000.0]);
    let mut gum = Gum::new(&table(&columns, &cardinalities), vec![wanted], &[0, 1], 1).unwrap();
    let step = Step { duplicate: 1.0, ..PUBLISHED };
    for round in 0..12 {
        gum.pass(&[0], round, &step, &Cancel::default()).unwrap();
    }
    assert_eq!(gum.errors(&Cancel::default()).unwrap(), [0.0]);
    for codes in gum.records() {
        assert!((0..2000).all(|row| codes.column().code(row) == 1));
    }
}

/// Errors before and after some passes, and the records.
fn pass_with(threads: usize, step: &Step) -> (Vec<f64>, Vec<f64>, Vec<Vec<u32>>) {
    let cardinalities = [3, 40, 300, 70_000, 1, 7];
    let mut random = Random::new([9, 0, 0]);
    let columns: Vec<Codes> = cardinalities.iter().map(|&c| codes(c, 20_000, &mut random)).collect();
    let cliques = [vec![0, 1], vec![2, 1], vec![3], vec![5, 0, 4], vec![0, 3], vec![]];
    let marginals = cliques.iter().map(|clique: &Vec<usize>| {
        let cells = clique.iter().map(|&a| cardinalities[a] as usize).product();
        target(clique, &cardinalities, targets(cells, 20_000, &mut random))
    });
    let mut gum = Gum::new(&table(&columns, &cardinalities), marginals.collect(), &[2, 5, 0, 1, 3, 4], 5).unwrap();
    let pool = parallel::pool(NonZero::new(threads).unwrap()).unwrap();
    pool.install(|| {
        let cancel = Cancel::default();
        let before = gum.errors(&cancel).unwrap();
        for round in 0..3 {
            gum.pass(&[3, 0, 5, 1, 4, 2], round, step, &cancel).unwrap();
        }
        let errors = gum.errors(&cancel).unwrap();
        let columns = gum.records().iter().map(|codes| (0..20_000).map(|row| codes.column().code(row)).collect());
        (before, errors, columns.collect())
    })
}

#[test]
fn the_result_is_the_same_for_any_number_of_threads() {
    for step in [PUBLISHED, TUNED] {
        let one = pass_with(1, &step);
        assert!(one.1[5] == 0.0 && one.1.iter().sum::<f64>() < 0.8 * one.0.iter().sum::<f64>(), "{:?}", (one.0, one.1));
        assert!(pass_with(2, &step) == one);
        assert!(pass_with(8, &step) == one);
    }
}

#[test]
fn a_cancelled_pass_leaves_whole_records() {
    let columns = [Codes::U8(vec![0, 1, 1, 2])];
    let wanted = target(&[0], &[3], vec![4.0, 0.0, 0.0]);
    let mut gum = Gum::new(&table(&columns, &[3]), vec![wanted], &[0], 0).unwrap();
    let cancel = Cancel::default();
    cancel.cancel();
    assert_eq!(gum.pass(&[0], 0, &PUBLISHED, &cancel), Err(crate::Error::Interrupted));
    assert_eq!(gum.errors(&cancel), Err(crate::Error::Interrupted));
    assert_eq!(gum.errors(&Cancel::default()).unwrap(), [1.5]);
}

#[test]
fn an_empty_plan_is_seen() {
    let plan =
        |counts: &[u32]| -> Plan { plan(counts, &[1.0, 2.0], &[2], &[0], &PUBLISHED, &mut Random::new([0, 0, 0])) };
    assert!(plan(&[1, 2]).is_empty());
    assert!(!plan(&[3, 0]).is_empty());
}

#[test]
fn buckets_are_refused() {
    let query = Query::new(vec![Axis::in_buckets(0, [0, 0, 1].into(), None)], &[3]).unwrap();
    let target = Target::new(query, vec![2.0, 2.0], 1.0).unwrap();
    let columns = [Codes::U8(vec![0, 1, 1, 2])];
    let refused = Gum::new(&table(&columns, &[3]), vec![target], &[0], 0).map(|_| ());
    assert_eq!(refused, Err(crate::Error::InBuckets { attribute: 0 }));
}
