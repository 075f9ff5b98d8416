//! One binary for all integration tests: the server from outside, its responses against fixtures and
//! models, and the rules for the sources.

#![expect(
    unreachable_pub,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::string_slice,
    reason = "a test that cannot go on has failed, and clippy's own exception misses the functions tests share"
)]

mod access;
mod admin;
mod appends;
mod arrow_writes;
mod as_written;
mod audit;
mod backend_faults;
mod backend_writes;
mod bad_configurations;
mod batches;
mod binary;
mod cache_policy;
mod compressed;
mod conditional;
mod connections;
mod consolidated;
mod corrupt;
mod creations;
mod credentials;
mod dap;
mod dap4;
mod datasets;
mod declarations;
mod declared;
mod dependents;
mod disconnects;
mod disk_cache;
mod disk_cache_derived;
mod disk_cache_stale;
mod documents;
mod downsample;
mod dtype;
mod edge;
mod element_writes;
mod encoded;
mod families;
mod fixtures;
mod formats;
mod full_disk;
mod geotiff;
mod group_appends;
mod hierarchy;
mod hostile;
mod hostile_memory;
mod icechunk;
mod icechunk_branches;
mod images;
mod index_lists;
mod kerchunk;
mod killed;
mod killed_appends;
mod killed_copies;
mod labels;
mod late_writes;
mod latency;
mod levels;
mod links;
mod listings;
mod load;
mod long_pictures;
mod long_responses;
mod long_values;
mod memory;
mod metadata;
mod metrics;
mod missing_elements;
mod names;
mod nested;
mod netcdf;
mod node_transfers;
mod node_writes;
mod nodes;
mod numcodecs;
mod observability;
mod pages;
mod parallel_reads;
mod partial;
mod partial_many;
mod pitfalls;
mod polls;
mod posted_selections;
mod pyramid;
mod rechunk;
mod rectilinear;
mod reductions;
mod refusals;
mod reload;
mod replaced_arrays;
mod response_cache;
mod rfc9110;
mod rfc9110_wire;
mod root_mounts;
mod round_trips;
mod s3;
mod s3_write;
mod scans;
mod settings;
mod slices;
mod sole_writer;
mod stale;
mod stale_faults;
mod stampede;
mod statistics;
mod summaries;
mod support;
mod supported;
mod tables;
mod tidy;
mod unsettled;
mod unshard;
mod vectors;
mod views;
mod webdav;
mod writers;
mod zarrs;
mod zip;
