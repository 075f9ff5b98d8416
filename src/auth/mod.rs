//! Access control: one decision per request, before admission and before any cache.
//!
//! Without configuration every caller may do what the mounts offer. Once there is a token, an issuer or a key, a caller without a credential may do what a mount grants to `anonymous`, which is nothing by default. A mount that
//! sets `anonymous` is limited to it in any case.
//!
//! `authorize` decides: `rules` has the permissions that a route needs, `credential` finds the credential of a request,
//! and `token`, `issuer`, `signed_url` and `s3_key` identify its holder. All tables are one value, [`Access`], which is replaced
//! as a whole: a revoked credential is refused from the next request on. The application gives [`Access`] the time and
//! the means to fetch keys.

mod access;
mod algorithm;
mod authorize;
pub(crate) mod caller;
mod credential;
mod failed_auth;
mod grant;
mod issuer;
mod jwt;
mod key_set;
mod lookup;
mod options;
pub(crate) mod origin;
mod principal;
mod rights;
mod rules;
mod s3_key;
mod scope;
mod signed_url;
mod sigv4;
mod timestamp;
mod token;
mod verified;
mod within_array;

pub use access::{Access, Environment};
pub use algorithm::Algorithm;
pub use issuer::FetchKeys;
pub use options::{
    AccessError, AccessFault, AccessOptions, GrantOptions, IssuerOptions, S3KeyOptions, SigningKeyOptions,
    TokenOptions,
};
pub use s3_key::new_s3_key;
pub use scope::Scope;
pub use signed_url::{is_granted, sign};
pub use timestamp::Timestamp;
pub use token::new_token;

pub(crate) use authorize::{Authorizer, Refusal, check_derived, lacks};
pub(crate) use credential::{COOKIE, of_cookies, signature_in, without_credential};
pub(crate) use failed_auth::FailedAuthLimiter;
pub(crate) use grant::{KeyScope, Permission};
pub(crate) use lookup::MountLookup;
#[cfg(test)]
pub(crate) use principal::Principal;
pub(crate) use rights::Rights;
pub(crate) use rules::consolidated_permissions;
#[cfg(test)]
pub(crate) use rules::scopes;
pub(crate) use signed_url::SignedUrl;
pub(crate) use sigv4::ChunkSigner;
