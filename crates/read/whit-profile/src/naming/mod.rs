//! Names of places, and the code behind them.

pub(crate) mod code;
pub(crate) mod lookup;
pub(crate) mod place_names;
pub(crate) mod place_symbols;
pub(crate) mod scripted_frame;
