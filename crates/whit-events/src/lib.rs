//! whit-events
