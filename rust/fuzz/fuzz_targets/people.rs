//! Ids of any offsets, and the limit of rows a person over several passes: never more than the most.
#![no_main]

use std::collections::HashMap;
use std::num::NonZero;

use chicle_core::parallel::Cancel;
use chicle_core::people::{FirstRows, Ids, hashes};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (Vec<i64>, Vec<u8>, Vec<u8>, u8, u8)| {
    let (offsets, bytes, words, most, persons) = input;
    let _ = hashes(Ids::Texts { offsets: &offsets, bytes: &bytes }, [1, 2]);
    let words: Vec<u64> = words.into_iter().map(u64::from).collect();
    let ids = hashes(Ids::Words(&words), [3, 4]).expect("words are always right");
    let most = NonZero::new(u32::from(most % 8) + 1).expect("above 0");
    let mut first = FirstRows::new(most, usize::from(persons) + 1);
    let mut kept = vec![true; ids.len()];
    loop {
        let pass = first.update(&ids, &Cancel::default()).expect("not interrupted");
        kept.iter_mut().zip(pass).for_each(|(kept, now)| *kept &= now);
        if !first.next_pass() {
            break;
        }
    }
    let mut met: HashMap<u64, u32> = HashMap::new();
    for (word, kept) in words.iter().zip(kept) {
        let rows = met.entry(*word).or_insert(0);
        assert_eq!(kept, *rows < most.get());
        *rows += 1;
    }
});
