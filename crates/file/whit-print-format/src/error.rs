//! Why a `print fmt` cannot be evaluated.

/// Why a `print fmt` cannot be evaluated; its event's fields are then printed one by one.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TraceFormatError {
    /// The text ends, or goes on, where something else has to stand.
    #[error("`{found}` stands where {expected} is expected")]
    Syntax {
        /// The word; empty at the end.
        found: String,
        /// The token that was expected.
        expected: &'static str,
    },
    /// A function that only the kernel has.
    #[error("the function {name} is the kernel's own")]
    Function {
        /// As the format spells it.
        name: String,
    },
    /// No such field.
    #[error("the event has no field {name}")]
    Field {
        /// The field that the record lacks.
        name: String,
    },
    /// More parts inside one another than are followed.
    #[error("its expressions are nested too deeply")]
    TooDeep,
    /// The format asks for more arguments than there are.
    #[error("its format string asks for more arguments than there are")]
    MissingArgument,
    /// Something other than a number stands where a number is needed.
    #[error("a number is needed where there is none")]
    NotANumber,
    /// Something other than bytes stands where an address is printed.
    #[error("bytes of the event are needed where there are none")]
    NoBytes,
}
