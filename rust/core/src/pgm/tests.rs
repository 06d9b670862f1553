//! The kernel against the whole joint distribution, over graphs of all shapes.

#![expect(clippy::cast_precision_loss, reason = "small numbers")]

use std::num::NonZero;

use proptest::prelude::*;

use super::*;
use crate::parallel;
use crate::query::Axis;
use crate::random::Random;

const LIMIT: u64 = 1 << 30;

/// Cliques of every shape that may break inference, with the number of attributes.
const SHAPES: [(&str, usize, &[&[usize]]); 14] = [
    ("nothing", 3, &[]),
    ("the total", 2, &[&[]]),
    ("singles", 3, &[&[0], &[2]]),
    ("chain", 5, &[&[0, 1], &[1, 2], &[2, 3], &[3, 4]]),
    ("star", 5, &[&[2, 0], &[1, 2], &[2, 3], &[2, 4]]),
    ("cycle", 5, &[&[0, 1], &[1, 2], &[2, 3], &[3, 4], &[4, 0]]),
    ("grid", 6, &[&[0, 1], &[1, 2], &[3, 4], &[4, 5], &[0, 3], &[1, 4], &[2, 5]]),
    ("clique", 4, &[&[0, 1], &[0, 2], &[0, 3], &[1, 2], &[1, 3], &[2, 3]]),
    ("triples", 5, &[&[0, 1, 2], &[1, 2, 3], &[2, 3, 4]]),
    ("disconnected", 6, &[&[0, 1], &[2, 3], &[4, 5]]),
    ("permuted", 4, &[&[3, 1, 0], &[2, 1], &[1, 0, 3]]),
    ("repeated", 3, &[&[0, 1], &[0, 1], &[1, 0], &[1, 2], &[1], &[1]]),
    ("nested", 4, &[&[0, 1, 2], &[0, 1], &[1], &[2], &[], &[2, 3], &[3]]),
    ("unmeasured", 6, &[&[1, 4], &[4]]),
];

/// A domain and noisy marginals of a skewed table over it.
#[derive(Debug, Clone)]
struct Problem {
    cardinalities: Vec<u32>,
    targets: Vec<Target>,
    zeros: Vec<Zeros>,
    total: f64,
}

impl Problem {
    fn new(cardinalities: &[u32], cliques: &[&[usize]], total: f64, noise: f64, coarse: bool, seed: u64) -> Self {
        let mut random = Random::new([seed]);
        let size = cardinalities.iter().map(|&c| c as usize).product();
        let weights: Vec<f64> = (0..size).map(|_| (6.0 * random.unit()).exp()).collect();
        let sum: f64 = weights.iter().sum();
        let truth: Vec<f64> = weights.iter().map(|weight| total * weight / sum).collect();
        let mut targets = Vec::new();
        for clique in cliques {
            let axes = clique.iter().map(|&attribute| {
                let size = cardinalities[attribute];
                let buckets = size.div_ceil(2);
                if coarse && random.below(2) == 0 {
                    let of = (0..size).map(|_| random.below_u32(buckets)).collect();
                    Axis::in_buckets(attribute, of, Some(buckets))
                } else {
                    Axis::plain(attribute, size)
                }
            });
            let query = Query::new(axes.collect(), cardinalities).unwrap();
            let sigma = noise * (0.5 + random.unit());
            let exact = naive::marginal(cardinalities, &truth, &query);
            let values = exact.iter().map(|value| value + 4.0 * sigma * (random.unit() - 0.5)).collect();
            targets.push(Target::new(query, values, 1.0 / (sigma * sigma)).unwrap());
        }
        Self { cardinalities: cardinalities.to_vec(), targets, zeros: Vec::new(), total }
    }

    fn of_shape(shape: usize, coarse: bool, seed: u64) -> Self {
        let (_, attributes, cliques) = SHAPES[shape];
        let mut random = Random::new([seed, 1]);
        let cardinalities: Vec<u32> = (0..attributes).map(|_| 1 + random.below_u32(4)).collect();
        Self::new(&cardinalities, cliques, 1000.0, 20.0, coarse, seed)
    }

    /// Forbid some cells of a clique.
    fn forbid(mut self, clique: &[usize], share: f64, seed: u64) -> Self {
        let mut random = Random::new([seed, 2]);
        let cells: usize = clique.iter().map(|&a| self.cardinalities[a] as usize).product();
        let mut forbidden: Vec<bool> = (0..cells).map(|_| random.unit() < share).collect();
        // The record of zeros is never forbidden.
        forbidden[0] = false;
        self.zeros.push((Query::marginal(clique, &self.cardinalities).unwrap(), forbidden));
        self
    }

    fn model(&self, start: Option<&[&[f64]]>) -> Pgm {
        let cancel = Cancel::default();
        Pgm::new(&self.cardinalities, &self.targets, &self.zeros, self.total, start, LIMIT, &cancel).unwrap()
    }

    fn fitted(&self, steps: usize) -> Pgm {
        let mut model = self.model(None);
        for _ in 0..steps {
            let before = model.loss();
            assert!(model.step(&Cancel::default()).unwrap() <= before);
        }
        model
    }

    fn joint(&self, model: &Pgm) -> Vec<f64> {
        let potentials: Vec<&[f64]> = model.potentials().collect();
        naive::joint(&self.cardinalities, &self.targets, &potentials, &self.zeros, self.total)
    }
}

fn plain(cardinalities: &[u32], clique: &[usize]) -> Target {
    let query = Query::marginal(clique, cardinalities).unwrap();
    let cells = usize::try_from(query.cells()).unwrap();
    Target::new(query, vec![0.0; cells], 1.0).unwrap()
}

/// Every set of up to three attributes, each in some order.
fn queries(cardinalities: &[u32]) -> Vec<Query> {
    let attributes = cardinalities.len();
    let mut all = vec![vec![]];
    for a in 0..attributes {
        all.push(vec![a]);
        for b in (0..attributes).filter(|&b| b != a) {
            all.push(vec![a, b]);
            all.extend((a + 1..attributes).filter(|&c| c != b).map(|c| vec![b, c, a]));
        }
    }
    all.iter().map(|clique: &Vec<usize>| Query::marginal(clique, cardinalities).unwrap()).collect()
}

fn assert_near(a: &[f64], b: &[f64], what: &str) {
    assert_eq!(a.len(), b.len(), "{what}");
    for (x, y) in a.iter().zip(b) {
        assert!((x - y).abs() <= 1e-9 * (1.0 + y.abs()), "{what}: {x} is not {y}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    #[test]
    fn marginals_are_those_of_the_joint_distribution(
        shape in 0..SHAPES.len(), coarse: bool, zeros: bool, scale in prop_oneof![Just(1.0), Just(30.0), Just(600.0)],
        seed: u64,
    ) {
        let mut problem = Problem::of_shape(shape, coarse, seed);
        let attributes = problem.cardinalities.len();
        if zeros {
            problem = problem.forbid(&[1, 0], 0.4, seed).forbid(&[attributes - 1], 0.3, seed);
        }
        let mut random = Random::new([seed, 3]);
        let mut potentials = |target: &Target| -> Vec<f64> {
            target.values.iter().map(|_| scale * (random.unit() - 0.5)).collect()
        };
        let start: Vec<Vec<f64>> = problem.targets.iter().map(&mut potentials).collect();
        let start: Vec<&[f64]> = start.iter().map(Vec::as_slice).collect();
        let mut model = problem.model(Some(&start));
        let joint = problem.joint(&model);
        let (loss, _) = naive::loss_and_gap(&problem.cardinalities, &joint, &problem.targets, &problem.zeros);
        prop_assert!((model.loss() - loss).abs() <= 1e-9 * loss);
        let mut asked = queries(&problem.cardinalities);
        asked.extend(problem.targets.iter().map(|target| target.query.clone()));
        let found = model.marginals(&asked, &Cancel::default()).unwrap();
        for (query, table) in asked.iter().zip(found) {
            let expected = naive::marginal(&problem.cardinalities, &joint, query);
            assert_near(&table, &expected, &format!("{} {query:?}", SHAPES[shape].0));
        }
    }

    #[test]
    fn the_loss_becomes_the_smallest_there_is(shape in 0..SHAPES.len(), coarse: bool, zeros: bool, seed: u64) {
        let mut problem = Problem::of_shape(shape, coarse, seed);
        if zeros {
            problem = problem.forbid(&[0, 1], 0.3, seed);
        }
        let model = problem.fitted(2000);
        let joint = problem.joint(&model);
        let (loss, gap) = naive::loss_and_gap(&problem.cardinalities, &joint, &problem.targets, &problem.zeros);
        prop_assert!((model.loss() - loss).abs() <= 1e-6 * loss + 1e-9, "{} is not {loss}", model.loss());
        // A bound: near the smallest loss it is about the square root of what is left to gain.
        prop_assert!(gap <= 1e-3 * loss + 2e-6, "{}: {loss} may be {gap} above the smallest", SHAPES[shape].0);
    }

    #[test]
    fn records_are_as_many_as_the_model_says(shape in 0..SHAPES.len(), coarse: bool, zeros: bool, seed: u64) {
        let mut problem = Problem::of_shape(shape, coarse, seed);
        if zeros {
            problem = problem.forbid(&[1, 0], 0.4, seed);
        }
        let mut model = problem.fitted(20);
        let records = 20_000;
        let columns = model.records(records, seed, &Cancel::default()).unwrap();
        let joint: Vec<f64> = problem.joint(&model).iter().map(|count| count * records as f64 / problem.total).collect();
        let sizes = &problem.cardinalities;
        let rows: Vec<Vec<u32>> =
            (0..records).map(|r| columns.iter().map(|codes| codes.column().code(r)).collect()).collect();
        for (query, forbidden) in &problem.zeros {
            let clique = query.clique().unwrap();
            for row in &rows {
                prop_assert!(!forbidden[clique.iter().fold(0, |cell, &a| cell * sizes[a] as usize + row[a] as usize)]);
            }
        }
        for target in &problem.targets {
            let clique: Vec<usize> = target.query.attributes().collect();
            let expected = naive::marginal(sizes, &joint, &plain(sizes, &clique).query);
            let mut counts = vec![0.0; expected.len()];
            for row in &rows {
                counts[clique.iter().fold(0, |cell, &a| cell * sizes[a] as usize + row[a] as usize)] += 1.0;
            }
            // Each clique on the way from the root may add a record for each cell of its separator.
            for (count, expected) in counts.iter().zip(expected) {
                prop_assert!((count - expected).abs() < 40.0, "{clique:?}: {count} is not {expected}");
            }
        }
    }

    #[test]
    fn a_model_with_a_candidate_has_the_cells_of_both(
        cardinalities in prop::collection::vec(1u32..9, 1..12), picks in prop::collection::vec(any::<u64>(), 0..30),
        held in 0usize..12,
    ) {
        let attributes = cardinalities.len();
        let clique = |&pick: &u64| sorted((0..attributes).filter(|a| (pick >> (5 * a)).trailing_zeros() >= 2));
        let mut cliques: Vec<Vec<usize>> = picks.iter().map(clique).collect();
        let candidates = cliques.split_off(held.min(cliques.len()));
        let found = eliminate::model_cells_with(&cardinalities, &cliques, &candidates, &Cancel::default()).unwrap();
        for (candidate, found) in candidates.into_iter().zip(found) {
            cliques.push(candidate);
            prop_assert_eq!(found, naive::model_cells(&cardinalities, &cliques));
            prop_assert_eq!(found, eliminate::model_cells(&cardinalities, &cliques));
            cliques.pop();
        }
    }

    #[test]
    fn trees_hold_all_cliques_and_run_through_each_attribute(
        cardinalities in prop::collection::vec(1u32..9, 1..12), picks in prop::collection::vec(any::<u64>(), 0..14),
    ) {
        let attributes = cardinalities.len();
        let clique = |&pick: &u64| sorted((0..attributes).filter(|a| (pick >> (5 * a)).trailing_zeros() >= 2));
        let cliques: Vec<Vec<usize>> = picks.iter().map(clique).collect();
        let tree = JunctionTree::new(&cardinalities, &cliques);
        prop_assert_eq!(eliminate::model_cells(&cardinalities, &cliques), tree.cells(&cardinalities));
        for clique in &cliques {
            prop_assert!(tree.cliques.iter().any(|larger| tree::contains(larger, clique)));
        }
        for (n, clique) in tree.cliques.iter().enumerate() {
            prop_assert!(n == 0 || tree.depths[n] == tree.depths[tree.parents[n]] + 1);
            prop_assert!(tree.cliques.iter().filter(|larger| tree::contains(larger, clique)).count() == 1);
        }
        for a in 0..attributes {
            // Its cliques form one subtree: all but one have a parent among them.
            let has = |n: usize| tree.cliques[n].contains(&a);
            let tops = (0..tree.cliques.len()).filter(|&n| has(n) && (n == 0 || !has(tree.parents[n]))).count();
            prop_assert_eq!(tops, 1, "attribute {}", a);
        }
    }
}

#[test]
fn a_model_of_many_attributes_has_the_cells_of_the_oracle() {
    let mut random = Random::new([1]);
    let cardinalities: Vec<u32> = (0..130).map(|a| 2 + a % 7).collect();
    let mut cliques: Vec<Vec<usize>> = (0..120).map(|_| sorted((0..3).map(|_| random.below(130)))).collect();
    let candidates = cliques.split_off(90);
    let found = eliminate::model_cells_with(&cardinalities, &cliques, &candidates, &Cancel::default()).unwrap();
    for (candidate, found) in candidates.into_iter().zip(found) {
        cliques.push(candidate);
        assert_eq!(found, naive::model_cells(&cardinalities, &cliques));
        cliques.pop();
    }
}

#[test]
fn known_graphs_have_their_known_size() {
    let twos = [2; 9];
    let cells = |cliques: &[&[usize]]| {
        let cliques: Vec<Vec<usize>> = cliques.iter().map(|clique| clique.to_vec()).collect();
        eliminate::model_cells(&twos, &cliques)
    };
    assert_eq!(cells(&[]), 9 * 2);
    assert_eq!(cells(&[&[0, 1], &[1, 2]]), 2 * 4 + 6 * 2);
    // A cycle of five is three triangles.
    assert_eq!(cells(&[&[0, 1], &[1, 2], &[2, 3], &[3, 4], &[4, 0]]), 3 * 8 + 4 * 2);
    assert_eq!(eliminate::model_cells(&[u32::MAX; 9], &[(0..9).collect()]), u128::MAX);
    // The chord of a square joins its two small corners.
    let square = [vec![0, 1], vec![1, 2], vec![2, 3], vec![3, 0]];
    assert_eq!(eliminate::model_cells(&[2, 50, 2, 50], &square), 2 * (2 * 2 * 50));
}

fn with_threads<T: Send>(threads: usize, job: impl FnOnce() -> T + Send) -> T {
    parallel::pool(NonZero::new(threads).unwrap()).unwrap().install(job)
}

#[test]
fn threads_change_nothing() {
    let cliques: [&[usize]; 6] = [&[0, 1], &[1, 2], &[2, 3], &[0, 3], &[4, 0], &[1]];
    let run = |cardinalities: &[u32]| {
        let mut targets: Vec<Target> = cliques.iter().map(|clique| plain(cardinalities, clique)).collect();
        let mut random = Random::new([5]);
        for value in targets.iter_mut().flat_map(|target| &mut target.values) {
            *value = 100.0 * random.unit().powi(4) - 1.0;
        }
        let cancel = Cancel::default();
        let mut model = Pgm::new(cardinalities, &targets, &[], 5e4, None, LIMIT, &cancel).unwrap();
        let losses: Vec<f64> = (0..8).map(|_| model.step(&cancel).unwrap()).collect();
        let marginals = model.marginals(&queries(cardinalities), &cancel).unwrap();
        let records = model.records(5_000, 3, &cancel).unwrap();
        let codes: Vec<Vec<u32>> =
            records.iter().map(|codes| (0..5_000).map(|r| codes.column().code(r)).collect()).collect();
        (losses, marginals, codes)
    };
    // The second has tables large enough to be cut.
    for cardinalities in [[3, 4, 2, 5, 6], [40, 60, 50, 70, 3]] {
        let one = with_threads(1, || run(&cardinalities));
        assert_eq!(one, with_threads(2, || run(&cardinalities)));
        assert_eq!(one, with_threads(8, || run(&cardinalities)));
    }
}

#[test]
fn a_warm_start_goes_on_where_the_other_ended() {
    let problem = Problem::of_shape(5, false, 4);
    let cold = problem.fitted(30);
    let potentials: Vec<&[f64]> = cold.potentials().collect();
    let warm = problem.model(Some(&potentials));
    assert!((warm.loss() - cold.loss()).abs() <= 1e-12 * cold.loss());
}

#[test]
fn an_interrupted_step_changes_nothing() {
    let problem = Problem::of_shape(6, false, 4);
    let mut model = problem.fitted(5);
    let ends = [Query::marginal(&[0, 5], &problem.cardinalities).unwrap()];
    let (loss, before) = (model.loss(), model.marginals(&ends, &Cancel::default()).unwrap());
    let cancel = Cancel::default();
    cancel.cancel();
    assert_eq!(model.step(&cancel), Err(Error::Interrupted));
    assert_eq!(model.marginals(&ends, &cancel), Err(Error::Interrupted));
    assert!(model.loss().to_bits() == loss.to_bits());
    assert_eq!(model.marginals(&ends, &Cancel::default()).unwrap(), before);
}

#[test]
fn a_model_too_large_is_refused_before_it_is_built() {
    let cardinalities = [2_000; 6];
    let pairs = [[0, 1], [1, 2], [2, 3], [3, 4], [4, 5], [5, 0]];
    let targets: Vec<Target> = pairs.iter().map(|pair| plain(&cardinalities, pair)).collect();
    let refused = Pgm::new(&cardinalities, &targets, &[], 10.0, None, LIMIT, &Cancel::default());
    let Err(Error::ModelTooLarge { cells, .. }) = refused else { panic!("{refused:?}") };
    assert_eq!(cells, 4 * 2_000u128.pow(3));
    // The tree is small enough, but not the table that connects the ends of a chain.
    let targets: Vec<Target> = (0..5).map(|a| plain(&[30; 6], &[a, a + 1])).collect();
    let mut model = Pgm::new(&[30; 6], &targets, &[], 10.0, None, 1 << 22, &Cancel::default()).unwrap();
    assert!(model.marginals(&[plain(&[30; 6], &[0, 5]).query], &Cancel::default()).is_ok());
    let all = Query::marginal(&[0, 1, 2, 3, 4, 5], &[30; 6]).unwrap();
    assert!(matches!(model.marginals(&[all], &Cancel::default()), Err(Error::ModelTooLarge { .. })));
    // One code each, but far more buckets.
    let wide = Query::new(vec![Axis::in_buckets(0, vec![0; 30].into(), Some(1 << 30))], &[30; 6]).unwrap();
    let found = model.marginals(std::slice::from_ref(&wide), &Cancel::default());
    assert!(matches!(found, Err(Error::ModelTooLarge { .. })));
    assert_eq!(model.marginals_within(u64::MAX, &[wide], &Cancel::default()).unwrap(), [None]);
}

#[test]
fn marginals_that_cost_too_much_are_left_out() {
    let problem = Problem::of_shape(3, false, 8);
    let mut model = problem.fitted(5);
    let (cliques, cancel) = (queries(&problem.cardinalities), Cancel::default());
    let all: Vec<Option<Vec<f64>>> = model.marginals(&cliques, &cancel).unwrap().into_iter().map(Some).collect();
    assert_eq!(model.marginals_within(u64::MAX, &cliques, &cancel).unwrap(), all);
    assert_eq!(model.marginals_within(0, &cliques, &cancel).unwrap(), vec![None; cliques.len()]);
    for most in [30, 100, 300, 1000, 3000] {
        let some = model.marginals_within(most, &cliques, &cancel).unwrap();
        for (i, (one, other)) in some.iter().zip(&all).enumerate() {
            if let (Some(one), Some(other)) = (one, other) {
                assert_near(one, other, &format!("{:?}", cliques[i]));
            }
            // The result does not depend on the other queries.
            assert_eq!(&model.marginals_within(most, &cliques[i..=i], &cancel).unwrap()[0].is_some(), &one.is_some());
        }
    }
    // One table above the memory limit.
    let targets: Vec<Target> = (0..5).map(|a| plain(&[30; 6], &[a, a + 1])).collect();
    let mut model = Pgm::new(&[30; 6], &targets, &[], 10.0, None, 1 << 22, &cancel).unwrap();
    let cliques = [&[0, 1, 2, 3, 4, 5][..], &[0, 5]].map(|clique| Query::marginal(clique, &[30; 6]).unwrap());
    let found = model.marginals_within(u64::MAX, &cliques, &cancel).unwrap();
    assert!(found[0].is_none() && found[1].is_some());
}

#[test]
fn marginals_are_the_same_when_messages_have_to_be_forgotten() {
    let targets: Vec<Target> = (0..9).map(|a| plain(&[7; 10], &[a, a + 1])).collect();
    let mut random = Random::new([2]);
    let start: Vec<Vec<f64>> =
        targets.iter().map(|target| target.values.iter().map(|_| 4.0 * random.unit()).collect()).collect();
    let start: Vec<&[f64]> = start.iter().map(Vec::as_slice).collect();
    let found = |limit: u64| {
        let cancel = Cancel::default();
        let mut model = Pgm::new(&[7; 10], &targets, &[], 10.0, Some(&start), LIMIT, &cancel).unwrap();
        model.memory_limit = limit;
        model.marginals(&queries(&[7; 10]), &cancel).unwrap()
    };
    let few = found(8 * 7 * 7 * 7 * 7);
    for ((few, all), clique) in few.iter().zip(found(LIMIT)).zip(queries(&[7; 10])) {
        assert_near(few, &all, &format!("{clique:?}"));
    }
}

#[test]
fn a_model_without_any_cell_is_refused() {
    let zeros = [(Query::marginal(&[0], &[2, 3]).unwrap(), vec![true, true])];
    let refused = Pgm::new(&[2, 3], &[plain(&[2, 3], &[0, 1])], &zeros, 10.0, None, LIMIT, &Cancel::default());
    assert!(matches!(refused, Err(Error::InvalidParameter(_))));
}

#[test]
fn a_fit_without_anything_to_gain_ends() {
    let mut target = plain(&[2, 3], &[0, 1]);
    target.values.fill(5.0);
    let mut model = Pgm::new(&[2, 3], &[target], &[], 30.0, None, LIMIT, &Cancel::default()).unwrap();
    assert!(model.step(&Cancel::default()).unwrap() < 1e-20);
    assert!(model.is_exhausted());
}

#[test]
fn zeros_and_attributes_that_do_not_fit_are_refused() {
    let new = |targets: &[Target], zeros: &[Zeros]| {
        Pgm::new(&[2, 3], targets, zeros, 10.0, None, LIMIT, &Cancel::default()).map(|_| ()).unwrap_err()
    };
    let zeros = [(Query::marginal(&[1], &[2, 3]).unwrap(), vec![true, false])];
    assert_eq!(new(&[], &zeros), Error::WrongValues { values: 2, cells: 3 });
    let coarse = Axis::in_buckets(0, [0, 0].into(), None);
    let twice = Query::new(vec![Axis::plain(0, 2), coarse], &[2, 3]).unwrap();
    assert_eq!(new(&[Target::new(twice, vec![0.0; 2], 1.0).unwrap()], &[]), Error::AttributeTwice { attribute: 0 });
}
