use super::*;

/// Pairs whose error at noise s is `s * cells`, up to the error without a measurement.
fn problem<'a>(sizes: &'a [u32], sigmas: &'a [f64], fine: &'a [f64], unmeasured: &'a [f64], price: f64) -> Problem<'a> {
    Problem {
        sizes,
        sigmas,
        fine,
        unmeasured,
        price,
        max_order: 4,
        max_cells: 64,
        triple_bonus: 0.0,
        triple_error: 0.0,
        triple_weight: 0.0,
        budget: f64::INFINITY,
    }
}

struct Table {
    sizes: Vec<u32>,
    sigmas: Vec<f64>,
    fine: Vec<f64>,
    unmeasured: Vec<f64>,
}

impl Table {
    fn new(sizes: &[u32], unmeasured: f64) -> Self {
        let sigmas: Vec<f64> = (0..20).map(|g| 1.25f64.powi(g)).collect();
        let mut fine = Vec::new();
        for (i, a) in sizes.iter().enumerate() {
            for b in &sizes[i + 1..] {
                fine.extend(sigmas.iter().map(|sigma| sigma * f64::from(a * b)));
            }
        }
        let pairs = sizes.len() * (sizes.len() - 1) / 2;
        Self { sizes: sizes.to_vec(), sigmas, fine, unmeasured: vec![unmeasured; pairs] }
    }

    fn problem(&self, price: f64) -> Problem<'_> {
        problem(&self.sizes, &self.sigmas, &self.fine, &self.unmeasured, price)
    }
}

/// Errors of all pairs plus the price of all sets: what packing lowers.
fn objective(problem: &Problem<'_>, sets: &[Set]) -> f64 {
    let mut state = State::new(*problem);
    for set in sets {
        state.add(name(&set.attributes), set.noise);
    }
    let errors: f64 = (0..problem.unmeasured.len()).map(|pair| state.error(pair, state.precision[pair])).sum();
    let costs: f64 = sets.iter().map(|set| problem.price / problem.sigmas[set.noise].powi(2)).sum();
    errors + costs
}

fn all_pairs(table: &Table, noise: usize) -> Vec<Set> {
    let n = table.sizes.len();
    (0..n).flat_map(|i| (i + 1..n).map(move |j| Set { attributes: vec![i, j], noise })).collect()
}

#[test]
fn binary_attributes_are_packed_and_what_they_cover_is_dropped() {
    let table = Table::new(&[2; 6], 100.0);
    let problem = table.problem(50.0);
    let pairs = all_pairs(&table, 6);
    let packed = pack(&problem, pairs.clone(), 0, &Cancel::default()).unwrap();
    assert!(packed.iter().any(|set| set.attributes.len() == 4), "{packed:?}");
    assert!(objective(&problem, &packed) < objective(&problem, &pairs));
    for (i, set) in packed.iter().enumerate() {
        let inside = |other: &Set| other.attributes.iter().all(|a| set.attributes.contains(a));
        assert!(!packed.iter().enumerate().any(|(j, other)| i != j && inside(other)), "{packed:?}");
    }
}

#[test]
fn every_gain_is_the_difference_of_the_objective() {
    for price in [1.0, 20.0, 300.0] {
        let table = Table::new(&[2, 3, 2, 4, 2], 60.0);
        let problem = table.problem(price);
        let mut state = State::new(problem);
        for set in all_pairs(&table, 5) {
            state.add(name(&set.attributes), set.noise);
        }
        state.add(name(&[0, 1, 2]), 9);
        let sets: Vec<Set> = listed(&state);
        for new in subsets(name(&[0, 1, 2, 3]), 3).chain([name(&[0, 1, 2, 3]), name(&[0, 1, 2, 4]), name(&[1, 3, 4])]) {
            let (gain, noise) = state.gain(new);
            let attributes: Vec<usize> = members(new).collect();
            let inside = |other: &&Set| other.attributes.iter().all(|a| attributes.contains(a));
            let mut after: Vec<Set> = sets.iter().filter(|set| !inside(set)).cloned().collect();
            after.push(Set { attributes: attributes.clone(), noise });
            let difference = objective(&problem, &sets) - objective(&problem, &after);
            assert!((gain - difference).abs() < 1e-9, "{gain} {difference} {new:?}");
        }
    }
}

fn listed(state: &State<'_>) -> Vec<Set> {
    state.sets.iter().map(|(&set, &noise)| Set { attributes: members(set).collect(), noise }).collect()
}

#[test]
fn sets_keep_to_the_limits() {
    let table = Table::new(&[4, 4, 4, 2, 2, 3, 2], 500.0);
    let mut problem = table.problem(5.0);
    problem.triple_bonus = 10.0;
    problem.triple_weight = 1.0;
    problem.triple_error = 1000.0;
    for (order, cells) in [(3, 64), (4, 16), (4, 64)] {
        problem.max_order = order;
        problem.max_cells = cells;
        let packed = pack(&problem, all_pairs(&table, 3), 7, &Cancel::default()).unwrap();
        for set in &packed {
            let size: u32 = set.attributes.iter().map(|&a| table.sizes[a]).product();
            assert!(set.attributes.len() <= order && (set.attributes.len() == 2 || size <= cells), "{set:?}");
            assert!(set.attributes.is_sorted());
        }
    }
}

#[test]
fn worthwhile_triples_are_covered_even_without_pairs() {
    let table = Table::new(&[2; 5], 0.0);
    let mut problem = table.problem(1.0);
    assert!(pack(&problem, Vec::new(), 0, &Cancel::default()).unwrap().is_empty());
    problem.triple_weight = 1.0;
    problem.triple_error = 1000.0;
    let packed = pack(&problem, Vec::new(), 0, &Cancel::default()).unwrap();
    for (i, j, k) in (0..5).flat_map(|i| (0..i).flat_map(move |j| (0..j).map(move |k| (i, j, k)))) {
        assert!(packed.iter().any(|set| [i, j, k].iter().all(|a| set.attributes.contains(a))), "{i} {j} {k}");
    }
}

#[test]
fn the_result_does_not_depend_on_threads() {
    let table = Table::new(&[2, 2, 3, 2, 4, 2, 2, 3, 2], 80.0);
    let mut problem = table.problem(30.0);
    problem.triple_bonus = 3.0;
    let run = |threads| {
        let pool = crate::parallel::pool(std::num::NonZero::new(threads).unwrap()).unwrap();
        pool.install(|| pack(&problem, all_pairs(&table, 5), 1, &Cancel::default()).unwrap())
    };
    assert_eq!(run(1), run(2));
    assert_eq!(run(1), run(8));
}

#[test]
fn a_cancelled_packing_says_so() {
    let table = Table::new(&[2; 4], 100.0);
    let cancel = Cancel::default();
    cancel.cancel();
    assert!(pack(&table.problem(5.0), all_pairs(&table, 3), 0, &cancel).is_err());
}

#[test]
fn the_rough_logarithm_is_near_and_rises() {
    let numbers: Vec<f64> = (1..4000).map(|i| 1e-6 * 1.01f64.powi(i)).collect();
    for pair in numbers.windows(2) {
        assert!((rough_log2(pair[0]) - pair[0].log2()).abs() < 0.01);
        assert!(rough_log2(pair[0]) < rough_log2(pair[1]));
    }
}

#[test]
fn the_least_of_a_curve_is_found() {
    for n in [1, 3, 4, 40] {
        for lowest in 0..n {
            let found = least(n, |place| {
                (f64::from(u32::try_from(place).unwrap()) - f64::from(u32::try_from(lowest).unwrap())).abs()
            });
            assert_eq!(found, (lowest, 0.0));
        }
    }
}
