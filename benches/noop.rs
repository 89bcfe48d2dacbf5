//! A no-op apply beside the same checks as one hand-written script over plain `ssh`: prints ratios.
//!
//! `cargo bench --bench noop -- 1 10 50` (root, Debian 12): brings up a practice cluster of the largest size, applies
//! `manifests/lab.yaml` once, and then measures both in turn on 1, 10 and 50 of its nodes. Each side runs several times
//! alternately; the medians are compared, since the machine also carries the nodes.

#![expect(clippy::indexing_slicing, reason = "a benchmark that cannot go on ends")]

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use provision::lab::{self, Lab, LabNode, Options};

const ROUNDS: usize = 7;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut sizes: Vec<usize> = std::env::args().skip(1).filter_map(|word| word.parse().ok()).collect();
    if sizes.is_empty() {
        sizes = vec![1, 10, 50];
    }
    let folder = tempfile::tempdir()?;
    let options = Options {
        name: "bench".to_owned(),
        nodes: sizes.iter().copied().max().unwrap_or(1),
        manifest: None,
        directory: folder.path().to_owned(),
        say: |line| eprintln!("{line}"),
    };
    let outcome = lab::up(&options).map_err(Into::into).and_then(|lab| measure_all(&lab, &sizes));
    lab::down(&options, false)?;
    outcome
}

fn measure_all(lab: &Lab, sizes: &[usize]) -> Result<(), Box<dyn std::error::Error>> {
    let manifest = lab.dir.join("cluster.yaml");
    println!("nodes  provision s  script s  ratio  provision cpu s  ssh cpu s  peak MiB");
    for size in sizes {
        let nodes: Vec<&LabNode> = lab.nodes.iter().take(*size).collect();
        let limit = format!("n[1-{size}]");
        let first = apply(&manifest, &limit)?;
        if !first.ok {
            return Err(format!("the first apply failed:\n{}", first.text).into());
        }
        let scripts: Vec<String> =
            nodes.iter().map(|node| script(lab, node)).collect::<Result<_, Box<dyn std::error::Error>>>()?;
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            let run = apply(&manifest, &limit)?;
            if !run.ok || !run.text.contains("0 changed") {
                return Err(format!("not a no-op:\n{}", run.text).into());
            }
            ours.push(run);
            theirs.push(plain(lab, &nodes, &scripts)?);
        }
        let (a, b) = (median(&ours), median(&theirs));
        println!(
            "{size:>5}  {:>11.3}  {:>8.3}  {:>5.2}  {:>15.2}  {:>9.2}  {:>8.1}",
            a.wall.as_secs_f64(),
            b.wall.as_secs_f64(),
            a.wall.as_secs_f64() / b.wall.as_secs_f64(),
            a.cpu,
            b.cpu,
            a.peak as f64 / 1024.0,
        );
    }
    Ok(())
}

struct Run {
    wall: Duration,
    /// Seconds of the controller's processes.
    cpu: f64,
    /// KiB.
    peak: u64,
    ok: bool,
    text: String,
}

fn median(runs: &[Run]) -> Run {
    let mut sorted: Vec<&Run> = runs.iter().collect();
    sorted.sort_by_key(|run| run.wall);
    let middle = sorted[sorted.len() / 2];
    Run { wall: middle.wall, cpu: middle.cpu, peak: middle.peak, ok: middle.ok, text: String::new() }
}

fn apply(manifest: &Path, limit: &str) -> Result<Run, Box<dyn std::error::Error>> {
    let (began, before) = (Instant::now(), children_cpu()?);
    let child = Command::new(env!("CARGO_BIN_EXE_provision"))
        .args(["apply", "--yes", "--progress", "none", "--limit", limit])
        .arg(manifest)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let watch = peak_of(child.id());
    let output = child.wait_with_output()?;
    let wall = began.elapsed();
    let peak = watch.join().unwrap_or(0);
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    Ok(Run { wall, cpu: children_cpu()? - before, peak, ok: output.status.success(), text })
}

/// The highest resident size that is seen while the process lives.
fn peak_of(pid: u32) -> std::thread::JoinHandle<u64> {
    std::thread::spawn(move || {
        let mut peak = 0;
        while let Ok(status) = std::fs::read_to_string(format!("/proc/{pid}/status")) {
            let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
            let Some(size) = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok()) else { break };
            peak = peak.max(size);
            std::thread::sleep(Duration::from_millis(2));
        }
        peak
    })
}

/// CPU seconds of all children that have ended.
fn children_cpu() -> Result<f64, Box<dyn std::error::Error>> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or("").split_whitespace().collect();
    let ticks: f64 = fields[13].parse::<f64>()? + fields[14].parse::<f64>()?;
    Ok(ticks / 100.0)
}

/// The hand-written script, to all nodes at once, over the system's `ssh` with the same key exchange as most servers.
fn plain(lab: &Lab, nodes: &[&LabNode], scripts: &[String]) -> Result<Run, Box<dyn std::error::Error>> {
    let (began, before) = (Instant::now(), children_cpu()?);
    let mut children = Vec::new();
    for (node, script) in nodes.iter().zip(scripts) {
        let mut child = ssh(lab, node).arg("sudo sh -s").spawn()?;
        child.stdin.take().ok_or("no stdin")?.write_all(script.as_bytes())?;
        children.push(child);
    }
    let mut ok = true;
    for child in children {
        let output = child.wait_with_output()?;
        ok &= output.status.success() && output.stdout == b"converged\n";
        if !ok {
            return Err(format!("the script disagrees: {}", String::from_utf8_lossy(&output.stdout)).into());
        }
    }
    Ok(Run { wall: began.elapsed(), cpu: children_cpu()? - before, peak: 0, ok, text: String::new() })
}

fn ssh(lab: &Lab, node: &LabNode) -> Command {
    let mut command = Command::new("ssh");
    command
        .arg("-F")
        .arg(lab.dir.join("ssh_config"))
        .args(["-o", "BatchMode=yes", "-o", "KexAlgorithms=curve25519-sha256", &node.name])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// What a careful administrator would check by hand for `manifests/lab.yaml`; the expected sums come from the node.
fn script(lab: &Lab, node: &LabNode) -> Result<String, Box<dyn std::error::Error>> {
    const FILES: &str = "/etc/motd /etc/cron.d/lab /etc/hosts /etc/security/limits.d/*provision* \
                         /home/train/.ssh/authorized_keys /home/train/.ssh/known_hosts";
    let mut child = ssh(lab, node).arg(format!("sudo sh -c 'sha256sum {FILES}'")).spawn()?;
    drop(child.stdin.take());
    let output = child.wait_with_output()?;
    let sums = String::from_utf8(output.stdout)?;
    if sums.lines().count() < 6 {
        return Err(format!("files are missing on {}: {sums}", node.name).into());
    }
    let files: Vec<&str> = sums.lines().filter_map(|line| line.split_whitespace().nth(1)).collect();
    Ok(format!(
        "set -e
fail() {{ echo \"differs: $1\"; exit 1; }}
sha256sum --check --quiet --strict <<'SUMS' >/dev/null || fail files
{sums}SUMS
stat -c '%a %U %G %n' {files} /opt/lab /home/train/.ssh /home/train/.ssh/id_ed25519.pub >/dev/null || fail modes
[ \"$(dpkg-query -W -f '${{db:Status-Status}}\\n' htop jq tree cron | grep -c '^installed$')\" = 4 ] || fail packages
[ \"$(systemctl is-active cron)\" = active ] || fail cron
[ \"$(systemctl is-enabled cron)\" = enabled ] || fail cron
getent passwd train >/dev/null || fail train
[ -s /home/train/.ssh/id_ed25519 ] || fail key
test -e /opt/lab/READY || fail ready
[ \"$(cat /proc/sys/kernel/hostname)\" = {name} ] || fail hostname
echo converged
",
        files = files.join(" "),
        name = node.name,
    ))
}
