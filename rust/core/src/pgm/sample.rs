//! Draw records from a calibrated tree, by randomised rounding.
//!
//! The root's cells are assigned to the records in their proportions. Then, clique by clique, the records of each row
//! (those that agree on the separator) get cells of the clique's other attributes. Numbers are rounded at random so
//! that they are right on average (systematic sampling, as in [`crate::draw`]), so a clique's marginal is off by
//! less than one record a cell given its separator. Cost: O(records * attributes + cells of the tree).

use rayon::prelude::*;

use super::tree::{Belief, Tree};
use crate::draw::{Law, deal, fill_given};
use crate::error::Result;
use crate::parallel::{Cancel, zeros};
use crate::query::Query;
use crate::random::Random;
use crate::table::Codes;

/// Draw records; the columns are in the order of the tree's attributes.
///
/// # Errors
/// [`crate::Error::OutOfMemory`]; [`crate::Error::Interrupted`].
pub fn records(tree: &Tree, beliefs: &[Belief], records: usize, seed: u64, cancel: &Cancel) -> Result<Vec<Codes>> {
    let mut columns: Vec<Option<Codes>> = vec![None; tree.cardinalities.len()];
    for level in tree.levels() {
        let drawn: Vec<Vec<(usize, Codes)>> = (level.into_par_iter().with_max_len(1))
            .map(|n| {
                cancel.check()?;
                clique(tree, &beliefs[n], n, &columns, records, &mut Random::new([seed, n as u64]))
            })
            .collect::<Result<_>>()?;
        for (attribute, codes) in drawn.into_iter().flatten() {
            columns[attribute] = Some(codes);
        }
    }
    Ok(columns.into_iter().flatten().collect())
}

/// The columns of the attributes that a clique has and its parent lacks.
fn clique(
    tree: &Tree,
    belief: &Belief,
    n: usize,
    columns: &[Option<Codes>],
    records: usize,
    random: &mut Random,
) -> Result<Vec<(usize, Codes)>> {
    let node = &tree.nodes[n];
    let size = |a: usize| tree.cardinalities[a];
    let fresh: Vec<usize> = node.attributes.iter().copied().filter(|a| !node.separator.contains(a)).collect();
    let choices: u32 = fresh.iter().map(|&a| size(a)).product();
    let own: Vec<usize> = node.separator.iter().chain(&fresh).copied().collect();
    let own = Query::marginal(&own, &tree.cardinalities)?;
    let mut weights: Vec<f64> = zeros(belief.table.len())?;
    match own.places(&node.attributes, &tree.cardinalities) {
        None => weights.copy_from_slice(&belief.table),
        Some(places) => places.iter().zip(&belief.table).for_each(|(&place, &value)| weights[place as usize] = value),
    }
    let mut dealt: Vec<u32> = zeros(records)?;
    if node.separator.is_empty() {
        deal(&weights, &mut dealt, random);
    } else {
        let mut rows: Vec<u32> = zeros(records)?;
        for &a in &node.separator {
            let codes = columns[a].as_ref().expect("drawn with a clique further up");
            add_digit(&mut rows, codes, size(a));
        }
        let law = Law { cardinality: choices, parent: None, weights: &weights };
        fill_given(&law, &rows, &mut dealt, random);
    }
    let mut drawn = Vec::with_capacity(fresh.len());
    for &a in fresh.iter().rev() {
        let mut codes = Codes::zeros(size(a), records)?;
        match &mut codes {
            Codes::U8(codes) => take_digit(&mut dealt, codes, size(a)),
            Codes::U16(codes) => take_digit(&mut dealt, codes, size(a)),
            Codes::U32(codes) => take_digit(&mut dealt, codes, size(a)),
        }
        drawn.push((a, codes));
    }
    Ok(drawn)
}

fn add_digit(numbers: &mut [u32], codes: &Codes, base: u32) {
    fn add<C: Copy + Into<u32>>(numbers: &mut [u32], codes: &[C], base: u32) {
        numbers.iter_mut().zip(codes).for_each(|(number, &code)| *number = *number * base + code.into());
    }
    match codes {
        Codes::U8(codes) => add(numbers, codes, base),
        Codes::U16(codes) => add(numbers, codes, base),
        Codes::U32(codes) => add(numbers, codes, base),
    }
}

/// Split the last digit off.
fn take_digit<C: TryFrom<u32>>(numbers: &mut [u32], codes: &mut [C], base: u32) {
    for (number, code) in numbers.iter_mut().zip(codes) {
        let Ok(digit) = C::try_from(*number % base) else { unreachable!("the type was chosen for the cardinality") };
        *code = digit;
        *number /= base;
    }
}
