//! Files that a user or another program names. They may be pipes that nobody writes, or devices that never end.

use std::{
    fs::File,
    io::{self, Read},
    path::Path,
};

use rustix::fs::{Mode, OFlags};

/// Why a file is not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refused {
    /// A pipe, a device, a folder or a socket.
    #[error("it is not a regular file")]
    NotRegular,
    /// It is longer than the limit in bytes.
    #[error("it is longer than {}, the limit", size(*.0))]
    TooLong(u64),
}

impl From<Refused> for io::Error {
    fn from(refused: Refused) -> Self {
        Self::other(refused)
    }
}

/// Opens a regular file of at most `most` bytes. Does not wait for the other end of a pipe. The limit is that of
/// [`Refused::TooLong`].
pub fn open(path: &Path, most: u64) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = match rustix::fs::open(path, flags, Mode::empty()) {
        // A socket, or a device without a driver.
        Err(rustix::io::Errno::NXIO) => return Err(Refused::NotRegular.into()),
        opened => File::from(opened?),
    };
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(Refused::NotRegular.into());
    }
    if metadata.len() > most {
        return Err(Refused::TooLong(most).into());
    }
    Ok(file)
}

/// Reads a regular file of at most `most` bytes. A file in `/proc` has no length, and any file may grow meanwhile.
pub fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    let file = open(path, most)?;
    file.take(most.saturating_add(1))
        .read_to_end(&mut content)?;
    if content.len() as u64 > most {
        return Err(Refused::TooLong(most).into());
    }
    Ok(content)
}

fn size(bytes: u64) -> String {
    match bytes >> 20 {
        0 => format!("{bytes} bytes"),
        mebibytes => format!("{mebibytes} MiB"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(path: &str, most: u64) -> Option<Refused> {
        let error = read(Path::new(path), most).expect_err(path);
        error.get_ref()?.downcast_ref().copied()
    }

    #[test]
    fn reads_no_pipe_no_device_and_no_folder() {
        let pipe = std::env::temp_dir().join(format!("fastproc-pipe-{}", std::process::id()));
        let _ = std::fs::remove_file(&pipe);
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, Mode::RUSR).expect("a file of our own");
        let pipe = pipe.to_str().expect("it is UTF-8");
        for path in [pipe, "/dev/zero", "/dev/null", "/"] {
            assert_eq!(refusal(path, 100), Some(Refused::NotRegular), "{path}");
        }
        std::fs::remove_file(pipe).expect("the file is removed");
    }

    #[test]
    fn reads_no_file_beyond_the_limit_even_if_it_states_no_length() {
        let path = "/proc/self/status";
        assert_eq!(refusal(path, 10), Some(Refused::TooLong(10)));
        let own = std::env::current_exe().expect("/proc is there");
        let own = own.to_str().expect("it is UTF-8");
        assert_eq!(refusal(own, 10), Some(Refused::TooLong(10)));
        assert!(
            !read(Path::new(path), 1 << 20)
                .expect("the file is read")
                .is_empty()
        );
    }
}
