//! TLS: negotiation, clients that must not delay others, and certificates that change while requests are served.

use std::io::BufRead;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use axum::Router;
use axum::routing::get;
use rustix::process::Signal;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::version::{TLS12, TLS13};
use rustls::{ClientConfig, RootCertStore, SupportedProtocolVersion};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use zarrd::app::Tls;
use zarrd::config::ServerOptions;
use zarrd::config::TlsOptions;

use super::descriptors::have_many;
use super::{BOUND, OK, Plain, SHORT, Served, long_timeouts, until, until_closed};
use crate::support::client;
use crate::support::process::{Running, run, text, zarrd};

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/tls").join(name)
}

fn certificate(name: &str) -> CertificateDer<'static> {
    CertificateDer::from_pem_file(data(&format!("{name}.pem"))).unwrap()
}

fn shown(name: &str) -> Arc<rustls::sign::CertifiedKey> {
    let file = |kind| data(&format!("{name}.{kind}"));
    TlsOptions { certificate: file("pem"), key: file("key") }.load().unwrap()
}

/// A server that speaks TLS.
async fn server(limits: ServerOptions) -> (Served, Tls) {
    let tls = Tls::new(shown("one")).unwrap();
    let routes = Router::new().route("/ok", get(|| async { "ok" }));
    (Served::start_with(Plain(routes), limits, Some(tls.clone())).await, tls)
}

fn connector(versions: &[&'static SupportedProtocolVersion], protocols: &[&[u8]]) -> TlsConnector {
    let mut roots = RootCertStore::empty();
    roots.add(certificate("authority")).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_protocol_versions(versions).unwrap();
    let mut config = config.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
    TlsConnector::from(Arc::new(config))
}

async fn handshake(address: std::net::SocketAddr) -> std::io::Result<TlsStream<TcpStream>> {
    let stream = TcpStream::connect(address).await?;
    let name = ServerName::from(address.ip());
    timeout(BOUND, connector(&[&TLS12, &TLS13], &[]).connect(name, stream)).await.expect("an end")
}

/// The certificate that a server shows.
async fn shown_by(address: std::net::SocketAddr) -> CertificateDer<'static> {
    let stream = handshake(address).await.unwrap();
    stream.get_ref().1.peer_certificates().unwrap()[0].clone().into_owned()
}

fn client() -> reqwest::ClientBuilder {
    let authority = std::fs::read(data("authority.pem")).unwrap();
    let authority = reqwest::Certificate::from_pem(&authority).unwrap();
    client::builder().tls_certs_only([authority]).timeout(BOUND)
}

#[tokio::test]
async fn the_versions_of_tls_and_of_http_are_negotiated() {
    let (served, _) = server(long_timeouts()).await;
    let url = format!("https://{}/ok", served.address);
    for (client, version) in [
        (client(), reqwest::Version::HTTP_2),
        (client().http1_only(), reqwest::Version::HTTP_11),
        (client().tls_version_max(reqwest::tls::Version::TLS_1_2), reqwest::Version::HTTP_2),
    ] {
        let answer = client.build().unwrap().get(&url).send().await.unwrap();
        assert_eq!((answer.status().as_u16(), answer.version()), (200, version));
        assert_eq!(answer.text().await.unwrap(), "ok");
    }
    for versions in [&[&TLS12][..], &[&TLS13]] {
        for (offered, agreed) in [
            (&[&b"h2"[..], b"http/1.1"][..], Some(&b"h2"[..])),
            (&[b"http/1.1"], Some(b"http/1.1")),
            (&[], None),
        ] {
            let stream = served.connect().await;
            let connector = connector(versions, offered);
            let stream = connector.connect(ServerName::from(served.address.ip()), stream).await.unwrap();
            assert_eq!(stream.get_ref().1.alpn_protocol(), agreed);
        }
        let stream = served.connect().await;
        let odd = connector(versions, &[b"gopher"]).connect(ServerName::from(served.address.ip()), stream);
        assert!(odd.await.is_err(), "a protocol that is not spoken is not agreed on");
    }
}

#[tokio::test]
async fn a_connection_without_a_handshake_is_closed_without_plaintext() {
    let (served, _) = server(ServerOptions { tls_handshake_timeout: SHORT, ..long_timeouts() }).await;
    for begun in [OK.as_bytes(), b"\x16\x03\x01\xff\xff", &[0xff; 100], super::frames::PREFACE] {
        let answer = served.ask(begun).await;
        assert!(!answer.contains("HTTP"), "{answer:?}");
    }
    handshake(served.address).await.unwrap();
}

#[tokio::test]
async fn a_connection_with_an_unfinished_handshake_is_closed() {
    let (served, _) = server(ServerOptions { tls_handshake_timeout: SHORT, ..long_timeouts() }).await;
    // The beginning of a ClientHello.
    let greeting = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03";
    for length in [0, 1, 5, 6, greeting.len()] {
        until_closed(served.send(&greeting[..length]).await).await;
    }
    let mut stream = served.send(greeting).await;
    let dribble = async {
        while stream.write_all(b"x").await.is_ok() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    timeout(BOUND, dribble).await.expect("the connection is closed");
}

#[tokio::test]
async fn timeouts_apply_within_tls() {
    let limits = ServerOptions {
        first_byte_timeout: SHORT,
        header_timeout: SHORT,
        idle_timeout: SHORT,
        ..long_timeouts()
    };
    let (served, _) = server(limits).await;
    for (sent, end) in [("", ""), ("G", ""), ("GET /ok HTTP/1.1\r\nHo", ""), (OK, "\r\n\r\nok")] {
        let mut stream = handshake(served.address).await.unwrap();
        stream.write_all(sent.as_bytes()).await.unwrap();
        let answer = until_closed(stream).await;
        assert!(answer.ends_with(end) && (answer.is_empty() == end.is_empty()), "{sent:?}: {answer:?}");
    }
}

#[tokio::test]
async fn a_thousand_silent_connections_delay_no_handshake() {
    have_many();
    let (served, _) = server(long_timeouts()).await;
    let mut silent = Vec::new();
    for _ in 0..1000 {
        silent.push(served.connect().await);
    }
    let mut stream = handshake(served.address).await.unwrap();
    stream.write_all(OK.as_bytes()).await.unwrap();
    until(&mut stream, "\r\n\r\nok").await;
}

#[tokio::test]
async fn tls_connections_are_closed_at_shutdown() {
    let (served, _) = server(long_timeouts()).await;
    let silent = served.connect().await;
    let half = served.send(b"\x16\x03\x01").await;
    let mut idle = handshake(served.address).await.unwrap();
    idle.write_all(OK.as_bytes()).await.unwrap();
    until(&mut idle, "\r\n\r\nok").await;
    served.shutdown.advance();
    until_closed(silent).await;
    until_closed(half).await;
    until_closed(idle).await;
    served.ended().await;
}

#[tokio::test]
async fn a_replaced_certificate_is_presented_without_failed_requests() {
    let (served, tls) = server(long_timeouts()).await;
    let (stop, answered) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let asking: Vec<_> = (0..4)
        .map(|number| {
            let (stop, answered) = (Arc::clone(&stop), Arc::clone(&answered));
            let url = format!("https://{}/ok", served.address);
            tokio::spawn(async move {
                // Half of them with a connection for each request.
                let idle = if number % 2 == 0 { 0 } else { 10 };
                let client = client().pool_max_idle_per_host(idle).build().unwrap();
                while !stop.load(Ordering::SeqCst) {
                    assert_eq!(client.get(&url).send().await.unwrap().text().await.unwrap(), "ok");
                    answered.fetch_add(1, Ordering::SeqCst);
                }
            })
        })
        .collect();
    for (turn, name) in ["two", "one", "two"].into_iter().enumerate() {
        while answered.load(Ordering::SeqCst) < 20 * (turn + 1) {
            tokio::task::yield_now().await;
        }
        tls.show(shown(name));
        assert_eq!(shown_by(served.address).await, certificate(name));
    }
    stop.store(true, Ordering::SeqCst);
    for asking in asking {
        asking.await.unwrap();
    }
}

/// A server of its own process that speaks TLS, with its files in a folder, and what it logs.
struct Process {
    running: Running,
    folder: tempfile::TempDir,
    log: Receiver<String>,
}

impl Process {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let it = |name: &str| folder.path().join(name);
        install(folder.path(), "one");
        std::fs::write(it("zarrd.toml"), config(folder.path(), "")).unwrap();
        let mut running = Running::of(zarrd(&["serve", "--config", it("zarrd.toml").to_str().unwrap()]));
        let (sender, log) = channel();
        let errors = std::io::BufReader::new(running.child.stderr.take().unwrap());
        std::thread::spawn(move || {
            for line in errors.lines().map_while(Result::ok) {
                let _ = sender.send(line);
            }
        });
        Self { running, folder, log }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Makes the server read its configuration again, and gives what it says about it.
    fn reload(&self) -> Vec<String> {
        self.running.signal(Signal::HUP);
        let mut said = vec![self.logged("configuration")];
        while let Ok(line) = self.log.recv_timeout(SHORT) {
            said.push(line);
        }
        said
    }

    fn logged(&self, what: &str) -> String {
        loop {
            let line = self.log.recv_timeout(BOUND).expect("a line of the log");
            if line.contains(what) {
                return line;
            }
        }
    }
}

fn install(folder: &Path, name: &str) {
    for kind in ["pem", "key"] {
        std::fs::copy(data(&format!("{name}.{kind}")), folder.join(format!("server.{kind}"))).unwrap();
    }
}

fn config(folder: &Path, more: &str) -> String {
    let at = folder.display();
    format!("{more}\n[server.tls]\ncertificate = '{at}/server.pem'\nkey = '{at}/server.key'\n")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_serves_tls_is_healthy_and_reloads_certificate_files() {
    let server = Process::start();
    let address = server.running.address;
    let file = server.path().join("zarrd.toml");
    let health = || {
        run(&["health", "--config", file.to_str().unwrap(), "--listen", &address.to_string()]).status.code()
    };
    assert_eq!(health(), Some(0));
    let client = client().build().unwrap();
    let demo = client.get(format!("https://{address}/v1/data/demo/field?slice=0,0,0")).send().await.unwrap();
    assert_eq!(demo.status(), 200);
    assert_eq!(shown_by(address).await, certificate("one"));

    install(server.path(), "two");
    let said = server.reload();
    assert!(said[0].contains("was read again") && said.len() == 1, "{said:?}");
    assert_eq!(shown_by(address).await, certificate("two"));
    assert_eq!(health(), Some(0));

    // An invalid file changes nothing.
    let one_key = std::fs::read(data("one.key")).unwrap();
    let key = server.path().join("server.key");
    for bad in
        [&one_key[..], b"", b"nonsense", b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"]
    {
        std::fs::write(&key, bad).unwrap();
        let said = server.reload().concat();
        assert!(said.contains("what was in effect stays") && said.contains("server.tls.key"), "{said}");
        assert!(said.contains("zarrd.toml:4"), "it says where: {said}");
        assert_eq!(shown_by(address).await, certificate("two"));
    }
    std::fs::remove_file(&key).unwrap();
    assert!(server.reload().concat().contains("what was in effect stays"));

    // All or nothing: good files beside a setting that is not.
    install(server.path(), "one");
    std::fs::write(&file, config(server.path(), "[http]\nmax_url_siz = 1\n")).unwrap();
    let said = server.reload().concat();
    assert!(said.contains("zarrd.toml:2: unknown key `http.max_url_siz`"), "{said}");
    assert_eq!(shown_by(address).await, certificate("two"));

    // What cannot change at run time is named, and the rest changes.
    std::fs::write(
        &file,
        config(server.path(), "[http]\nmax_url_size = 100\n[server]\nidle_timeout = '31s'\n"),
    )
    .unwrap();
    let said = server.reload().concat();
    assert!(
        said.contains("need a restart") && said.contains("http.max_url_size, server.idle_timeout"),
        "{said}"
    );
    assert_eq!(shown_by(address).await, certificate("one"));
    let kept = client.get(format!("https://{address}/healthz")).send().await.unwrap();
    assert_eq!(kept.status(), 200, "a connection goes on with the certificate that it began with");
}

#[test]
fn an_unusable_certificate_is_refused_at_its_configuration_key() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().display().to_string();
    install(folder.path(), "one");
    std::fs::copy(data("two.key"), folder.path().join("other.key")).unwrap();
    std::fs::write(folder.path().join("empty"), "").unwrap();
    std::fs::write(folder.path().join("secret"), "canary").unwrap();
    let file = folder.path().join("zarrd.toml");
    for (certificate, key, line, says) in [
        ("server.pem", "other.key", 3, "server.tls.key"),
        ("none.pem", "server.key", 2, "server.tls.certificate"),
        ("server.pem", "none.key", 3, "server.tls.key"),
        ("empty", "server.key", 2, "server.tls.certificate"),
        ("server.pem", "secret", 3, "server.tls.key"),
        ("secret", "server.key", 2, "server.tls.certificate"),
        ("server.key", "server.pem", 2, "server.tls.certificate"),
        ("", "server.key", 2, "server.tls.certificate"),
    ] {
        let settings = format!("[server.tls]\ncertificate = '{at}/{certificate}'\nkey = '{at}/{key}'\n");
        std::fs::write(&file, settings).unwrap();
        for command in ["check", "serve"] {
            let output = run(&[command, "--config", file.to_str().unwrap(), "--listen", "127.0.0.1:0"]);
            let message = text(&output.stderr);
            assert_eq!(output.status.code(), Some(78), "{certificate} {key}: {message}");
            assert!(message.contains(&format!("zarrd.toml:{line}: `{says}`: ")), "{message}");
            assert!(message.lines().count() == 1 && !message.contains("canary"), "{message}");
        }
    }
    std::fs::write(&file, "[server.tls]\ncertificate = 'a'\n").unwrap();
    let message = text(&run(&["check", "--config", file.to_str().unwrap()]).stderr);
    assert!(message.contains("zarrd.toml:1: ") && message.contains("the key `key` is missing"), "{message}");
}
