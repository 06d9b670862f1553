//! Arrays of codes, borrowed from numpy.

use chicle_core::table::{self, Column};
use numpy::{IntoPyArray, PyReadonlyArray1};
use pyo3::prelude::*;

/// A column of codes: one-dimensional, contiguous, `uint8`, `uint16` or `uint32`.
#[derive(FromPyObject)]
pub enum Codes<'py> {
    U8(PyReadonlyArray1<'py, u8>),
    U16(PyReadonlyArray1<'py, u16>),
    U32(PyReadonlyArray1<'py, u32>),
}

impl Codes<'_> {
    fn column(&self) -> PyResult<Column<'_>> {
        Ok(match self {
            Self::U8(codes) => Column::U8(codes.as_slice()?),
            Self::U16(codes) => Column::U16(codes.as_slice()?),
            Self::U32(codes) => Column::U32(codes.as_slice()?),
        })
    }
}

/// Borrow all columns.
pub fn columns<'a>(codes: &'a [Codes<'_>]) -> PyResult<Vec<Column<'a>>> {
    codes.iter().map(Codes::column).collect()
}

/// Hand a column of codes to numpy.
pub fn array(py: Python<'_>, codes: table::Codes) -> Bound<'_, PyAny> {
    match codes {
        table::Codes::U8(codes) => codes.into_pyarray(py).into_any(),
        table::Codes::U16(codes) => codes.into_pyarray(py).into_any(),
        table::Codes::U32(codes) => codes.into_pyarray(py).into_any(),
    }
}
