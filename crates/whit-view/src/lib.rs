//! whit-view
