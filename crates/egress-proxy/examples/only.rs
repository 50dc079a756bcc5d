//! A proxy on a free port of the loopback interface for the hosts on a list: `only HOST,HOST`.
//!
//! Prints the variables for programs, works until its standard input ends, then says what was refused. The proxy is
//! no prison by itself: a program is held by a network namespace in which nothing else listens.
//!
//! `cargo run -p egress-proxy --example only -- 'example.com,*.example.org'`

use std::io::{self, Write as _};
use std::net::{Ipv4Addr, TcpListener};
use std::sync::Arc;

use egress_proxy::{Event, HostRules, Proxy};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let list = std::env::args().nth(1).ok_or("only HOST,HOST")?;
    let rules = HostRules::parse(&list)?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let address = listener.local_addr()?;
    let log = Arc::new(|event: &Event<'_>| {
        if let Event::Denied(denied) = event {
            // A stderr that is closed leaves nobody to tell.
            drop(writeln!(io::stderr(), "refused: {denied}"));
        }
    });
    let proxy = Proxy::start(listener.into(), rules, log)?;
    writeln!(io::stdout(), "export HTTP_PROXY=http://{address} HTTPS_PROXY=http://{address}")?;
    io::copy(&mut io::stdin(), &mut io::sink())?;
    writeln!(io::stdout(), "{} requests were refused", proxy.denials().len())?;
    Ok(())
}
