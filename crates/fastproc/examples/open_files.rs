//! Every process with its number of descriptors, and the sockets that listen.

use fastproc::files::{Fields, Files, Socket};

fn main() -> Result<(), fastproc::files::Error> {
    let mut files = Files::builder().fields(Fields::SOCKETS).open()?;
    let snapshot = files.snapshot()?;
    for holder in snapshot.processes() {
        let open = holder.open().map_or("-".into(), |open| open.to_string());
        let (pid, name) = (holder.pid(), holder.comm().escape_ascii());
        println!("{pid:>8} {open:>6} descriptors {name}");
    }
    for (holder, file) in snapshot.files() {
        let listening = file.socket().filter(|socket| socket.listens());
        if let Some(local) = listening.and_then(Socket::local) {
            println!("{:>8} listens at {local}", holder.pid());
        }
    }
    Ok(())
}
