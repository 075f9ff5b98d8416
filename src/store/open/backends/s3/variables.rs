//! [`AwsVariables`]: the environment variables that the tools of AWS read.

/// The variables that the chain reads.
pub(super) struct AwsVariables(pub(super) Lookup);

/// Returns the value of a variable.
type Lookup = Box<dyn Fn(&str) -> Option<String>>;

impl AwsVariables {
    /// That of the process.
    pub(super) fn of_process() -> Self {
        #[expect(clippy::disallowed_methods, reason = "the chain is that of the provider's tools")]
        Self(Box::new(|name| std::env::var(name).ok()))
    }

    /// A variable, unless it is empty.
    pub(super) fn get(&self, name: &str) -> Option<String> {
        (self.0)(name).filter(|value| !value.is_empty())
    }

    /// The home directory.
    pub(super) fn home(&self) -> Option<String> {
        self.get("HOME").or_else(|| self.get("USERPROFILE"))
    }

    /// Whether a variable is `true`.
    pub(super) fn is_set(&self, name: &str) -> bool {
        self.get(name).is_some_and(|value| value.eq_ignore_ascii_case("true"))
    }
}
