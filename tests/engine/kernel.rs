//! System calls that fail, or are the last that their process makes, as they are told to: see `kernel/preload.c`, which is
//! compiled when the tests run. The programs under test are those of every other test.

use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use camino::{Utf8Path, Utf8PathBuf};
use rustix::io::Errno;

use crate::context::{Context, finish};

/// Exit code of a program that cannot be made subject to the library.
const UNAVAILABLE: i32 = 97;

/// A kernel that does as it is told.
#[derive(Clone, Copy)]
pub(crate) struct Kernel {
    library: &'static Utf8Path,
}

/// What a program finds itself in.
#[derive(Clone, Debug, Default)]
pub(crate) struct Conditions {
    pub(crate) fault: Option<Fault>,
    pub(crate) locks: Locks,
    /// Whether a rename that must not replace is refused, as by file systems that know no such thing (NFS among them).
    pub(crate) renames_replace: bool,
}

/// What becomes of requests to lock a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Locks {
    #[default]
    Work,
    /// They fail, as on NFS without a lock service.
    Refused,
    /// They are granted and mean nothing, as on a file system that is mounted with `nolock`.
    Pretended,
}

/// What goes wrong, and when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    /// The operation, as the trace names it; `*` is any.
    pub(crate) operation: String,
    /// What the path holds that is written to, made, removed, or given; `*` is anything.
    pub(crate) part: String,
    /// Which of those calls, from 1.
    pub(crate) number: u64,
    pub(crate) what: What,
}

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    /// The process is killed in the middle of a write, before anything else.
    Kill,
    /// The call fails.
    Once(Errno),
    /// It fails, and so do all later ones.
    FromThenOn(Errno),
}

/// What a program is watched by while it runs.
pub(crate) struct Watch {
    state: Utf8PathBuf,
    trace: Utf8PathBuf,
}

/// A call that changed something, or tried to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Call {
    pub(crate) operation: String,
    /// What the call returned.
    pub(crate) result: i64,
    /// The path that is written to, made, removed, or given.
    pub(crate) path: String,
    /// The path that a renamed file had before.
    pub(crate) from: Option<String>,
}

/// The kernel, unless this machine does not let programs filter their system calls, which is told.
pub(crate) fn kernel() -> Option<Kernel> {
    static LIBRARY: OnceLock<Option<Utf8PathBuf>> = OnceLock::new();
    let library = LIBRARY.get_or_init(|| {
        let library = compile();
        let context = Context::new("");
        let mut probe = context.program("true", &[]);
        Kernel {
            library: Box::leak(library.clone().into_boxed_path()),
        }
        .impose(&context, &mut probe, &Conditions::default());
        let outcome = finish(&mut probe);
        if outcome.code == Some(UNAVAILABLE) {
            return None;
        }
        assert_eq!(outcome.code, Some(0), "{outcome:#?}");
        Some(library)
    });
    if library.is_none() {
        eprintln!("SKIPPED: no way to make system calls fail (seccomp filters are not allowed here)");
    }
    library.as_deref().map(|library| Kernel { library })
}

/// Compiles the library with the C compiler that SQLite was compiled with.
fn compile() -> Utf8PathBuf {
    let source = Utf8Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/engine/kernel/preload.c");
    let folder = Utf8PathBuf::from(concat!(env!("CARGO_TARGET_TMPDIR"), "/kernel"));
    fs_err::create_dir_all(&folder).unwrap();
    let digest = provenir_api::Digest::of(&fs_err::read(&source).unwrap());
    let library = folder.join(format!("{}.so", &digest.hex()[..16]));
    if !library.exists() {
        let unnamed = folder.join(format!("{}.new", std::process::id()));
        let compiled = Command::new("cc")
            .args(["-O1", "-shared", "-fPIC", "-o"])
            .args([&unnamed, &source])
            .output()
            .unwrap();
        assert!(compiled.status.success(), "{compiled:?}");
        fs_err::rename(unnamed, &library).unwrap();
    }
    library
}

impl Kernel {
    /// Makes a program, and all that it starts, subject to conditions in the folder of a context.
    pub(crate) fn impose(self, context: &Context, command: &mut Command, conditions: &Conditions) -> Watch {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let watch = Watch {
            state: context.path(&format!("kernel-{count}.state")),
            trace: context.path(&format!("kernel-{count}.trace")),
        };
        fs_err::write(&watch.state, [0; 16]).unwrap();
        fs_err::write(&watch.trace, "").unwrap();
        command
            .env("LD_PRELOAD", self.library)
            .env("INJECT_ROOT", &context.folder)
            .env("INJECT_STATE", &watch.state)
            .env("INJECT_TRACE", &watch.trace);
        if let Some(Fault {
            operation,
            part,
            number,
            what,
        }) = &conditions.fault
        {
            let action = match what {
                What::Kill => "kill".to_owned(),
                What::Once(error) => error.raw_os_error().to_string(),
                What::FromThenOn(error) => format!("{}+", error.raw_os_error()),
            };
            command.env("INJECT_FAULT", format!("{operation} {part} {number} {action}"));
        }
        match conditions.locks {
            Locks::Work => {}
            Locks::Refused => {
                command.env("INJECT_LOCKS", Errno::NOLCK.raw_os_error().to_string());
            }
            Locks::Pretended => {
                command.env("INJECT_LOCKS", "0");
            }
        }
        if conditions.renames_replace {
            command.env("INJECT_NO_FLAGS", Errno::INVAL.raw_os_error().to_string());
        }
        watch
    }
}

impl Watch {
    /// Whether the fault came to pass.
    pub(crate) fn has_failed(&self, fault: &Fault) -> bool {
        let state = fs_err::read(&self.state).unwrap();
        u64::from_ne_bytes(state[..8].try_into().unwrap()) >= fault.number
    }

    /// The calls that were made to fail.
    pub(crate) fn failed(&self, fault: &Fault) -> Vec<Call> {
        let (What::Once(error) | What::FromThenOn(error)) = fault.what else {
            return Vec::new();
        };
        let mut calls = self.calls();
        calls.retain(|call| call.result == -i64::from(error.raw_os_error()));
        calls
    }

    /// Every call that changed something below the folder, or tried to.
    pub(crate) fn calls(&self) -> Vec<Call> {
        let trace = fs_err::read_to_string(&self.trace).unwrap();
        let calls = trace.lines().map(|line| {
            let mut fields = line.split('\t');
            let mut next = || fields.next().map(str::to_owned);
            let (operation, result) = (next().unwrap(), next().unwrap());
            next().unwrap();
            let (path, new) = (next().unwrap(), next());
            let (path, from) = match new {
                Some(new) => (new, Some(path)),
                None => (path, None),
            };
            Call {
                operation,
                result: result.parse().unwrap(),
                path,
                from,
            }
        });
        calls.collect()
    }
}
