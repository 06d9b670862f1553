//! Tables of any codes and queries: an error or the counts of the oracle, whole and batch by batch.
#![no_main]

use chicle_core::count::{count, naive, stream::Counter};
use chicle_core::parallel::Cancel;
use chicle_core::table::{Column, Table};
use chicle_fuzz::Input;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: Input| {
    let (columns, cardinalities) = (input.columns(), input.cardinalities());
    let columns: Vec<Column<'_>> = columns.iter().map(|codes| Column::U8(codes)).collect();
    let Ok(table) = Table::new(columns, cardinalities.clone()) else { return };
    let (queries, cancel) = (input.queries(), Cancel::default());
    let Ok(counts) = count(&table, &queries, 1 << 24, &cancel) else { return };
    let Ok(mut counter) = Counter::new(&cardinalities, &queries, 1 << 24) else { return };
    let half = table.records() / 2;
    counter.update(&table.slice(0..half), &cancel).expect("a part of a table that is right");
    counter.update(&table.slice(half..table.records()), &cancel).expect("the other part");
    let streamed = counter.result(&cancel).expect("counts");
    for ((query, counted), streamed) in queries.iter().zip(&counts).zip(&streamed) {
        assert_eq!(counted, &naive::count(&table, query));
        assert_eq!(counted, streamed);
    }
});
