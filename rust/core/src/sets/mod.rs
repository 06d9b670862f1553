//! Choose sets of two to four attributes that tell most about pairs and triples that a model gets wrong, at one price.
//! Prism's own, for its second stage; no paper describes it.
//!
//! An **item** is a pair or a triple: what the model gets wrong about it (its error, in records), how much a unit of
//! that matters (its weight), and the error that noise would leave in its table. A set S measured with noise s tells of
//! every item inside it, with the noise `s sqrt(cells of S / cells of the item)` on each cell of the item's margin,
//! which leaves an error e. Two sources of errors c and e combine to `c e / hypot(c, e)`, less than either. So
//!
//! ```text
//! value of S at noise s = sum over items inside of weight (c - c e / hypot(c, e))  -  price / s^2
//! ```
//!
//! [`choose`] is lazy greedy: the item whose own table is worth most becomes a set, the set grows by one attribute at a
//! time as long as its value grows, the errors of the items inside fall, and so on until nothing is worth its price.
//! The value of an item only falls while errors fall, so the best known value is recomputed before it is used.
//!
//! Cost: O(items) evaluations at first; each chosen set O(attributes) evaluations, each at most 10 items and all
//! noises. Chosen for tables with few cells or many records, where pairs no longer hold most of the error. Oracle:
//! greedy by definition over all sets, in the tests.

#[cfg(test)]
mod tests;

use std::cmp::Ordering;
use std::collections::{BinaryHeap, HashMap};

use crate::error::Result;
use crate::parallel::Cancel;

/// Most attributes of a set.
pub const MAX_ORDER: usize = 4;

/// A value that fell by less than this share of itself is taken as it is.
const STALE: f64 = 0.02;

/// Most items inside a set: six pairs and four triples of four attributes.
const MAX_INSIDE: usize = 10;

/// A pair or a triple.
#[derive(Debug, Clone)]
pub struct Item {
    /// Two or three attributes, rising.
    pub attributes: Vec<usize>,
    /// What is wrong about it, in records.
    pub error: f64,
    /// How much a unit of that matters.
    pub weight: f64,
}

/// The problem; all of it is public.
#[derive(Debug, Clone, Copy)]
pub struct Problem<'a> {
    /// Number of values of each attribute.
    pub sizes: &'a [u32],
    /// The pairs and triples that matter, each once.
    pub items: &'a [Item],
    /// Noises, rising by one ratio: the grid of `noise_errors`.
    pub sigmas: &'a [f64],
    /// How many of `sigmas`, from the first, a set may have.
    pub options: usize,
    /// The error that each noise leaves in the table of each item, item by item.
    pub noise_errors: &'a [f64],
    /// The price of a unit of precision, in weighted records of error.
    pub price: f64,
    /// Most attributes of a set, from 2 to [`MAX_ORDER`].
    pub max_order: usize,
    /// Most cells of a set.
    pub max_cells: u64,
    /// Total precision at which choosing ends, whatever would still be worth its price.
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

/// Choose sets until none is worth its price, or the budget is spent.
///
/// # Errors
/// [`crate::Error::Interrupted`].
pub fn choose(problem: &Problem<'_>, cancel: &Cancel) -> Result<Vec<Set>> {
    let mut state = State::new(*problem);
    let mut waiting: BinaryHeap<Worth> = (0..problem.items.len())
        .filter_map(|item| Worth::of(item, state.best(&problem.items[item].attributes).value))
        .collect();
    let (mut chosen, mut spent) = (Vec::new(), 0.0);
    while let Some(top) = waiting.pop() {
        cancel.check()?;
        let mut attributes = problem.items[top.item].attributes.clone();
        let mut best = state.best(&attributes);
        if best.value < (1.0 - STALE) * top.value {
            waiting.extend(Worth::of(top.item, best.value));
            continue;
        }
        while let Some((longer, grown)) = state.grow(&attributes, best.value) {
            (attributes, best) = (longer, grown);
        }
        state.measure(&attributes, best.noise);
        spent += problem.sigmas[best.noise].powi(-2);
        chosen.push(Set { attributes, noise: best.noise });
        if spent > problem.budget {
            break;
        }
    }
    Ok(chosen)
}

/// The value of a set at its best noise.
#[derive(Debug, Clone, Copy)]
struct Best {
    value: f64,
    noise: usize,
}

/// What an item's own table is worth.
#[derive(Debug)]
struct Worth {
    value: f64,
    item: usize,
}

impl Worth {
    fn of(item: usize, value: f64) -> Option<Self> {
        (value > 0.0).then_some(Self { value, item })
    }
}

impl PartialEq for Worth {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Worth {}

impl PartialOrd for Worth {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Worth {
    fn cmp(&self, other: &Self) -> Ordering {
        self.value.total_cmp(&other.value).then(other.item.cmp(&self.item))
    }
}

struct State<'a> {
    problem: Problem<'a>,
    /// The item of two or three attributes, those of a pair with a last one of `usize::MAX`.
    named: HashMap<[usize; 3], usize>,
    /// The error of each item as things stand.
    errors: Vec<f64>,
    /// Cells of each item.
    cells: Vec<f64>,
    /// Steps of the grid that double a variance.
    steps: f64,
}

impl<'a> State<'a> {
    fn new(problem: Problem<'a>) -> Self {
        let ratio = problem.sigmas.get(1).map_or(2.0, |second| second / problem.sigmas[0]);
        let named = problem.items.iter().enumerate().map(|(i, item)| (name(&item.attributes), i)).collect();
        Self {
            problem,
            named,
            errors: problem.items.iter().map(|item| item.error).collect(),
            cells: problem.items.iter().map(|item| cells(problem.sizes, &item.attributes)).collect(),
            steps: 0.5 / ratio.log2(),
        }
    }

    /// The items inside a set.
    fn inside(&self, set: &[usize]) -> impl Iterator<Item = usize> + '_ {
        let set: [usize; MAX_ORDER] = std::array::from_fn(|i| set.get(i).copied().unwrap_or(usize::MAX));
        let order = set.iter().filter(|&&a| a != usize::MAX).count();
        (1u32..1 << order).filter(|bits| matches!(bits.count_ones(), 2 | 3)).filter_map(move |bits| {
            let mut part = [usize::MAX; 3];
            let members = (0..order).filter(|i| bits >> i & 1 == 1).map(|i| set[i]);
            part.iter_mut().zip(members).for_each(|(to, attribute)| *to = attribute);
            self.named.get(&part).copied()
        })
    }

    /// The error that noise leaves in an item, `places` of the grid (whole or not) above the first noise.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to the grid")]
    #[expect(clippy::cast_precision_loss, reason = "places in a grid")]
    fn noise_error(&self, item: usize, place: f64) -> f64 {
        let steps = self.problem.sigmas.len();
        let row = &self.problem.noise_errors[item * steps..(item + 1) * steps];
        let place = place.clamp(0.0, (steps - 1) as f64);
        let (low, part) = (place as usize, place.fract());
        row[low] * (1.0 - part) + row[(low + 1).min(steps - 1)] * part
    }

    /// By how many places of the grid an item's margin of a set is noisier than the set.
    fn coarser(&self, set: &[usize], item: usize) -> f64 {
        (cells(self.problem.sizes, set) / self.cells[item]).log2() * self.steps
    }

    #[expect(clippy::cast_precision_loss, reason = "places in a grid")]
    fn best(&self, set: &[usize]) -> Best {
        let mut parts = [(0usize, 0.0f64); MAX_INSIDE];
        let mut number = 0;
        for item in self.inside(set) {
            parts[number] = (item, self.coarser(set, item));
            number += 1;
        }
        let mut best = Best { value: 0.0, noise: 0 };
        for (noise, sigma) in self.problem.sigmas[..self.problem.options].iter().enumerate() {
            let mut value = -self.problem.price / (sigma * sigma);
            for &(item, coarser) in &parts[..number] {
                let error = self.errors[item];
                let left = both(error, self.noise_error(item, noise as f64 + coarser));
                value += self.problem.items[item].weight * (error - left);
            }
            if value > best.value {
                best = Best { value, noise };
            }
        }
        best
    }

    /// The best set with one attribute more, if it is worth more than `value`.
    fn grow(&self, set: &[usize], value: f64) -> Option<(Vec<usize>, Best)> {
        if set.len() >= self.problem.max_order {
            return None;
        }
        let mut found: Option<(Vec<usize>, Best)> = None;
        for attribute in (0..self.problem.sizes.len()).filter(|a| !set.contains(a) && self.problem.sizes[*a] > 1) {
            let mut longer = set.to_vec();
            longer.push(attribute);
            longer.sort_unstable();
            if !fits(self.problem.sizes, &longer, self.problem.max_cells) {
                continue;
            }
            let best = self.best(&longer);
            if best.value > found.as_ref().map_or(value, |(_, known)| known.value) {
                found = Some((longer, best));
            }
        }
        found
    }

    /// Lower the errors of the items inside a set that is measured.
    #[expect(clippy::cast_precision_loss, reason = "places in a grid")]
    fn measure(&mut self, set: &[usize], noise: usize) {
        let inside: Vec<usize> = self.inside(set).collect();
        for item in inside {
            let error = self.noise_error(item, noise as f64 + self.coarser(set, item));
            self.errors[item] = both(self.errors[item], error);
        }
    }
}

/// What is left of an error where a second source has another: the independent errors of a weighted mean.
fn both(known: f64, told: f64) -> f64 {
    let apart = known.hypot(told);
    if apart > 0.0 { known * told / apart } else { 0.0 }
}

fn cells(sizes: &[u32], attributes: &[usize]) -> f64 {
    attributes.iter().map(|&a| f64::from(sizes[a])).product()
}

fn fits(sizes: &[u32], attributes: &[usize], most: u64) -> bool {
    let cells = attributes.iter().try_fold(1u64, |cells, &a| cells.checked_mul(u64::from(sizes[a])));
    cells.is_some_and(|cells| cells <= most)
}

fn name(attributes: &[usize]) -> [usize; 3] {
    std::array::from_fn(|i| attributes.get(i).copied().unwrap_or(usize::MAX))
}
