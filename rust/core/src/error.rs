//! Errors of the kernels; the bindings map each variant to one Python exception.
//!
//! Attributes and queries are given by index: names live in Python, which puts them back. No variant carries a code or
//! a count, since both may be private.

/// A kernel's failure.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A column holds a code that its attribute does not have.
    #[error("attribute {attribute}: a code is outside its domain of {cardinality} values")]
    CodeOutOfDomain {
        /// Position of the attribute in the domain.
        attribute: usize,
        /// How many codes it has.
        cardinality: u32,
    },
    /// Columns that should describe the same records differ in length.
    #[error("attribute {attribute}: another number of codes than the first attribute has")]
    UnequalLengths {
        /// Position of the attribute in the domain.
        attribute: usize,
    },
    /// A column's type is not the smallest that holds its attribute's codes.
    #[error("attribute {attribute}: codes of {found} bytes where its cardinality takes {expected}")]
    WrongWidth {
        /// Position of the attribute in the domain.
        attribute: usize,
        /// Bytes per code of this column.
        found: usize,
        /// Bytes per code of the smallest type.
        expected: usize,
    },
    /// A query names an attribute that the domain does not have.
    #[error("attribute {attribute}: the domain has {attributes} attributes")]
    NoSuchAttribute {
        /// The position in the query.
        attribute: usize,
        /// How many attributes there are.
        attributes: usize,
    },
    /// The size or the buckets of an axis do not fit its attribute.
    #[error("attribute {attribute}: an axis of {size} needs a place on it for each of {cardinality} codes")]
    WrongAxis {
        /// Position of the attribute in the domain.
        attribute: usize,
        /// How many codes it has.
        cardinality: u32,
        /// Size of the axis.
        size: u32,
    },
    /// An attribute is on two axes of a query, and the axes are equal or the kernel takes each attribute only once.
    #[error("attribute {attribute}: on two axes of one query")]
    AttributeTwice {
        /// Position of the attribute in the domain.
        attribute: usize,
    },
    /// An attribute is in buckets, which the kernel does not take.
    #[error("attribute {attribute}: in buckets, which this kernel does not take")]
    InBuckets {
        /// Position of the attribute in the domain.
        attribute: usize,
    },
    /// A target has another number of values than its query has cells.
    #[error("{values} values for a table of {cells} cells")]
    WrongValues {
        /// How many values there are.
        values: usize,
        /// How many there should be.
        cells: u128,
    },
    /// A query has more cells than a table may have.
    #[error("query {query}: its table of {cells} cells takes {bytes} bytes, above the limit of {limit} bytes")]
    TableTooLarge {
        /// Position of the query in the list.
        query: usize,
        /// Product of the sizes of its axes, or `u128::MAX` where even that overflows.
        cells: u128,
        /// Memory of the tables up to and with this one.
        bytes: u128,
        /// The limit that was given.
        limit: u64,
    },
    /// The tables of a graphical model are larger than they may be.
    #[error("the model's tables of {cells} cells take {bytes} bytes, above the limit of {limit} bytes")]
    ModelTooLarge {
        /// Cells of its junction tree, or of a table that a marginal needs.
        cells: u128,
        /// Memory of all that it needs.
        bytes: u128,
        /// The limit that was given.
        limit: u64,
    },
    /// A noise scale is outside the range in which the samplers are exact.
    #[error("a noise scale must lie in {least}..={most}")]
    ScaleOutOfRange {
        /// The smallest scale.
        least: &'static str,
        /// The largest scale.
        most: &'static str,
    },
    /// A parameter has a value that the kernel does not take.
    #[error("{0}")]
    InvalidParameter(String),
    /// The system refuses to start that many threads.
    #[error("cannot start {threads} threads: {reason}")]
    NoThreads {
        /// The number requested.
        threads: usize,
        /// The system's message.
        reason: String,
    },
    /// There is not enough memory.
    #[error("{bytes} bytes of memory are not to be had")]
    OutOfMemory {
        /// The bytes requested.
        bytes: usize,
    },
    /// A counter whose last pass was interrupted: some of its counts are missing.
    #[error("an interrupted pass left this counter incomplete; start a new one")]
    CounterIncomplete,
    /// The caller asked to stop.
    #[error("interrupted")]
    Interrupted,
    /// The operating system gave no random bytes.
    #[error("the operating system's random generator failed: {0}")]
    Entropy(String),
}

/// A kernel's result.
pub type Result<T> = std::result::Result<T, Error>;
