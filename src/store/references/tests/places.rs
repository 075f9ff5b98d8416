//! Which URLs of references and of prefixes have a normal spelling, and what they are compared as.

use crate::store::{
    AllowedPrefix, HostReach, ReferenceError, ReferencePlace, RefusedReference, StoreOptions,
};

const BASE: &str = "s3://bucket/documents/";

fn reference(url: &str) -> Result<String, RefusedReference> {
    ReferencePlace::of_reference(url, BASE).map(|place| place.as_str().to_owned())
}

#[test]
fn a_reference_has_one_spelling() {
    for (url, place) in [
        ("s3://b/a/x.nc", "s3://b/a/x.nc"),
        ("s3://b/a%20b?c#d", "s3://b/a%20b?c#d"),
        ("https://host/a%20b/%C3%A9.nc", "https://host/a b/é.nc"),
        ("http://host:8080/x", "http://host:8080/x"),
        ("file:///data/x.nc", "file:///data/x.nc"),
        ("/data/x.nc", "file:///data/x.nc"),
        ("x.nc", "s3://bucket/documents/x.nc"),
        ("below/x.nc", "s3://bucket/documents/below/x.nc"),
        ("vcc://name/x", "vcc://name/x"),
    ] {
        assert_eq!(reference(url).as_deref(), Ok(place), "{url}");
    }
}

#[test]
fn other_spellings_are_refused_by_name() {
    use RefusedReference as R;
    for (url, refused) in [
        ("simplecache::s3://b/x", R::Chained),
        ("zip://a::s3://b/x.zip", R::Spelling),
        ("zip::a", R::Chained),
        ("S3://b/x", R::Spelling),
        ("HTTP://host/x", R::Spelling),
        ("file:/etc/passwd", R::Spelling),
        ("FILE:///etc/passwd", R::Spelling),
        ("data:text/plain,x", R::Spelling),
        ("//host/x", R::Spelling),
        ("file://host/etc/passwd", R::FileHost),
        ("file://localhost/etc/passwd", R::FileHost),
        ("s3://user@b/x", R::UserInfo),
        ("http://user:secret@host/x", R::UserInfo),
        ("http://host/x?y", R::Query),
        ("http://host/x#y", R::Query),
        ("http://Host/x", R::Spelling),
        ("http://host:80/x", R::Spelling),
        ("http://2852039166/x", R::Spelling),
        ("http://0xa9.254.169.254/x", R::Spelling),
        ("http://host/a%2Fb", R::Escape),
        ("http://host/a%5cb", R::Escape),
        ("http://host/a%zz", R::Escape),
        ("http://host/a%00", R::Escape),
        ("http://host/%ff", R::Escape),
        ("http://host/..;/x", R::Spelling),
        ("http://host/a/..;jsessionid=1/x", R::Spelling),
        ("http://host/a/%2e%2e;/x", R::Spelling),
        ("http://host/.;/x", R::Spelling),
        ("s3:///x", R::Spelling),
    ] {
        match (reference(url), refused) {
            // The part before `::` is a place of its own, with a path that is no key, or it is not.
            (Err(_), R::Spelling) if url.starts_with("zip://") => {}
            (found, refused) => assert_eq!(found, Err(refused), "{url}"),
        }
    }
    for url in [
        "",
        "s3://b",
        "s3://b/",
        "s3://b/a/../x",
        "../x",
        "/data/../x",
        "./x",
        "s3://b/a//x",
        "http://host/%2e%2e/x",
        "http://host/a/%2E%2E/x",
        "s3://b/a\nx",
    ] {
        assert!(matches!(reference(url), Err(R::Path(_))), "{url}: {:?}", reference(url));
    }
}

#[test]
fn a_prefix_ends_in_a_slash() {
    for url in ["s3://b/", "s3://b/a/", "https://host/", "file:///data/", "vcc://name/", "http://[::1]:80/a/"]
    {
        let place = ReferencePlace::of_prefix(url);
        assert_eq!(place.is_ok(), !url.contains(":80"), "{url}: {place:?}");
    }
    for url in [
        "s3://b/a",
        "s3://b/a//",
        "s3://b/../",
        "/data/",
        "b/",
        "S3://b/",
        "http://u@host/",
        "http://host/?/",
    ] {
        assert!(ReferencePlace::of_prefix(url).is_err(), "{url}");
    }
}

#[test]
fn addresses_of_this_network_are_refused_by_name() {
    use RefusedReference as R;
    for (url, refused) in [
        ("http://169.254.169.254/latest/meta-data", R::LinkLocal),
        ("http://[fe80::1]/x", R::LinkLocal),
        ("http://[fd00:ec2::254]/latest", R::LinkLocal),
        ("http://[::ffff:a9fe:a9fe]/x", R::LinkLocal),
        ("http://127.0.0.1:9000/x", R::Private),
        ("http://localhost/x", R::Private),
        ("https://10.1.2.3/x", R::Private),
        ("http://[::1]/x", R::Private),
        ("http://0.0.0.0/x", R::Private),
        ("file:///etc/passwd", R::File),
        ("/etc/passwd", R::File),
        ("http://example.org/x", R::NotAllowed),
        ("s3://b/x", R::NotAllowed),
    ] {
        let place = ReferencePlace::of_reference(url, BASE).unwrap();
        assert_eq!(place.refusal(), refused, "{url}");
    }
}

#[test]
fn the_name_of_a_host_may_lead_to_this_network_only_where_the_operator_says_so() {
    for (url, at, private_addresses, reach) in [
        ("http://host/d/", None, false, HostReach::Public),
        ("https://host:8443/d/", None, false, HostReach::Public),
        ("http://host/d/", None, true, HostReach::Any),
        // The operator wrote the address.
        ("http://127.0.0.1:8080/d/", None, false, HostReach::Any),
        ("http://[fd12::1]/d/", None, false, HostReach::Any),
        ("http://localhost:8080/d/", None, false, HostReach::Any),
        // Where the files really are counts.
        ("vcc://name/", Some("http://host/d/"), false, HostReach::Public),
        ("http://host/d/", Some("http://10.0.0.1/d/"), false, HostReach::Any),
        ("http://10.0.0.1/d/", Some("http://host/d/"), false, HostReach::Public),
    ] {
        let prefix = AllowedPrefix {
            url: url.to_owned(),
            at: at.map(str::to_owned),
            private_addresses,
            options: StoreOptions::default(),
        };
        assert_eq!(prefix.store_options().reach, reach, "{url} {at:?}");
    }
}

#[test]
fn the_name_and_password_of_a_user_are_not_logged() {
    for (url, shown) in [
        ("https://user:HUNTER2@bucket.example/x", "https://***@bucket.example/x"),
        ("https://user:HUNTER2@a@host:80?q=@", "https://***@host:80?q=@"),
        ("https://HUNTER2@host", "https://***@host"),
        ("user:HUNTER2@host/x", "***@host/x"),
        ("https://host/a@b", "https://host/a@b"),
        ("s3://bucket/a@b", "s3://bucket/a@b"),
    ] {
        let error = RefusedReference::NotAllowed.of(url);
        let ReferenceError::Refused { leads, .. } = &error else { panic!("{error}") };
        assert_eq!(leads.to_string(), format!("it leads to {shown:?}"));
    }
}
