//! Messages of published protocols, as far as the writers use them: field numbers and types are those of the published
//! `.proto` files. No protoc is needed to build whit.

pub(crate) mod otlp;
pub(crate) mod perfetto;
pub mod pprof;
