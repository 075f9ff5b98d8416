//! Who may do what: the one decision of every request, made before it is admitted and before any cache is asked.
//!
//! Where nothing is configured, everybody may do what the mounts offer. As soon as there is a token, an issuer or a signing
//! key, whoever shows none of them may do what a mount grants to `anonymous`, and that is nothing unless it says so. A mount
//! that says so is held to it in any case.
//!
//! `guard` decides, by what `rules` says that a route needs, what `credential` finds that a request brings, and who that is
//! by `token`, `jwt` and `signed`. All tables are one value, [`Access`], which is exchanged as a whole: what is taken back
//! is refused from the next request on. What time it is, and what is on the web, [`Access`] is told by whoever makes it.

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
mod scope;
mod signed_url;
mod timestamp;
mod token;
mod verified;
mod within_array;

pub use access::{Access, Clock, Environment};
pub use algorithm::Algorithm;
pub use issuer::FetchKeys;
pub use options::{
    AccessError, AccessFault, AccessOptions, GrantOptions, IssuerOptions, SigningKeyOptions, TokenOptions,
};
pub use scope::Scope;
pub use signed_url::sign;
pub use timestamp::Timestamp;
pub use token::new_token;

pub(crate) use authorize::{Authorizer, Refusal, forbidden};
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
