//! Elements as long tables (`coords=1`): a row for each element, a column for each dimension with its labels, one for each variable.
//!
//! The variables are an array, or arrays of a group that have the same dimensions. A dimension has the labels of its coordinate,
//! else its positions. Rows are read, decoded and written a few at a time, so a table is sent in bounded memory, and its length is
//! not known before, unless all of it was written at once.

mod axes;
mod body;
mod columns;
mod respond;
mod sources;

pub(super) use respond::table;
