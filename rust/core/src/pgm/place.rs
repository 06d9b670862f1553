//! Where the cells of a table stand in another whose axes have another order, or buckets.

use crate::layout;

/// For each cell over `attributes`, in order, its cell in a table with the axes `own`, an attribute and a size each.
///
/// `bucket(axis, code)` says where along its own axis a code stands. `None` where every cell stands where it is.
pub fn placement(own: &[(usize, u32)], attributes: &[usize], bucket: impl Fn(usize, u32) -> u32) -> Option<Vec<u32>> {
    placement_of(own, attributes, |axis| own[axis].1, bucket)
}

/// As [`placement`], where the attribute of an axis has `codes(axis)` codes, more than it has buckets.
#[expect(clippy::cast_possible_truncation, reason = "tables of a model have fewer than 2^32 cells")]
pub fn placement_of(
    own: &[(usize, u32)],
    attributes: &[usize],
    codes: impl Fn(usize) -> u32,
    bucket: impl Fn(usize, u32) -> u32,
) -> Option<Vec<u32>> {
    let shape: Vec<u32> = own.iter().map(|&(_, size)| size).collect();
    let strides = layout::strides(&shape);
    let ordered = own.iter().map(|(a, _)| a).eq(attributes);
    let plain = (0..own.len()).all(|axis| codes(axis) == own[axis].1 && (0..codes(axis)).all(|c| bucket(axis, c) == c));
    if ordered && plain {
        return None;
    }
    let mut places = vec![0];
    for &attribute in attributes {
        let axis = own.iter().position(|&(a, _)| a == attribute).expect("both have the same attributes");
        let steps: Vec<u32> = (0..codes(axis)).map(|code| strides[axis] as u32 * bucket(axis, code)).collect();
        places = places.iter().flat_map(|&place: &u32| steps.iter().map(move |step| place + step)).collect();
    }
    Some(places)
}
