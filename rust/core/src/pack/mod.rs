//! Pack small attributes into sets of three and four: a k-way set covers k (k - 1) / 2 pairs, and its triples, for one
//! release. Prism's own; no paper describes it.
//!
//! Everything has one **price**: a table with noise s costs `price / s^2`, in records of error. A set of c cells with
//! noise s measures a pair in it, of d cells, as well as a table of that pair with precision `d / (c s^2)` (summing the
//! other axes out adds up `c / d` noises). The expected error of a pair falls with the sum of its precisions, as
//! [`Problem::fine`] gives it.
//!
//! - [`pack`] starts from pairs and extends sets by one attribute each as long as that lowers errors plus costs: the
//!   gain is local, of the pairs and sets inside the new set, plus a bonus for every triple covered for the first time.
//!   Lazy greedy: the best known gain is recomputed before it is used.
//! - [`cover`] then tries random triples that no set covers. It adds one, with or without a fourth attribute, if what
//!   it measures of triples and pairs is worth its price. It ends after [`PATIENCE`] failures in a row, or when the
//!   budget is spent.
//!
//! Cost: O(pairs * attributes) evaluations, each O(1): the sets inside a set of four are found by name. Oracle: the
//! definition over all sets, in the tests.

#[cfg(test)]
mod tests;

use std::cmp::Ordering;
use std::collections::{BinaryHeap, HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};

use rayon::prelude::*;

use crate::error::Result;
use crate::parallel::Cancel;
use crate::random::{Random, mix};

/// Failures in a row after which the search for triples ends.
const PATIENCE: usize = 60;

/// Extensions of a set that are kept.
const BEST: usize = 32;

/// Mean of `|z|` of a normal deviate.
const MEAN_ABS: f64 = 0.797_884_560_802_865_4;

/// Most attributes of a set.
pub const MAX_ORDER: usize = 4;

/// The problem; all of it is public.
#[derive(Debug, Clone, Copy)]
pub struct Problem<'a> {
    /// Number of values of each attribute.
    pub sizes: &'a [u32],
    /// Noises to choose from, rising by one ratio.
    pub sigmas: &'a [f64],
    /// Expected error of each pair at each noise, pairs `(i, j)`, i < j, in lexicographic order.
    pub fine: &'a [f64],
    /// Expected error of each pair that is not measured.
    pub unmeasured: &'a [f64],
    /// The price of a unit of precision, in records of error.
    pub price: f64,
    /// Most attributes of a set, from 3 to [`MAX_ORDER`].
    pub max_order: usize,
    /// Most cells of a set.
    pub max_cells: u32,
    /// Gain for each triple that is covered for the first time, when pairs are packed.
    pub triple_bonus: f64,
    /// Error of a triple that no set covers, and its weight against that of a pair, when triples are covered.
    pub triple_error: f64,
    /// See [`Problem::triple_error`].
    pub triple_weight: f64,
    /// Total precision of all sets at which covering triples ends.
    pub budget: f64,
}

/// Attributes measured in one table, and the position of their noise in [`Problem::sigmas`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Set {
    /// In rising order.
    pub attributes: Vec<usize>,
    /// Position in the grid.
    pub noise: usize,
}

/// Pack the given pairs.
///
/// # Errors
/// [`crate::Error::Interrupted`].
pub fn pack(problem: &Problem<'_>, pairs: Vec<Set>, seed: u64, cancel: &Cancel) -> Result<Vec<Set>> {
    let mut state = State::new(*problem);
    for pair in pairs {
        state.add(name(&pair.attributes), pair.noise);
    }
    state.extend(cancel)?;
    if problem.triple_weight > 0.0 {
        state.cover(seed, cancel)?;
    }
    let mut sets: Vec<(Name, usize)> = state.sets.into_iter().collect();
    sets.sort_unstable();
    Ok(sets.into_iter().map(|(set, noise)| Set { attributes: members(set).collect(), noise }).collect())
}

/// The attributes of a set of at most four, rising, padded with the largest number: a name without allocation.
type Name = [u16; MAX_ORDER];

const NONE: u16 = u16::MAX;

fn name(attributes: &[usize]) -> Name {
    let mut name = [NONE; MAX_ORDER];
    for (to, &attribute) in name.iter_mut().zip(attributes) {
        *to = u16::try_from(attribute).expect("fewer than 65,535 attributes");
    }
    name
}

/// Names are not user input, so a cheap hash is safe.
type Mixing = BuildHasherDefault<Mixer>;

#[derive(Default)]
struct Mixer(u64);

impl Hasher for Mixer {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let word = chunk.iter().fold(0, |word, &byte| word << 8 | u64::from(byte));
            self.0 = mix(self.0 ^ word);
        }
    }

    fn write_usize(&mut self, _length: usize) {}
}

/// The attributes of a name.
fn members(name: Name) -> impl Iterator<Item = usize> + Clone {
    name.into_iter().filter(|&attribute| attribute != NONE).map(usize::from)
}

fn order(name: Name) -> usize {
    name.iter().filter(|&&attribute| attribute != NONE).count()
}

/// All parts of `name` with `k` attributes.
fn subsets(name: Name, k: usize) -> impl Iterator<Item = Name> {
    let all = order(name);
    (0u32..1 << all).filter(move |bits| bits.count_ones() as usize == k).map(move |bits| {
        let mut subset = [NONE; MAX_ORDER];
        let chosen = (0..all).filter(|i| bits >> i & 1 == 1).map(|i| name[i]);
        subset.iter_mut().zip(chosen).for_each(|(to, attribute)| *to = attribute);
        subset
    })
}

/// A name with one attribute more, if it has room and does not have it.
fn with(name: Name, attribute: usize) -> Option<Name> {
    let attribute = u16::try_from(attribute).expect("fewer than 65,535 attributes");
    if name.contains(&attribute) || name[MAX_ORDER - 1] != NONE {
        return None;
    }
    let mut longer = name;
    longer[MAX_ORDER - 1] = attribute;
    longer.sort_unstable();
    Some(longer)
}

/// A set that may replace those inside it.
#[derive(Debug)]
struct Move {
    gain: f64,
    set: Name,
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
        self.gain.total_cmp(&other.gain).then(other.set.cmp(&self.set))
    }
}

/// The pairs of a set of four and how much of its precision each gets; there are at most six.
#[derive(Debug, Clone, Copy, Default)]
struct Parts {
    pairs: [(usize, f64); 6],
    number: usize,
}

impl Parts {
    fn iter(&self) -> impl Iterator<Item = (usize, f64)> + Clone + '_ {
        self.pairs[..self.number].iter().copied()
    }
}

struct State<'a> {
    problem: Problem<'a>,
    /// The sets, and the noise of each.
    sets: HashMap<Name, usize, Mixing>,
    /// Precision that each pair gets from all sets.
    precision: Vec<f64>,
    covered: HashSet<Name, Mixing>,
    /// Reciprocal of the logarithm of the ratio of the grid, twice.
    per_step: f64,
}

impl<'a> State<'a> {
    fn new(problem: Problem<'a>) -> Self {
        let ratio = problem.sigmas.get(1).map_or(2.0, |second| second / problem.sigmas[0]);
        Self {
            problem,
            sets: HashMap::default(),
            precision: vec![0.0; problem.unmeasured.len()],
            covered: HashSet::default(),
            per_step: 0.5 / ratio.log2(),
        }
    }

    fn pair(&self, i: usize, j: usize) -> usize {
        let n = self.problem.sizes.len();
        i * (2 * n - i - 1) / 2 + j - i - 1
    }

    fn cells(&self, set: Name) -> f64 {
        members(set).map(|a| f64::from(self.problem.sizes[a])).product()
    }

    fn fits(&self, set: Name) -> bool {
        order(set) <= self.problem.max_order && self.cells(set) <= f64::from(self.problem.max_cells)
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
        let place = -rough_log2(precision * self.problem.sigmas[0].powi(2)) * self.per_step;
        let place = place.clamp(0.0, (steps - 1) as f64);
        let (low, part) = (place as usize, place.fract());
        let high = (low + 1).min(steps - 1);
        (fine[low] * (1.0 - part) + fine[high] * part).min(unmeasured)
    }

    fn parts(&self, set: Name) -> Parts {
        let cells = self.cells(set);
        let mut parts = Parts::default();
        for pair in subsets(set, 2) {
            let part = self.cells(pair) / cells;
            parts.pairs[parts.number] = (self.pair(pair[0].into(), pair[1].into()), part);
            parts.number += 1;
        }
        parts
    }

    fn add(&mut self, set: Name, noise: usize) {
        self.contribute(set, noise, 1.0);
        self.covered.extend(subsets(set, 3));
        self.sets.insert(set, noise);
    }

    fn contribute(&mut self, set: Name, noise: usize, sign: f64) {
        let cost = self.cost(noise);
        for (pair, part) in self.parts(set).iter() {
            self.precision[pair] += sign * part * cost;
        }
    }

    /// The sets whose attributes are all among these, and their noise.
    fn inside(&self, set: Name) -> impl Iterator<Item = (Name, usize)> + '_ {
        let parts = (2..=order(set)).flat_map(move |k| subsets(set, k));
        parts.filter_map(|part| self.sets.get(&part).map(|&noise| (part, noise)))
    }

    fn uncovered(&self, set: Name) -> impl Iterator<Item = Name> + '_ {
        subsets(set, 3).filter(|triple| !self.covered.contains(triple))
    }

    /// The gain when a set replaces all sets inside it, and its best noise.
    #[expect(clippy::cast_precision_loss, reason = "at most four triples")]
    fn gain(&self, set: Name) -> (f64, usize) {
        let parts = self.parts(set);
        let mut left = [0.0; 6];
        let mut before = 0.0;
        for ((pair, _), left) in parts.iter().zip(&mut left) {
            *left = self.precision[pair];
            before += self.error(pair, *left);
        }
        for (inner, noise) in self.inside(set) {
            let cost = self.cost(noise);
            before += self.problem.price * cost;
            for (pair, part) in self.parts(inner).iter() {
                let place = parts.iter().position(|(p, _)| p == pair).expect("its pairs are inside too");
                left[place] -= part * cost;
            }
        }
        let after = |noise: usize| {
            let cost = self.cost(noise);
            let errors =
                parts.iter().zip(left).map(|((pair, part), left)| self.error(pair, left.max(0.0) + part * cost));
            self.problem.price * cost + errors.sum::<f64>()
        };
        let (noise, least) = least(self.problem.sigmas.len(), after);
        let bonus = self.problem.triple_bonus * self.uncovered(set).count() as f64;
        (before - least + bonus, noise)
    }

    /// Extend sets as long as anything is gained.
    fn extend(&mut self, cancel: &Cancel) -> Result<()> {
        let mut waiting = HashSet::default();
        let first: Vec<Name> = self.sets.keys().copied().collect();
        let mut moves: BinaryHeap<Move> = self.moves(&first, &mut waiting, cancel)?.into();
        while let Some(best) = moves.pop() {
            cancel.check()?;
            waiting.remove(&best.set);
            // The sets that it extends may be gone, or its gain may have fallen.
            if !self.inside(best.set).any(|(inner, _)| order(inner) + 1 == order(best.set)) {
                continue;
            }
            let (gain, noise) = self.gain(best.set);
            if gain < 0.999 * best.gain {
                if gain > 0.0 {
                    waiting.insert(best.set);
                    moves.push(Move { gain, ..best });
                }
                continue;
            }
            let inside: Vec<(Name, usize)> = self.inside(best.set).collect();
            for (inner, noise) in inside {
                self.sets.remove(&inner);
                self.contribute(inner, noise, -1.0);
            }
            self.add(best.set, noise);
            moves.extend(self.moves(&[best.set], &mut waiting, cancel)?);
        }
        cancel.check()
    }

    /// The best extensions of each set that gain something, except those that are queued already.
    fn moves(&self, sets: &[Name], waiting: &mut HashSet<Name, Mixing>, cancel: &Cancel) -> Result<Vec<Move>> {
        let best = |&set: &Name| {
            let longer = (0..self.problem.sizes.len()).filter_map(|attribute| with(set, attribute));
            let longer = longer.filter(|&set| self.fits(set) && !cancel.is_cancelled());
            let mut moves: Vec<Move> = longer.map(|set| Move { gain: self.gain(set).0, set }).collect();
            moves.retain(|found| found.gain > 0.0);
            moves.sort_unstable_by(|a, b| b.cmp(a));
            moves.truncate(BEST);
            moves
        };
        let moves: Vec<Move> = sets.par_iter().flat_map_iter(best).collect();
        cancel.check()?;
        Ok(moves.into_iter().filter(|found| waiting.insert(found.set)).collect())
    }

    /// Add sets that cover triples, as long as they are worth it.
    fn cover(&mut self, seed: u64, cancel: &Cancel) -> Result<()> {
        let number = self.problem.sizes.len();
        let triples =
            (0..number).flat_map(|i| (i + 1..number).flat_map(move |j| (j + 1..number).map(move |k| [i, j, k])));
        let mut open: Vec<Name> =
            triples.map(|triple| name(&triple)).filter(|triple| !self.covered.contains(triple)).collect();
        Random::new([seed]).shuffle(&mut open);
        let mut spent: f64 = self.sets.values().map(|&noise| self.cost(noise)).sum();
        let mut failures = 0;
        while let Some(triple) = open.pop() {
            cancel.check()?;
            if spent >= self.problem.budget {
                break;
            }
            if self.covered.contains(&triple) {
                continue;
            }
            if let Some((set, noise)) = self.covering(triple) {
                self.add(set, noise);
                spent += self.cost(noise);
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
    fn covering(&self, triple: Name) -> Option<(Name, usize)> {
        let four = (0..self.problem.sizes.len()).filter_map(|attribute| with(triple, attribute));
        let mut best = (0.0, None);
        for set in std::iter::once(triple).chain(four).filter(|&set| self.fits(set) && !self.sets.contains_key(&set)) {
            let parts = self.parts(set);
            let before: f64 = parts.iter().map(|(pair, _)| self.error(pair, self.precision[pair])).sum();
            let cells = self.cells(set);
            let open = self.uncovered(set).map(|triple| self.cells(triple));
            let mut known = [0.0; MAX_ORDER];
            let number = known.iter_mut().zip(open).map(|(to, cells)| *to = cells).count();
            for (noise, &sigma) in self.problem.sigmas.iter().enumerate() {
                let cost = self.cost(noise);
                let worth = |of: &f64| (self.problem.triple_error - MEAN_ABS * sigma * (cells * of).sqrt()).max(0.0);
                let told = self.problem.triple_weight * known[..number].iter().map(worth).sum::<f64>();
                if told <= 0.5 * self.problem.price * cost {
                    continue;
                }
                let after = |(pair, part)| self.error(pair, self.precision[pair] + part * cost);
                let gain = before + told - self.problem.price * cost - parts.iter().map(after).sum::<f64>();
                if gain > best.0 {
                    best = (gain, Some((set, noise)));
                }
            }
        }
        best.1
    }
}

/// The place of the smallest of `f(0..n)`, and the smallest: every fourth is tried, then those around the best.
fn least(n: usize, f: impl Fn(usize) -> f64) -> (usize, f64) {
    const STRIDE: usize = 4;
    let smaller = |a: (usize, f64), b: (usize, f64)| if b.1 < a.1 { b } else { a };
    let at = |place| (place, f(place));
    let rough = (0..n).step_by(STRIDE).map(at).reduce(smaller).expect("there is a noise to choose");
    let around = (rough.0.saturating_sub(STRIDE - 1)..n.min(rough.0 + STRIDE)).filter(|&place| place != rough.0);
    around.map(at).fold(rough, smaller)
}

/// Logarithm to base 2 of a positive number, to within 0.01: a fraction of a step of the grid.
#[expect(clippy::cast_precision_loss, reason = "an exponent")]
fn rough_log2(x: f64) -> f64 {
    const MANTISSA: u64 = (1 << 52) - 1;
    let bits = x.to_bits();
    let exponent = (bits >> 52) as f64 - 1023.0;
    let rest = f64::from_bits(bits & MANTISSA | 1.0f64.to_bits()) - 1.0;
    exponent + rest * (1.3465 - 0.3465 * rest)
}
