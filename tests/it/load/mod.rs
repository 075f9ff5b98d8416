//! More than the server can do: a backend in trouble, memory that is short. What is turned away by class and by caller is
//! tested where it is decided.

mod backends;
mod memory;
mod room;
