//! The oracle: answers of tables by their definition, in `f64`.

use super::Table;

/// The probabilities of the cells of a table: for each cell the mean over components of the product of its rows.
pub(super) fn answers(probabilities: &[f32], components: usize, table: &Table) -> Vec<f64> {
    let mut cells: Vec<Vec<usize>> = vec![vec![]];
    for rows in table.rows() {
        cells = cells.iter().flat_map(|cell| rows.clone().map(|row| [cell.as_slice(), &[row]].concat())).collect();
    }
    let component = |rows: &[usize], k: usize| -> f64 {
        rows.iter().map(|row| f64::from(probabilities[row * components + k])).product()
    };
    #[expect(clippy::cast_precision_loss, reason = "a small number")]
    let mean = |rows: &Vec<usize>| (0..components).map(|k| component(rows, k)).sum::<f64>() / components as f64;
    cells.iter().map(mean).collect()
}
