//! AWS Signature Version 4 of S3 requests: in `Authorization`, and in the query of presigned URLs (Amazon S3 API reference,
//! "Authenticating requests").
//!
//! `signature` finds the signature of a request, `canonical` writes the text that it signs, and `chunks` checks those of
//! the chunks of a body. What is found here proves nothing: `s3_keys` has the secrets. Signature Version 2 and the
//! asymmetric Version 4A are not accepted.

mod canonical;
mod chunks;
mod signature;
#[cfg(test)]
mod tests;

pub(crate) use chunks::ChunkSigner;
pub(super) use signature::{AwsError, AwsSignature};
