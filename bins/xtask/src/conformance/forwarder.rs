//! A forwarder that shows the server's key for a client that cannot: the product has no mode without one.
//!
//! Everything else passes as it came, `Host` and `Origin` above all, for these are under test. One request a
//! connection: the header `Connection: close` keeps the forwarder from having to know where a request ends.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::thread;

use anyhow::{Context as _, Result, ensure};

/// A request whose headers are longer is refused.
const HEAD: usize = 64 * 1024;

/// Listens on a free port for as long as the process lives; its address.
pub(crate) fn start(server: SocketAddr, key: &str) -> Result<SocketAddr> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("no port")?;
    let address = listener.local_addr()?;
    let key = key.to_owned();
    thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let key = key.clone();
            // A connection that breaks off is its client's to report.
            thread::spawn(move || forward(client, server, &key));
        }
    });
    Ok(address)
}

fn forward(mut client: TcpStream, server: SocketAddr, key: &str) -> Result<()> {
    let (head, rest) = read_head(&mut client)?;
    let mut server = TcpStream::connect(server)?;
    server.write_all(&with_key(&head, key))?;
    server.write_all(&rest)?;
    let (mut from, mut to) = (client.try_clone()?, server.try_clone()?);
    let upward = thread::spawn(move || {
        let copied = std::io::copy(&mut from, &mut to);
        // The client has gone: whatever the server still streams is for nobody.
        let closed = to.shutdown(Shutdown::Both);
        copied.and(closed)
    });
    std::io::copy(&mut server, &mut client)?;
    client.shutdown(Shutdown::Both)?;
    // Both of its ends are closed; how it ended no longer matters to anybody.
    drop(upward.join());
    Ok(())
}

/// The bytes up to the empty line, and what was read beyond it.
fn read_head(client: &mut TcpStream) -> Result<(Vec<u8>, Vec<u8>)> {
    let mut read = Vec::new();
    let mut piece = [0; 4096];
    loop {
        if let Some(end) = read.windows(4).position(|four| four == b"\r\n\r\n") {
            let rest = read.split_off(end + 2);
            return Ok((read, rest));
        }
        ensure!(read.len() < HEAD, "the headers are too long");
        let count = client.read(&mut piece)?;
        ensure!(count > 0, "closed within the headers");
        read.extend_from_slice(piece.get(..count).unwrap_or_default());
    }
}

/// The request line and headers with ours added; `Connection` is between neighbours and gives way.
fn with_key(head: &[u8], key: &str) -> Vec<u8> {
    let mut sent = Vec::with_capacity(head.len() + 128);
    for line in head.split_inclusive(|&byte| byte == b'\n') {
        let is_connection = line.len() > 11
            && line.get(..11).is_some_and(|name| name.eq_ignore_ascii_case(b"connection:"));
        if !is_connection {
            sent.extend_from_slice(line);
        }
    }
    sent.extend_from_slice(
        format!("Authorization: Bearer {key}\r\nConnection: close\r\n").as_bytes(),
    );
    sent
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_added_and_host_and_origin_pass() {
        let head = b"POST /mcp HTTP/1.1\r\nHost: evil.example\r\nConnection: keep-alive\r\nOrigin: http://x\r\n";
        let sent = String::from_utf8(with_key(head, "k")).unwrap();
        assert_eq!(
            sent,
            "POST /mcp HTTP/1.1\r\nHost: evil.example\r\nOrigin: http://x\r\nAuthorization: Bearer k\r\nConnection: close\r\n"
        );
    }
}
