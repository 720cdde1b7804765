use std::collections::BTreeMap;
use std::ffi::OsString;

use provenir_execution::Context;

use crate::folder::Folder;

/// Where programs are looked for, where the caller has no `PATH`.
const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// What every program is given, whoever calls: nothing of it depends on the machine. The last three are asked by Python, and by
/// tools that write dates into what they make (1980, since archives hold nothing earlier).
const FIXED: [(&str, &str); 5] = [
    ("LANG", "C.UTF-8"),
    ("TZ", "UTC"),
    ("PYTHONHASHSEED", "0"),
    ("PYTHONDONTWRITEBYTECODE", "1"),
    ("SOURCE_DATE_EPOCH", "315532800"),
];

/// The whole environment of a program: what it is always given, what it inherits, and its own, the later over the earlier.
pub(crate) fn variables(
    own: &BTreeMap<&str, String>,
    inherit: &[String],
    folder: &Folder,
    context: &Context<'_>,
) -> BTreeMap<String, OsString> {
    let mut variables: BTreeMap<String, OsString> = FIXED
        .iter()
        .map(|(name, value)| ((*name).to_owned(), OsString::from(value)))
        .collect();
    variables.insert("HOME".to_owned(), folder.home.as_os_str().to_owned());
    variables.insert("TMPDIR".to_owned(), folder.temporary.as_os_str().to_owned());
    variables.insert("OMP_NUM_THREADS".to_owned(), context.cores().to_string().into());
    variables.insert(
        "PATH".to_owned(),
        inherited("PATH").unwrap_or_else(|| PATH.into()),
    );
    for name in inherit {
        if let Some(value) = inherited(name) {
            variables.insert(name.clone(), value);
        }
    }
    for (name, value) in own {
        variables.insert((*name).to_owned(), value.into());
    }
    variables
}

#[expect(
    clippy::disallowed_methods,
    reason = "the one place of the stages that reads the environment: what the manifest says that a program inherits"
)]
fn inherited(name: &str) -> Option<OsString> {
    std::env::var_os(name)
}
