//! One visit to one attribute: every record may move to another value of it.
//!
//! The residuals of the attribute's marginals are copied into rows, one row of the attribute's values for each joint value
//! of the others: as they are, and times their weights in 16-bit lanes, small enough for the second-level cache. Records come in
//! blocks of 128, and a window of blocks at a time, the windows in random order, is treated in two steps:
//!
//! - **Propose**, in parallel over blocks: find the rows of each record; sum its current value over them and skip it where
//!   that is not positive (it then sits in no over-full cell; only where that is safe, see [`View::may_skip`]); else sum
//!   all values at once by saturating vector additions and take the smallest. Nothing is changed.
//! - **Apply**, in order: compute the gain of each proposal from the exact residuals, and move the record and its residuals if
//!   it is one. Proposals that an earlier one of the window made useless are dropped.
//!
//! So a 16-bit rounding or saturation can hide a move, never make a wrong one; and the loss falls with every move, for
//! any number of threads alike.
//! Cost: O(marginals) a record for the skipped, O(marginals * values / 16) for the others; O(marginals) a move.

use rayon::prelude::*;

use super::problem::{LANES, Marginal, Offsets, View, first_cell};
use super::schedule::strided;
use crate::parallel::Cancel;
use crate::random::{Random, mix};
use crate::simd::Lanes;
#[cfg(target_arch = "x86_64")]
use crate::simd::avx2;
use crate::table::{Codes, Column};

/// Records whose rows are found at a time.
pub(super) const BLOCK: usize = 128;

/// A weighted residual is kept within this, so that sums of a few do not saturate.
const LIMIT: f32 = 8192.0;

/// At best a residual of one, at mean weight, takes this many 16-bit units.
const FINEST: f32 = 16.0;

/// What a visit changes.
pub(super) struct Task {
    pub codes: Codes,
    /// In the order of the view's incidences.
    pub marginals: Vec<Marginal>,
    pub moves: usize,
}

/// How many blocks, one after another, see the same residuals: few where there are few records, so that they stay fresh.
pub(super) fn window(blocks: usize) -> usize {
    (blocks / 32).clamp(1, 8)
}

/// Visit `view`'s attribute once.
pub(super) fn visit(
    view: &View,
    task: &mut Task,
    columns: &[Codes],
    threshold: f64,
    stream: [u64; 3],
    alone: bool,
    cancel: &Cancel,
) {
    let records = task.codes.column().len();
    let mut working = Working::new(view, &task.marginals, threshold);
    let mut random = Random::new(stream);
    let key = random.bits();
    let blocks = records.div_ceil(BLOCK);
    let window = window(blocks);
    let mut scratch = Scratch::default();
    let mut proposals: Vec<Proposals> = (0..window).map(|_| Proposals::default()).collect();
    for number in strided(blocks.div_ceil(window), &mut random) {
        if cancel.is_cancelled() {
            break;
        }
        let job = Job { view, working: &working, columns, codes: task.codes.column(), key };
        let first = number * window;
        let proposals = &mut proposals[..window.min(blocks - first)];
        if alone {
            let blocks = proposals.par_iter_mut().enumerate();
            blocks.for_each_init(Scratch::default, |scratch, (i, found)| job.propose(first + i, scratch, found));
        } else {
            for (i, found) in proposals.iter_mut().enumerate() {
                job.propose(first + i, &mut scratch, found);
            }
        }
        for found in proposals {
            let degree = view.incidences.len();
            for (&(record, to), rows) in found.moves.iter().zip(found.rows.chunks_exact(degree)) {
                task.moves += usize::from(apply(view, &mut working, task, record as usize, to, rows, threshold));
            }
        }
    }
    working.write_back(view, &mut task.marginals);
}

/// The copies of the residuals, a row of the attribute's values for each joint value of the others.
struct Working {
    /// In fixed point, as the marginals have them.
    exact: Vec<i32>,
    /// Times weights, rounded.
    lanes: Vec<i16>,
    /// 16-bit units of one fixed-point unit in each incidence.
    units: Vec<f32>,
    /// What a sum must exceed the smallest by to be worth a proposal, in 16-bit units.
    gap: i32,
}

impl Working {
    fn new(view: &View, marginals: &[Marginal], threshold: f64) -> Self {
        let units = units(marginals);
        let mut exact = vec![0; view.length];
        let mut lanes = vec![i16::MAX; view.length];
        let row = view.row();
        for ((incidence, marginal), &unit) in view.incidences.iter().zip(marginals).zip(&units) {
            let stride = marginal.strides[incidence.axis];
            let range = incidence.first..incidence.first + incidence.rows * row;
            let rows = exact[range.clone()].chunks_exact_mut(row).zip(lanes[range].chunks_exact_mut(row));
            for (r, (exact, lanes)) in rows.enumerate() {
                let cells = &marginal.residual[first_cell(marginal, incidence.axis, r)..];
                let exact = &mut exact[..view.cardinality];
                match &marginal.axes[incidence.axis].map {
                    None => exact.iter_mut().zip(cells.iter().step_by(stride)).for_each(|(to, &from)| *to = from),
                    Some(map) => exact.iter_mut().zip(&**map).for_each(|(to, &b)| *to = cells[b as usize * stride]),
                }
                lanes.iter_mut().zip(exact).for_each(|(lane, residual)| *lane = quantise(*residual, unit));
            }
        }
        #[expect(clippy::cast_possible_truncation, reason = "clamped")]
        let in_units = |weight: f64| (threshold * weight).clamp(0.0, f64::from(LIMIT)).round_ties_even() as i16;
        let whole = marginals.iter().zip(&units).map(|(marginal, &unit)| f64::from(unit) * f64::from(marginal.one));
        let whole: Vec<f64> = whole.collect();
        if let Some(first) = view.penalty {
            for (from, lanes) in (0u32..).zip(lanes[first..].chunks_exact_mut(row)) {
                for (to, lane) in (0u32..).zip(&mut lanes[..view.cardinality]) {
                    let changes =
                        view.incidences.iter().zip(marginals).zip(&whole).filter(|((incidence, marginal), _)| {
                            let axis = &marginal.axes[incidence.axis];
                            axis.bucket(from) != axis.bucket(to)
                        });
                    *lane = in_units(changes.map(|(_, weight)| weight).sum());
                }
            }
        }
        let gap = if view.coarsened { 0 } else { in_units(whole.iter().sum()).into() };
        Self { exact, lanes, units, gap }
    }

    /// Give the marginals their residuals back.
    fn write_back(&self, view: &View, marginals: &mut [Marginal]) {
        let row = view.row();
        for (incidence, marginal) in view.incidences.iter().zip(marginals) {
            let stride = marginal.strides[incidence.axis];
            for (r, exact) in self.exact[incidence.first..].chunks_exact(row).take(incidence.rows).enumerate() {
                let first = first_cell(marginal, incidence.axis, r);
                let cells = &mut marginal.residual[first..];
                let exact = &exact[..view.cardinality];
                match &marginal.axes[incidence.axis].map {
                    None => cells.iter_mut().step_by(stride).zip(exact).for_each(|(to, &from)| *to = from),
                    Some(map) => exact.iter().zip(&**map).for_each(|(&from, &b)| cells[b as usize * stride] = from),
                }
            }
        }
    }

    /// Change the residual of `code`'s cell, in the row at `start`, by `change`; lanes in one bucket share a cell.
    #[inline]
    fn change(&mut self, start: usize, code: u32, change: i32, unit: f32, map: Option<&[u32]>) {
        let at = start + code as usize;
        let residual = self.exact[at] + change;
        let lane = quantise(residual, unit);
        match map {
            None => (self.exact[at], self.lanes[at]) = (residual, lane),
            Some(map) => {
                let bucket = map[code as usize];
                for (other, _) in map.iter().enumerate().filter(|&(_, &b)| b == bucket) {
                    (self.exact[start + other], self.lanes[start + other]) = (residual, lane);
                }
            }
        }
    }
}

/// 16-bit units of one fixed-point unit in each marginal: as fine as sums without saturation allow, within limits; for
/// marginals of equal weight one record is a power of two, and whole numbers are summed exactly.
fn units(marginals: &[Marginal]) -> Vec<f32> {
    #[expect(clippy::cast_possible_truncation, reason = "weights are ratios")]
    let weights: Vec<f32> = marginals.iter().map(|marginal| marginal.weight as f32).collect();
    #[expect(clippy::cast_precision_loss, reason = "a few marginals, powers of two, and a bound")]
    let per_unit = {
        let mean = weights.iter().sum::<f32>() / weights.len() as f32;
        let largest = |marginal: &Marginal| {
            let largest = marginal.residual.iter().fold(0, |most, residual| most.max(residual.unsigned_abs()));
            largest as f32 / marginal.one as f32
        };
        let reach: f32 = marginals.iter().zip(&weights).map(|(marginal, w)| w / mean * largest(marginal)).sum();
        let mut record = FINEST;
        while record > 1.0 && record * reach > LIMIT {
            record /= 2.0;
        }
        move |marginal: &Marginal, weight: f32| weight / mean * (record / marginal.one as f32)
    };
    marginals.iter().zip(weights).map(|(marginal, weight)| per_unit(marginal, weight)).collect()
}

#[inline]
#[expect(clippy::cast_possible_truncation, clippy::cast_precision_loss, reason = "clamped; an approximation")]
fn quantise(residual: i32, unit: f32) -> i16 {
    // Adding and taking away 1.5 * 2^23 rounds to whole numbers without a call, which `round` is on old machines.
    const ROUND: f32 = 12_582_912.0;
    ((residual as f32 * unit).clamp(-LIMIT, LIMIT) + ROUND - ROUND) as i16
}

/// What proposing reads.
struct Job<'a> {
    view: &'a View,
    working: &'a Working,
    columns: &'a [Codes],
    codes: Column<'a>,
    key: u64,
}

/// What a thread reuses between blocks.
#[derive(Default)]
struct Scratch {
    /// Where the rows of each record start, incidence by incidence.
    rows: Vec<[u32; BLOCK]>,
}

/// Moves to try: record and value, and where the record's rows start in the working copy.
#[derive(Default)]
struct Proposals {
    moves: Vec<(u32, u32)>,
    rows: Vec<u32>,
}

impl Job<'_> {
    fn propose(&self, block: usize, scratch: &mut Scratch, found: &mut Proposals) {
        found.moves.clear();
        found.rows.clear();
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2") {
            // SAFETY: the feature the function is compiled for was just detected.
            return unsafe { propose_avx2(self, block, scratch, found) };
        }
        self.propose_with::<[i16; LANES]>(block, scratch, found);
    }

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "takes on the target features of its caller")]
    fn propose_with<L: Lanes>(&self, block: usize, scratch: &mut Scratch, found: &mut Proposals) {
        match self.view.width / LANES {
            1 => self.propose_by::<L, 1>(block, scratch, found),
            2 => self.propose_by::<L, 2>(block, scratch, found),
            3 => self.propose_by::<L, 3>(block, scratch, found),
            4 => self.propose_by::<L, 4>(block, scratch, found),
            5 => self.propose_by::<L, 5>(block, scratch, found),
            6 => self.propose_by::<L, 6>(block, scratch, found),
            7 => self.propose_by::<L, 7>(block, scratch, found),
            8 => self.propose_by::<L, 8>(block, scratch, found),
            _ => unreachable!("rows of one to eight vectors, or pieces of them"),
        }
    }

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "takes on the target features of its caller")]
    fn propose_by<L: Lanes, const VECTORS: usize>(&self, block: usize, scratch: &mut Scratch, found: &mut Proposals) {
        let start = block * BLOCK;
        let length = BLOCK.min(self.codes.len() - start);
        let own = self.find_rows(start, length, scratch);
        let lanes = &self.working.lanes[..];
        let mut current = [0i32; BLOCK];
        for rows in &scratch.rows {
            for ((sum, &row), &code) in current.iter_mut().zip(rows).zip(&own) {
                *sum += i32::from(lanes[(row + code) as usize]);
            }
        }
        let floor = if self.view.may_skip { 0 } else { i32::MIN };
        let mut candidates = [0u8; BLOCK];
        let mut count = 0;
        for (k, &sum) in (0u8..).zip(&current[..length]) {
            candidates[count % BLOCK] = k;
            count += usize::from(sum > floor);
        }
        for &k in &candidates[..count] {
            let k = usize::from(k % 128);
            let record = start + k;
            if let Some(to) = self.best::<L, VECTORS>(&scratch.rows, k, current[k], record) {
                #[expect(clippy::cast_possible_truncation, reason = "fewer than 2^31 records")]
                found.moves.push((record as u32, to));
                found.rows.extend(scratch.rows[..self.view.incidences.len()].iter().map(|rows| rows[k]));
            }
        }
    }

    /// Fill the rows of a block, and return its codes.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "takes on the target features of its caller")]
    fn find_rows(&self, start: usize, length: usize, scratch: &mut Scratch) -> [u32; BLOCK] {
        let mut own = [0u32; BLOCK];
        Offsets::Factor(1).add(self.codes, start, &mut own[..length]);
        scratch.rows.clear();
        #[expect(clippy::cast_possible_truncation, reason = "working copies have fewer than 2^32 lanes")]
        for incidence in &self.view.incidences {
            let mut rows = [incidence.first as u32; BLOCK];
            for (attribute, offsets) in &incidence.others {
                offsets.add(self.columns[*attribute].column(), start, &mut rows[..length]);
            }
            scratch.rows.push(rows);
        }
        if let Some(first) = self.view.penalty {
            #[expect(clippy::cast_possible_truncation, reason = "working copies have fewer than 2^32 lanes")]
            let (first, row) = (first as u32, self.view.row() as u32);
            scratch.rows.push(own.map(|code| first + code * row));
        }
        own
    }

    /// The value with the smallest sum, if it is smaller than the current one by more than the gap.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "takes on the target features of its caller")]
    fn best<L: Lanes, const VECTORS: usize>(
        &self,
        rows: &[[u32; BLOCK]],
        k: usize,
        current: i32,
        record: usize,
    ) -> Option<u32> {
        let ties = Ties::new(self.key, record, self.view.pieces);
        let mut best = None;
        let mut least = current - self.working.gap;
        for i in 0..self.view.pieces {
            let piece = ties.piece(i) * VECTORS * LANES;
            let mut sums = [L::ZERO; VECTORS];
            for rows in rows {
                let first = rows[k] as usize + piece;
                let (row, _) = self.working.lanes[first..first + VECTORS * LANES].as_chunks::<LANES>();
                for (sum, lanes) in sums.iter_mut().zip(row) {
                    *sum = sum.saturating_add(L::load(lanes));
                }
            }
            let smallest = sums.iter().fold(L::MAX, |least, &sum| least.min(sum)).array();
            let smallest = smallest.into_iter().fold(i16::MAX, i16::min);
            if i32::from(smallest) < least {
                least = smallest.into();
                #[expect(clippy::cast_possible_truncation, reason = "below a cardinality")]
                let value = (piece + ties.lane(&sums.map(L::array), smallest)) as u32;
                best = Some(value);
            }
        }
        best.filter(|&value| (value as usize) < self.view.cardinality)
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn propose_avx2(job: &Job<'_>, block: usize, scratch: &mut Scratch, found: &mut Proposals) {
    job.propose_with::<avx2::Register>(block, scratch, found);
}

/// Which of several equally good values is taken: a different order for every record, so that none is favoured.
#[derive(Clone, Copy)]
pub(super) struct Ties {
    rotation: usize,
    pieces: usize,
    flip: u16,
}

impl Ties {
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "bits of a hash")]
    pub fn new(key: u64, record: usize, pieces: usize) -> Self {
        let bits = mix(key.wrapping_add(record as u64));
        let rotation = if pieces == 1 { 0 } else { (bits >> 32) as usize % pieces };
        Self { rotation, pieces, flip: bits as u16 & 127 }
    }

    /// The piece that is looked at as the `i`th.
    #[inline]
    fn piece(self, i: usize) -> usize {
        let piece = self.rotation + i;
        if piece >= self.pieces { piece - self.pieces } else { piece }
    }

    /// The lane of the sum `wanted` that comes first.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "takes on the target features of its caller")]
    #[expect(clippy::cast_possible_truncation, reason = "at most 128 lanes")]
    fn lane<const VECTORS: usize>(self, sums: &[[i16; LANES]; VECTORS], wanted: i16) -> usize {
        let mut first = u16::MAX;
        for (lane, &sum) in sums.as_flattened().iter().enumerate() {
            let rank = lane as u16 ^ self.flip;
            first = first.min(if sum == wanted { rank } else { u16::MAX });
        }
        (first ^ self.flip).into()
    }

    /// The rank of a value among equals; the oracle's form of the above.
    #[cfg(test)]
    #[expect(clippy::cast_possible_truncation, reason = "at most 128 lanes")]
    pub fn rank(self, value: usize, width: usize) -> (usize, u16) {
        let piece = (value / width + self.pieces - self.rotation) % self.pieces;
        (piece, (value % width) as u16 ^ self.flip)
    }
}

/// Move `record` to the value `to` if the loss truly falls; whether it did.
fn apply(
    view: &View,
    working: &mut Working,
    task: &mut Task,
    record: usize,
    to: u32,
    rows: &[u32],
    threshold: f64,
) -> bool {
    let from = task.codes.column().code(record);
    let (mut gain, mut cost) = (0.0, 0.0);
    for ((incidence, marginal), &start) in view.incidences.iter().zip(&task.marginals).zip(rows) {
        let axis = &marginal.axes[incidence.axis];
        if axis.bucket(from) != axis.bucket(to) {
            let [old, new] = [from, to].map(|code| i64::from(working.exact[(start + code) as usize]));
            #[expect(clippy::cast_precision_loss, reason = "exact below 2^53")]
            let difference = (old - new) as f64;
            gain += marginal.weight * difference;
            cost += marginal.weight * f64::from(marginal.one);
        }
    }
    if gain <= threshold * cost {
        return false;
    }
    for (i, ((incidence, marginal), &start)) in view.incidences.iter().zip(&task.marginals).zip(rows).enumerate() {
        let axis = &marginal.axes[incidence.axis];
        if axis.bucket(from) != axis.bucket(to) {
            let unit = working.units[i];
            working.change(start as usize, from, -marginal.one, unit, axis.map.as_deref());
            working.change(start as usize, to, marginal.one, unit, axis.map.as_deref());
        }
    }
    set(&mut task.codes, record, to);
    true
}

#[expect(clippy::cast_possible_truncation, reason = "the type was chosen for the cardinality")]
fn set(codes: &mut Codes, record: usize, code: u32) {
    match codes {
        Codes::U8(codes) => codes[record] = code as u8,
        Codes::U16(codes) => codes[record] = code as u16,
        Codes::U32(codes) => codes[record] = code,
    }
}
