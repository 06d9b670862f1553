//! The simulated census.

use std::num::NonZero;

use chicle_core::census::{Attribute, Census, ColumnMut, attributes};
use numpy::IntoPyArray;
use pyo3::prelude::*;
use rayon::prelude::*;

use crate::enter::enter;
use crate::errors::Names;

/// Rows that a thread makes at a time.
const CHUNK: usize = 1 << 14;

/// One column while it is made.
enum Codes {
    U8(Vec<u8>),
    U16(Vec<u16>),
}

impl Codes {
    fn new(cardinality: u32, records: usize) -> Self {
        if cardinality <= 1 << 8 { Self::U8(vec![0; records]) } else { Self::U16(vec![0; records]) }
    }

    fn chunks(&mut self) -> Box<dyn Iterator<Item = ColumnMut<'_>> + '_> {
        match self {
            Self::U8(codes) => Box::new(codes.chunks_mut(CHUNK).map(ColumnMut::U8)),
            Self::U16(codes) => Box::new(codes.chunks_mut(CHUNK).map(ColumnMut::U16)),
        }
    }
}

type Columns<'py> = (Vec<String>, Vec<u32>, Vec<Bound<'py, PyAny>>);

/// Names, cardinalities and codes of a simulated population.
#[pyfunction]
#[pyo3(signature = (records, attributes, seed, threads=None))]
pub fn census(
    py: Python<'_>,
    records: usize,
    attributes: usize,
    seed: u64,
    threads: Option<NonZero<usize>>,
) -> PyResult<Columns<'_>> {
    let spec = self::attributes(attributes);
    let columns = enter(py, threads, &Names::default(), |cancel| {
        let mut columns: Vec<Codes> = spec.iter().map(|a| Codes::new(a.cardinality, records)).collect();
        let mut rows: Vec<Vec<ColumnMut<'_>>> = Vec::new();
        rows.resize_with(records.div_ceil(CHUNK), Vec::new);
        for column in &mut columns {
            rows.iter_mut().zip(column.chunks()).for_each(|(row, chunk)| row.push(chunk));
        }
        let census = Census::new(attributes);
        rows.par_iter_mut().enumerate().try_for_each(|(i, row)| {
            cancel.check()?;
            census.fill(row, seed, (i * CHUNK) as u64);
            Ok(())
        })?;
        drop(rows);
        Ok(columns)
    })?;
    let arrays = columns.into_iter().map(|codes| match codes {
        Codes::U8(codes) => codes.into_pyarray(py).into_any(),
        Codes::U16(codes) => codes.into_pyarray(py).into_any(),
    });
    let (names, cardinalities) = spec.into_iter().map(|Attribute { name, cardinality }| (name, cardinality)).unzip();
    Ok((names, cardinalities, arrays.collect()))
}
