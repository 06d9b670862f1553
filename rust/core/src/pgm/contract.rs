//! Multiply a table by a conditional table and sum attributes out in one step: a matrix product for each shared cell.
//!
//! `out(k, a) = sum over g of table(k, g) * given(a | s)`, where the *given* attributes s are among k and g. The
//! product is never stored; tiles of the result stay in registers while g runs. Axes may have any order, so nothing is
//! copied to reorder them. Cost: one multiplication for each cell of the product, a fraction of a nanosecond each.
//! Each sum has a fixed order, and pieces of the result are distributed over threads.

use rayon::prelude::*;

use crate::simd::vectorised;

/// Smaller products stay on one thread.
const CUT: usize = 1 << 16;

/// Larger products are cut into at least this many pieces, if there are as many cells.
const PIECES: usize = 16;

/// Rows of a tile, and columns.
const ROWS: usize = 4;
const COLUMNS: usize = 8;

/// A table over attributes in a given order, the last moving fastest.
#[derive(Debug, Clone, Copy)]
pub struct View<'a> {
    /// Its axes.
    pub attributes: &'a [usize],
    /// Its values.
    pub cells: &'a [f64],
}

/// The positions of a piece's cells: in the table, in the given table, in the result.
struct Piece {
    /// Kept attributes that are given: table, given, result.
    shared: Vec<[usize; 3]>,
    /// The other kept ones: table, result.
    own: Vec<[usize; 2]>,
    /// Those summed out: table, given.
    gone: Vec<[usize; 2]>,
    /// Cells of the attributes that are new to the table.
    width: usize,
}

/// Cells of a table over some attributes.
fn count(sizes: &[u32], attributes: &[usize]) -> usize {
    attributes.iter().map(|&a| sizes[a] as usize).product()
}

/// The stride of an attribute; zero if a table has no such axis.
fn stride(sizes: &[u32], attributes: &[usize], attribute: usize) -> usize {
    attributes.iter().position(|&a| a == attribute).map_or(0, |i| count(sizes, &attributes[i + 1..]))
}

/// All positions of some axes, each with several strides.
fn positions<const N: usize>(axes: impl Iterator<Item = (usize, [usize; N])>) -> Vec<[usize; N]> {
    let mut all = vec![[0; N]];
    for (size, strides) in axes {
        let along = |at: &[usize; N], code: usize| std::array::from_fn(|i| at[i] + code * strides[i]);
        all = all.iter().flat_map(|at| (0..size).map(move |code| along(at, code))).collect();
    }
    all
}

/// Multiply `table` by `given`, whose last axes are the `fresh` ones, and sum the attributes `gone` out.
///
/// Writes over `out`; returns the attributes of the result: those kept in the table's order, then the fresh ones.
pub fn contract(
    sizes: &[u32],
    table: View<'_>,
    given: View<'_>,
    fresh: usize,
    gone: &[usize],
    out: &mut Vec<f64>,
) -> Vec<usize> {
    let (condition, new) = given.attributes.split_at(given.attributes.len() - fresh);
    let kept: Vec<usize> = table.attributes.iter().copied().filter(|a| !gone.contains(a)).collect();
    let result: Vec<usize> = kept.iter().chain(new).copied().collect();
    let length = count(sizes, &result);
    out.resize(length, 0.0);
    let size = |a: usize| sizes[a] as usize;
    let in_table = |a: usize| stride(sizes, table.attributes, a);
    let in_given = |a: usize| stride(sizes, given.attributes, a);
    let in_result = |a: usize| stride(sizes, &result, a);
    // The first axes make the pieces, which are all alike inside. Rows of a tile must stay in one piece.
    let own = |axes: &[usize]| axes.iter().filter(|a| !condition.contains(a)).map(|&a| size(a)).product::<usize>();
    let mut first = 0;
    if length * count(sizes, gone) >= CUT {
        let splits = |first: usize| condition.contains(&kept[first]) || own(&kept[first + 1..]) >= ROWS;
        while first < kept.len() && count(sizes, &kept[..first]) < PIECES && splits(first) {
            first += 1;
        }
    }
    let (outer, inner) = kept.split_at(first);
    let starts = positions(outer.iter().map(|&a| (size(a), [in_table(a), in_given(a)])));
    let (shared, own): (Vec<usize>, Vec<usize>) = inner.iter().partition(|a| condition.contains(a));
    let piece = Piece {
        shared: positions(shared.iter().map(|&a| (size(a), [in_table(a), in_given(a), in_result(a)]))),
        own: positions(own.iter().map(|&a| (size(a), [in_table(a), in_result(a)]))),
        gone: positions(gone.iter().map(|&a| (size(a), [in_table(a), in_given(a)]))),
        width: count(sizes, new),
    };
    let pieces = out.par_chunks_mut(length / starts.len()).zip(&starts);
    pieces.for_each(|(out, &[at, on])| multiply(&piece, &table.cells[at..], &given.cells[on..], out));
    result
}

vectorised! {
    /// All cells of a piece.
    fn multiply(piece: &Piece, table: &[f64], given: &[f64], out: &mut [f64]) {
        for &[at, on, to] in &piece.shared {
            let (table, given, out) = (&table[at..], &given[on..], &mut out[to..]);
            let (blocks, rest) = piece.own.as_chunks::<ROWS>();
            // Loops, because closures do not inherit the target features.
            for rows in blocks {
                strip(piece, rows, table, given, out);
            }
            for row in rest {
                strip(piece, &[*row], table, given, out);
            }
        }
    }
}

/// All columns of a few rows.
#[inline(always)]
#[expect(clippy::inline_always, reason = "takes on the target features of its caller")]
fn strip<const R: usize>(piece: &Piece, rows: &[[usize; 2]; R], table: &[f64], given: &[f64], out: &mut [f64]) {
    let mut column = 0;
    while column + COLUMNS <= piece.width {
        tile::<R, COLUMNS>(piece, rows, column, table, given, out);
        column += COLUMNS;
    }
    if column + 4 <= piece.width {
        tile::<R, 4>(piece, rows, column, table, given, out);
        column += 4;
    }
    for column in column..piece.width {
        tile::<R, 1>(piece, rows, column, table, given, out);
    }
}

#[inline(always)]
#[expect(clippy::inline_always, reason = "takes on the target features of its caller")]
fn tile<const R: usize, const C: usize>(
    piece: &Piece,
    rows: &[[usize; 2]; R],
    column: usize,
    table: &[f64],
    given: &[f64],
    out: &mut [f64],
) {
    let given = &given[column..];
    let mut sums = [[0.0; C]; R];
    for &[at, on] in &piece.gone {
        let Some(factors) = given[on..].first_chunk::<C>() else { unreachable!("a whole row") };
        for (sums, row) in sums.iter_mut().zip(rows) {
            let value = table[row[0] + at];
            for (sum, factor) in sums.iter_mut().zip(factors) {
                *sum += value * factor;
            }
        }
    }
    for (sums, row) in sums.iter().zip(rows) {
        out[row[1] + column..][..C].copy_from_slice(sums);
    }
}

/// A table with its axes in another order.
pub fn reorder(sizes: &[u32], table: View<'_>, order: &[usize]) -> Vec<f64> {
    if order == table.attributes {
        return table.cells.to_vec();
    }
    let Some((&last, others)) = order.split_last() else { return table.cells.to_vec() };
    let apart = stride(sizes, table.attributes, last);
    let mut cells = Vec::with_capacity(table.cells.len());
    for [start] in positions(others.iter().map(|&a| (sizes[a] as usize, [stride(sizes, table.attributes, a)]))) {
        cells.extend(table.cells[start..].iter().step_by(apart).take(sizes[last] as usize));
    }
    cells
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::random::Random;

    fn random_table(sizes: &[u32], attributes: &[usize], random: &mut Random) -> Vec<f64> {
        (0..count(sizes, attributes)).map(|_| random.unit()).collect()
    }

    /// The value of a table where each attribute has the given code.
    fn at(sizes: &[u32], table: View<'_>, codes: &[usize]) -> f64 {
        table.cells[table.attributes.iter().map(|&a| codes[a] * stride(sizes, table.attributes, a)).sum::<usize>()]
    }

    proptest! {
        #[test]
        fn a_contraction_is_the_sum_of_the_products(
            sizes in prop::collection::vec(prop_oneof![1u32..4, 1u32..20], 5), roles in prop::collection::vec(0..4usize, 4),
            seed: u64,
        ) {
            // Attributes are own, shared, summed out with or without a condition on them; the last is fresh.
            let mut random = Random::new([seed]);
            let mut attributes: Vec<usize> = (0..4).collect();
            random.shuffle(&mut attributes);
            let with = |wanted: &[usize]| -> Vec<usize> { (0..4).filter(|&a| wanted.contains(&roles[a])).collect() };
            let (gone, given_attributes) = (with(&[2, 3]), [with(&[1, 2]), vec![4]].concat());
            let cells = random_table(&sizes, &attributes, &mut random);
            let table = View { attributes: &attributes, cells: &cells };
            let given_cells = random_table(&sizes, &given_attributes, &mut random);
            let given = View { attributes: &given_attributes, cells: &given_cells };
            let mut out = vec![9.0; 3];
            let result = contract(&sizes, table, given, 1, &gone, &mut out);
            let mut naive = vec![0.0; out.len()];
            for codes in positions::<5>((0..5).map(|a| (sizes[a] as usize, std::array::from_fn(|i| usize::from(i == a))))) {
                let to: usize = result.iter().map(|&a| codes[a] * stride(&sizes, &result, a)).sum();
                naive[to] += at(&sizes, table, &codes) * at(&sizes, given, &codes);
            }
            for (value, expected) in out.iter().zip(naive) {
                prop_assert!((value - expected).abs() <= 1e-12 * (1.0 + expected));
            }
            let order: Vec<usize> = result.iter().rev().copied().collect();
            let turned = reorder(&sizes, View { attributes: &result, cells: &out }, &order);
            for codes in positions::<5>((0..5).map(|a| (sizes[a] as usize, std::array::from_fn(|i| usize::from(i == a))))) {
                let (one, other) = (View { attributes: &result, cells: &out }, View { attributes: &order, cells: &turned });
                prop_assert!(at(&sizes, one, &codes).to_bits() == at(&sizes, other, &codes).to_bits());
            }
        }
    }
}
