//! Hostile files of repositories, and versions that come and go.

mod files;
mod hostile;
mod refused;
mod served;
mod twins;
mod versions;
