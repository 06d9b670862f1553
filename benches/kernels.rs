//! Each kernel alone: `cargo bench`, or `cargo bench -- count/pair` for one group.
//!
//! One thread unless the name says otherwise. A benchmark is a row of data; before it is timed, its answer is compared
//! with the naive count, or, for noise, with the mean and spread that it must have.

use std::hint::black_box;
use std::num::NonZero;
use std::time::Duration;

use chicle_census::{self as census, Census};
use chicle_core::count::stream::Counter;
use chicle_core::count::{self, MEMORY_LIMIT, naive};
use chicle_core::noise::{self, DiscreteLaplace, Entropy, RoundedGaussian, Sampler};
use chicle_core::parallel::{self, Cancel};
use chicle_core::query::{Axis, Query};
use chicle_core::table::{Codes, Table};
use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, BenchmarkId, Criterion, SamplingMode, Throughput, criterion_group, criterion_main};

/// Records of a single pair or triple.
const RECORDS: usize = 1 << 18;

/// From four cells to more than a second-level cache holds; above 65,536 cells the wide kernel counts.
const PAIRS: [[u32; 2]; 6] = [[2, 2], [12, 10], [90, 90], [150, 200], [300, 300], [1200, 1200]];
const TRIPLES: [[u32; 3]; 4] = [[2, 3, 4], [20, 20, 20], [32, 32, 32], [100, 100, 100]];

const CENSUS_RECORDS: usize = 100_000;
const CENSUS_ATTRIBUTES: usize = 97;

/// Rows that the census fills at a time.
const FILLED: usize = 1 << 14;

const STREAM_ATTRIBUTES: usize = 24;
const BATCHES: [usize; 3] = [4_096, 65_536, CENSUS_RECORDS];

const SCALES: [f64; 3] = [1.0, 100.0, 1e4];
const DRAWS: usize = 1 << 16;

const ONE_THREAD: NonZero<usize> = NonZero::<usize>::MIN;

struct Records {
    cardinalities: Vec<u32>,
    columns: Vec<Codes>,
}

impl Records {
    /// Skewed codes, `cardinality * u^3` for uniform `u`: half the records share the first eighth of the values.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "codes lie below their cardinality")]
    fn skewed(cardinalities: &[u32], records: usize) -> Self {
        let mut state = 1_u64;
        let mut draw = |cardinality: u32| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let u = f64::from((state >> 32) as u32) / f64::from(u32::MAX);
            ((u.powi(3) * f64::from(cardinality)) as u32).min(cardinality - 1)
        };
        let column = |&cardinality: &u32| {
            let mut codes = Codes::zeros(cardinality, records).expect("memory for a benchmark");
            match &mut codes {
                Codes::U8(codes) => codes.fill_with(|| draw(cardinality) as u8),
                Codes::U16(codes) => codes.fill_with(|| draw(cardinality) as u16),
                Codes::U32(codes) => codes.fill_with(|| draw(cardinality)),
            }
            codes
        };
        Self { columns: cardinalities.iter().map(column).collect(), cardinalities: cardinalities.to_vec() }
    }

    fn census(records: usize, width: usize) -> Self {
        Self {
            columns: census::generate(records, width, 0, &Cancel::default()).expect("nobody cancels"),
            cardinalities: census::attributes(width).into_iter().map(|a| a.cardinality).collect(),
        }
    }

    fn table(&self) -> Table<'_> {
        let columns = self.columns.iter().map(Codes::column).collect();
        Table::new(columns, self.cardinalities.clone()).expect("codes within their domain")
    }
}

/// All pairs of the first attributes, as the axes tell.
fn all_pairs(axes: &[Axis], cardinalities: &[u32]) -> Vec<Query> {
    let pairs = (0..axes.len()).flat_map(|a| (a + 1..axes.len()).map(move |b| [a, b]));
    let query = |pair: [usize; 2]| pair.map(|a| axes[a].clone()).to_vec();
    pairs.map(|pair| Query::new(query(pair), cardinalities).expect("axes of the domain")).collect()
}

fn plain(cardinalities: &[u32]) -> Vec<Axis> {
    cardinalities.iter().enumerate().map(|(a, &c)| Axis::plain(a, c)).collect()
}

/// Every attribute in ten buckets, or in as many as it has codes.
fn in_ten(cardinalities: &[u32]) -> Vec<Axis> {
    let axis = |(a, &c): (usize, &u32)| Axis::in_buckets(a, (0..c).map(|code| code % 10).collect(), None);
    cardinalities.iter().enumerate().map(axis).collect()
}

fn with_threads<T: Send>(threads: NonZero<usize>, job: impl FnOnce() -> T + Send) -> T {
    parallel::pool(threads).expect("a few threads").install(job)
}

fn count(table: &Table<'_>, queries: &[Query]) -> Vec<Vec<i64>> {
    count::count(table, queries, MEMORY_LIMIT, &Cancel::default()).expect("tables within the limit")
}

fn stream(table: &Table<'_>, queries: &[Query], batch: usize) -> Vec<Vec<i64>> {
    let cancel = Cancel::default();
    let mut counter = Counter::new(table.cardinalities(), queries, MEMORY_LIMIT).expect("tables within the limit");
    for start in (0..table.records()).step_by(batch) {
        let rows = start..table.records().min(start + batch);
        counter.update(&table.slice(rows), &cancel).expect("nobody cancels");
    }
    counter.result(&cancel).expect("nobody cancels")
}

fn assert_exact(counts: &[Vec<i64>], table: &Table<'_>, queries: &[Query]) {
    for (query, counts) in queries.iter().zip(counts) {
        assert!(*counts == naive::count(table, query), "the counts of {query:?} are wrong");
    }
}

/// A group that counts so many records an iteration and takes a second or so for each benchmark.
fn group<'a>(criterion: &'a mut Criterion, name: &str, elements: usize) -> BenchmarkGroup<'a, WallTime> {
    let mut group = criterion.benchmark_group(name);
    group.throughput(Throughput::Elements(elements as u64)).sampling_mode(SamplingMode::Flat);
    group.sample_size(20).warm_up_time(Duration::from_millis(300)).measurement_time(Duration::from_secs(1));
    group
}

fn one_clique<const WAY: usize>(criterion: &mut Criterion, name: &str, shapes: &[[u32; WAY]]) {
    let mut group = group(criterion, name, RECORDS);
    let clique: Vec<usize> = (0..WAY).collect();
    for shape in shapes {
        let query = [Query::marginal(&clique, shape).expect("a clique of the domain")];
        let records = Records::skewed(shape, RECORDS);
        let table = records.table();
        let job = || with_threads(ONE_THREAD, || count(&table, &query));
        assert_exact(&job(), &table, &query);
        let cells: u32 = shape.iter().product();
        group.bench_function(BenchmarkId::new("cells", cells), |bencher| bencher.iter(job));
    }
}

fn pair(criterion: &mut Criterion) {
    one_clique(criterion, "count/pair", &PAIRS);
}

fn triple(criterion: &mut Criterion) {
    one_clique(criterion, "count/triple", &TRIPLES);
}

fn pairs_of_the_census(criterion: &mut Criterion) {
    let people = Records::census(CENSUS_RECORDS, CENSUS_ATTRIBUTES);
    let (table, sizes) = (people.table(), &people.cardinalities);
    pairs(criterion, "count/all_pairs", &table, &all_pairs(&plain(sizes), sizes));
    pairs(criterion, "count/all_pairs_in_buckets", &table, &all_pairs(&in_ten(sizes), sizes));
}

fn pairs(criterion: &mut Criterion, name: &str, table: &Table<'_>, queries: &[Query]) {
    let mut group = group(criterion, name, CENSUS_RECORDS * queries.len());
    group.sample_size(10);
    for threads in [ONE_THREAD, parallel::available()] {
        let job = || with_threads(threads, || count(table, queries));
        assert_exact(&job(), table, queries);
        group.bench_function(BenchmarkId::new("threads", threads), |bencher| bencher.iter(job));
        if parallel::available() == ONE_THREAD {
            break;
        }
    }
}

fn batches(criterion: &mut Criterion) {
    let people = Records::census(CENSUS_RECORDS, STREAM_ATTRIBUTES);
    let (table, sizes) = (people.table(), &people.cardinalities);
    let queries = all_pairs(&plain(sizes), sizes);
    let mut group = group(criterion, "count/stream", CENSUS_RECORDS * queries.len());
    for batch in BATCHES {
        let job = || with_threads(ONE_THREAD, || stream(&table, &queries, batch));
        assert_exact(&job(), &table, &queries);
        group.bench_function(BenchmarkId::new("batch", batch), |bencher| bencher.iter(job));
    }
}

fn draw<S: Sampler>(scale: f64) -> Vec<i64> {
    with_threads(ONE_THREAD, || {
        let mut draws = vec![0; DRAWS];
        noise::fill::<S>(&[scale], &[DRAWS], Entropy::OperatingSystem, &mut draws, &Cancel::default())
            .expect("a scale in range");
        draws
    })
}

/// Mean and variance within six standard errors; `kurtosis` is the fourth central moment in units of `variance^2`.
#[expect(clippy::cast_precision_loss, reason = "draws are small and errors are wide")]
fn assert_moments(draws: &[i64], variance: f64, kurtosis: f64) {
    let n = draws.len() as f64;
    let mean = draws.iter().map(|&x| x as f64).sum::<f64>() / n;
    let spread = draws.iter().map(|&x| (x as f64).powi(2)).sum::<f64>() / n;
    assert!(mean.abs() < 6.0 * (variance / n).sqrt(), "a mean of {mean}");
    assert!((spread - variance).abs() < 6.0 * variance * ((kurtosis - 1.0) / n).sqrt(), "a variance of {spread}");
}

/// `moments` gives variance and kurtosis at a scale.
fn noise_of<S: Sampler>(criterion: &mut Criterion, name: &str, moments: impl Fn(f64) -> (f64, f64)) {
    let mut group = group(criterion, name, DRAWS);
    for scale in SCALES {
        let (variance, kurtosis) = moments(scale);
        assert_moments(&draw::<S>(scale), variance, kurtosis);
        group.bench_function(BenchmarkId::new("scale", scale), |bencher| bencher.iter(|| draw::<S>(scale)));
    }
}

fn gaussian(criterion: &mut Criterion) {
    noise_of::<RoundedGaussian>(criterion, "noise/gaussian", |sigma| (sigma.powi(2) + 1.0 / 12.0, 3.0));
}

fn laplace(criterion: &mut Criterion) {
    noise_of::<DiscreteLaplace>(criterion, "noise/laplace", |scale| {
        // With q = exp(-1/b): variance 2q / (1-q)^2, fourth moment 2q (1 + 10q + q^2) / (1-q)^4.
        let (q, p) = ((-1.0 / scale).exp(), -(-1.0 / scale).exp_m1());
        (2.0 * q / p.powi(2), (1.0 + 10.0 * q + q * q) / (2.0 * q))
    });
}

fn fill(criterion: &mut Criterion) {
    let law = Census::new(CENSUS_ATTRIBUTES);
    let mut people = Records::census(FILLED, CENSUS_ATTRIBUTES);
    assert_eq!(people.table().records(), FILLED, "and its codes lie in their domains, or there was no table");
    let mut columns: Vec<_> = people.columns.iter_mut().flat_map(|codes| codes.chunks_mut(FILLED)).collect();
    let mut group = group(criterion, "census/fill", FILLED);
    group.bench_function(BenchmarkId::new("attributes", CENSUS_ATTRIBUTES), |bencher| {
        bencher.iter(|| law.fill(black_box(&mut columns), 0, 0));
    });
}

criterion_group!(kernels, pair, triple, pairs_of_the_census, batches, gaussian, laplace, fill);
criterion_main!(kernels);
