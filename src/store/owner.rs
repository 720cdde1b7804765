use std::sync::OnceLock;

use provenir_api::Digest;
use serde::{Deserialize, Serialize};

/// A process, told apart from every other that ever ran, on any host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    /// Name of the host.
    pub host: String,
    /// Process id.
    pub pid: u32,
    /// When the process started, in the kernel's ticks since boot: process ids are used again.
    start: u64,
    /// Identity of the host's current boot.
    boot: String,
    /// The process-id namespace: the same number means another process in another container.
    namespace: String,
}

/// What can be said of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Liveness {
    /// It runs.
    Alive,
    /// It has ended.
    Dead,
    /// It cannot be seen from here: another host, or another container.
    Unknown,
}

impl Owner {
    /// This process.
    pub fn current() -> &'static Self {
        static CURRENT: OnceLock<Owner> = OnceLock::new();
        CURRENT.get_or_init(|| {
            let pid = std::process::id();
            Self {
                host: rustix::system::uname().nodename().to_string_lossy().into_owned(),
                pid,
                start: start_of(pid).unwrap_or_default(),
                boot: boot(),
                namespace: namespace(),
            }
        })
    }

    /// What the names of its temporary files begin with, so that even one without content tells whose it is: process id,
    /// start, and a digest of host, boot and namespace.
    pub(super) fn tag(&self) -> String {
        let place = Digest::of(format!("{}\0{}\0{}", self.host, self.boot, self.namespace).as_bytes());
        format!("{}-{}-{}", self.pid, self.start, &place.hex()[..16])
    }

    /// Whose tag a name begins with, where that is a process of this host, boot and namespace.
    pub(super) fn tagged(name: &str) -> Option<Self> {
        let mut numbers = name.split('-');
        let owner = Self {
            pid: numbers.next()?.parse().ok()?,
            start: numbers.next()?.parse().ok()?,
            ..Self::current().clone()
        };
        name.strip_prefix(&owner.tag())?.starts_with('-').then_some(owner)
    }

    /// Stands for whoever wrote something that cannot be understood.
    pub(super) fn unreadable() -> Self {
        Self {
            host: "unknown".to_owned(),
            pid: 0,
            start: 0,
            boot: String::new(),
            namespace: String::new(),
        }
    }

    /// Whether this stands for whoever wrote what cannot be understood.
    pub fn is_unreadable(&self) -> bool {
        *self == Self::unreadable()
    }

    /// Whether the process runs.
    pub fn liveness(&self) -> Liveness {
        let here = Self::current();
        if self.host != here.host {
            return Liveness::Unknown;
        }
        if self.boot != here.boot {
            return Liveness::Dead;
        }
        if self.namespace != here.namespace {
            return Liveness::Unknown;
        }
        if start_of(self.pid) == Some(self.start) {
            Liveness::Alive
        } else {
            Liveness::Dead
        }
    }
}

/// When a process started; `None` where there is none or it has ended and only waits to be reaped.
fn start_of(pid: u32) -> Option<u64> {
    let text = fs_err::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The second field is the program's name in parentheses, and may itself hold parentheses and spaces.
    let mut fields = text.rsplit_once(')')?.1.split_ascii_whitespace();
    let state = fields.next()?;
    if matches!(state, "Z" | "X" | "x") {
        return None;
    }
    // Field 22 of proc_pid_stat(5); the state is field 3.
    fields.nth(18)?.parse().ok()
}

fn boot() -> String {
    let text = fs_err::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    text.trim().to_owned()
}

fn namespace() -> String {
    let link = fs_err::read_link("/proc/self/ns/pid").unwrap_or_default();
    link.to_string_lossy().into_owned()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A process of this host that has ended.
    pub(crate) fn dead() -> Owner {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let start = start_of(child.id()).unwrap_or_default();
        let pid = child.id();
        child.wait().unwrap();
        Owner {
            pid,
            start,
            ..Owner::current().clone()
        }
    }

    /// A process of another host.
    pub(crate) fn elsewhere() -> Owner {
        Owner {
            host: "elsewhere.invalid".into(),
            ..Owner::current().clone()
        }
    }

    #[test]
    fn a_name_tells_whose_it_is_on_this_host_alone() {
        for owner in [Owner::current().clone(), dead()] {
            assert_eq!(Owner::tagged(&format!("{}-17-3", owner.tag())), Some(owner));
        }
        for name in [
            format!("{}-17-3", elsewhere().tag()),
            format!("0{}-17-3", Owner::current().tag()),
            Owner::current().tag(),
            "objects-v1".to_owned(),
            String::new(),
        ] {
            assert_eq!(Owner::tagged(&name), None, "{name}");
        }
    }

    #[test]
    fn liveness_takes_reused_numbers_reboots_and_hosts_into_account() {
        let here = Owner::current().clone();
        assert_ne!(here.start, 0);
        assert_eq!(here.liveness(), Liveness::Alive);
        assert_eq!(dead().liveness(), Liveness::Dead);
        assert_eq!(elsewhere().liveness(), Liveness::Unknown);
        let reused = Owner {
            start: here.start + 1,
            ..here.clone()
        };
        assert_eq!(reused.liveness(), Liveness::Dead);
        let rebooted = Owner {
            boot: "another".into(),
            ..here.clone()
        };
        assert_eq!(rebooted.liveness(), Liveness::Dead);
        let contained = Owner {
            namespace: "pid:[1]".into(),
            ..here
        };
        assert_eq!(contained.liveness(), Liveness::Unknown);
    }
}
