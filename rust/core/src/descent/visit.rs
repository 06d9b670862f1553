//! One visit to one attribute: every record may move to another value of it.
//!
//! The residuals of the attribute's marginals, times their weights, are copied into rows of 16-bit lanes, one row of the
//! attribute's values for each joint value of the others, small enough for the second-level cache. Records come in
//! blocks of 128, in random order of blocks, and a window of blocks at a time is treated in two steps:
//!
//! - **Propose**, in parallel over blocks: find the rows of each record; sum its current value over them and skip it where
//!   that is not positive (it then sits in no over-full cell; only where all marginals are pairs or less); else sum
//!   all values at once by saturating vector additions and take the smallest. Nothing is changed.
//! - **Apply**, in order: compute the gain of each proposal exactly from counts and targets, and move the record, its
//!   counts and its lanes if it is one. Proposals that an earlier one of the window made useless are dropped.
//!
//! So a 16-bit rounding or saturation can hide a move, never make a wrong one; and the loss falls with every move, for
//! any number of threads alike.
//! Cost: O(marginals) a record for the skipped, O(marginals * values / 16) for the others; O(marginals) a move.

use rayon::prelude::*;

use super::problem::{LANES, LONG_WIDTH, Marginal, Offsets, View, first_cell};
use super::schedule::strided;
use crate::parallel::Cancel;
use crate::random::{Random, mix};
use crate::simd::vectorised;
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

/// How many blocks see the same residuals: few where there are few records, so that the residuals stay fresh.
pub(super) fn window(blocks: usize) -> usize {
    let most: usize = std::env::var("WINDOW").ok().and_then(|w| w.parse().ok()).unwrap_or(16);
    (blocks / 32).clamp(1, most)
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
    let blocks: Vec<usize> = strided(records.div_ceil(BLOCK), &mut random).collect();
    let mut scratch = Scratch::default();
    let mut proposals: Vec<Proposals> = (0..window(blocks.len())).map(|_| Proposals::default()).collect();
    for window in blocks.chunks(window(blocks.len())) {
        if cancel.is_cancelled() {
            return;
        }
        let job = Job { view, working: &working, columns, codes: task.codes.column(), key };
        let proposals = &mut proposals[..window.len()];
        if alone {
            let pairs = proposals.par_iter_mut().zip(window);
            pairs.for_each_init(Scratch::default, |scratch, (found, &block)| job.propose(block, scratch, found));
        } else {
            for (found, &block) in proposals.iter_mut().zip(window) {
                job.propose(block, &mut scratch, found);
            }
        }
        for found in proposals {
            let degree = view.incidences.len();
            for (&(record, to), rows) in found.moves.iter().zip(found.rows.chunks_exact(degree)) {
                task.moves += usize::from(apply(view, &mut working, task, record as usize, to, rows, threshold));
            }
        }
    }
}

/// The 16-bit copy of the weighted residuals.
struct Working {
    lanes: Vec<i16>,
    /// Units of a residual of one in each incidence.
    units: Vec<f32>,
    /// What a sum must exceed the smallest by to be worth a proposal, in units.
    gap: i32,
}

impl Working {
    fn new(view: &View, marginals: &[Marginal], threshold: f64) -> Self {
        let units = units(view, marginals);
        let mut lanes = vec![i16::MAX; view.length];
        let row = view.row();
        for ((incidence, marginal), &unit) in view.incidences.iter().zip(marginals).zip(&units) {
            let stride = marginal.strides[incidence.axis];
            let axis = &marginal.axes[incidence.axis];
            let rows = lanes[incidence.first..].chunks_exact_mut(row).take(incidence.rows);
            for (r, lanes) in rows.enumerate() {
                let first = first_cell(marginal, incidence.axis, r);
                let lanes = &mut lanes[..view.cardinality];
                match &axis.map {
                    None => {
                        let cells = marginal.count[first..].iter().zip(&marginal.target[first..]).step_by(stride);
                        for (lane, (&count, &target)) in lanes.iter_mut().zip(cells) {
                            *lane = quantise(count, target, unit);
                        }
                    }
                    Some(map) => {
                        for (lane, &bucket) in lanes.iter_mut().zip(&**map) {
                            let cell = first + bucket as usize * stride;
                            *lane = quantise(marginal.count[cell], marginal.target[cell], unit);
                        }
                    }
                }
            }
        }
        #[expect(clippy::cast_possible_truncation, reason = "clamped")]
        let in_units = |weight: f64| (threshold * weight).clamp(0.0, f64::from(LIMIT)).round_ties_even() as i16;
        if let Some(first) = view.penalty {
            for (from, lanes) in (0u32..).zip(lanes[first..].chunks_exact_mut(row)) {
                for (to, lane) in (0u32..).zip(&mut lanes[..view.cardinality]) {
                    let changes = view.incidences.iter().zip(marginals).zip(&units).filter(|((incidence, marginal), _)| {
                        let axis = &marginal.axes[incidence.axis];
                        axis.bucket(from) != axis.bucket(to)
                    });
                    *lane = in_units(changes.map(|(_, &unit)| f64::from(unit)).sum());
                }
            }
        }
        let all: f64 = units.iter().map(|&unit| f64::from(unit)).sum();
        let gap = if view.coarsened { 0 } else { in_units(all).into() };
        Self { lanes, units, gap }
    }
}

/// Units of a residual of one in each marginal: as fine as sums without saturation allow, within limits, and a power of
/// two for marginals of equal weight, which are then summed exactly.
fn units(view: &View, marginals: &[Marginal]) -> Vec<f32> {
    #[expect(clippy::cast_possible_truncation, reason = "weights are ratios")]
    let weights: Vec<f32> = marginals.iter().map(|marginal| marginal.weight as f32).collect();
    #[expect(clippy::cast_precision_loss, reason = "a few marginals")]
    let mean = weights.iter().sum::<f32>() / weights.len() as f32;
    debug_assert_eq!(view.incidences.len(), weights.len());
    let largest = |marginal: &Marginal| {
        #[expect(clippy::cast_precision_loss, reason = "a bound")]
        let residuals = marginal.count.iter().zip(&marginal.target).map(|(&count, &target)| (count as f32 - target).abs());
        residuals.fold(0.0f32, f32::max)
    };
    let reach: f32 = marginals.iter().zip(&weights).map(|(marginal, weight)| weight / mean * largest(marginal)).sum();
    let mut unit = FINEST;
    while unit > 1.0 && unit * reach > f32::from(i16::MAX) {
        unit /= 2.0;
    }
    weights.into_iter().map(|weight| weight / mean * unit).collect()
}

#[inline]
#[expect(clippy::cast_possible_truncation, clippy::cast_precision_loss, reason = "clamped; an approximation")]
fn quantise(count: i32, target: f32, unit: f32) -> i16 {
    ((count as f32 - target) * unit).clamp(-LIMIT, LIMIT).round_ties_even() as i16
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
        propose(self, block, scratch, found);
    }

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "takes on the target features of its caller")]
    fn propose_by<const WIDTH: usize>(&self, block: usize, scratch: &mut Scratch, found: &mut Proposals) {
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
            if let Some(to) = self.best::<WIDTH>(&scratch.rows, k, current[k], record) {
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
    fn best<const WIDTH: usize>(&self, rows: &[[u32; BLOCK]], k: usize, current: i32, record: usize) -> Option<u32> {
        let ties = Ties::new(self.key, record, self.view.pieces);
        let mut best = None;
        let mut least = current - self.working.gap;
        for i in 0..self.view.pieces {
            let piece = ties.piece(i);
            let mut sums = [0i16; WIDTH];
            for rows in rows {
                let first = rows[k] as usize + piece * WIDTH;
                let row: &[i16; WIDTH] = self.working.lanes[first..first + WIDTH].try_into().expect("its length");
                for (sum, &lane) in sums.iter_mut().zip(row) {
                    *sum = sum.saturating_add(lane);
                }
            }
            let smallest = smallest(&sums);
            if i32::from(smallest) < least {
                least = smallest.into();
                let value = piece * WIDTH + ties.lane(&sums, smallest);
                #[expect(clippy::cast_possible_truncation, reason = "below a cardinality")]
                let value = value as u32;
                best = Some(value);
            }
        }
        best.filter(|&value| (value as usize) < self.view.cardinality)
    }
}

vectorised! {
    fn propose(job: &Job<'_>, block: usize, scratch: &mut Scratch, found: &mut Proposals) {
        match job.view.width / LANES {
            1 => job.propose_by::<16>(block, scratch, found),
            2 => job.propose_by::<32>(block, scratch, found),
            3 => job.propose_by::<48>(block, scratch, found),
            5 => job.propose_by::<80>(block, scratch, found),
            6 => job.propose_by::<96>(block, scratch, found),
            7 => job.propose_by::<112>(block, scratch, found),
            8 => job.propose_by::<128>(block, scratch, found),
            _ => job.propose_by::<LONG_WIDTH>(block, scratch, found),
        }
    }
}

#[inline(always)]
#[expect(clippy::inline_always, reason = "takes on the target features of its caller")]
fn smallest<const WIDTH: usize>(sums: &[i16; WIDTH]) -> i16 {
    let mut least = [i16::MAX; LANES];
    for chunk in sums.as_chunks::<LANES>().0 {
        for (least, &sum) in least.iter_mut().zip(chunk) {
            *least = sum.min(*least);
        }
    }
    least.into_iter().fold(i16::MAX, i16::min)
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
    fn lane<const WIDTH: usize>(self, sums: &[i16; WIDTH], wanted: i16) -> usize {
        let mut first = u16::MAX;
        for (lane, &sum) in sums.iter().enumerate() {
            let rank = lane as u16 ^ self.flip;
            first = first.min(if sum == wanted { rank } else { u16::MAX });
        }
        (first ^ self.flip).into()
    }

    /// The rank of a value among equals; the oracle's form of the above.
    #[cfg(test)]
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
    let row = view.row();
    let (mut gain, mut changed) = (0.0, 0.0);
    for ((incidence, marginal), &start) in view.incidences.iter().zip(&task.marginals).zip(rows) {
        let axis = &marginal.axes[incidence.axis];
        let (old, new) = (axis.bucket(from), axis.bucket(to));
        if old != new {
            let first = first_cell(marginal, incidence.axis, (start as usize - incidence.first) / row);
            let stride = marginal.strides[incidence.axis];
            gain += marginal.weight * (marginal.residual(first + old * stride) - marginal.residual(first + new * stride));
            changed += marginal.weight;
        }
    }
    if gain <= threshold * changed {
        return false;
    }
    for (((incidence, marginal), &unit), &start) in
        view.incidences.iter().zip(&mut task.marginals).zip(&working.units).zip(rows)
    {
        let axis = &marginal.axes[incidence.axis];
        let (old, new) = (axis.bucket(from), axis.bucket(to));
        if old == new {
            continue;
        }
        let start = start as usize;
        let first = first_cell(marginal, incidence.axis, (start - incidence.first) / row);
        for (code, bucket, change) in [(from, old, -1), (to, new, 1)] {
            let cell = first + bucket * marginal.strides[incidence.axis];
            marginal.count[cell] += change;
            let value = quantise(marginal.count[cell], marginal.target[cell], unit);
            match &marginal.axes[incidence.axis].map {
                None => working.lanes[start + code as usize] = value,
                Some(map) => {
                    let lanes = working.lanes[start..].iter_mut().zip(&**map);
                    lanes.filter(|(_, b)| **b as usize == bucket).for_each(|(lane, _)| *lane = value);
                }
            }
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
