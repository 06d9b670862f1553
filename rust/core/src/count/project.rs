//! From the table of a block to the tables of its queries, by summing axes out.
//!
//! The queries of a block are read off along a tree: at each axis those that lack it share one summed table, those that
//! have it share the table as it is. Summing an axis out adds contiguous runs, which vectorises, so a block of 65,536
//! cells gives a pair in a few microseconds, far less than counting it costs.
//! Cost: O(cells) for each distinct prefix of kept axes, over tables that shrink with every axis.

/// Call `emit(i, table)` for every wanted margin, its axes in block order.
///
/// `shape` are the cardinalities of the block's axes, `table` its counts; bit `a` of `margins[i]` says whether margin
/// `i` keeps axis `a`.
pub fn project(table: &[u32], shape: &[u32], margins: &[u64], emit: &mut impl FnMut(usize, &[u32])) {
    let all: Vec<usize> = (0..margins.len()).collect();
    descend(table, 1, shape, 0, margins, &all, emit);
}

/// One node of the tree: `kept` cells over the axes decided so far, times the axes `rest`, the first of them `axis`.
fn descend(
    table: &[u32],
    kept: usize,
    rest: &[u32],
    axis: usize,
    margins: &[u64],
    wanted: &[usize],
    emit: &mut impl FnMut(usize, &[u32]),
) {
    let Some((&cardinality, rest)) = rest.split_first() else {
        for &i in wanted {
            emit(i, table);
        }
        return;
    };
    let (with, without): (Vec<_>, Vec<_>) = wanted.iter().partition(|&&i| margins[i] >> axis & 1 == 1);
    if !without.is_empty() {
        let summed = sum_out(table, kept, cardinality as usize);
        descend(&summed, kept, rest, axis + 1, margins, &without, emit);
    }
    if !with.is_empty() {
        descend(table, kept * cardinality as usize, rest, axis + 1, margins, &with, emit);
    }
}

/// Sum the middle axis out of a table of shape (`outer`, `cardinality`, the rest).
fn sum_out(table: &[u32], outer: usize, cardinality: usize) -> Vec<u32> {
    let inner = table.len() / (outer * cardinality);
    if inner == 1 {
        return table.chunks_exact(cardinality).map(|run| run.iter().sum()).collect();
    }
    let mut summed = vec![0; outer * inner];
    for (sums, slab) in summed.chunks_exact_mut(inner).zip(table.chunks_exact(cardinality * inner)) {
        for run in slab.chunks_exact(inner) {
            for (sum, count) in sums.iter_mut().zip(run) {
                *sum += count;
            }
        }
    }
    summed
}

/// Add `source` to `result`, whose axes have cardinalities `shape` and, in `source`, the strides `strides`.
pub fn add_permuted(result: &mut [i64], shape: &[u32], source: &[u32], strides: &[usize]) {
    match (shape, strides) {
        ([cardinality], [stride]) => {
            let runs = source.iter().step_by(*stride).take(*cardinality as usize);
            for (sum, &count) in result.iter_mut().zip(runs) {
                *sum += i64::from(count);
            }
        }
        ([cardinality, shape @ ..], [stride, strides @ ..]) => {
            let inner = result.len() / *cardinality as usize;
            for (i, part) in result.chunks_exact_mut(inner).enumerate() {
                add_permuted(part, shape, &source[i * stride..], strides);
            }
        }
        _ => result[0] += i64::from(source[0]),
    }
}
