//! Exact counts of any list of queries.
//!
//! [`plan`] covers the queries by a smaller number of blocks, [`histogram`] counts a block over the records,
//! [`project`] reads the queries off it, and [`stream`] does so batch by batch. Attributes in buckets get their own
//! columns, piece by piece ([`buckets`]); without any, records are counted without a copy. Counts are integers, so sums
//! over threads, pieces and batches are exact and the same in any order. Oracle: [`naive`].
//!
//! Blocks are distributed over threads; if there are too few blocks, each block's records are cut too.
//! Cost: one addition a record for each block, and a look-up a record for each column of buckets.

mod buckets;
pub mod histogram;
pub mod naive;
pub mod plan;
pub mod project;
pub mod stream;
#[cfg(test)]
mod tests;

use rayon::prelude::*;

use crate::error::Result;
use crate::layout;
use crate::parallel::{self, Cancel};
use crate::query::Query;
use crate::table::{Column, Table};
use buckets::Made;
use histogram::NARROW_CELLS;
use plan::{Block, Plan};

/// Memory that the results of one call may take unless the caller says otherwise: 4 GiB.
pub const MEMORY_LIMIT: u64 = 4 << 30;

/// Records counted before the `u32` counters of a block are added to the results; few in tests, to see it happen.
const MAX_SPAN: usize = if cfg!(test) { 1 << 17 } else { 1 << 31 };

/// Memory for copies of a block's table when its records are cut between threads.
const COPIES_BYTES: usize = 16 << 20;

/// Cells of tables that are counted at once, where they are not kept but need columns of buckets; few in tests.
const SEEN_CELLS: usize = if cfg!(test) { 1 << 10 } else { 1 << 25 };

/// Count every query over the table.
///
/// # Errors
/// [`crate::Error::TableTooLarge`] before anything is counted; [`crate::Error::OutOfMemory`];
/// [`crate::Error::Interrupted`].
pub fn count(table: &Table<'_>, queries: &[Query], memory_limit: u64, cancel: &Cancel) -> Result<Vec<Vec<i64>>> {
    let plan = Plan::new(table.cardinalities(), queries, table.records(), memory_limit)?;
    let mut results = Results::new(&plan, &plan.blocks)?;
    results.add(&plan, &plan.blocks, table, cancel)?;
    Ok(results.into_tables(&plan))
}

/// Count every query, pass each complete table to `see`, and keep only what `see` returns.
///
/// The tables of a block live until the block is seen, so memory is that of the current blocks and not of all queries;
/// `memory_limit` is for each query alone.
///
/// # Errors
/// [`crate::Error::TableTooLarge`] before anything is counted; [`crate::Error::Interrupted`].
///
/// # Panics
/// Only if `see` does.
pub fn count_each<T: Send>(
    table: &Table<'_>,
    queries: &[Query],
    memory_limit: u64,
    cancel: &Cancel,
    see: impl Fn(usize, &[i64]) -> T + Sync,
) -> Result<Vec<T>> {
    let plan = Plan::for_each(table.cardinalities(), queries, table.records(), memory_limit)?;
    let see_block = |block: &Block, tables: &[Vec<i64>]| -> Vec<(usize, T)> {
        block.margins.iter().zip(tables).map(|(m, counts)| (m.query, see(m.query, counts))).collect()
    };
    let one_block = |block: &Block| {
        cancel.check()?;
        let mut tables: Vec<Vec<i64>> = block.margins.iter().map(|m| vec![0; plan.cells[m.query]]).collect();
        for start in (0..table.records()).step_by(MAX_SPAN) {
            let span = table.slice(start..table.records().min(start + MAX_SPAN));
            add_block(&mut tables, block, &span, plan.blocks.len(), cancel);
        }
        cancel.check()?;
        Ok(see_block(block, &tables))
    };
    let mut seen: Vec<(usize, T)> = Vec::with_capacity(queries.len());
    if plan.buckets.is_empty() {
        let each: Result<Vec<_>> = plan.blocks.par_iter().with_max_len(1).map(one_block).collect();
        seen.extend(each?.into_iter().flatten());
    } else {
        // Blocks share the columns of buckets, so several are counted at once, piece by piece.
        for blocks in groups(&plan) {
            let mut results = Results::new(&plan, blocks)?;
            results.add(&plan, blocks, table, cancel)?;
            let each: Vec<_> =
                blocks.par_iter().zip(&results.0).map(|(block, tables)| see_block(block, tables)).collect();
            seen.extend(each.into_iter().flatten());
        }
    }
    seen.sort_unstable_by_key(|&(query, _)| query);
    Ok(seen.into_iter().map(|(_, value)| value).collect())
}

/// The blocks of a plan in runs whose tables have [`SEEN_CELLS`] in total, or that are one block.
fn groups(plan: &Plan) -> Vec<&[Block]> {
    let cells = |block: &Block| block.margins.iter().map(|m| plan.cells[m.query]).sum::<usize>();
    let mut groups = Vec::new();
    let mut rest = &plan.blocks[..];
    while !rest.is_empty() {
        let mut room = SEEN_CELLS;
        let fits = |block: &&Block| {
            let taken = cells(block);
            room.checked_sub(taken).map(|left| room = left).is_some()
        };
        let length = rest.iter().take_while(fits).count().max(1);
        let (group, later) = rest.split_at(length);
        groups.push(group);
        rest = later;
    }
    groups
}

/// The counts so far of some blocks, within a block in the order of its margins.
#[derive(Debug, Clone)]
struct Results(Vec<Vec<Vec<i64>>>);

impl Results {
    fn new(plan: &Plan, blocks: &[Block]) -> Result<Self> {
        let zeros = |block: &Block| block.margins.iter().map(|m| parallel::zeros(plan.cells[m.query])).collect();
        blocks.iter().map(zeros).collect::<Result<_>>().map(Self)
    }

    /// Add the records of `table`. After an error the counts are useless.
    fn add(&mut self, plan: &Plan, blocks: &[Block], table: &Table<'_>, cancel: &Cancel) -> Result<()> {
        for_each_span(plan, blocks, table, cancel, |span| {
            self.0.par_iter_mut().zip(blocks).with_max_len(1).for_each(|(tables, block)| {
                if !cancel.is_cancelled() {
                    add_block(tables, block, span, blocks.len(), cancel);
                }
            });
        })?;
        cancel.check()
    }

    fn into_tables(self, plan: &Plan) -> Vec<Vec<i64>> {
        let mut tables = vec![Vec::new(); plan.cells.len()];
        for (counts, block) in self.0.into_iter().zip(&plan.blocks) {
            for (table, margin) in counts.into_iter().zip(&block.margins) {
                tables[margin.query] = table;
            }
        }
        tables
    }
}

/// Pass the records to `see`, as many at a time as can be counted at once, with the columns of buckets that blocks
/// need.
fn for_each_span(
    plan: &Plan,
    blocks: &[Block],
    table: &Table<'_>,
    cancel: &Cancel,
    mut see: impl FnMut(&Table<'_>),
) -> Result<()> {
    let records = table.records();
    let length = MAX_SPAN.min(plan.records_per_piece);
    let spans = (0..records).step_by(length).map(|start| table.slice(start..records.min(start + length)));
    if plan.buckets.is_empty() {
        spans.for_each(|span| see(&span));
        return Ok(());
    }
    let mut wanted = vec![false; plan.buckets.len()];
    for column in blocks.iter().flat_map(|block| &block.columns) {
        if let Some(made) = column.checked_sub(plan.cardinalities.len()) {
            wanted[made] = true;
        }
    }
    let mut made = Made::new(&plan.buckets, &wanted, length.min(records))?;
    for span in spans {
        cancel.check()?;
        let columns = made.columns(&plan.buckets, span.columns(), span.records());
        see(&Table::checked_before(columns, plan.sizes.clone()));
    }
    Ok(())
}

fn add_block(tables: &mut [Vec<i64>], block: &Block, span: &Table<'_>, blocks: usize, cancel: &Cancel) {
    let columns: Vec<Column<'_>> = block.columns.iter().map(|&column| span.columns()[column]).collect();
    let strides = layout::strides(&block.shape);
    let pieces = pieces(block.cells, span.records(), blocks);
    if let ([margin], [table]) = (&block.margins[..], &mut *tables)
        && block.cells > NARROW_CELLS
        && pieces == 1
        && margin.strides == strides
    {
        histogram::count_direct(&columns, &strides, table, cancel);
        return;
    }
    let counts = if pieces == 1 {
        histogram::count(&columns, &strides, block.cells, span.records(), cancel)
    } else {
        let length = span.records().div_ceil(pieces);
        (0..pieces)
            .into_par_iter()
            .map(|piece| {
                let range = (piece * length).min(span.records())..((piece + 1) * length).min(span.records());
                let columns: Vec<_> = columns.iter().map(|c| c.slice(range.clone())).collect();
                histogram::count(&columns, &strides, block.cells, range.len(), cancel)
            })
            .reduce_with(|mut sums, counts| {
                sums.iter_mut().zip(&counts).for_each(|(sum, count)| *sum += count);
                sums
            })
            .expect("at least one piece")
    };
    let kept: Vec<u64> = block.margins.iter().map(|m| m.kept).collect();
    project::project(&counts, &block.shape, &kept, &mut |m, counts| {
        let margin = &block.margins[m];
        project::add_permuted(&mut tables[m], &margin.shape, counts, &margin.strides);
    });
}

/// How many ways to cut a block's records: as many as keep all threads busy, while the copies stay small beside the
/// table itself and each piece is worth its copy.
fn pieces(cells: usize, records: usize, blocks: usize) -> usize {
    let wanted = (4 * rayon::current_num_threads()).div_ceil(blocks);
    let afforded = 1 + COPIES_BYTES / (cells * size_of::<u32>());
    let worthwhile = 1 + records / (1 << 16).max(4 * cells);
    wanted.min(afforded).min(worthwhile).min(4 * rayon::current_num_threads())
}
