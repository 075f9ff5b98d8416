//! The binary in a process of its own.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::SocketAddr;
use std::process::{Child, ChildStdout, Command, Output, Stdio};

use rustix::process::{Pid, Signal, kill_process};

pub fn zarrd(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_zarrd"));
    command.args(arguments).env_clear().stdin(Stdio::null());
    command
}

/// A mount of a few small arrays.
pub const SMALL: &str = concat!("m=", env!("CARGO_MANIFEST_DIR"), "/tests/data/v1");

/// A server of a few small arrays: those of the demo take a second to be made.
pub fn serving() -> Command {
    zarrd(&["serve", SMALL])
}

pub fn run(arguments: &[&str]) -> Output {
    zarrd(arguments).output().unwrap()
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// The most memory that the process has had so far, in bytes.
#[cfg(target_os = "linux")]
pub fn peak(server: &Running) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.child.id())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().strip_suffix(" kB").unwrap().parse::<u64>().unwrap() << 10
}

/// A server of its own process; killed if a test fails before it ends.
pub struct Running {
    pub child: Child,
    pub stdout: BufReader<ChildStdout>,
    pub address: SocketAddr,
}

impl Running {
    pub fn start(arguments: &[&str]) -> Self {
        Self::of(zarrd(arguments))
    }

    /// Starts the command on a free port.
    pub fn of(mut command: Command) -> Self {
        let mut child = command
            .args(["--listen", "127.0.0.1:0"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut first = String::new();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        stdout.read_line(&mut first).unwrap();
        let url = first.trim().strip_prefix("zarrd listens on ").unwrap_or_else(|| panic!("{first:?}"));
        let address = url.trim_start_matches("http://").trim_start_matches("https://");
        Self { address: address.parse().unwrap(), child, stdout }
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// The JSON at a path, whatever the status.
    pub fn get(&self, path: &str) -> serde_json::Value {
        let mut stream = std::net::TcpStream::connect(self.address).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap()
    }

    pub fn health(&self) -> Option<i32> {
        run(&["health", "--listen", &self.address.to_string()]).status.code()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
