//! Encoded records, column by column, in the smallest unsigned type that holds each attribute's codes.

use rayon::prelude::*;

use crate::error::{Error, Result};
use crate::parallel::zeros;
use crate::simd;

/// The codes of one attribute.
#[derive(Debug, Clone, Copy)]
pub enum Column<'a> {
    /// Up to 256 values.
    U8(&'a [u8]),
    /// Up to 65,536 values.
    U16(&'a [u16]),
    /// More than that.
    U32(&'a [u32]),
}

impl Column<'_> {
    /// Number of records.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::U8(codes) => codes.len(),
            Self::U16(codes) => codes.len(),
            Self::U32(codes) => codes.len(),
        }
    }

    /// Whether there are no records.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes per code.
    #[must_use]
    pub fn width(&self) -> usize {
        match self {
            Self::U8(_) => 1,
            Self::U16(_) => 2,
            Self::U32(_) => 4,
        }
    }

    /// Bytes per code of the type that an attribute of this cardinality has: the smallest that holds its codes.
    #[must_use]
    pub fn width_for(cardinality: u32) -> usize {
        match cardinality {
            0..=0x100 => 1,
            0x101..=0x1_0000 => 2,
            _ => 4,
        }
    }

    /// The code of one record.
    ///
    /// # Panics
    /// If there is no such record.
    #[must_use]
    pub fn code(&self, record: usize) -> u32 {
        match self {
            Self::U8(codes) => codes[record].into(),
            Self::U16(codes) => codes[record].into(),
            Self::U32(codes) => codes[record],
        }
    }

    /// Have the codes from one record on brought near the processor.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "takes on the target features of its caller")]
    pub(crate) fn prefetch(&self, record: usize) {
        match self {
            Self::U8(codes) => simd::prefetch(codes, record),
            Self::U16(codes) => simd::prefetch(codes, record),
            Self::U32(codes) => simd::prefetch(codes, record),
        }
    }

    /// The records `range` of this column.
    ///
    /// # Panics
    /// If the range reaches past the end.
    #[must_use]
    pub fn slice(&self, range: std::ops::Range<usize>) -> Self {
        match *self {
            Self::U8(codes) => Self::U8(&codes[range]),
            Self::U16(codes) => Self::U16(&codes[range]),
            Self::U32(codes) => Self::U32(&codes[range]),
        }
    }

    fn max(&self) -> Option<u32> {
        match self {
            // By value: a maximum over references does not vectorise.
            Self::U8(codes) => codes.iter().copied().max().map(u32::from),
            Self::U16(codes) => codes.iter().copied().max().map(u32::from),
            Self::U32(codes) => codes.iter().copied().max(),
        }
    }

    /// Whether every code is below `cardinality`. One vectorised pass, or none if the type holds no larger code.
    fn fits(&self, cardinality: u32) -> bool {
        let all_fit = match self {
            Self::U8(_) => cardinality >= 1 << 8,
            Self::U16(_) => cardinality >= 1 << 16,
            Self::U32(_) => false,
        };
        all_fit || self.max().is_none_or(|max| max < cardinality)
    }
}

/// The codes of one attribute, to be written.
#[derive(Debug)]
pub enum ColumnMut<'a> {
    /// Up to 256 values.
    U8(&'a mut [u8]),
    /// Up to 65,536 values.
    U16(&'a mut [u16]),
    /// More than that.
    U32(&'a mut [u32]),
}

/// The codes of one attribute, owned.
#[derive(Debug, Clone)]
pub enum Codes {
    /// Up to 256 values.
    U8(Vec<u8>),
    /// Up to 65,536 values.
    U16(Vec<u16>),
    /// More than that.
    U32(Vec<u32>),
}

impl Codes {
    /// As many zeros as there are records, in the smallest type.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub fn zeros(cardinality: u32, records: usize) -> Result<Self> {
        Ok(match Column::width_for(cardinality) {
            1 => Self::U8(zeros(records)?),
            2 => Self::U16(zeros(records)?),
            _ => Self::U32(zeros(records)?),
        })
    }

    /// Codes below `cardinality`, in the smallest type.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    #[expect(clippy::cast_possible_truncation, reason = "the type holds every code below the cardinality")]
    pub fn of(cardinality: u32, given: impl ExactSizeIterator<Item = u32>) -> Result<Self> {
        let mut codes = Self::zeros(cardinality, given.len())?;
        match &mut codes {
            Self::U8(codes) => codes.iter_mut().zip(given).for_each(|(to, code)| *to = code as u8),
            Self::U16(codes) => codes.iter_mut().zip(given).for_each(|(to, code)| *to = code as u16),
            Self::U32(codes) => codes.iter_mut().zip(given).for_each(|(to, code)| *to = code),
        }
        Ok(codes)
    }

    /// The codes, to read.
    #[must_use]
    pub fn column(&self) -> Column<'_> {
        match self {
            Self::U8(codes) => Column::U8(codes),
            Self::U16(codes) => Column::U16(codes),
            Self::U32(codes) => Column::U32(codes),
        }
    }

    /// The codes in pieces of `length` records, to write.
    #[must_use]
    pub fn chunks_mut(&mut self, length: usize) -> Vec<ColumnMut<'_>> {
        match self {
            Self::U8(codes) => codes.chunks_mut(length).map(ColumnMut::U8).collect(),
            Self::U16(codes) => codes.chunks_mut(length).map(ColumnMut::U16).collect(),
            Self::U32(codes) => codes.chunks_mut(length).map(ColumnMut::U32).collect(),
        }
    }

    /// Remove the codes, but keep their memory.
    pub fn clear(&mut self) {
        match self {
            Self::U8(codes) => codes.clear(),
            Self::U16(codes) => codes.clear(),
            Self::U32(codes) => codes.clear(),
        }
    }

    /// A copy of a column.
    #[must_use]
    pub fn copy(column: &Column<'_>) -> Self {
        match column {
            Column::U8(codes) => Self::U8(codes.to_vec()),
            Column::U16(codes) => Self::U16(codes.to_vec()),
            Column::U32(codes) => Self::U32(codes.to_vec()),
        }
    }

    /// Add codes at the end.
    ///
    /// # Panics
    /// If they are of another type.
    pub fn extend(&mut self, column: &Column<'_>) {
        match (self, column) {
            (Self::U8(codes), Column::U8(more)) => codes.extend_from_slice(more),
            (Self::U16(codes), Column::U16(more)) => codes.extend_from_slice(more),
            (Self::U32(codes), Column::U32(more)) => codes.extend_from_slice(more),
            _ => panic!("codes of one attribute have one type"),
        }
    }
}

/// Records whose codes are known to lie in their domains.
#[derive(Debug, Clone)]
pub struct Table<'a> {
    columns: Vec<Column<'a>>,
    cardinalities: Vec<u32>,
    records: usize,
}

impl<'a> Table<'a> {
    /// Check columns of codes against their cardinalities.
    ///
    /// # Errors
    /// [`Error::UnequalLengths`], [`Error::WrongWidth`] and [`Error::CodeOutOfDomain`], naming the attribute.
    ///
    /// # Panics
    /// If there are not as many columns as cardinalities.
    pub fn new(columns: Vec<Column<'a>>, cardinalities: Vec<u32>) -> Result<Self> {
        assert_eq!(columns.len(), cardinalities.len(), "one cardinality for each column");
        let records = columns.first().map_or(0, Column::len);
        for (attribute, (column, &cardinality)) in columns.iter().zip(&cardinalities).enumerate() {
            if column.len() != records {
                return Err(Error::UnequalLengths { attribute });
            }
            if column.width() != Column::width_for(cardinality) {
                return Err(Error::WrongWidth {
                    attribute,
                    found: column.width(),
                    expected: Column::width_for(cardinality),
                });
            }
        }
        let misfit =
            columns.par_iter().zip(&cardinalities).position_first(|(column, &cardinality)| !column.fits(cardinality));
        if let Some(attribute) = misfit {
            return Err(Error::CodeOutOfDomain { attribute, cardinality: cardinalities[attribute] });
        }
        Ok(Self { columns, cardinalities, records })
    }

    /// A table of codes that were checked before.
    pub(crate) fn checked_before(columns: Vec<Column<'a>>, cardinalities: Vec<u32>) -> Self {
        let records = columns.first().map_or(0, Column::len);
        Self { columns, cardinalities, records }
    }

    /// Number of records.
    #[must_use]
    pub fn records(&self) -> usize {
        self.records
    }

    /// The columns, in domain order.
    #[must_use]
    pub fn columns(&self) -> &[Column<'a>] {
        &self.columns
    }

    /// How many codes each attribute has.
    #[must_use]
    pub fn cardinalities(&self) -> &[u32] {
        &self.cardinalities
    }

    /// The records `range`, without copying.
    ///
    /// # Panics
    /// If the range reaches past the end.
    #[must_use]
    pub fn slice(&self, range: std::ops::Range<usize>) -> Self {
        Self {
            columns: self.columns.iter().map(|c| c.slice(range.clone())).collect(),
            cardinalities: self.cardinalities.clone(),
            records: range.len(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_must_lie_in_the_domain() {
        let bad = Table::new(vec![Column::U8(&[0, 1]), Column::U16(&[4, 500])], vec![2, 500]);
        assert_eq!(bad.unwrap_err(), Error::CodeOutOfDomain { attribute: 1, cardinality: 500 });
        assert!(Table::new(vec![Column::U8(&[0, 255])], vec![256]).is_ok());
        assert!(Table::new(vec![Column::U8(&[])], vec![1]).is_ok());
    }

    #[test]
    fn columns_have_the_smallest_type() {
        assert!(Table::new(vec![Column::U32(&[70_000])], vec![70_001]).is_ok());
        let bad = Table::new(vec![Column::U16(&[0])], vec![256]);
        assert_eq!(bad.unwrap_err(), Error::WrongWidth { attribute: 0, found: 2, expected: 1 });
    }

    #[test]
    fn columns_must_be_equally_long() {
        let bad = Table::new(vec![Column::U8(&[0, 1]), Column::U8(&[0])], vec![2, 2]);
        assert_eq!(bad.unwrap_err(), Error::UnequalLengths { attribute: 1 });
    }
}
