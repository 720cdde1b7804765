//! Compares a recording of PyBullet with our simulation, to the bit.
//!
//! ```text
//! python scripts/record_pybullet.py hopper long.csv --episodes 20 --steps 1000
//! cargo run --release -p provenir-sim --example compare_pybullet -- hopper long.csv
//! ```
//!
//! In place of a name it takes the file of a task that is not built in yet.

#[path = "../tests/support/mod.rs"]
mod support;

use provenir_sim::{Environment, Task};

#[expect(clippy::print_stdout, reason = "the comparison is what this program is for")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [task, path] = arguments.as_slice() else {
        return Err("usage: compare_pybullet ENVIRONMENT|TASK.toml RECORDING".into());
    };
    let task = match Task::named(task) {
        Ok(task) => task.clone(),
        Err(_) => Task::parse(&fs_err::read_to_string(task)?)?,
    };
    let found = support::replay(&support::read(path)?, u32::MAX, false, || {
        Environment::new(&task, false)
    })?;
    println!("{found:#?}");
    if found.is_exact() {
        Ok(())
    } else {
        Err("the two differ".into())
    }
}
