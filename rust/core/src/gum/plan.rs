//! Decide how many records of each cell of a marginal are freed, copied and rewritten. Pure: no record is touched.
//!
//! With `s` records in a cell whose target is `t`:
//!
//! - an under-full cell grows by `min(t - s, alpha * s)` ([P] 5.2), an empty one by `alpha * t`, because it has nothing
//!   to multiply ([`Growth::Multiplicative`]); or by `alpha * (t - s)` ([`Growth::Proportional`]);
//! - an over-full cell shrinks by `min(s - t, beta * s)` where beta makes both totals equal ([`Removal::Capped`], [P]
//!   5.2; solved exactly by capping cells until none is left to cap), or in proportion to `s - t`
//!   ([`Removal::Excess`]);
//! - the share `duplicate` of a cell's growth are copies of its own records; the rest are freed records whose
//!   attributes of the clique are rewritten. [`Pairing`] assigns freed records to cells.
//!
//! Amounts are rounded by systematic sampling: `floor(u + running sum)` with one random `u`, so that each cell is right
//! in expectation, off by less than one, and both totals stay equal.
//! Cost: O(cells + moves) time and memory. Oracle: the formulas above, in the tests.

use super::flow;
use crate::random::Random;

/// How fast under-full cells grow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Growth {
    /// `min(t - s, alpha * s)`: as published.
    Multiplicative,
    /// `alpha * (t - s)`.
    Proportional,
}

/// How over-full cells share the loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Removal {
    /// `min(s - t, beta * s)`: as published.
    Capped,
    /// In proportion to `s - t`.
    Excess,
}

/// Which freed record is rewritten to which cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pairing {
    /// Any, at random: as published.
    Random,
    /// First those that differ from the cell in one attribute, in the order of `axes`; the rest at random.
    Matched,
    /// So that the fewest attributes change in total ([`flow`]): the min-cost flow of [P] 5.1.
    Flow,
}

/// The settings of one pass.
#[derive(Debug, Clone, Copy)]
pub struct Step {
    /// The update rate, above 0.
    pub alpha: f64,
    /// Which share of the growth comes from copies.
    pub duplicate: f64,
    /// How fast under-full cells grow.
    pub growth: Growth,
    /// How over-full cells share the loss.
    pub removal: Removal,
    /// Which freed record is rewritten to which cell.
    pub pairing: Pairing,
}

/// Fate of a freed record that is replaced by a copy.
const VANISH: u32 = u32::MAX;

/// The moves of one marginal.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Plan {
    /// Records freed in each cell.
    pub remove: Vec<u32>,
    /// Records copied in each cell.
    pub duplicate: Vec<u32>,
    /// How many of the records freed in each cell are rewritten; the others are replaced by the copies.
    pub rewrite: Vec<u32>,
    /// The cells they are rewritten to, for one cell after another.
    pub fates: Vec<u32>,
    /// Whether any freed record may go to any of these cells.
    pub any_record: bool,
}

impl Plan {
    /// Whether nothing moves.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.remove.iter().all(|&count| count == 0)
    }
}

/// Plan the moves from `counts` towards `targets`, which have equal totals; `shape` gives the sizes of the axes, `axes`
/// the order in which [`Pairing::Matched`] rewrites along them.
#[must_use]
pub fn plan(counts: &[u32], targets: &[f64], shape: &[u32], axes: &[usize], step: &Step, random: &mut Random) -> Plan {
    let growth = growth(counts, targets, step);
    let total: f64 = growth.iter().sum();
    let loss = match step.removal {
        Removal::Capped => capped_loss(counts, targets, total),
        Removal::Excess => excess_loss(counts, targets, total),
    };
    let offset = random.unit();
    let mut add = systematic(&growth, offset);
    let mut remove = systematic(&loss, offset);
    for (count, &present) in remove.iter_mut().zip(counts) {
        *count = (*count).min(present);
    }
    balance(&mut add, &mut remove);

    let by_copy = |(&amount, &count): (&u32, &u32)| if count == 0 { 0.0 } else { step.duplicate * f64::from(amount) };
    let copies: Vec<f64> = add.iter().zip(counts).map(by_copy).collect();
    let mut duplicate = systematic(&copies, random.unit());
    for (copies, rewritten) in duplicate.iter_mut().zip(&mut add) {
        *copies = (*copies).min(*rewritten);
        *rewritten -= *copies;
    }
    let mut fates = fates(&remove, &add, shape, axes, step.pairing, random);
    let mut rest = &fates[..];
    let rewritten = |&count: &u32| {
        let (own, others) = rest.split_at(count as usize);
        rest = others;
        count - own.iter().map(|&fate| u32::from(fate == VANISH)).sum::<u32>()
    };
    let rewrite = remove.iter().map(rewritten).collect();
    fates.retain(|&fate| fate != VANISH);
    Plan { remove, duplicate, rewrite, fates, any_record: step.pairing == Pairing::Random }
}

fn growth(counts: &[u32], targets: &[f64], step: &Step) -> Vec<f64> {
    let amount = |(&count, &target): (&u32, &f64)| {
        let (s, missing) = (f64::from(count), target - f64::from(count));
        if missing <= 0.0 {
            0.0
        } else if count == 0 || step.growth == Growth::Proportional {
            missing * step.alpha.min(1.0)
        } else {
            missing.min(step.alpha * s)
        }
    };
    counts.iter().zip(targets).map(amount).collect()
}

/// `min(s - t, beta * s)` of over-full cells, adding up to `total`.
fn capped_loss(counts: &[u32], targets: &[f64], total: f64) -> Vec<f64> {
    let beta = beta(counts, targets, total);
    let amount = |(&count, &target): (&u32, &f64)| (f64::from(count) - target).min(beta * f64::from(count)).max(0.0);
    counts.iter().zip(targets).map(amount).collect()
}

/// The beta of [P] 5.2. Every round caps the cells that would fall below their target, which raises beta for the rest;
/// rounds are few, and one without a new cap ends it.
fn beta(counts: &[u32], targets: &[f64], total: f64) -> f64 {
    let mut beta = 0.0;
    loop {
        let (mut capped, mut free) = (0.0, 0.0);
        for (&count, &target) in counts.iter().zip(targets) {
            let (s, excess) = (f64::from(count), f64::from(count) - target);
            let is_capped = excess <= beta * s;
            capped += if is_capped { excess.max(0.0) } else { 0.0 };
            free += if is_capped { 0.0 } else { s };
        }
        if free <= 0.0 {
            return 1.0;
        }
        let next = (total - capped) / free;
        if next <= beta {
            return beta;
        }
        beta = next;
    }
}

/// Loss in proportion to `s - t` of over-full cells, adding up to `total`.
fn excess_loss(counts: &[u32], targets: &[f64], total: f64) -> Vec<f64> {
    let excess = |(&count, &target): (&u32, &f64)| (f64::from(count) - target).max(0.0);
    let mut loss: Vec<f64> = counts.iter().zip(targets).map(excess).collect();
    let all: f64 = loss.iter().sum();
    let share = if all > 0.0 { (total / all).min(1.0) } else { 0.0 };
    for amount in &mut loss {
        *amount *= share;
    }
    loss
}

/// Integers with the same running sums, to within one; each right on average over a random `offset` in `[0, 1)`.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "sums of counts of records, not negative")]
fn systematic(amounts: &[f64], offset: f64) -> Vec<u32> {
    let (mut sum, mut mark) = (offset, 0);
    let round = |&amount: &f64| {
        sum += amount;
        let next = sum as u32;
        next - std::mem::replace(&mut mark, next)
    };
    amounts.iter().map(round).collect()
}

/// Make the totals equal where rounding or a cap left a difference, by dropping from the larger.
fn balance(add: &mut [u32], remove: &mut [u32]) {
    let sum = |counts: &[u32]| counts.iter().map(|&c| u64::from(c)).sum::<u64>();
    let (added, removed) = (sum(add), sum(remove));
    let (larger, mut surplus) = if added > removed { (add, added - removed) } else { (remove, removed - added) };
    for count in larger.iter_mut().rev() {
        if surplus == 0 {
            break;
        }
        let dropped = u64::from(*count).min(surplus);
        *count -= u32::try_from(dropped).expect("at most a count");
        surplus -= dropped;
    }
}

/// Assign the rewritten cells to the freed records.
fn fates(
    remove: &[u32],
    rewrite: &[u32],
    shape: &[u32],
    axes: &[usize],
    pairing: Pairing,
    random: &mut Random,
) -> Vec<u32> {
    let freed = remove.iter().map(|&count| count as usize).sum();
    let mut fates = vec![VANISH; freed];
    let mut rewrite = rewrite.to_vec();
    let moves = match pairing {
        Pairing::Random => Vec::new(),
        Pairing::Matched => match_lines(&mut remove.to_vec(), &mut rewrite, shape, axes, random),
        Pairing::Flow => {
            let moves = flow::min_cost(remove, &rewrite, shape);
            rewrite.fill(0);
            moves
        }
    };
    let mut next = starts(remove);
    for &(from, to, records) in &moves {
        let start = next[from as usize];
        next[from as usize] += records as usize;
        fates[start..next[from as usize]].fill(to);
    }
    // Cells that are left over go at random to the records without a fate.
    let mut open: Vec<u32> = (0u32..).zip(&rewrite).flat_map(|(to, &n)| std::iter::repeat_n(to, n as usize)).collect();
    let start_of = starts(remove);
    if moves.is_empty() {
        fates[..open.len()].copy_from_slice(&open);
        random.shuffle(&mut fates);
        return fates;
    }
    let rest: usize =
        remove.iter().zip(&next).zip(&start_of).map(|((&n, next), start)| start + n as usize - next).sum();
    open.resize(rest, VANISH);
    random.shuffle(&mut open);
    let mut dealt = open.into_iter();
    for ((&n, &next), &start) in remove.iter().zip(&next).zip(&start_of) {
        let end = start + n as usize;
        fates[next..end].iter_mut().zip(&mut dealt).for_each(|(fate, to)| *fate = to);
        random.shuffle(&mut fates[start..end]);
    }
    fates
}

/// Where each cell's freed records start in the list of fates.
fn starts(remove: &[u32]) -> Vec<usize> {
    let start = |sum: &mut usize, &count: &u32| Some(std::mem::replace(sum, *sum + count as usize));
    remove.iter().scan(0, start).collect()
}

/// Moves `(from, to, records)` along the lines of the table: from and to differ in one attribute.
///
/// Greedy, axis after axis in the order of `axes`, from a random place on; `supply` and `demand` keep what is left.
fn match_lines(
    supply: &mut [u32],
    demand: &mut [u32],
    shape: &[u32],
    axes: &[usize],
    random: &mut Random,
) -> Vec<(u32, u32, u32)> {
    let strides = crate::layout::strides(shape);
    let mut moves = Vec::new();
    for &axis in axes {
        let (stride, size) = (strides[axis], shape[axis] as usize);
        let turn = random.below(shape[axis] as usize);
        for outer in (0..supply.len()).step_by(stride * size) {
            for base in outer..outer + stride {
                let cell = |place: usize| base + ((place + turn) % size) * stride;
                let (mut i, mut j) = (0, 0);
                while i < size && j < size {
                    let (from, to) = (cell(i), cell(j));
                    let records = supply[from].min(demand[to]);
                    if records > 0 {
                        supply[from] -= records;
                        demand[to] -= records;
                        #[expect(clippy::cast_possible_truncation, reason = "tables have fewer than 2^32 cells")]
                        moves.push((from as u32, to as u32, records));
                    }
                    i += usize::from(supply[from] == 0);
                    j += usize::from(demand[to] == 0);
                }
            }
        }
    }
    moves
}
