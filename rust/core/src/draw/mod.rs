//! Initial records for the record kernels: columns drawn from weights, alone or given a parent column.
//!
//! Each column is an apportionment: every value gets its share of the records, rounded at random to a whole number so
//! that it is right on average (systematic sampling), and the values are shuffled. Given a parent, this holds among the
//! records of each parent value. A tree of parents, such as the maximum spanning tree of mutual information (Chow and
//! Liu 1968), is walked from its roots; independent attributes are all roots.
//! Cost: O(records) a column, a few nanoseconds each, columns of one depth of the tree in parallel.

use rayon::prelude::*;

use crate::error::{Error, Result};
use crate::parallel::Cancel;
use crate::random::Random;
use crate::table::{Codes, Column};

/// How to draw the column of one attribute.
#[derive(Debug, Clone)]
pub struct Law<'a> {
    /// Number of codes.
    pub cardinality: u32,
    /// The attribute whose value decides the weights.
    pub parent: Option<usize>,
    /// Non-negative weights of the codes: one row, or one for each value of the parent. A row of zeros
    /// is uniform.
    pub weights: &'a [f64],
}

/// Draw `records` records.
///
/// # Errors
/// [`Error::Interrupted`]; [`Error::InvalidParameter`] if parents form a cycle.
///
/// # Panics
/// If a law has another number of weights than it needs.
pub fn draw(laws: &[Law<'_>], records: usize, seed: u64, cancel: &Cancel) -> Result<Vec<Codes>> {
    let mut columns: Vec<Option<Codes>> = vec![None; laws.len()];
    let mut missing: Vec<usize> = (0..laws.len()).collect();
    while !missing.is_empty() {
        let (ready, later): (Vec<usize>, Vec<usize>) =
            missing.iter().partition(|&&a| laws[a].parent.is_none_or(|parent| columns[parent].is_some()));
        if ready.is_empty() {
            return Err(Error::InvalidParameter("parents form a circle".into()));
        }
        let drawn: Vec<_> = ready
            .par_iter()
            .with_max_len(1)
            .map(|&a| {
                cancel.check()?;
                let parent = laws[a].parent.map(|parent| columns[parent].as_ref().expect("drawn before").column());
                column(&laws[a], parent, records, &mut Random::new([seed, a as u64]))
            })
            .collect::<Result<_>>()?;
        for (a, codes) in ready.into_iter().zip(drawn) {
            columns[a] = Some(codes);
        }
        missing = later;
    }
    Ok(columns.into_iter().flatten().collect())
}

fn column(law: &Law<'_>, parent: Option<Column<'_>>, records: usize, random: &mut Random) -> Result<Codes> {
    let mut codes = Codes::zeros(law.cardinality, records)?;
    match &mut codes {
        Codes::U8(codes) => fill(law, parent, codes, random),
        Codes::U16(codes) => fill(law, parent, codes, random),
        Codes::U32(codes) => fill(law, parent, codes, random),
    }
    Ok(codes)
}

fn fill<C: Copy + TryFrom<u32>>(law: &Law<'_>, parent: Option<Column<'_>>, codes: &mut [C], random: &mut Random) {
    match parent {
        None => deal(law.weights, codes, random),
        Some(Column::U8(parent)) => fill_given(law, parent, codes, random),
        Some(Column::U16(parent)) => fill_given(law, parent, codes, random),
        Some(Column::U32(parent)) => fill_given(law, parent, codes, random),
    }
}

/// Apportion codes for each value of the parent, then give them to the records of that value in turn.
pub(crate) fn fill_given<P, C>(law: &Law<'_>, parent: &[P], codes: &mut [C], random: &mut Random)
where
    P: Copy + Into<u32>,
    C: Copy + TryFrom<u32>,
{
    let rows = law.weights.chunks_exact(law.cardinality as usize);
    let mut starts = vec![0usize; rows.len() + 1];
    for &value in parent {
        starts[value.into() as usize + 1] += 1;
    }
    for value in 1..starts.len() {
        starts[value] += starts[value - 1];
    }
    let mut hands = codes.to_vec();
    for (row, bounds) in rows.zip(starts.windows(2)) {
        deal(row, &mut hands[bounds[0]..bounds[1]], random);
    }
    for (code, &value) in codes.iter_mut().zip(parent) {
        let next = &mut starts[value.into() as usize];
        *code = hands[*next];
        *next += 1;
    }
}

/// Fill `codes` in the proportions of `weights`, in random order.
pub(crate) fn deal<C: Copy + TryFrom<u32>>(weights: &[f64], codes: &mut [C], random: &mut Random) {
    if codes.is_empty() {
        return;
    }
    let total: f64 = weights.iter().sum();
    let uniform = total <= 0.0 || !total.is_finite();
    #[expect(clippy::cast_precision_loss, reason = "numbers of records and codes are exact")]
    let (records, share) = (codes.len() as f64, 1.0 / weights.len() as f64);
    let offset = random.unit();
    let (mut sum, mut filled) = (0.0, 0);
    for (code, &weight) in (0u32..).zip(weights) {
        sum += if uniform { share } else { weight / total };
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 0 and the records")]
        let end = ((sum * records + offset) as usize).min(codes.len());
        if end > filled {
            let Ok(code) = C::try_from(code) else { unreachable!("the type was chosen for the cardinality") };
            codes[filled..end].fill(code);
            filled = end;
        }
    }
    // Rounding may leave the last record without a value; give it one that occurs.
    let last = weights.iter().rposition(|&weight| uniform || weight > 0.0).unwrap_or(0);
    if let Ok(code) = u32::try_from(last).map_err(drop).and_then(|last| C::try_from(last).map_err(drop)) {
        codes[filled..].fill(code);
    }
    random.shuffle(codes);
}

#[cfg(test)]
mod tests;
