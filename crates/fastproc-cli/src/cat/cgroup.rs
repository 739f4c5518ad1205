//! Files of cgroups.

use std::{
    io::{self, Write},
    os::unix::ffi::OsStrExt,
    path::Path,
};

use fastproc::{
    SourceKind,
    cgroups::{Cgroups, Fields, Source, TextFile},
};

use crate::{Failure, privileges};

/// The file of a cgroup that a path names, if fastproc renders it.
pub fn file(path: &Path) -> Option<TextFile> {
    TextFile::from_name(path.file_name()?.to_str()?).filter(|_| path.is_absolute())
}

/// The reader of cgroups. `None`: their files are printed as they are.
pub struct Reader(Option<Cgroups>);

impl Reader {
    pub fn open(source: Option<SourceKind>) -> Result<Self, Failure> {
        let open = || {
            let fields = Fields::all() - Fields::PRESSURE - Fields::RARE;
            let builder = Cgroups::builder().fields(fields);
            builder.source(Some(Source::Bpf)).open()
        };
        let cgroups = match source {
            None => open().ok(),
            Some(SourceKind::Bpf) => Some(open()?),
            Some(_) => None,
        };
        privileges::drop()?;
        Ok(Self(cgroups))
    }

    /// Prints a file: the kernel's own if no record has it, or if it is outside the hierarchy.
    pub fn print(
        &mut self,
        path: &Path,
        file: TextFile,
        out: &mut impl Write,
    ) -> Result<io::Result<()>, Failure> {
        let mut text = Vec::new();
        if let Some(cgroups) = &mut self.0
            && let Some(inside) = path
                .parent()
                .and_then(|of| of.strip_prefix(cgroups.mount()).ok())
        {
            let cgroup = [b"/", inside.as_os_str().as_bytes()].concat();
            let snapshot = cgroups.snapshot()?;
            if let Some(found) = snapshot.find(&cgroup)
                // The root's values are from its files.
                && found.depth() > 0
                && snapshot.render(found, file, &mut text)
            {
                return Ok(out.write_all(&text));
            }
        }
        // If the file does not exist, the kernel's error is the reason.
        Ok(std::fs::read(path).and_then(|text| out.write_all(&text)))
    }
}
