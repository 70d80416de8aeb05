//! All functions that stand behind FROM.

use crate::call_tree::SUMMARY_TREE;
use crate::intersect::INTERVAL_INTERSECT;
use crate::table_function::TableFunction;

pub(crate) static TABLE_FUNCTIONS: [TableFunction; 2] = [INTERVAL_INTERSECT, SUMMARY_TREE];
