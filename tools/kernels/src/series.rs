//! Kernel series, and which package is the newest of one.

use std::{cmp::Ordering, fmt, str::FromStr};

use serde::{Deserialize, Serialize};

/// A series of kernels: the first two numbers of a release.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Series {
    major: u32,
    minor: u32,
}

impl Series {
    /// The series of these numbers.
    pub const fn new(major: u32, minor: u32) -> Self {
        Self { major, minor }
    }

    /// The series of a release such as `6.1.0-56-cloud-amd64`.
    pub fn of_release(release: &str) -> Option<Self> {
        let mut numbers = release.splitn(3, ['.', '-', '+']).map(str::parse);
        match (numbers.next(), numbers.next()) {
            (Some(Ok(major)), Some(Ok(minor))) => Some(Self { major, minor }),
            _ => None,
        }
    }
}

impl fmt::Display for Series {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{}.{}", self.major, self.minor))
    }
}

impl From<Series> for String {
    fn from(series: Series) -> Self {
        series.to_string()
    }
}

impl TryFrom<String> for Series {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let series = Self::of_release(&text).filter(|series| series.to_string() == text);
        series.ok_or_else(|| format!("expected a kernel series such as 6.1, not {text:?}"))
    }
}

/// What a person asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// This series.
    Series(Series),
    /// The newest that the archive offers.
    Newest,
}

impl fmt::Display for Wanted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Series(series) => series.fmt(f),
            Self::Newest => f.pad("newest"),
        }
    }
}

impl FromStr for Wanted {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "newest" {
            return Ok(Self::Newest);
        }
        let series = Series::try_from(text.to_owned()).map(Self::Series);
        series.map_err(|_| "expected a kernel series such as 6.1, or “newest”".into())
    }
}

/// A kernel that the archive offers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offer {
    /// The series.
    pub series: Series,
    /// The release, as in `uname -r`.
    pub release: String,
    /// The package that holds the kernel itself.
    pub package: String,
}

/// Finds the newest offer of a series, or of all, among the names of packages.
pub fn choose(wanted: Wanted, packages: &[String]) -> Option<Offer> {
    let offers = packages.iter().filter_map(|package| {
        // Others of this prefix are debugging symbols, unsigned images, and names that only point to a version.
        let version = package
            .strip_prefix("linux-image-")?
            .strip_suffix("-cloud-amd64")?;
        let series = Series::of_release(version).filter(|series| series.to_string() != version)?;
        Some((series, version))
    });
    let (series, version) = offers
        .filter(|(series, _)| wanted == Wanted::Newest || wanted == Wanted::Series(*series))
        .max_by(|(_, a), (_, b)| by_version(a, b))?;
    let release = format!("{version}-cloud-amd64");
    // From 6.19 on the image's package is empty and the kernel is in another.
    let split = format!("linux-binary-{release}");
    let package = if packages.contains(&split) {
        split
    } else {
        format!("linux-image-{release}")
    };
    Some(Offer {
        series,
        release,
        package,
    })
}

/// Compares releases number by number, and what stands between the numbers as text.
fn by_version(a: &str, b: &str) -> Ordering {
    parts(a).cmp(parts(b))
}

/// A release as a row of texts and the numbers after them.
fn parts(release: &str) -> impl Iterator<Item = (&str, u64)> {
    let mut rest = release;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let digits = rest
            .find(|c: char| c.is_ascii_digit())
            .unwrap_or(rest.len());
        let (text, after) = rest.split_at(digits);
        let end = after
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(after.len());
        let (number, after) = after.split_at(end);
        rest = after;
        Some((text, number.parse().unwrap_or(0)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The release and the package that are chosen; two dashes where there is none.
    fn offer(wanted: &str, packages: &[&str]) -> String {
        let packages: Vec<_> = packages.iter().map(|name| (*name).to_owned()).collect();
        let offer = choose(wanted.parse().unwrap(), &packages);
        offer.map_or("--".into(), |offer| {
            format!("{} in {}", offer.release, offer.package)
        })
    }

    #[test]
    fn the_newest_of_a_series_is_found() {
        let packages = [
            "linux-image-cloud-amd64",
            "linux-image-6.1.0-9-cloud-amd64",
            "linux-image-6.1.0-56-cloud-amd64",
            "linux-image-6.1.0-57-cloud-amd64-unsigned",
            "linux-image-6.1.0-58-cloud-amd64-dbg",
            "linux-image-6.1.0-0.deb11.60-cloud-amd64",
            "linux-image-6.1.0-59-amd64",
            "linux-image-6.12-cloud-amd64",
            "linux-image-6.12.9+deb13-cloud-amd64",
            "linux-image-6.12.117+deb12-cloud-amd64",
            "linux-image-6.12.117+deb13-cloud-amd64",
        ];
        assert_eq!(
            offer("6.1", &packages),
            "6.1.0-56-cloud-amd64 in linux-image-6.1.0-56-cloud-amd64"
        );
        let newest = "6.12.117+deb13-cloud-amd64 in linux-image-6.12.117+deb13-cloud-amd64";
        assert_eq!(offer("6.12", &packages), newest);
        assert_eq!(offer("newest", &packages), newest);
        assert_eq!(offer("6.2", &packages), "--");
        assert_eq!(offer("newest", &[]), "--");
    }

    #[test]
    fn the_kernel_is_found_where_the_image_was_split() {
        let packages = [
            "linux-image-7.3.4+deb13-cloud-amd64",
            "linux-binary-7.3.4+deb13-cloud-amd64",
        ];
        let found = "7.3.4+deb13-cloud-amd64 in linux-binary-7.3.4+deb13-cloud-amd64";
        assert_eq!(offer("7.3", &packages), found);
    }

    #[test]
    fn only_a_series_is_a_series() {
        assert_eq!("newest".parse(), Ok(Wanted::Newest));
        assert_eq!(
            "6.12".parse(),
            Ok(Wanted::Series(Series {
                major: 6,
                minor: 12
            }))
        );
        for text in [
            "", "6", "6.", "6.x", "6.1.2", "06.1", "Newest", "6.1 ", "-6.1",
        ] {
            assert!(text.parse::<Wanted>().is_err(), "{text:?}");
        }
    }
}
