//! [`endpoint_error`]: what cannot be an endpoint, whether an option, a variable or a profile names it.

use url::Url;

/// The reason for a URL with a user name or a password.
const USER_INFO: &str = "must not have a user name or password in it";

/// Why a text cannot be an endpoint; `None` if it can. The reason never repeats the text, because it may have a password.
pub(super) fn endpoint_error(text: &str) -> Option<&'static str> {
    let has_more = || text.contains(['?', '#']).then_some("must not have a query or a fragment");
    http_url_error(text).or_else(has_more)
}

/// Why a text cannot be the URL of requests; `None` if it can.
pub(super) fn http_url_error(text: &str) -> Option<&'static str> {
    if let Some(reason) = user_info_error(text) {
        return Some(reason);
    }
    let begins =
        |scheme: &str| text.get(..scheme.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(scheme));
    if !begins("https://") && !begins("http://") {
        return Some("must begin with `https://` or `http://`");
    }
    // The client panics at what is not a URL.
    let is_url = text.bytes().all(|byte| byte.is_ascii_graphic() && !b"\"<>\\^`{|}".contains(&byte));
    (!is_url || Url::parse(text).is_err()).then_some("is not a URL")
}

/// Why a URL may not be used that has a user name or a password: log messages repeat the URLs of requests.
pub(super) fn user_info_error(text: &str) -> Option<&'static str> {
    let has_user_info = match Url::parse(text) {
        Ok(url) => !url.username().is_empty() || url.password().is_some(),
        Err(_) => text.contains('@'),
    };
    has_user_info.then_some(USER_INFO)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_is_a_url_of_http_without_user_info_and_query() {
        for good in
            ["https://objects.example", "http://127.0.0.1:9000/", "HTTPS://[::1]:9000/path", "http://h/a@b"]
        {
            assert_eq!(endpoint_error(good), None, "{good}");
        }
        for (bad, reason) in [
            ("http://u:p@127.0.0.1:1", "user name"),
            ("https://token@host", "user name"),
            ("https:\\\\u:p@host", "user name"),
            ("http://u:p@host:port", "user name"),
            ("u:p@host", "must begin"),
            ("localhost:9000", "must begin"),
            ("", "must begin"),
            ("ftp://host", "must begin"),
            ("https://", "is not a URL"),
            ("https://ho st", "is not a URL"),
            ("https://host\n", "is not a URL"),
            ("https://host/{x}", "is not a URL"),
            ("https://host/?key=p", "query"),
        ] {
            let error = endpoint_error(bad).unwrap();
            assert!(error.contains(reason), "{bad}: {error}");
        }
    }
}
