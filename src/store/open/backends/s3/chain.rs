//! [`Chain`]: the credentials, region and endpoint that the tools of AWS would use, where nothing is configured.
//!
//! The first of these that there is: keys in the environment, a role or keys of the profile, a web identity in the environment
//! (as in EKS), the credentials of the container, those of the machine. What takes another program to run or a browser (single
//! sign-on, `credential_process`) is refused by name: `aws configure export-credentials --format env` gives keys for the
//! environment.

use super::container::ContainerKeys;
use super::profiles::{AwsProfile, Profiles};
use super::variables::AwsVariables;
use crate::store::open::endpoint::endpoint_error;
use crate::store::open::error::OpenError;

/// The most roles that are assumed one after the other.
const MAX_ROLES: usize = 4;

/// What the environment and the profile say.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Chain {
    /// Where requests are signed for.
    pub(super) region: Option<String>,
    /// The URL of a server other than Amazon's.
    pub(super) endpoint: Option<String>,
    /// The same for the service that roles are assumed by.
    pub(super) sts_endpoint: Option<String>,
    /// What requests are signed with; `None` if there is nothing.
    pub(super) credentials: Option<ChainCredentials>,
}

const KEYS_OF_ENVIRONMENT: &str = "with the keys of the environment";
const KEYS_OF_PROFILE: &str = "with the keys of a profile";

/// Why a key of the environment is refused.
const HALF_A_KEY: &str =
    "the environment has `AWS_ACCESS_KEY_ID` without `AWS_SECRET_ACCESS_KEY`: set both or none";

/// What requests are signed with.
#[derive(PartialEq, Eq)]
pub(super) enum ChainCredentials {
    /// These keys.
    Keys {
        /// The identifier of the key.
        id: String,
        /// The secret key.
        secret: String,
        /// The token of temporary keys.
        token: Option<String>,
        /// Where they come from, in words.
        origin: &'static str,
    },
    /// Keys that a token in a file is exchanged for.
    WebIdentity {
        /// The role.
        role: String,
        /// The path of the file.
        token_file: String,
        /// The name of the session, as logs of AWS show it.
        session: Option<String>,
    },
    /// Keys of a role, for which other keys sign.
    Role {
        /// The role.
        role: String,
        /// The name of the session.
        session: Option<String>,
        /// What the owner of the role asks for.
        external_id: Option<String>,
        /// What signs for it.
        source: Box<ChainCredentials>,
    },
    /// The keys of the container.
    Container(ContainerKeys),
    /// The keys of the machine.
    Machine {
        /// The address of its metadata service, if not the usual one.
        endpoint: Option<String>,
    },
}

impl ChainCredentials {
    /// Where they come from, in words.
    pub(super) fn origin(&self) -> &'static str {
        match self {
            Self::Keys { origin, .. } => origin,
            Self::WebIdentity { .. } => "with a web identity",
            Self::Role { .. } => "with an assumed role",
            Self::Container(_) => "with the keys of the container",
            Self::Machine { .. } => "with the role of the machine",
        }
    }
}

impl std::fmt::Debug for ChainCredentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.origin())
    }
}

impl Chain {
    /// Follows the chain. `has_metadata` finds out whether the metadata service at an address has a role for the machine.
    ///
    /// # Errors
    /// [`OpenError::Credentials`] if the profile that the environment names is missing, incomplete, or needs what is not supported,
    /// or if the variables of a container cannot be used.
    pub(super) fn find(
        environment: &AwsVariables,
        has_metadata: impl Fn(Option<&str>) -> bool,
    ) -> Result<Self, OpenError> {
        let named = environment.get("AWS_PROFILE").or_else(|| environment.get("AWS_DEFAULT_PROFILE"));
        let profiles = Profiles::read(environment)?;
        let name = named.as_deref().unwrap_or("default");
        let profile = profiles.get(name);
        if named.is_some() && profile.is_none() {
            return Err(OpenError::Credentials(format!("there is no profile `{name}` in the files of AWS")));
        }
        let of_profile = |key: &str| profile.and_then(|profile| profile.get(key)).map(str::to_owned);
        let ignores_endpoints = environment.is_set("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS");
        let endpoint = |service: &str| {
            let variable = format!("AWS_ENDPOINT_URL_{}", service.to_ascii_uppercase());
            let found =
                environment.get(&variable).or_else(|| environment.get("AWS_ENDPOINT_URL")).or_else(|| {
                    profile.and_then(|profile| profiles.endpoint(profile, service)).map(str::to_owned)
                });
            found.filter(|_| !ignores_endpoints)
        };
        let search = Search { environment, profiles: &profiles, has_metadata: &has_metadata };
        Ok(Self {
            region: environment
                .get("AWS_REGION")
                .or_else(|| environment.get("AWS_DEFAULT_REGION"))
                .or_else(|| of_profile("region")),
            endpoint: endpoint("s3"),
            sts_endpoint: endpoint("sts"),
            credentials: search.first(profile.map(|profile| (name, profile)))?,
        })
    }
}

/// Where credentials are searched.
struct Search<'a> {
    environment: &'a AwsVariables,
    profiles: &'a Profiles,
    has_metadata: &'a dyn Fn(Option<&str>) -> bool,
}

impl Search<'_> {
    fn first(&self, profile: Option<(&str, AwsProfile<'_>)>) -> Result<Option<ChainCredentials>, OpenError> {
        if let Some(keys) = self.of_environment()? {
            return Ok(Some(keys));
        }
        if let Some((name, profile)) = profile
            && let Some(found) = self.of_profile(name, profile, MAX_ROLES)?
        {
            return Ok(Some(found));
        }
        let web_identity = || {
            Some(ChainCredentials::WebIdentity {
                role: self.environment.get("AWS_ROLE_ARN")?,
                token_file: self.environment.get("AWS_WEB_IDENTITY_TOKEN_FILE")?,
                session: self.environment.get("AWS_ROLE_SESSION_NAME"),
            })
        };
        if let Some(found) = web_identity() {
            return Ok(Some(found));
        }
        match self.of_container()? {
            Some(found) => Ok(Some(found)),
            None => self.of_machine(),
        }
    }

    /// The keys of the environment. The tools of AWS refuse a key without its secret too.
    fn of_environment(&self) -> Result<Option<ChainCredentials>, OpenError> {
        let Some(id) = self.environment.get("AWS_ACCESS_KEY_ID") else { return Ok(None) };
        let Some(secret) = self.environment.get("AWS_SECRET_ACCESS_KEY") else {
            return Err(OpenError::Credentials(HALF_A_KEY.to_owned()));
        };
        let (token, origin) = (self.environment.get("AWS_SESSION_TOKEN"), KEYS_OF_ENVIRONMENT);
        Ok(Some(ChainCredentials::Keys { id, secret, token, origin }))
    }

    fn of_container(&self) -> Result<Option<ChainCredentials>, OpenError> {
        Ok(ContainerKeys::find(self.environment)?.map(ChainCredentials::Container))
    }

    fn of_machine(&self) -> Result<Option<ChainCredentials>, OpenError> {
        if self.environment.is_set("AWS_EC2_METADATA_DISABLED") {
            return Ok(None);
        }
        let endpoint = self.environment.get("AWS_EC2_METADATA_SERVICE_ENDPOINT");
        if let Some(reason) = endpoint.as_deref().and_then(endpoint_error) {
            let origin = "the environment (`AWS_EC2_METADATA_SERVICE_ENDPOINT`)";
            return Err(OpenError::Endpoint { origin, reason });
        }
        Ok((self.has_metadata)(endpoint.as_deref()).then_some(ChainCredentials::Machine { endpoint }))
    }

    /// The credentials of a profile; `None` if it has none. At most `roles` are assumed.
    fn of_profile(
        &self,
        name: &str,
        profile: AwsProfile<'_>,
        roles: usize,
    ) -> Result<Option<ChainCredentials>, OpenError> {
        let failed = |reason: &str| Err(OpenError::Credentials(format!("the profile `{name}` {reason}")));
        if let Some(role) = profile.get("role_arn") {
            let (role, session) = (role.to_owned(), profile.get("role_session_name").map(str::to_owned));
            if let Some(token_file) = profile.get("web_identity_token_file") {
                let token_file = token_file.to_owned();
                return Ok(Some(ChainCredentials::WebIdentity { role, token_file, session }));
            }
            if roles == 0 {
                return failed("assumes too many roles one after the other");
            }
            let source = match (profile.get("source_profile"), profile.get("credential_source")) {
                // A profile may have keys of its own for its role.
                (Some(source), _) if source == name => keys(name, profile)?,
                (Some(source), _) => {
                    let Some(profile) = self.profiles.get(source) else {
                        return failed(&format!("names `{source}` as its source, which does not exist"));
                    };
                    self.of_profile(source, profile, roles - 1)?
                }
                (None, Some("Environment")) => self.of_environment()?,
                (None, Some("Ec2InstanceMetadata")) => self.of_machine()?,
                (None, Some("EcsContainer")) => self.of_container()?,
                (None, _) => {
                    return failed("has a role, but neither `source_profile` nor `credential_source`");
                }
            };
            let Some(source) = source else {
                return failed("has a role, but nothing signs for it");
            };
            let external_id = profile.get("external_id").map(str::to_owned);
            return Ok(Some(ChainCredentials::Role { role, session, external_id, source: Box::new(source) }));
        }
        if let Some(keys) = keys(name, profile)? {
            return Ok(Some(keys));
        }
        for key in ["sso_session", "sso_start_url", "credential_process"] {
            if profile.get(key).is_some() {
                return failed(&format!(
                    "has `{key}`, which is not supported: set what `aws configure export-credentials --format env` prints"
                ));
            }
        }
        Ok(None)
    }
}

/// The keys of a profile; `None` if it has none.
fn keys(name: &str, profile: AwsProfile<'_>) -> Result<Option<ChainCredentials>, OpenError> {
    let Some(id) = profile.get("aws_access_key_id") else {
        return Ok(None);
    };
    let Some(secret) = profile.get("aws_secret_access_key") else {
        return Err(OpenError::Credentials(format!(
            "the profile `{name}` has no `aws_secret_access_key` in the file that has its `aws_access_key_id`"
        )));
    };
    let token = profile.get("aws_session_token").map(str::to_owned);
    Ok(Some(ChainCredentials::Keys {
        id: id.to_owned(),
        secret: secret.to_owned(),
        token,
        origin: KEYS_OF_PROFILE,
    }))
}

#[cfg(test)]
mod tests {
    use super::super::container::ContainerToken;
    use super::*;

    const CONFIG: &str = "[default]\nregion = r0\n[profile keys]\nregion = r1\naws_access_key_id = id\n\
        aws_secret_access_key = secret\n[profile role]\nrole_arn = arn:role\nsource_profile = keys\nexternal_id = x\n\
        [profile web]\nrole_arn = arn:web\nweb_identity_token_file = /token\n[profile loop]\nrole_arn = a\n\
        source_profile = pool\n[profile pool]\nrole_arn = b\nsource_profile = loop\n[profile self]\nrole_arn = a\n\
        source_profile = self\naws_access_key_id = id\naws_secret_access_key = secret\n\
        [profile sso]\nsso_session = x\n[profile lost]\nrole_arn = a\nsource_profile = none\n\
        [profile half]\naws_access_key_id = id\n[profile bare]\nrole_arn = a\n\
        [profile machine]\nrole_arn = a\ncredential_source = Ec2InstanceMetadata\n";

    /// Follows the chain with these variables and the file above.
    fn find(variables: &[(&'static str, &str)], has_metadata: bool) -> Result<Chain, String> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), CONFIG).unwrap();
        let mut all: Vec<(&str, &str)> = vec![("AWS_CONFIG_FILE", file.path().to_str().unwrap())];
        all.extend(variables);
        let all: Vec<(String, String)> =
            all.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        let get =
            move |name: &str| all.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone());
        let environment = AwsVariables(Box::new(get));
        Chain::find(&environment, |_| has_metadata).map_err(|error| error.to_string())
    }

    fn credentials(variables: &[(&'static str, &str)], has_metadata: bool) -> Option<ChainCredentials> {
        find(variables, has_metadata).unwrap().credentials
    }

    fn key() -> ChainCredentials {
        let (id, secret) = ("id".to_owned(), "secret".to_owned());
        ChainCredentials::Keys { id, secret, token: None, origin: KEYS_OF_PROFILE }
    }

    #[test]
    fn the_first_source_that_exists_is_used_in_the_order_of_the_tools_of_aws() {
        let own = [("AWS_ACCESS_KEY_ID", "i"), ("AWS_SECRET_ACCESS_KEY", "s"), ("AWS_SESSION_TOKEN", "t")];
        let web = [("AWS_ROLE_ARN", "arn"), ("AWS_WEB_IDENTITY_TOKEN_FILE", "/t")];
        let container = [("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "/c")];
        let profile = [("AWS_PROFILE", "keys")];
        let all: Vec<_> = [&container[..], &web, &profile, &own].concat();
        let (id, secret, token) = ("i".to_owned(), "s".to_owned(), Some("t".to_owned()));
        assert_eq!(
            credentials(&all, true),
            Some(ChainCredentials::Keys { id, secret, token, origin: KEYS_OF_ENVIRONMENT })
        );
        assert_eq!(credentials(&all[..4], true), Some(key()));
        let found = credentials(&all[..3], true).unwrap();
        assert!(matches!(found, ChainCredentials::WebIdentity { .. }), "{found:?}");
        let (url, token) = ("http://169.254.170.2/c".to_owned(), ContainerToken::None);
        let keys = ContainerKeys { url, token };
        assert_eq!(credentials(&container, true), Some(ChainCredentials::Container(keys)));
        assert_eq!(credentials(&[], true), Some(ChainCredentials::Machine { endpoint: None }));
        assert_eq!(credentials(&[], false), None);
        assert_eq!(credentials(&[("AWS_EC2_METADATA_DISABLED", "true")], true), None);
    }

    #[test]
    fn a_key_without_its_secret_is_refused() {
        let error = find(&[("AWS_ACCESS_KEY_ID", "i")], true).unwrap_err();
        assert!(error.contains("AWS_SECRET_ACCESS_KEY"), "{error}");
        assert_eq!(credentials(&[("AWS_SECRET_ACCESS_KEY", "s")], false), None);
    }

    #[test]
    fn a_role_is_assumed_with_the_keys_of_its_source() {
        let role = |role: &str, external_id: Option<&str>, source| ChainCredentials::Role {
            role: role.to_owned(),
            session: None,
            external_id: external_id.map(str::to_owned),
            source: Box::new(source),
        };
        let of = |name: &'static str| credentials(&[("AWS_PROFILE", name)], true);
        assert_eq!(of("role"), Some(role("arn:role", Some("x"), key())));
        assert_eq!(of("self"), Some(role("a", None, key())));
        assert_eq!(of("machine"), Some(role("a", None, ChainCredentials::Machine { endpoint: None })));
        assert!(matches!(of("web"), Some(ChainCredentials::WebIdentity { .. })));
    }

    #[test]
    fn a_profile_that_cannot_be_used_is_an_error_that_names_it() {
        for (profile, reason) in [
            ("missing", "there is no profile `missing`"),
            ("loop", "too many roles"),
            ("sso", "`sso_session`, which is not supported"),
            ("lost", "names `none` as its source"),
            ("bare", "neither `source_profile` nor"),
        ] {
            let error = find(&[("AWS_PROFILE", profile)], true).unwrap_err();
            assert!(error.contains(reason) && !error.contains("secret"), "{error}");
        }
    }

    #[test]
    fn a_profile_with_half_of_its_keys_is_an_error_and_no_reason_to_search_on() {
        let error = find(&[("AWS_PROFILE", "half")], true).unwrap_err();
        assert!(error.contains("the profile `half` has no `aws_secret_access_key`"), "{error}");
    }

    #[test]
    fn region_and_endpoint_come_from_the_environment_before_the_profile() {
        assert_eq!(find(&[], false).unwrap().region.as_deref(), Some("r0"));
        assert_eq!(find(&[("AWS_PROFILE", "keys")], false).unwrap().region.as_deref(), Some("r1"));
        let variables = [("AWS_PROFILE", "keys"), ("AWS_DEFAULT_REGION", "r2")];
        assert_eq!(find(&variables, false).unwrap().region.as_deref(), Some("r2"));
        let endpoint = [("AWS_ENDPOINT_URL", "http://all"), ("AWS_ENDPOINT_URL_S3", "http://s3")];
        let found = find(&endpoint, false).unwrap();
        assert_eq!(
            (found.endpoint.as_deref(), found.sts_endpoint.as_deref()),
            (Some("http://s3"), Some("http://all"))
        );
        let ignored = [endpoint[0], ("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "true")];
        assert_eq!(find(&ignored, false).unwrap().endpoint, None);
    }

    #[test]
    fn a_password_in_the_address_of_the_metadata_service_is_refused_without_repeating_it() {
        let address = [("AWS_EC2_METADATA_SERVICE_ENDPOINT", "http://u:SECRETX@127.0.0.1:1")];
        let error = find(&address, true).unwrap_err();
        assert!(
            error.contains("`AWS_EC2_METADATA_SERVICE_ENDPOINT`") && !error.contains("SECRETX"),
            "{error}"
        );
    }
}
