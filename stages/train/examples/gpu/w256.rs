//! The workload W256: 256 policies, 200 epochs each.

use std::error::Error;
use std::time::Duration;

use crate::training::{Clock, Measured, train};
use crate::workload::{Kind, Size, Task};

/// Its groups: policies whose steps have one shape. Robots differ in width only, and all have the widest one's here. Within a group
/// each policy has a data set of its own; groups of one number of samples have theirs in common, as methods are compared.
fn groups(size: &Size) -> Vec<Task> {
    let [samples, policies, epochs] = size.shrunk;
    let task = |kind: Kind, count: usize, members: usize| {
        Task::new(
            kind,
            count / samples,
            (members / policies).max(1),
            200 / epochs,
            false,
        )
    };
    // 4 robots × (ε = 0, and two kinds of outliers at four ε).
    let mut groups: Vec<Task> = Kind::ALL.iter().map(|kind| task(*kind, 60_000, 36)).collect();
    // 4 robots × two ε.
    let few = [Kind::Bc, Kind::MinMax, Kind::NoisyBc];
    for count in [40_000, 20_000, 10_000, 5_000] {
        groups.extend(few.iter().map(|kind| task(*kind, count, 8)));
    }
    groups.extend([Kind::Bc, Kind::MinMax].map(|kind| task(kind, 80_000, 8)));
    groups
}

/// Seconds that a group may take, where nothing was measured: what it computes, and what a step costs at least. It only says
/// how the time is shared out.
fn expected(task: &Task, size: &Size) -> f64 {
    task.all_steps() as f64 * (task.flop_per_step(size) / 40e12 + 2e-4)
}

/// Trains all groups, each for its share of the time, and prints what the whole takes: measured where all came to their end,
/// and else by the rates of those that did not. `rates` and `parity` are the first table's and the second one's ms a step.
pub(crate) fn run(
    size: &Size,
    clock: &Clock,
    limit: Duration,
    rates: &[(Kind, f64)],
    parity: &[(Kind, f64)],
) -> Result<(), Box<dyn Error>> {
    let groups = groups(size);
    let end = clock.now() + limit;
    println!(
        "{:<14} {:>4} {:>7} {:>8} {:>9} {:>9} {:>9} done, where cut off",
        "method", "K", "N", "steps", "start, s", "ms/step", "s"
    );
    let (mut total, mut with_parity, mut cut, mut unknown) = (0.0, 0.0, 0, 0);
    for (place, task) in groups.iter().enumerate() {
        let ahead: f64 = groups[place..].iter().map(|task| expected(task, size)).sum();
        let left = end.saturating_sub(clock.now());
        let share = left.as_secs_f64() * expected(task, size) / ahead;
        // What the ones before left over may be used up, too, but for a part that the others are to have.
        let measured = train(task, size, clock, Duration::from_secs_f64(1.1 * share).min(left))?;
        let seconds = if measured.is_whole() {
            measured.seconds
        } else {
            cut += 1;
            let Some(ms) = measured.mean_step_ms(task) else {
                println!(
                    "{:<14} {:>4} {:>7} no rate within {share:.1} s",
                    task.kind.name(),
                    task.policies,
                    task.samples
                );
                unknown += 1;
                continue;
            };
            measured.before + ms * 1e-3 * task.all_steps() as f64
        };
        total += seconds;
        with_parity += match (task.kind, factor(rates, parity, task.kind)) {
            (Kind::MinMax | Kind::Direct, factor) => seconds * factor,
            _ => seconds,
        };
        print_row(task, &measured, seconds);
    }
    let policies: usize = groups.iter().map(|task| task.policies).sum();
    let how = if cut == 0 {
        "measured".to_owned()
    } else {
        format!(
            "by the rates of {cut} of {} groups, which were cut off",
            groups.len()
        )
    };
    if unknown > 0 {
        println!("W256: no total; {unknown} groups had no time for two epochs: give more by --seconds");
        return Ok(());
    }
    println!("W256: {policies} policies in {total:.1} s ({how})");
    println!("W256 with step parity: {with_parity:.1} s (by the rates of the second table; no target)");
    Ok(())
}

/// What a group took, or would have taken.
fn print_row(task: &Task, measured: &Measured, seconds: f64) {
    println!(
        "{:<14} {:>4} {:>7} {:>8} {:>9.2} {:>9} {seconds:>9.2} {}",
        task.kind.name(),
        task.policies,
        task.samples,
        task.all_steps(),
        measured.before,
        measured
            .mean_step_ms(task)
            .map_or("-".to_owned(), |ms| format!("{ms:.3}")),
        if measured.is_whole() {
            String::new()
        } else {
            format!("{} of {} epochs", measured.epochs(task), task.epochs)
        }
    );
}

/// How much longer an epoch takes with step parity.
fn factor(rates: &[(Kind, f64)], parity: &[(Kind, f64)], kind: Kind) -> f64 {
    let of = |rates: &[(Kind, f64)]| rates.iter().find(|(of, _)| *of == kind).map(|(_, ms)| *ms);
    let steps = |parity: bool| Task::new(kind, 60_000, 1, 1, parity).steps() as f64;
    match (of(rates), of(parity)) {
        (Some(plain), Some(with)) => with * steps(true) / (plain * steps(false)),
        _ => f64::NAN,
    }
}
