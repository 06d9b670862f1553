//! Pack small attributes into sets of three and four: a k-way set covers k (k - 1) / 2 pairs, and its triples, for one
//! release. Prism's own; no paper describes it.
//!
//! All is judged at one **price**: a table with noise s costs `price / s^2`, in records of error. A set of c cells with noise s tells a
//! pair in it, of d cells, as much as a table of that pair with precision `d / (c s^2)` would (summing the other axes
//! out adds up `c / d` noises). The expected error of a pair falls with the sum of the precisions it gets, as [`Problem::fine`] says.
//!
//! - [`pack`] starts from pairs and extends sets by one attribute each as long as that lowers errors plus costs: the
//!   gain is local, of the pairs and sets inside the new set, plus a bonus for every triple covered for the first time.
//!   Lazy greedy: the best known gain is worked out again before it is believed.
//! - [`cover`] then looks at triples that nothing covers, at random: it takes one, with or without a fourth attribute, if
//!   what it tells of triples and pairs is worth its price; it ends after [`PATIENCE`] failures in a row.
//!
//! Cost: O(sets * attributes) evaluations, each O(1): the sets inside a set of four are found by name. Oracle: the
//! definition over all sets, in the tests.

#[cfg(test)]
mod tests;

use std::cmp::Ordering;
use std::collections::{BinaryHeap, HashMap, HashSet};

use rayon::prelude::*;

use crate::error::Result;
use crate::parallel::Cancel;
use crate::random::Random;

/// Failures in a row after which triples are not looked for any more.
const PATIENCE: usize = 60;

/// Mean of `|z|` of a normal deviate.
const MEAN_ABS: f64 = 0.797_884_560_802_865_4;

/// Most attributes of a set.
pub const MAX_ORDER: usize = 4;

/// What there is to choose from, all of it public.
#[derive(Debug, Clone, Copy)]
pub struct Problem<'a> {
    /// Number of values of each attribute.
    pub sizes: &'a [u32],
    /// Noises to choose from, rising by one ratio.
    pub sigmas: &'a [f64],
    /// Expected error of each pair at each noise, pairs `(i, j)`, i < j, in lexicographic order.
    pub fine: &'a [f64],
    /// And where nothing is measured of it.
    pub unmeasured: &'a [f64],
    /// Records of error that a unit of precision is worth.
    pub price: f64,
    /// Most attributes of a set, from 3 to [`MAX_ORDER`].
    pub max_order: usize,
    /// Most cells of a set.
    pub max_cells: u32,
    /// Gain for each triple that is covered for the first time, when pairs are packed.
    pub triple_bonus: f64,
    /// Error of a triple that nothing covers, and its weight against that of a pair, when triples are covered.
    pub triple_error: f64,
    /// See [`Problem::triple_error`].
    pub triple_weight: f64,
}

/// Attributes measured together, and the place of their noise in [`Problem::sigmas`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Set {
    /// Rising.
    pub attributes: Vec<usize>,
    /// Place in the grid.
    pub noise: usize,
}

/// Pack the given pairs.
///
/// # Errors
/// [`crate::Error::Interrupted`].
pub fn pack(problem: &Problem<'_>, pairs: Vec<Set>, seed: u64, cancel: &Cancel) -> Result<Vec<Set>> {
    let mut state = State::new(*problem);
    for pair in pairs {
        state.add(pair);
    }
    state.extend(cancel)?;
    if problem.triple_weight > 0.0 {
        state.cover(seed, cancel)?;
    }
    Ok(state.sets.into_iter().flatten().collect())
}

/// The attributes of a set of at most four, as a name.
type Name = [usize; MAX_ORDER];

fn name(attributes: &[usize]) -> Name {
    let mut name = [usize::MAX; MAX_ORDER];
    name[..attributes.len()].copy_from_slice(attributes);
    name
}

/// All of `attributes` taken `k` at a time.
fn subsets(attributes: &[usize], k: usize) -> impl Iterator<Item = Vec<usize>> + '_ {
    (0u32..1 << attributes.len())
        .filter(move |bits| bits.count_ones() as usize == k)
        .map(|bits| (0..attributes.len()).filter(|&i| bits >> i & 1 == 1).map(|i| attributes[i]).collect())
}

/// An extension that may be worth it.
#[derive(Debug)]
struct Move {
    gain: f64,
    set: usize,
    attribute: usize,
}

impl Move {
    fn key(&self) -> (f64, usize, usize) {
        (self.gain, self.set, self.attribute)
    }
}

impl PartialEq for Move {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Move {}

impl PartialOrd for Move {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Move {
    fn cmp(&self, other: &Self) -> Ordering {
        let ((gain, set, attribute), (other_gain, other_set, other_attribute)) = (self.key(), other.key());
        gain.total_cmp(&other_gain).then(other_set.cmp(&set)).then(other_attribute.cmp(&attribute))
    }
}

struct State<'a> {
    problem: Problem<'a>,
    sets: Vec<Option<Set>>,
    places: HashMap<Name, usize>,
    /// Precision that each pair gets from all sets.
    precision: Vec<f64>,
    covered: HashSet<Name>,
    /// Reciprocal of the logarithm of the ratio of the grid, twice.
    per_step: f64,
}

impl<'a> State<'a> {
    fn new(problem: Problem<'a>) -> Self {
        let ratio = problem.sigmas.get(1).map_or(2.0, |second| second / problem.sigmas[0]);
        Self {
            problem,
            sets: Vec::new(),
            places: HashMap::new(),
            precision: vec![0.0; problem.unmeasured.len()],
            covered: HashSet::new(),
            per_step: 0.5 / ratio.log2(),
        }
    }

    fn pair(&self, i: usize, j: usize) -> usize {
        let n = self.problem.sizes.len();
        i * (2 * n - i - 1) / 2 + j - i - 1
    }

    fn cells(&self, attributes: &[usize]) -> f64 {
        attributes.iter().map(|&a| f64::from(self.problem.sizes[a])).product()
    }

    fn fits(&self, attributes: &[usize]) -> bool {
        self.cells(attributes) <= f64::from(self.problem.max_cells)
    }

    fn cost(&self, noise: usize) -> f64 {
        self.problem.sigmas[noise].powi(-2)
    }

    /// Expected error of a pair that gets this precision, between two noises of the grid by interpolation.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to the grid")]
    #[expect(clippy::cast_precision_loss, reason = "places in a grid")]
    fn error(&self, pair: usize, precision: f64) -> f64 {
        let unmeasured = self.problem.unmeasured[pair];
        if precision <= 0.0 {
            return unmeasured;
        }
        let steps = self.problem.sigmas.len();
        let fine = &self.problem.fine[pair * steps..(pair + 1) * steps];
        let place = -(precision * self.problem.sigmas[0].powi(2)).log2() * self.per_step;
        let place = place.clamp(0.0, (steps - 1) as f64);
        let (low, part) = (place as usize, place.fract());
        let high = (low + 1).min(steps - 1);
        (fine[low] * (1.0 - part) + fine[high] * part).min(unmeasured)
    }

    /// The pairs of a set, and how much of its precision each gets.
    fn parts(&self, attributes: &[usize]) -> Vec<(usize, f64)> {
        let cells = self.cells(attributes);
        subsets(attributes, 2).map(|pair| (self.pair(pair[0], pair[1]), self.cells(&pair) / cells)).collect()
    }

    fn add(&mut self, set: Set) {
        self.contribute(&set, 1.0);
        self.covered.extend(subsets(&set.attributes, 3).map(|triple| name(&triple)));
        self.places.insert(name(&set.attributes), self.sets.len());
        self.sets.push(Some(set));
    }

    fn contribute(&mut self, set: &Set, sign: f64) {
        let cost = self.cost(set.noise);
        for (pair, part) in self.parts(&set.attributes) {
            self.precision[pair] += sign * part * cost;
        }
    }

    /// The sets whose attributes are all among these.
    fn inside(&self, attributes: &[usize]) -> Vec<usize> {
        let sizes = 2..=attributes.len();
        sizes.flat_map(|k| subsets(attributes, k)).filter_map(|set| self.places.get(&name(&set)).copied()).collect()
    }

    fn uncovered(&self, attributes: &[usize]) -> Vec<Vec<usize>> {
        subsets(attributes, 3).filter(|triple| !self.covered.contains(&name(triple))).collect()
    }

    /// What is gained when a set with one attribute more takes the place of all sets inside it.
    #[expect(clippy::cast_precision_loss, reason = "at most four triples")]
    fn extension(&self, set: usize, attribute: usize) -> Option<(f64, Set)> {
        let old = self.sets[set].as_ref()?;
        if old.attributes.contains(&attribute) || old.attributes.len() >= self.problem.max_order {
            return None;
        }
        let mut attributes = old.attributes.clone();
        attributes.push(attribute);
        attributes.sort_unstable();
        if !self.fits(&attributes) {
            return None;
        }
        let parts = self.parts(&attributes);
        let mut left: Vec<f64> = parts.iter().map(|&(pair, _)| self.precision[pair]).collect();
        let mut before: f64 = parts.iter().map(|&(pair, _)| self.error(pair, self.precision[pair])).sum();
        for inner in self.inside(&attributes).into_iter().filter_map(|place| self.sets[place].as_ref()) {
            let cost = self.cost(inner.noise);
            before += self.problem.price * cost;
            for (pair, part) in self.parts(&inner.attributes) {
                let place = parts.iter().position(|&(p, _)| p == pair).expect("its pairs are inside too");
                left[place] -= part * cost;
            }
        }
        let after = |noise: usize| {
            let cost = self.cost(noise);
            let errors =
                parts.iter().zip(&left).map(|(&(pair, part), left)| self.error(pair, left.max(0.0) + part * cost));
            self.problem.price * cost + errors.sum::<f64>()
        };
        let (noise, least) = least(self.problem.sigmas.len(), after);
        let bonus = self.problem.triple_bonus * self.uncovered(&attributes).len() as f64;
        Some((before - least + bonus, Set { attributes, noise }))
    }

    /// Extend sets as long as anything is gained.
    fn extend(&mut self, cancel: &Cancel) -> Result<()> {
        let mut moves: BinaryHeap<Move> = (0..self.sets.len())
            .into_par_iter()
            .flat_map_iter(|set| if cancel.is_cancelled() { Vec::new() } else { self.moves(set) })
            .collect::<Vec<_>>()
            .into();
        while let Some(best) = moves.pop() {
            cancel.check()?;
            let Some((gain, set)) = self.extension(best.set, best.attribute) else { continue };
            if gain < 0.999 * best.gain {
                if gain > 0.0 {
                    moves.push(Move { gain, ..best });
                }
                continue;
            }
            for place in self.inside(&set.attributes) {
                if let Some(inner) = self.sets[place].take() {
                    self.places.remove(&name(&inner.attributes));
                    self.contribute(&inner, -1.0);
                }
            }
            self.add(set);
            moves.extend(self.moves(self.sets.len() - 1));
        }
        cancel.check()
    }

    /// The extensions of a set that gain something.
    fn moves(&self, set: usize) -> Vec<Move> {
        let attributes = 0..self.problem.sizes.len();
        let gaining = |attribute| self.extension(set, attribute).filter(|(gain, _)| *gain > 0.0);
        attributes.filter_map(|attribute| gaining(attribute).map(|(gain, _)| Move { gain, set, attribute })).collect()
    }

    /// Add sets that cover triples, as long as they are worth it.
    fn cover(&mut self, seed: u64, cancel: &Cancel) -> Result<()> {
        let number = self.problem.sizes.len();
        let triples =
            (0..number).flat_map(|i| (i + 1..number).flat_map(move |j| (j + 1..number).map(move |k| [i, j, k])));
        let mut open: Vec<[usize; 3]> = triples.filter(|triple| !self.covered.contains(&name(triple))).collect();
        Random::new([seed]).shuffle(&mut open);
        let mut failures = 0;
        while let Some(triple) = open.pop() {
            cancel.check()?;
            if self.covered.contains(&name(&triple)) {
                continue;
            }
            if let Some(set) = self.covering(triple) {
                self.add(set);
                failures = 0;
            } else {
                failures += 1;
                if failures > PATIENCE {
                    break;
                }
            }
        }
        Ok(())
    }

    /// The best set that has this triple, if one is worth its price.
    fn covering(&self, triple: [usize; 3]) -> Option<Set> {
        let four =
            (0..self.problem.sizes.len()).filter(|a| self.problem.max_order > 3 && !triple.contains(a)).map(|a| {
                let mut attributes = triple.to_vec();
                attributes.push(a);
                attributes.sort_unstable();
                attributes
            });
        let mut best: Option<(f64, Set)> = None;
        for attributes in std::iter::once(triple.to_vec()).chain(four) {
            if !self.fits(&attributes) || self.places.contains_key(&name(&attributes)) {
                continue;
            }
            let parts = self.parts(&attributes);
            let before: f64 = parts.iter().map(|&(pair, _)| self.error(pair, self.precision[pair])).sum();
            let cells = self.cells(&attributes);
            let open: Vec<f64> = self.uncovered(&attributes).iter().map(|triple| self.cells(triple)).collect();
            for (noise, &sigma) in self.problem.sigmas.iter().enumerate() {
                let cost = self.cost(noise);
                let worth = |&of: &f64| (self.problem.triple_error - MEAN_ABS * sigma * (cells * of).sqrt()).max(0.0);
                let told = self.problem.triple_weight * open.iter().map(worth).sum::<f64>();
                if told <= 0.5 * self.problem.price * cost {
                    continue;
                }
                let after = |&(pair, part): &(usize, f64)| self.error(pair, self.precision[pair] + part * cost);
                let gain = before + told - self.problem.price * cost - parts.iter().map(after).sum::<f64>();
                if gain > best.as_ref().map_or(0.0, |(gain, _)| *gain) {
                    best = Some((gain, Set { attributes: attributes.clone(), noise }));
                }
            }
        }
        best.map(|(_, set)| set)
    }
}

/// The place of the smallest of `f(0..n)`, and the smallest.
fn least(n: usize, f: impl Fn(usize) -> f64) -> (usize, f64) {
    (0..n).map(|place| (place, f(place))).min_by(|a, b| a.1.total_cmp(&b.1)).expect("there is a noise to choose")
}
