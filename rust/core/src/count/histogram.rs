//! Count the cells of one block over the records.
//!
//! A chunk of records is first mapped to cell numbers, `sum(code[a] * stride[a])`, in one vectorised pass over the
//! block's columns (16 records an instruction with AVX2); then each cell number adds one to its counter. The additions
//! dominate: one read-modify-write a record. Two things keep it near one a cycle:
//!
//! - **Lanes.** Neighbouring records go to different copies of the table, summed at the end: a hot cell would otherwise
//!   make each addition wait for the store before it. Small tables have four lanes, large ones two, so that all
//!   copies stay in the second-level cache.
//! - **No bounds check, no `unsafe`.** A block of up to 65,536 cells is counted by `u16` cell numbers into an array of
//!   exactly 65,536 counters, where every index is in bounds by its type; only the block's own cells are cleared.
//!
//! Larger blocks use `u32` cell numbers and checked indexing: they wait for memory anyway. A column that another thread
//! writes to during the count is miscounted, with no other harm.
//! Cost: O(records * (1 + attributes / 16)) time, O(cells * lanes) memory a thread.
//! Not done, because the fused index hides the whole cost (2026-11, `benches/kernels.rs`): packing small attributes
//! into joint columns beforehand, sharing the offset of two attributes between triples.

use std::cell::RefCell;
use std::ops::AddAssign;

use crate::parallel::Cancel;
use crate::simd::vectorised;
use crate::table::Column;

/// Blocks of at most this many cells are counted by `u16` cell numbers.
pub const NARROW_CELLS: usize = 1 << 16;

/// Up to this many cells a narrow block has four lanes; above, two.
const FOUR_LANE_CELLS: usize = 1 << 13;

/// Lanes start this much further apart than the counters need, so that a cell's copies do not share a cache set.
const LANE_PADDING: usize = 272;

/// Records whose cell numbers are computed at a time: a few kilobytes, which stay in the first-level cache.
const CHUNK: usize = 2048;

/// Records between two checks of the cancel flag: a few milliseconds.
const CANCEL_CHECK: usize = 1 << 22;

thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::default();
}

/// Memory that a thread keeps between blocks: clearing it costs less than allocating it again.
struct Scratch {
    lanes: Vec<u32>,
    narrow: [u16; CHUNK],
    wide: [u32; CHUNK],
}

impl Default for Scratch {
    fn default() -> Self {
        Self { lanes: Vec::new(), narrow: [0; CHUNK], wide: [0; CHUNK] }
    }
}

/// Count a wide block directly into results of the same layout, which saves a table where cells are many and records
/// few.
pub fn count_direct(columns: &[Column<'_>], strides: &[usize], table: &mut [i64], cancel: &Cancel) {
    let records = columns.first().map_or(0, Column::len);
    for start in (0..records).step_by(CANCEL_CHECK) {
        if cancel.is_cancelled() {
            break;
        }
        let part: Vec<_> = columns.iter().map(|c| c.slice(start..records.min(start + CANCEL_CHECK))).collect();
        SCRATCH.with_borrow_mut(|scratch| wide_direct(&part, strides, table, scratch));
    }
}

/// Count `records` records into a new table of `cells` counters; column `a` has stride `strides[a]`.
///
/// Fewer than 2^32 records, or a counter could overflow. Stops early once `cancel` is set; the counts are then useless.
pub fn count(columns: &[Column<'_>], strides: &[usize], cells: usize, records: usize, cancel: &Cancel) -> Vec<u32> {
    debug_assert!(u32::try_from(records).is_ok(), "the caller cuts longer tables");
    if columns.is_empty() {
        #[expect(clippy::cast_possible_truncation, reason = "asserted above")]
        return vec![records as u32; cells];
    }
    let mut table = vec![0u32; cells];
    for start in (0..records).step_by(CANCEL_CHECK) {
        if cancel.is_cancelled() {
            break;
        }
        let end = records.min(start + CANCEL_CHECK);
        let part: Vec<_> = columns.iter().map(|c| c.slice(start..end)).collect();
        SCRATCH.with_borrow_mut(|scratch| {
            if cells <= NARROW_CELLS {
                narrow(&part, strides, &mut table, scratch);
            } else {
                wide(&part, strides, &mut table, scratch);
            }
        });
    }
    table
}

vectorised! {
    /// Blocks of up to [`NARROW_CELLS`] cells: `u16` cell numbers, four lanes or two.
    fn narrow(columns: &[Column<'_>], strides: &[usize], table: &mut [u32], scratch: &mut Scratch) {
        let axes = NarrowAxes::new(columns, strides);
        match table.len() {
            0..=FOUR_LANE_CELLS => narrow_lanes::<4>(&axes, table, scratch),
            _ => narrow_lanes::<2>(&axes, table, scratch),
        }
    }
}

vectorised! {
    /// Blocks of more cells: `u32` cell numbers, one lane.
    fn wide(columns: &[Column<'_>], strides: &[usize], table: &mut [u32], scratch: &mut Scratch) {
        add_wide(columns, strides, table, scratch);
    }
}

vectorised! {
    /// The same, into the results themselves.
    fn wide_direct(columns: &[Column<'_>], strides: &[usize], table: &mut [i64], scratch: &mut Scratch) {
        add_wide(columns, strides, table, scratch);
    }
}

#[inline(always)]
#[expect(clippy::inline_always, reason = "takes on the target features of its caller")]
fn add_wide<T: AddAssign + From<u8>>(
    columns: &[Column<'_>],
    strides: &[usize],
    table: &mut [T],
    scratch: &mut Scratch,
) {
    let records = columns[0].len();
    for start in (0..records).step_by(CHUNK) {
        let numbers = &mut scratch.wide[..CHUNK.min(records - start)];
        let range = start..start + numbers.len();
        numbers.fill(0);
        for (column, &stride) in columns.iter().zip(strides) {
            let stride = u32::try_from(stride).expect("a plan numbers cells by u32");
            match column {
                Column::U8(codes) => add_column(&codes[range.clone()], stride, numbers),
                Column::U16(codes) => add_column(&codes[range.clone()], stride, numbers),
                Column::U32(codes) => add_column(&codes[range.clone()], stride, numbers),
            }
        }
        for &number in &*numbers {
            // Out of range only if another thread writes to a column, whose counts are then lost anyway; a panic's
            // message would contain the index, which is private.
            if let Some(count) = table.get_mut(number as usize) {
                *count += T::from(1);
            }
        }
    }
}

#[inline(always)]
#[expect(clippy::inline_always, reason = "takes on the target features of its caller")]
fn add_column<C: Copy + Into<u32>>(codes: &[C], stride: u32, numbers: &mut [u32]) {
    for (number, &code) in numbers.iter_mut().zip(codes) {
        *number = number.wrapping_add(stride.wrapping_mul(code.into()));
    }
}

/// The columns of a narrow block with their strides.
pub(crate) struct NarrowAxes<'a> {
    bytes: Vec<(&'a [u8], u16)>,
    /// At most one: two attributes of more than 256 values have more than 65,536 cells.
    words: Option<(&'a [u16], u16)>,
    records: usize,
}

impl<'a> NarrowAxes<'a> {
    pub(crate) fn new(columns: &[Column<'a>], strides: &[usize]) -> Self {
        let mut axes = Self { bytes: Vec::with_capacity(columns.len()), words: None, records: columns[0].len() };
        for (column, &stride) in columns.iter().zip(strides) {
            let stride = u16::try_from(stride).expect("below the cells, since every axis has two values or more");
            match *column {
                Column::U8(codes) => axes.bytes.push((codes, stride)),
                Column::U16(codes) => axes.words = Some((codes, stride)),
                Column::U32(_) => unreachable!("an attribute of more than 65,536 values"),
            }
        }
        axes
    }

    /// The cell numbers of the records from `start` on.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "takes on the target features of its caller")]
    pub(crate) fn number(&self, start: usize, numbers: &mut [u16]) {
        numbers.fill(0);
        for axes in self.bytes.chunks(4) {
            match *axes {
                [a, b, c, d] => add_bytes([a, b, c, d], start, numbers),
                [a, b, c] => add_bytes([a, b, c], start, numbers),
                [a, b] => add_bytes([a, b], start, numbers),
                [a] => add_bytes([a], start, numbers),
                _ => unreachable!("chunks of one to four"),
            }
        }
        if let Some((codes, stride)) = self.words {
            for (number, &code) in numbers.iter_mut().zip(&codes[start..]) {
                *number = number.wrapping_add(stride.wrapping_mul(code));
            }
        }
    }
}

/// Add `sum(code * stride)` over a few columns in one pass.
#[inline(always)]
#[expect(clippy::inline_always, reason = "takes on the target features of its caller")]
fn add_bytes<const COLUMNS: usize>(axes: [(&[u8], u16); COLUMNS], start: usize, numbers: &mut [u16]) {
    let axes = axes.map(|(codes, stride)| (&codes[start..start + numbers.len()], stride));
    for (i, number) in numbers.iter_mut().enumerate() {
        let products = axes.map(|(codes, stride)| stride.wrapping_mul(codes[i].into()));
        *number = products.into_iter().fold(*number, u16::wrapping_add);
    }
}

type Lane = [u32; NARROW_CELLS];

#[inline(always)]
#[expect(clippy::inline_always, reason = "takes on the target features of its caller")]
fn narrow_lanes<const LANES: usize>(axes: &NarrowAxes<'_>, table: &mut [u32], scratch: &mut Scratch) {
    let mut lanes = clear_lanes::<LANES>(&mut scratch.lanes, table.len());
    for start in (0..axes.records).step_by(CHUNK) {
        let numbers = &mut scratch.narrow[..CHUNK.min(axes.records - start)];
        axes.number(start, numbers);
        let (groups, rest) = numbers.as_chunks::<LANES>();
        for group in groups {
            for (lane, &number) in lanes.iter_mut().zip(group) {
                lane[usize::from(number)] += 1;
            }
        }
        for &number in rest {
            lanes[0][usize::from(number)] += 1;
        }
    }
    for lane in lanes {
        for (sum, &count) in table.iter_mut().zip(lane.iter()) {
            *sum += count;
        }
    }
}

/// Lanes whose first `cells` counters are zero.
fn clear_lanes<const LANES: usize>(buffer: &mut Vec<u32>, cells: usize) -> [&mut Lane; LANES] {
    const LENGTH: usize = NARROW_CELLS + LANE_PADDING;
    if buffer.len() < LANES * LENGTH {
        buffer.resize(LANES * LENGTH, 0);
    }
    let mut lanes = buffer.chunks_exact_mut(LENGTH);
    std::array::from_fn(|_| {
        let lane = lanes.next().expect("resized to hold them all");
        lane[..cells].fill(0);
        lane.first_chunk_mut().expect("longer than its counters")
    })
}
