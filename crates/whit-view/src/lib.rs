//! View models of a finished profile and their text forms.
//!
//! Everything here draws from a [`Profile`](whit_profile::model::Profile) alone: no view opens a
//! recording, resolves a symbol or reads a clock. [`hists`] turns the profile into rows as perf's
//! `report` does; [`stdio`], [`json`] and [`folded`] print them; [`script`] prints single samples.
//!
//! Invariants: no file is opened here and nothing is lost silently: a result that a loss touches
//! is printed with the loss beside it.
#![forbid(unsafe_code)]

pub mod folded;
pub mod hists;
pub mod json;
pub mod json_strings;
pub mod ledger_json;
pub mod script;
pub mod stdio;
pub mod switches;

mod json_list;
mod units;

#[cfg(test)]
#[path = "../tests/support/builder.rs"]
#[allow(unreachable_pub, reason = "shared with the integration tests by path")]
mod builder;
