use std::collections::BTreeMap;

use provenir_nn::device::{self, Choice};

/// What results may depend on beside their action: recorded with every run, shown by `doctor`.
pub(crate) fn describe() -> BTreeMap<String, String> {
    let bullet = provenir_bullet_sys::bullet_version();
    let mut platform = BTreeMap::from([
        (
            "system".to_owned(),
            format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
        ),
        ("libtorch".to_owned(), device::LIBTORCH.to_owned()),
        (
            "bullet".to_owned(),
            format!("{}.{:02}", bullet / 100, bullet % 100),
        ),
        ("processor".to_owned(), processor()),
    ]);
    let (device, reason) = match device::select(Choice::Auto) {
        Ok(selected) => (format!("{:?}", selected.device).to_lowercase(), selected.reason),
        Err(error) => ("none".to_owned(), error.to_string()),
    };
    platform.insert("device".to_owned(), device);
    platform.insert("device_reason".to_owned(), reason);
    platform
}

/// Whether computations go to an accelerator where cells leave that open.
pub(crate) fn is_accelerated() -> bool {
    device::select(Choice::Auto).is_ok_and(|selected| selected.device.is_cuda())
}

/// Model and the instruction sets that decide which variants numeric libraries take.
fn processor() -> String {
    let described = fs_err::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let field = |name: &str| {
        let line = described.lines().find(|line| line.starts_with(name))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    };
    let model = field("model name").unwrap_or_else(|| "unknown".to_owned());
    let flags = field("flags").unwrap_or_default();
    let sets: Vec<&str> = flags
        .split_whitespace()
        .filter(|flag| matches!(*flag, "fma" | "avx2" | "avx512f"))
        .collect();
    if sets.is_empty() {
        model
    } else {
        format!("{model} ({})", sets.join(", "))
    }
}
