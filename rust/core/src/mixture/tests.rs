//! Answers against their definition, gradients against differences, and the same result for any number of threads.

#![allow(clippy::cast_precision_loss, reason = "the numbers are small")]

use std::num::NonZero;

use proptest::prelude::*;

use super::*;
use crate::parallel::pool;

const CARDINALITIES: [u32; 4] = [3, 1, 4, 2];
const SMALL: Widths = Widths { embedding: 3, hidden: 5 };
const LINKS: [Link; 3] = [Link::Softmax, Link::Projected, Link::Network(SMALL)];

/// Axes of a table: distinct attributes in any order, each whole or one of its codes.
fn axes() -> impl Strategy<Value = Vec<(usize, Option<u32>)>> {
    let order = Just(vec![0, 1, 2, 3]).prop_shuffle();
    (order, 0..=4usize, prop::collection::vec((any::<bool>(), any::<u32>()), 4)).prop_map(|(order, many, codes)| {
        let axis = |&attribute: &usize| {
            let (single, code) = codes[attribute];
            (attribute, single.then_some(code % CARDINALITIES[attribute]))
        };
        order[..many].iter().map(axis).collect()
    })
}

fn link() -> impl Strategy<Value = Link> {
    (0..LINKS.len()).prop_map(|i| LINKS[i])
}

fn mixture(link: Link, components: usize, seed: u64) -> Mixture {
    Mixture::new(&CARDINALITIES, components, link, seed).unwrap()
}

fn with_threads<T: Send>(threads: usize, job: impl FnOnce() -> T + Send) -> T {
    pool(NonZero::new(threads).unwrap()).unwrap().install(job)
}

/// The loss of the answers by their definition, in `f64`.
fn naive_loss(mixture: &Mixture, tables: &[Table], targets: &[f32], loss: &Loss) -> f64 {
    let answers = |table| naive::answers(&mixture.probabilities, mixture.components, table);
    let every: Vec<Vec<f64>> = tables.iter().map(answers).collect();
    let mut errors = every.iter().flatten().zip(targets).map(|(answer, &target)| answer - f64::from(target));
    match loss {
        Loss::Squares(weights) => tables
            .iter()
            .zip(weights)
            .map(|(table, &weight)| {
                let squares: f64 = errors.by_ref().take(table.cells()).map(|error| error * error).sum();
                f64::from(weight) / 2.0 * squares
            })
            .sum(),
        Loss::Worst { .. } => {
            let sizes: Vec<f64> = errors.map(f64::abs).collect();
            sizes.iter().sum::<f64>() / sizes.len() as f64
        }
    }
}

/// The gradient that a step of Adam uses: of all parameters.
fn gradient(mixture: &mut Mixture, tables: &[Table], targets: &[f32], loss: &Loss) -> Vec<f32> {
    let cancel = Cancel::default();
    let mut errors = mixture.answers(tables, &cancel).unwrap();
    errors.iter_mut().zip(targets).for_each(|(answer, target)| *answer -= target);
    loss.differentiate(&mut errors, tables, mixture.components).unwrap();
    let Mixture { offsets, components, source, probabilities, gradient, .. } = mixture;
    tables::gradient(probabilities, *components, tables, &errors, gradient, &cancel).unwrap();
    match source {
        Source::Projected(_) | Source::Fixed => gradient.clone(),
        Source::Softmax(_) => {
            link::softmax_gradient(offsets, *components, probabilities, gradient);
            gradient.clone()
        }
        Source::Network(network) => {
            link::softmax_gradient(offsets, *components, probabilities, gradient);
            network.backward(gradient)
        }
    }
}

proptest! {
    #[test]
    fn answers_are_those_of_the_definition(
        link in link(), components in 1usize..40, seed in any::<u64>(), asked in prop::collection::vec(axes(), 0..6),
    ) {
        let mixture = mixture(link, components, seed);
        let tables: Vec<Table> = asked.iter().map(|axes| mixture.table(axes).unwrap()).collect();
        let found = mixture.answers(&tables, &Cancel::default()).unwrap();
        let expected: Vec<f64> =
            tables.iter().flat_map(|table| naive::answers(mixture.probabilities(), components, table)).collect();
        prop_assert_eq!(found.len(), expected.len());
        for (found, expected) in found.iter().zip(expected) {
            prop_assert!((f64::from(*found) - expected).abs() < 1e-5, "{} is not {}", found, expected);
        }
        {
            let whole: Vec<usize> = (0..4).collect();
            let table = mixture.table(&whole.into_iter().map(|a| (a, None)).collect::<Vec<_>>()).unwrap();
            let sum: f32 = mixture.answers(&[table], &Cancel::default()).unwrap().iter().sum();
            prop_assert!((sum - 1.0).abs() < 1e-4, "all cells add up to {}", sum);
        }
    }

    #[test]
    fn gradients_are_those_of_differences(
        link in link(), components in 4usize..9, seed in any::<u64>(),
        asked in prop::collection::vec(axes(), 1..4), squares in any::<bool>(),
    ) {
        let mut mixture = mixture(link, components, seed);
        let tables: Vec<Table> = asked.iter().map(|axes| mixture.table(axes).unwrap()).collect();
        let answers = mixture.answers(&tables, &Cancel::default()).unwrap();
        let mut random = Random::new([seed, 1]);
        // Far from the answers: a size has no derivative at 0.
        let targets: Vec<f32> =
            answers.iter().map(|a| a + if random.unit() < 0.5 { 0.3 } else { -0.2 }).collect();
        let loss = if squares {
            Loss::Squares((0..tables.len()).map(|i| 1.0 + i as f32).collect())
        } else {
            Loss::Worst { threshold: 0.1, most: answers.len() }
        };
        let found = gradient(&mut mixture, &tables, &targets, &loss);
        let parameters = mixture.parameters().to_vec();
        let scale = if squares { components as f64 } else { 1.0 };
        let largest = found.iter().fold(0.0f32, |most, g| most.max(g.abs()));
        let mut wrong = 0;
        for _ in 0..30 {
            let place = random.below(parameters.len());
            let mut slope = |step: f32| {
                let mut moved = parameters.clone();
                moved[place] += step;
                mixture.set_parameters(&moved).unwrap();
                naive_loss(&mixture, &tables, &targets, &loss) * scale
            };
            let step = 2e-3;
            let (wide, narrow) =
                [step, step / 2.0].map(|h| (slope(h) - slope(-h)) / (2.0 * f64::from(h))).into();
            // Where both disagree, a unit of the network opens or closes in between, or rounding rules.
            if (wide - narrow).abs() < 2e-3 * f64::from(largest.max(0.02)) {
                let off = (f64::from(found[place]) - narrow).abs();
                wrong += usize::from(off >= 2e-2 * f64::from(largest.max(0.02)));
            }
        }
        // Now and then both differences agree on the wrong side of a kink, or by rounding.
        prop_assert!(wrong <= 2, "{} of 30 slopes are not those of the differences", wrong);
    }
}

#[test]
fn most_differences_are_compared() {
    // Or the test above would say nothing: of the network's parameters nearly all have two differences that agree.
    let mut mixture = mixture(Link::Network(SMALL), 6, 3);
    let tables = vec![mixture.table(&[(0, None), (2, None), (3, Some(1))]).unwrap()];
    let targets = vec![0.5; tables[0].cells()];
    let loss = Loss::Squares(vec![1.0]);
    let found = gradient(&mut mixture, &tables, &targets, &loss);
    let parameters = mixture.parameters().to_vec();
    let mut near = 0;
    for place in 0..parameters.len() {
        let mut slope = |step: f32| {
            let mut moved = parameters.clone();
            moved[place] += step;
            mixture.set_parameters(&moved).unwrap();
            naive_loss(&mixture, &tables, &targets, &loss) * 6.0
        };
        let difference = (slope(1e-3) - slope(-1e-3)) / 2e-3;
        near += usize::from((f64::from(found[place]) - difference).abs() < 5e-3 * 0.1f64.max(difference.abs()));
    }
    assert!(near * 20 > parameters.len() * 19, "{near} of {}", parameters.len());
}

proptest! {
    #[test]
    fn a_projection_is_the_nearest_distribution(values in prop::collection::vec(-3.0f32..3.0, 8), seed in any::<u64>()) {
        // Two attributes, of three and of one value, in two components.
        let mut projected = values.clone();
        link::project(&[0, 3, 4], 2, &mut projected);
        let column = |values: &[f32], component: usize| [0, 2, 4].map(|row| f64::from(values[row + component]));
        let mut random = Random::new([seed]);
        for component in 0..2 {
            let found = column(&projected, component);
            prop_assert!((found.iter().sum::<f64>() - 1.0).abs() < 1e-5 && found.iter().all(|&p| p >= 0.0));
            let off = |other: [f64; 3]| -> f64 {
                column(&values, component).iter().zip(other).map(|(x, y)| (x - y).powi(2)).sum()
            };
            for _ in 0..50 {
                let drawn = [random.unit(), random.unit(), random.unit()];
                let sum: f64 = drawn.iter().sum();
                prop_assert!(off(found) <= off(drawn.map(|x| x / sum)) + 1e-5);
            }
            prop_assert!((projected[6 + component] - 1.0).abs() < 1e-6);
        }
    }
}

#[test]
fn a_fit_reaches_tables_that_a_mixture_has() {
    for (link, rate) in [(Link::Softmax, 0.1), (Link::Projected, 0.02), (Link::Network(SMALL), 0.01)] {
        let truth = mixture(Link::Softmax, 5, 1);
        let asked = [vec![(0, None), (2, None)], vec![(2, None), (3, None)], vec![(0, None), (1, None), (3, None)]];
        let tables: Vec<Table> = asked.iter().map(|axes| truth.table(axes).unwrap()).collect();
        let targets = truth.answers(&tables, &Cancel::default()).unwrap();
        let mut fitted = mixture(link, 60, 2);
        let loss = Loss::Squares(vec![1.0; 3]);
        let steps = Steps { most: 400, rate, cosine: true };
        let losses = fitted.fit(&tables, &targets, &loss, steps, &Cancel::default()).unwrap();
        assert!(losses[399] < 0.02 * losses[0], "{link:?}: {} of {}", losses[399], losses[0]);
        let answers = fitted.answers(&tables, &Cancel::default()).unwrap();
        let worst = answers.iter().zip(&targets).map(|(a, t)| (a - t).abs()).fold(0.0, f32::max);
        assert!(worst < 0.02, "{link:?}: {worst}");
    }
}

#[test]
fn the_worst_errors_are_fitted_until_none_is_above_the_threshold() {
    let truth = mixture(Link::Softmax, 5, 1);
    let cells: Vec<Vec<(usize, Option<u32>)>> = (0..12).map(|i| vec![(0, Some(i % 3)), (2, Some(i / 3))]).collect();
    let tables: Vec<Table> = cells.iter().map(|axes| truth.table(axes).unwrap()).collect();
    let targets = truth.answers(&tables, &Cancel::default()).unwrap();
    let mut fitted = mixture(Link::Softmax, 60, 2);
    let loss = Loss::Worst { threshold: 0.01, most: 4 };
    let steps = Steps { most: 1000, rate: 0.02, cosine: false };
    let losses = fitted.fit(&tables, &targets, &loss, steps, &Cancel::default()).unwrap();
    assert!((1..1000).contains(&losses.len()), "{} steps", losses.len());
    let answers = fitted.answers(&tables, &Cancel::default()).unwrap();
    assert!(answers.iter().zip(&targets).all(|(a, t)| (a - t).abs() < 0.01));
    let again = fitted.fit(&tables, &targets, &loss, steps, &Cancel::default()).unwrap();
    assert!(again.is_empty());
}

#[test]
fn the_number_of_threads_changes_nothing() {
    for link in [Link::Softmax, Link::Projected, Link::Network(Widths { embedding: 16, hidden: 40 })] {
        let run = |threads| {
            with_threads(threads, || {
                let mut fitted = mixture(link, 300, 2);
                let asked = [vec![(0, None), (2, None)], vec![(2, Some(1)), (3, None), (0, None)]];
                let tables: Vec<Table> = asked.iter().map(|axes| fitted.table(axes).unwrap()).collect();
                let targets: Vec<f32> = (0..12 + 6).map(|i| (i % 5) as f32 / 20.0).collect();
                let steps = Steps { most: 5, rate: 0.05, cosine: true };
                let loss = Loss::Squares(vec![1.0, 2.0]);
                let losses = fitted.fit(&tables, &targets, &loss, steps, &Cancel::default()).unwrap();
                (losses, fitted.parameters().to_vec(), fitted.probabilities().to_vec())
            })
        };
        let one = run(1);
        for threads in [2, 8] {
            assert!(run(threads) == one, "{link:?} with {threads} threads");
        }
    }
}

#[test]
fn parameters_are_taken_on_and_probabilities_answer_alone() {
    for link in LINKS {
        let (first, mut second) = (mixture(link, 7, 1), mixture(link, 7, 1));
        let tables = [first.table(&[(0, None), (2, None)]).unwrap()];
        let (cancel, steps) = (Cancel::default(), Steps { most: 3, rate: 0.1, cosine: false });
        second.fit(&tables, &[0.1; 12], &Loss::Squares(vec![1.0]), steps, &cancel).unwrap();
        assert!(second.probabilities() != first.probabilities());
        second.set_parameters(first.parameters()).unwrap();
        assert_eq!(second.probabilities(), first.probabilities());
        let kept = first.probabilities().to_vec();
        let mut fixed = Mixture::of_probabilities(&CARDINALITIES, 7, kept).unwrap();
        assert_eq!(fixed.answers(&tables, &cancel), first.answers(&tables, &cancel));
        let refused = fixed.fit(&tables, &[0.1; 12], &Loss::Squares(vec![1.0]), steps, &cancel);
        assert!(matches!(refused, Err(Error::InvalidParameter(_))));
        assert!(matches!(second.set_parameters(&[0.0]), Err(Error::WrongValues { .. })));
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let mut some = mixture(Link::Softmax, 3, 0);
    assert!(matches!(some.table(&[(4, None)]), Err(Error::NoSuchAttribute { attribute: 4, attributes: 4 })));
    assert!(matches!(some.table(&[(2, None), (2, Some(1))]), Err(Error::AttributeTwice { attribute: 2 })));
    assert!(matches!(some.table(&[(3, Some(2))]), Err(Error::InvalidParameter(_))));
    let tables = [some.table(&[(0, None)]).unwrap()];
    let (cancel, steps) = (Cancel::default(), Steps { most: 3, rate: 0.1, cosine: false });
    for (targets, weights) in [(vec![0.5; 2], vec![1.0]), (vec![0.5; 3], vec![])] {
        let refused = some.fit(&tables, &targets, &Loss::Squares(weights), steps, &cancel);
        assert!(matches!(refused, Err(Error::WrongValues { .. })));
    }
    assert!(matches!(Mixture::new(&[2], 0, Link::Softmax, 0), Err(Error::InvalidParameter(_))));
    let empty = Link::Network(Widths { embedding: 0, hidden: 4 });
    assert!(matches!(Mixture::new(&[2], 3, empty, 0), Err(Error::InvalidParameter(_))));
    assert!(matches!(Mixture::of_probabilities(&[2], 3, vec![0.5; 5]), Err(Error::WrongValues { .. })));
    let stop = Cancel::default();
    stop.cancel();
    assert_eq!(some.fit(&tables, &[0.5; 3], &Loss::Squares(vec![1.0]), steps, &stop), Err(Error::Interrupted));
}
