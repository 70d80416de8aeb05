//! whit-symbolize
