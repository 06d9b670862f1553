#![allow(clippy::cast_precision_loss, reason = "the numbers are small")]

use super::*;

const SIGMAS: usize = 40;

struct Table {
    sizes: Vec<u32>,
    items: Vec<Item>,
    sigmas: Vec<f64>,
    noise_errors: Vec<f64>,
}

impl Table {
    /// All pairs and triples; a table's noise error is `sigma * cells`, up to the number of records.
    fn new(sizes: &[u32], error: impl Fn(&[usize]) -> f64) -> Self {
        let d = sizes.len();
        let pairs = (0..d).flat_map(|i| (i + 1..d).map(move |j| vec![i, j]));
        let triples = (0..d).flat_map(|i| (i + 1..d).flat_map(move |j| (j + 1..d).map(move |k| vec![i, j, k])));
        let items: Vec<Item> = pairs
            .chain(triples)
            .map(|attributes| Item { error: error(&attributes), weight: 1.0, attributes })
            .collect();
        let sigmas: Vec<f64> = (0..i32::try_from(SIGMAS).unwrap()).map(|g| 2f64.powf(f64::from(g) / 4.0)).collect();
        let noise_errors = items
            .iter()
            .flat_map(|item| sigmas.iter().map(|sigma| (sigma * cells(sizes, &item.attributes)).min(10_000.0)))
            .collect();
        Self { sizes: sizes.to_vec(), items, sigmas, noise_errors }
    }

    fn problem(&self, price: f64) -> Problem<'_> {
        Problem {
            sizes: &self.sizes,
            items: &self.items,
            sigmas: &self.sigmas,
            options: 21,
            noise_errors: &self.noise_errors,
            price,
            max_order: 4,
            max_cells: 200,
            budget: f64::INFINITY,
        }
    }
}

fn contains(set: &[usize], part: &[usize]) -> bool {
    part.iter().all(|a| set.contains(a))
}

/// Errors of all items after measuring sets, by definition.
fn errors_after(problem: &Problem<'_>, sets: &[Set]) -> Vec<f64> {
    let steps = problem.sigmas.len();
    let ratio = (problem.sigmas[1] / problem.sigmas[0]).ln();
    let left = |(i, item): (usize, &Item)| {
        let mut error = item.error;
        for set in sets.iter().filter(|set| contains(&set.attributes, &item.attributes)) {
            let scale = cells(problem.sizes, &set.attributes) / cells(problem.sizes, &item.attributes);
            let place = ((problem.sigmas[set.noise] * scale.sqrt() / problem.sigmas[0]).ln() / ratio)
                .clamp(0.0, f64::from(u32::try_from(steps - 1).unwrap()));
            let low = (0..steps - 1).rev().find(|&g| f64::from(u32::try_from(g).unwrap()) <= place).unwrap();
            let part = place - f64::from(u32::try_from(low).unwrap());
            let row = &problem.noise_errors[i * steps..(i + 1) * steps];
            let told = row[low] * (1.0 - part) + row[low + 1] * part;
            error = error * told / (error * error + told * told).sqrt();
        }
        error
    };
    problem.items.iter().enumerate().map(left).collect()
}

fn objective(problem: &Problem<'_>, sets: &[Set]) -> f64 {
    let errors: f64 = errors_after(problem, sets).iter().zip(problem.items).map(|(e, item)| e * item.weight).sum();
    errors + sets.iter().map(|set| problem.price / problem.sigmas[set.noise].powi(2)).sum::<f64>()
}

#[test]
fn every_set_lowers_errors_by_more_than_it_costs() {
    for (sizes, price) in [(vec![2; 6], 500.0), (vec![2, 3, 2, 5, 4], 2_000.0), (vec![2, 9, 7, 3], 100.0)] {
        let table = Table::new(&sizes, |part| 50.0 * part.iter().sum::<usize>() as f64);
        let problem = table.problem(price);
        let sets = choose(&problem, &Cancel::default()).unwrap();
        assert!(!sets.is_empty());
        for number in 0..sets.len() {
            let (before, after) = (objective(&problem, &sets[..number]), objective(&problem, &sets[..=number]));
            assert!(after < before, "{number} of {sets:?}: {before} -> {after}");
        }
        assert!(sets.iter().all(|set| fits(&sizes, &set.attributes, 200)), "{sets:?}");
    }
}

#[test]
fn the_first_set_is_the_greedy_one_by_definition() {
    let table = Table::new(&[2, 3, 2, 4, 2], |part| 40.0 * (1 + part[0] + 3 * part[part.len() - 1]) as f64);
    let problem = table.problem(3_000.0);
    let value = |attributes: &[usize]| {
        let nothing = objective(&problem, &[]);
        let gains = (0..problem.options)
            .map(|noise| nothing - objective(&problem, &[Set { attributes: attributes.to_vec(), noise }]));
        gains.fold(0.0, f64::max)
    };
    let mut best: Vec<usize> = Vec::new();
    for item in problem.items {
        if best.is_empty() || value(&item.attributes) > value(&best) {
            best.clone_from(&item.attributes);
        }
    }
    loop {
        let longer = (0..5).filter(|a| !best.contains(a)).map(|a| {
            let mut set = best.clone();
            set.push(a);
            set.sort_unstable();
            set
        });
        let fitting = longer.filter(|set| set.len() <= 4 && fits(&table.sizes, set, 200));
        match fitting.max_by(|a, b| value(a).total_cmp(&value(b))) {
            Some(set) if value(&set) > value(&best) => best = set,
            _ => break,
        }
    }
    assert_eq!(choose(&problem, &Cancel::default()).unwrap()[0].attributes, best);
}

#[test]
fn nothing_is_chosen_where_nothing_is_wrong_or_precision_is_too_dear() {
    let right = Table::new(&[2; 5], |_| 0.0);
    assert_eq!(choose(&right.problem(1.0), &Cancel::default()).unwrap(), []);
    let wrong = Table::new(&[2; 5], |_| 100.0);
    assert_eq!(choose(&wrong.problem(1e12), &Cancel::default()).unwrap(), []);
}

#[test]
fn the_errors_of_a_state_are_those_of_the_definition() {
    let table = Table::new(&[2, 3, 2, 4], |part| 100.0 * part.len() as f64);
    let problem = table.problem(200.0);
    let sets = choose(&problem, &Cancel::default()).unwrap();
    let mut state = State::new(problem);
    for set in &sets {
        state.measure(&set.attributes, set.noise);
    }
    for (have, want) in state.errors.iter().zip(errors_after(&problem, &sets)) {
        assert!((have - want).abs() < 1e-6 * want.max(1.0), "{have} {want}");
    }
}

#[test]
fn choosing_ends_with_the_budget_and_at_a_word() {
    let table = Table::new(&[2; 8], |_| 500.0);
    let all = choose(&table.problem(10.0), &Cancel::default()).unwrap();
    let some = choose(&Problem { budget: 0.5, ..table.problem(10.0) }, &Cancel::default()).unwrap();
    assert!(some.len() < all.len() && some[..] == all[..some.len()]);
    let cancel = Cancel::default();
    cancel.cancel();
    assert!(choose(&table.problem(10.0), &cancel).is_err());
}
