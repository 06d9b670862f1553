//! The cell of a joint value of several attributes in a flat table.
//!
//! Cells are numbered in row-major order: the last attribute moves fastest. Sizes are products of cardinalities and
//! overflow easily, so they are computed here only, with checks.

/// Number of cells of a table with these axes, or `None` where it does not fit in a `usize`.
#[must_use]
pub fn cells(cardinalities: impl IntoIterator<Item = u32>) -> Option<usize> {
    cardinalities.into_iter().try_fold(1usize, |product, c| product.checked_mul(c as usize))
}

/// Distance between neighbours along each axis, in cells. The product of `shape` must fit (see [`cells`]).
#[must_use]
pub fn strides(shape: &[u32]) -> Vec<usize> {
    let mut strides = vec![1; shape.len()];
    for axis in (1..shape.len()).rev() {
        strides[axis - 1] = strides[axis] * shape[axis] as usize;
    }
    strides
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_empty_clique_has_one_cell() {
        assert_eq!(cells([]), Some(1));
        assert!(strides(&[]).is_empty());
    }

    #[test]
    fn strides_are_row_major() {
        assert_eq!(cells([2, 3, 4]), Some(24));
        assert_eq!(strides(&[2, 3, 4]), [12, 4, 1]);
    }

    #[test]
    fn overflow_is_seen() {
        assert_eq!(cells([u32::MAX; 3]), None);
        assert_eq!(cells([u32::MAX, u32::MAX, 0]), Some(0));
    }
}
