//! A no-op apply beside the same checks as one hand-written script over plain `ssh`: prints ratios.
//!
//! `cargo bench --bench noop -- 1 10 50` (root, Debian 12): brings up a practice cluster of the largest size, applies
//! `manifests/lab.yaml` once, and then measures both in turn on the first 1, 10 and 50 nodes. With `--lab NAME --in DIR` it
//! uses the lab of that name and folder (made where it is missing) and leaves it up.
//!
//! What makes it fair: both sides check the same things on all nodes at once, through the same sshd and the same sudo, with
//! the same key exchange (printed). The script is one round trip with one process for each kind of check, and
//! it knows the expected answers beforehand. Sides take turns in going first, each starts when the nodes are quiet
//! again, and the medians are compared, since this machine also carries the nodes.

#![expect(clippy::indexing_slicing, reason = "a benchmark that cannot go on ends")]

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use provision::lab::{self, Lab, LabNode, Options};
use provision::manifest;
use provision::ssh::{Connector as _, SshConnector, SshOptions, Target, Transport as _};

/// Turns for each size; odd, so that there is a middle one.
const ROUNDS: usize = 9;
/// The key exchange of the script's `ssh`; checked to be what our client negotiates.
const KEX: &str = "curve25519-sha256";

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let after = |flag: &str| words.iter().skip_while(|word| *word != flag).nth(1).cloned();
    let mut sizes: Vec<usize> = words.iter().filter_map(|word| word.parse().ok()).collect();
    if sizes.is_empty() {
        sizes = vec![1, 10, 50];
    }
    let folder = tempfile::tempdir()?;
    let options = Options {
        name: after("--lab").unwrap_or_else(|| "bench".to_owned()),
        nodes: sizes.iter().copied().max().unwrap_or(1),
        manifest: None,
        directory: after("--in").map_or_else(|| folder.path().to_owned(), PathBuf::from),
        say: |line| eprintln!("{line}"),
    };
    let outcome = lab::up(&options).map_err(Into::into).and_then(|lab| measure_all(&options.name, &lab, &sizes));
    if after("--lab").is_none() {
        lab::down(&options, false)?;
    }
    outcome
}

fn measure_all(name: &str, lab: &Lab, sizes: &[usize]) -> Result<(), Failure> {
    let bench = Bench { lab, groups: groups(name)?, manifest: lab.dir.join("cluster.yaml") };
    let ours = bench.key_exchange()?;
    println!("key exchange: provision {ours}, script {KEX}");
    println!("                                       controller cpu s        node cpu s      peak MiB");
    println!("nodes  provision s  script s  ratio    provision  script  provision  script   provision");
    for size in sizes {
        let nodes: Vec<&LabNode> = lab.nodes.iter().take(*size).collect();
        let limit = format!("n[1-{size}]");
        let first = bench.apply(&limit)?;
        if !first.ok {
            return Err(format!("the first apply failed:\n{}", first.text).into());
        }
        let scripts: Vec<String> = nodes.iter().map(|node| bench.script(node)).collect::<Result<_, Failure>>()?;
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for round in 0..ROUNDS {
            for side in 0..2 {
                bench.quiet(&nodes)?;
                let before = bench.node_cpu(&nodes)?;
                let mut run = if (round + side) % 2 == 0 {
                    let run = bench.apply(&limit)?;
                    if !run.ok || !run.text.contains(" 0 changed, 0 failed, 0 left out") {
                        return Err(format!("not a no-op:\n{}", run.text).into());
                    }
                    run
                } else {
                    bench.plain(&nodes, &scripts)?
                };
                bench.quiet(&nodes)?;
                run.nodes = bench.node_cpu(&nodes)? - before;
                if (round + side) % 2 == 0 { ours.push(run) } else { theirs.push(run) }
            }
        }
        let (a, b) = (middle(&ours, |run| run.wall), middle(&theirs, |run| run.wall));
        println!(
            "{size:>5}  {a:>11.3}  {b:>8.3}  {:>5.2}    {:>9.3}  {:>6.3}  {:>9.3}  {:>6.3}  {:>10.1}",
            a / b,
            mean(&ours, |run| run.cpu),
            mean(&theirs, |run| run.cpu),
            middle(&ours, |run| run.nodes),
            middle(&theirs, |run| run.nodes),
            middle(&ours, |run| run.peak),
        );
    }
    Ok(())
}

/// One measured turn; seconds and MiB.
struct Run {
    wall: f64,
    /// Of the processes on the controller.
    cpu: f64,
    /// Of everything on the nodes.
    nodes: f64,
    peak: f64,
    ok: bool,
    text: String,
}

fn middle(runs: &[Run], value: fn(&Run) -> f64) -> f64 {
    let mut values: Vec<f64> = runs.iter().map(value).collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// The kernel counts the controller's seconds in hundredths: only many turns together say something.
fn mean(runs: &[Run], value: fn(&Run) -> f64) -> f64 {
    runs.iter().map(value).sum::<f64>() / runs.len() as f64
}

struct Bench<'a> {
    lab: &'a Lab,
    /// Where the nodes' control groups are, without the node's name.
    groups: String,
    manifest: PathBuf,
}

impl Bench<'_> {
    /// What our client and the nodes' sshd agree on, asked of the first node.
    fn key_exchange(&self) -> Result<String, Failure> {
        let path = self.manifest.display().to_string();
        let (manifest, _) = manifest::load(&path, &std::fs::read_to_string(&self.manifest)?);
        let manifest = manifest.ok_or("the lab's manifest cannot be read")?;
        let node = manifest.nodes.first().ok_or("no node")?;
        let target = Target {
            node: node.name.clone(),
            address: node.address.clone(),
            address_given: node.address_given,
            ssh: Arc::clone(&node.settings),
            known: Vec::new(),
            passphrase: None,
            password: None,
            become_password: None,
        };
        let connector = SshConnector::new(SshOptions::from_environment(&self.lab.dir));
        tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
            let link = connector.connect(&target).await.map_err(|why| why.what)?;
            let used = link.kex();
            link.close().await;
            if used == KEX { Ok(used) } else { Err(format!("not the same key exchange: {used} and {KEX}").into()) }
        })
    }

    fn apply(&self, limit: &str) -> Result<Run, Failure> {
        let (began, before) = (Instant::now(), children_cpu()?);
        let child = Command::new(env!("CARGO_BIN_EXE_provision"))
            .args(["apply", "--yes", "--progress", "none", "--limit", limit])
            .arg(&self.manifest)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let watch = peak_of(child.id());
        let output = child.wait_with_output()?;
        let wall = began.elapsed().as_secs_f64();
        let peak = watch.join().unwrap_or(0) as f64 / 1024.0;
        let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        Ok(Run { wall, cpu: children_cpu()? - before, nodes: 0.0, peak, ok: output.status.success(), text })
    }

    /// The hand-written script, to all nodes at once.
    fn plain(&self, nodes: &[&LabNode], scripts: &[String]) -> Result<Run, Failure> {
        let (began, before) = (Instant::now(), children_cpu()?);
        let mut children = Vec::new();
        for (node, script) in nodes.iter().zip(scripts) {
            let mut child = self.ssh(node).arg("sudo sh -s").spawn()?;
            child.stdin.take().ok_or("no stdin")?.write_all(script.as_bytes())?;
            children.push(child);
        }
        for child in children {
            let output = child.wait_with_output()?;
            if !output.status.success() || output.stdout != b"converged\n" {
                return Err(format!("the script disagrees: {}", said(&output)).into());
            }
        }
        let wall = began.elapsed().as_secs_f64();
        Ok(Run { wall, cpu: children_cpu()? - before, nodes: 0.0, peak: 0.0, ok: true, text: String::new() })
    }

    fn ssh(&self, node: &LabNode) -> Command {
        let mut command = Command::new("ssh");
        command
            .arg("-F")
            .arg(self.lab.dir.join("ssh_config"))
            .args(["-o", "BatchMode=yes", "-o", &format!("KexAlgorithms={KEX}"), &node.name])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// What a careful administrator would write for `manifests/lab.yaml`, every check that it implies, in as few processes
    /// as there are kinds of checks. The whole of `/etc/hosts` stands for the block of hosts and for the own name off
    /// 127.0.1.1. What is expected was noted on the node itself, right after it was applied.
    fn script(&self, node: &LabNode) -> Result<String, Failure> {
        const FILES: [&str; 6] = [
            "/etc/motd",
            "/etc/cron.d/lab",
            "/etc/hosts",
            "/etc/security/limits.d/60-provision-train.conf",
            "/home/train/.ssh/authorized_keys",
            "/home/train/.ssh/known_hosts",
        ];
        const OTHERS: [&str; 4] =
            ["/opt/lab", "/home/train/.ssh", "/home/train/.ssh/id_ed25519", "/home/train/.ssh/id_ed25519.pub"];
        const MODES: &str = "stat -c '%F %a %U %G %n'";
        let (files, all) = (FILES.join(" "), [FILES.as_slice(), OTHERS.as_slice()].concat().join(" "));
        let note = |command: &str, lines: usize| -> Result<String, Failure> {
            let mut child = self.ssh(node).arg("sudo sh -s").spawn()?;
            child.stdin.take().ok_or("no stdin")?.write_all(command.as_bytes())?;
            let output = child.wait_with_output()?;
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            if text.lines().count() == lines {
                Ok(text)
            } else {
                Err(format!("{}: {}", node.name, said(&output)).into())
            }
        };
        let sums = note(&format!("sha256sum {files}"), FILES.len())?;
        let modes = note(&format!("{MODES} {all}"), FILES.len() + OTHERS.len())?;
        let time =
            note("systemctl is-active chrony systemd-timesyncd | grep -x active", 1).map(|_| "systemd-timesyncd")?;
        Ok(format!(
            "fail() {{ echo \"differs: $1\"; exit 1; }}
sha256sum --check --status --strict <<'SUMS' || fail files
{sums}SUMS
[ \"$({MODES} {all})\" = '{modes}' ] || fail modes
[ \"$(dpkg-query -W -f '${{db:Status-Abbrev}}' htop jq tree cron)\" = 'ii ii ii ii ' ] || fail packages
[ \"$(systemctl is-active cron {time})\" = 'active
active' ] || fail services
[ \"$(systemctl is-enabled cron)\" = enabled ] || fail cron
getent passwd train >/dev/null || fail train
test -e /opt/lab/READY || fail ready
echo converged
",
            modes = modes.trim_end(),
        ))
    }

    /// CPU seconds that the nodes have used so far.
    fn node_cpu(&self, nodes: &[&LabNode]) -> Result<f64, Failure> {
        let mut sum = 0.0;
        for node in nodes {
            let text = std::fs::read_to_string(format!("{}{}/cpu.stat", self.groups, node.name))?;
            let used = text.lines().find_map(|line| line.strip_prefix("usage_usec ")).ok_or("no usage_usec")?;
            sum += used.parse::<f64>()? / 1e6;
        }
        Ok(sum)
    }

    /// Waits until the nodes do next to nothing: a session's end goes on after its connection, and belongs to its side.
    fn quiet(&self, nodes: &[&LabNode]) -> Result<(), Failure> {
        let mut before = self.node_cpu(nodes)?;
        for _ in 0..50 {
            std::thread::sleep(Duration::from_millis(100));
            let now = self.node_cpu(nodes)?;
            if now - before < 0.002 + 0.0002 * nodes.len() as f64 {
                break;
            }
            before = now;
        }
        Ok(())
    }
}

fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// Where the control groups of a lab's nodes are in the hierarchy that counts CPU time.
fn groups(lab: &str) -> Result<String, Failure> {
    let mounts = std::fs::read_to_string("/proc/self/mountinfo")?;
    let mount = mounts.lines().find(|line| line.contains("- cgroup2 ")).ok_or("no cgroup2 is mounted")?;
    Ok(format!("{}/provision-lab.{lab}.", mount.split(' ').nth(4).ok_or("no mount point")?))
}

/// The highest resident size, in KiB, that is seen while the process lives.
fn peak_of(pid: u32) -> std::thread::JoinHandle<u64> {
    std::thread::spawn(move || {
        let mut peak = 0;
        while let Ok(status) = std::fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("status")) {
            let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
            let Some(size) = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok()) else { break };
            peak = peak.max(size);
            std::thread::sleep(Duration::from_millis(5));
        }
        peak
    })
}

/// CPU seconds of all children that have ended.
fn children_cpu() -> Result<f64, Failure> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or("").split_whitespace().collect();
    let ticks: f64 = fields[13].parse::<f64>()? + fields[14].parse::<f64>()?;
    Ok(ticks / 100.0)
}
