use camino::{Utf8Component, Utf8Path, Utf8PathBuf};

/// The folder, in that in which a program runs, that holds its inputs.
pub const INPUTS: &str = "inputs";

/// A path in the folder that a program runs in, without `.`; `Err` says what is wrong with it.
pub(super) fn below(text: &str) -> Result<Utf8PathBuf, String> {
    const LENGTH: usize = 500;
    const DEPTH: usize = 32;
    if text.is_empty() || text.ends_with('/') {
        return Err(format!("`{text}` names no file"));
    }
    if text.len() > LENGTH {
        return Err(format!("the path is longer than {LENGTH} bytes"));
    }
    if text.chars().any(char::is_control) {
        return Err("the path holds control characters".to_owned());
    }
    let mut path = Utf8PathBuf::new();
    for component in Utf8Path::new(text).components() {
        match component {
            Utf8Component::Normal(name) => path.push(name),
            Utf8Component::CurDir => {}
            Utf8Component::ParentDir => {
                return Err(format!(
                    "`{text}` leaves the folder that the program runs in: it holds `..`"
                ));
            }
            Utf8Component::RootDir | Utf8Component::Prefix(_) => {
                return Err(format!(
                    "`{text}` is absolute: paths are those in the folder that the program runs in"
                ));
            }
        }
    }
    if path.as_str().is_empty() {
        return Err(format!("`{text}` names no file"));
    }
    if path.components().count() > DEPTH {
        return Err(format!("the path has more than {DEPTH} parts"));
    }
    Ok(path)
}

/// The extension of an output's file, where it has one that can be kept: letters and digits.
pub(super) fn extension(path: &str) -> Option<&str> {
    const LONGEST: usize = 16;
    Utf8Path::new(path).extension().filter(|extension| {
        !extension.is_empty()
            && extension.len() <= LONGEST
            && extension.bytes().all(|byte| byte.is_ascii_alphanumeric())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_stay_in_the_folder() {
        assert_eq!(below("./a//b.py").unwrap(), "a/b.py");
        for bad in ["", ".", "a/", "/a", "../a", "a/../../b", "a/..", "a\0b", "a\nb"] {
            assert!(below(bad).is_err(), "{bad:?}");
        }
        assert!(below(&"a/".repeat(40)).is_err());
        assert!(below(&format!("{}b", "a/".repeat(40))).is_err());
    }

    #[test]
    fn an_extension_is_letters_and_digits() {
        assert_eq!(extension("a/model.pt"), Some("pt"));
        assert_eq!(extension("a.tar.gz"), Some("gz"));
        for none in ["a", "a.", ".hidden", "a.p t", "a.\u{e9}", "a.b/c"] {
            assert_eq!(extension(none), None, "{none}");
        }
    }
}
