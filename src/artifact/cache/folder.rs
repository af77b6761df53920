//! The directories of a cache. On Unix their entries are opened, checked and removed relative to the open directory,
//! and links are not followed.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::path::Path;

#[cfg(unix)]
use by_descriptor as system;
#[cfg(not(unix))]
use by_path as system;

/// A directory that other users can't write to.
#[derive(Debug)]
pub(super) struct Folder(system::Folder);

impl Folder {
    /// Creates a directory that only this user can read and write, with any missing parents.
    pub(super) fn make_all(path: &Path) -> io::Result<()> {
        let mut builder = std::fs::DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(path)
    }

    /// Opens a directory; the path may contain links.
    ///
    /// # Errors
    /// The directory doesn't exist, or another user can write to it.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        system::Folder::open(path).map(Folder)
    }

    /// Opens a subdirectory.
    ///
    /// # Errors
    /// The entry is not a directory, or another user can write to it.
    pub(super) fn inside(&self, name: &OsStr) -> io::Result<Self> {
        self.0.inside(name).map(Folder)
    }

    /// Creates a subdirectory unless it exists.
    pub(super) fn make(&self, name: &OsStr) -> io::Result<()> {
        match self.0.make(name) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            made => made,
        }
    }

    /// The names of the entries.
    pub(super) fn names(&self) -> io::Result<Vec<OsString>> {
        self.0.names()
    }

    /// Opens a regular file for reading.
    ///
    /// # Errors
    /// The file doesn't exist, isn't regular, or another user can write to it.
    pub(super) fn file(&self, name: &OsStr) -> io::Result<File> {
        self.0.file(name)
    }

    /// Removes a file, or a link without its target.
    pub(super) fn remove_file(&self, name: &OsStr) -> io::Result<()> {
        self.0.remove_file(name)
    }

    /// Removes an empty directory.
    pub(super) fn remove_folder(&self, name: &OsStr) -> io::Result<()> {
        self.0.remove_folder(name)
    }
}

/// The error for a directory or file that a cache refuses; the system has no error for that.
pub(super) fn refused(problem: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, problem.into())
}

#[cfg(unix)]
mod by_descriptor {
    use std::ffi::{OsStr, OsString};
    use std::fs::{File, Metadata};
    use std::io;
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    use std::path::Path;

    use rustix::fs::{AtFlags, Dir, Mode, OFlags, mkdirat, openat, unlinkat};

    use super::refused;

    #[derive(Debug)]
    pub(super) struct Folder(File);

    impl Folder {
        pub(super) fn open(path: &Path) -> io::Result<Self> {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let folder = Folder(File::from(rustix::fs::open(path, flags, Mode::empty())?));
            // if an empty directory belongs to this user, make it private, as if this process had created it
            let metadata = folder.0.metadata()?;
            if metadata.uid() == user()
                && metadata.mode() & 0o077 != 0
                && folder.names().is_ok_and(|all| all.is_empty())
            {
                // systems without permissions fail here; the check below decides
                let _ = folder.0.set_permissions(PermissionsExt::from_mode(0o700));
            }
            expect_private(&folder.0.metadata()?, "folder")?;
            Ok(folder)
        }

        pub(super) fn inside(&self, name: &OsStr) -> io::Result<Self> {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let folder = File::from(openat(&self.0, name, flags, Mode::empty())?);
            expect_private(&folder.metadata()?, "folder")?;
            Ok(Folder(folder))
        }

        pub(super) fn make(&self, name: &OsStr) -> io::Result<()> {
            Ok(mkdirat(&self.0, name, Mode::RWXU)?)
        }

        pub(super) fn names(&self) -> io::Result<Vec<OsString>> {
            let mut names = Vec::new();
            for entry in Dir::read_from(&self.0)? {
                let entry = entry?;
                let name = OsStr::from_bytes(entry.file_name().to_bytes());
                if name != "." && name != ".." {
                    names.push(name.to_owned());
                }
            }
            Ok(names)
        }

        pub(super) fn file(&self, name: &OsStr) -> io::Result<File> {
            // a FIFO would block until a process writes to it
            let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
            let file = File::from(openat(&self.0, name, flags, Mode::empty())?);
            let metadata = file.metadata()?;
            if !metadata.is_file() {
                return Err(refused("expected a regular file"));
            }
            expect_private(&metadata, "file")?;
            Ok(file)
        }

        pub(super) fn remove_file(&self, name: &OsStr) -> io::Result<()> {
            Ok(unlinkat(&self.0, name, AtFlags::empty())?)
        }

        pub(super) fn remove_folder(&self, name: &OsStr) -> io::Result<()> {
            Ok(unlinkat(&self.0, name, AtFlags::REMOVEDIR)?)
        }
    }

    fn user() -> u32 {
        rustix::process::geteuid().as_raw()
    }

    /// Checks that no other user can write; root always can. Access lists show in the group's bits.
    fn expect_private(metadata: &Metadata, what: &str) -> io::Result<()> {
        let (owner, mode) = (metadata.uid(), metadata.mode() & 0o7777);
        if owner != user() && owner != 0 {
            return Err(refused(format!(
                "other users can write to the {what}: it belongs to user {owner}, and this process runs as user {}",
                user()
            )));
        }
        match mode & 0o022 {
            0 => Ok(()),
            _ => Err(refused(format!(
                "other users can write to the {what}: its mode is {mode:o} (`chmod go-w` mends that)"
            ))),
        }
    }
}

/// For systems without directory descriptors. Write access is left to the system: a directory in a user's profile is
/// private to the user.
#[cfg(not(unix))]
mod by_path {
    use std::ffi::{OsStr, OsString};
    use std::fs::{self, File};
    use std::io;
    use std::path::{Path, PathBuf};

    use super::refused;

    #[derive(Debug)]
    pub(super) struct Folder(PathBuf);

    impl Folder {
        pub(super) fn open(path: &Path) -> io::Result<Self> {
            match fs::metadata(path)?.is_dir() {
                true => Ok(Folder(path.to_owned())),
                false => Err(refused("expected a folder")),
            }
        }

        pub(super) fn inside(&self, name: &OsStr) -> io::Result<Self> {
            let path = self.0.join(name);
            match fs::symlink_metadata(&path)?.is_dir() {
                true => Ok(Folder(path)),
                false => Err(refused("expected a folder")),
            }
        }

        pub(super) fn make(&self, name: &OsStr) -> io::Result<()> {
            fs::create_dir(self.0.join(name))
        }

        pub(super) fn names(&self) -> io::Result<Vec<OsString>> {
            fs::read_dir(&self.0)?.map(|entry| Ok(entry?.file_name())).collect()
        }

        pub(super) fn file(&self, name: &OsStr) -> io::Result<File> {
            let path = self.0.join(name);
            match fs::symlink_metadata(&path)?.is_file() {
                true => File::open(path),
                false => Err(refused("expected a regular file")),
            }
        }

        pub(super) fn remove_file(&self, name: &OsStr) -> io::Result<()> {
            fs::remove_file(self.0.join(name))
        }

        pub(super) fn remove_folder(&self, name: &OsStr) -> io::Result<()> {
            fs::remove_dir(self.0.join(name))
        }
    }
}
