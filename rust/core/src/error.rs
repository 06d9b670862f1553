//! What can go wrong in a kernel; the bindings map each variant to one Python exception.
//!
//! Attributes and cliques are given by index: names live in Python, which puts them back. No variant carries a code or
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
    /// The cells of a clique are more than a table may have.
    #[error("clique {clique}: its table of {cells} cells takes {bytes} bytes, above the limit of {limit} bytes")]
    TableTooLarge {
        /// Position of the clique in the list.
        clique: usize,
        /// Product of the cardinalities, or `u128::MAX` where even that overflows.
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
    /// A noise scale is outside the range that the samplers are exact in.
    #[error("a noise scale must lie in {least}..={most}")]
    ScaleOutOfRange {
        /// The smallest scale.
        least: &'static str,
        /// The largest scale.
        most: &'static str,
    },
    /// A parameter is none that the kernel takes.
    #[error("{0}")]
    InvalidParameter(String),
    /// The system refuses to start that many threads.
    #[error("cannot start {threads} threads: {reason}")]
    NoThreads {
        /// How many were asked for.
        threads: usize,
        /// What the system says.
        reason: String,
    },
    /// There is not that much memory.
    #[error("{bytes} bytes of memory are not to be had")]
    OutOfMemory {
        /// How much was asked for.
        bytes: usize,
    },
    /// Two streaming counters that do not count the same cliques over the same domain.
    #[error("only counters over the same domain and cliques can be merged")]
    CounterMismatch,
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
