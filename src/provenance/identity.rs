use jiff::Timestamp;

/// Where terms of ours are named. Nothing is fetched from there.
pub(super) const TERMS: &str = concat!(env!("CARGO_PKG_REPOSITORY"), "/ns#");

/// Where the program is at home.
pub(super) const HOME: &str = env!("CARGO_PKG_REPOSITORY");

/// What wrote an export: the program in this version.
pub(super) const PRODUCER: &str = concat!(env!("CARGO_PKG_REPOSITORY"), "/tree/v", env!("CARGO_PKG_VERSION"));

/// A URI of something that is named by words: `ns/artifact/…`.
pub(super) fn uri(class: &str, name: &str) -> String {
    format!("{HOME}/ns/{class}/{name}")
}

/// A UUID that follows from words: version 8 of RFC 9562 (section 5.8), whose bits are ours to choose, here of a BLAKE3.
pub(super) fn uuid(words: &[&str]) -> String {
    let mut hasher = blake3::Hasher::new_derive_key("provenir export v1 uuid");
    for word in words {
        hasher.update(&(word.len() as u64).to_le_bytes());
        hasher.update(word.as_bytes());
    }
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
    bytes[6] = bytes[6] & 0x0f | 0x80;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let hex = hex(&bytes);
    [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-")
}

/// Two lower-case hexadecimal digits for each byte.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes
        .iter()
        .fold(String::new(), |hex, byte| hex + &format!("{byte:02x}"))
}

/// A time as RFC 3339, ISO 8601 and `xsd:dateTime` have it, in UTC, to the microsecond.
pub(super) fn time(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string()
}

/// The same as the profiles of RO-Crate recommend it: to the millisecond, with an offset.
pub(super) fn offset_time(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%S.%3f+00:00").to_string()
}

/// A text as a part of a URI or of a file name: what is not a letter, a digit, `-`, `_` or `.` is percent-encoded, and so is
/// a dot at the beginning.
pub(super) fn encoded(text: &str) -> String {
    let mut encoded = String::new();
    for (position, byte) in text.bytes().enumerate() {
        if byte.is_ascii_alphanumeric() || b"-_".contains(&byte) || byte == b'.' && position > 0 {
            encoded.push(char::from(byte));
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
    }
    encoded
}

/// A file name that every system takes: what [`encoded`] would escape becomes `_`.
pub(super) fn plain(text: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
    let plain: String = text
        .chars()
        .map(|letter| if is_plain(letter) { letter } else { '_' })
        .collect();
    match plain.strip_prefix('.') {
        Some(rest) => format!("_{rest}"),
        None => plain,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uuids_have_their_version_and_tell_words_apart() {
        let id = uuid(&["run", "a"]);
        assert_eq!(id, uuid(&["run", "a"]));
        assert_ne!(id, uuid(&["ru", "na"]));
        let parts: Vec<usize> = id.split('-').map(str::len).collect();
        assert_eq!(parts, [8, 4, 4, 4, 12]);
        assert_eq!(&id[14..15], "8");
        assert!("89ab".contains(&id[19..20]));
    }

    #[test]
    fn times_and_names_are_written_as_others_read_them() {
        let moment: Timestamp = "2025-11-28T01:02:03.0456789Z".parse().unwrap();
        assert_eq!(time(moment), "2025-11-28T01:02:03.045678Z");
        assert_eq!(offset_time(moment), "2025-11-28T01:02:03.045+00:00");
        assert_eq!(encoded(".a[b=0.1]ü/"), "%2Ea%5Bb%3D0.1%5D%C3%BC%2F");
        assert_eq!(plain("../a b"), "_._a_b");
    }
}
