//! A real sshd on a free port of 127.0.0.1, with keys made for it, and a connector to try it with.

use std::fs;
use std::io::Read as _;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use provision::event::LeftOut;
use provision::manifest::model::{HostKeys, Settings, Ssh};
use provision::secret::Secret;
use provision::ssh::{
    Connector as _, ExecError, Exit, Flow, Output, Script, SshConnector, SshLink, SshOptions, Target, Transport as _,
};

/// One sshd; ended when dropped.
pub struct Server {
    pub folder: tempfile::TempDir,
    pub port: u16,
    child: Child,
}

pub fn need_root() {
    let output = Command::new("id").arg("-u").output().unwrap();
    assert_eq!(output.stdout, b"0\n", "these tests start sshd and make a user: run them as root");
}

pub fn run(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).stdin(Stdio::null()).output().unwrap();
    assert!(
        output.status.success(),
        "{program} {arguments:?}: {}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}

pub fn make_key(path: &Path, kind: &str, passphrase: &str) {
    run("ssh-keygen", &["-q", "-t", kind, "-N", passphrase, "-C", "test", "-f", path.to_str().unwrap()]);
}

/// Waits until something is so; fails after 20 s.
pub fn wait_for(what: &str, mut so: impl FnMut() -> bool) {
    let started = Instant::now();
    while !so() {
        assert!(started.elapsed() < Duration::from_secs(20), "waited too long for {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

impl Server {
    /// Starts an sshd with host keys of these types and these lines of configuration besides.
    pub fn start(kinds: &[&str], more: &str) -> Server {
        need_root();
        fs::create_dir_all("/run/sshd").unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).display().to_string();
        // A folder of root's that others may pass through, so that sshd reads the keys file for every user.
        run("chmod", &["755", folder.path().to_str().unwrap()]);
        make_key(&folder.path().join("id"), "ed25519", "");
        fs::copy(folder.path().join("id.pub"), folder.path().join("authorized")).unwrap();
        let mut text = String::new();
        for kind in kinds {
            make_key(&folder.path().join(format!("host_{kind}")), kind, "");
            text.push_str(&format!("HostKey {}\n", path(&format!("host_{kind}"))));
        }
        for _ in 0..5 {
            let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
            let config = format!(
                "{more}\nPort {port}\nListenAddress 127.0.0.1\nPidFile none\nLogLevel VERBOSE\n{text}AuthorizedKeysFile {}\n\
                 StrictModes no\nUsePAM yes\nPasswordAuthentication no\nKbdInteractiveAuthentication no\nPermitRootLogin yes\n\
                 Subsystem sftp internal-sftp\n",
                path("authorized")
            );
            fs::write(folder.path().join("config"), config).unwrap();
            let log = fs::File::create(folder.path().join("log")).unwrap();
            let mut child = Command::new("/usr/sbin/sshd")
                .args(["-D", "-e", "-f", &path("config")])
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(log)
                .spawn()
                .unwrap();
            let started = Instant::now();
            while child.try_wait().unwrap().is_none() && started.elapsed() < Duration::from_secs(20) {
                if let Ok(mut stream) = TcpStream::connect(("127.0.0.1", port)) {
                    let mut banner = [0; 4];
                    if stream.read_exact(&mut banner).is_ok() && &banner == b"SSH-" {
                        return Server { folder, port, child };
                    }
                }
                std::thread::sleep(Duration::from_millis(5));
            }
            let _ = child.kill();
            let _ = child.wait();
        }
        panic!("sshd does not start: {}", fs::read_to_string(folder.path().join("log")).unwrap());
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn log(&self) -> String {
        fs::read_to_string(self.path("log")).unwrap()
    }

    /// `TYPE BASE64` of a host key.
    pub fn host_key(&self, kind: &str) -> String {
        public(&self.path(&format!("host_{kind}.pub")))
    }

    pub fn fingerprint(&self, kind: &str) -> String {
        let line = run("ssh-keygen", &["-lf", self.path(&format!("host_{kind}.pub")).to_str().unwrap()]);
        line.split(' ').nth(1).unwrap().to_owned()
    }

    /// What logs in as root with the right key and the right host key.
    pub fn ssh(&self) -> Ssh {
        Ssh {
            user: Some("root".to_owned()),
            port: Some(self.port),
            identity: vec![self.path("id").display().to_string()],
            host_key: vec![self.host_key("ed25519")],
            config: Some(false),
            ..Ssh::default()
        }
    }

    /// Options that see nothing of this machine's user.
    pub fn options(&self) -> SshOptions {
        let home = self.path("home");
        fs::create_dir_all(home.join(".ssh")).unwrap();
        SshOptions {
            config_file: Some(self.path("ssh_config")),
            base: self.folder.path().to_owned(),
            home,
            local_user: "root".to_owned(),
            agent: None,
            host_keys: HostKeys::Strict,
            ask: None,
            connect_timeout: Duration::from_secs(10),
        }
    }

    pub fn connector(&self) -> SshConnector {
        SshConnector::new(self.options())
    }

    /// Writes the controller's known_hosts.
    pub fn known_hosts(&self, text: &str) -> PathBuf {
        let path = self.path("home/.ssh/known_hosts");
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    /// Asserts that the log has a text so many times; it may be written a moment later than we see the effect.
    pub fn logged(&self, text: &str, times: usize) {
        wait_for(text, || self.log().matches(text).count() >= times);
        assert_eq!(self.log().matches(text).count(), times, "{}", self.log());
    }

    /// The log once all connections have ended, so that their last lines are in it.
    pub async fn whole_log(&self) -> String {
        let pid = self.pid().to_string();
        // On a thread of its own, so that our side of dropped connections can say goodbye meanwhile.
        let ended = move || wait_for("the end of all connections", || children(&pid).is_empty());
        tokio::task::spawn_blocking(ended).await.unwrap();
        self.log()
    }

    /// Connections that got as far as asking for a login.
    pub async fn logins_tried(&self) -> usize {
        let log = self.whole_log().await;
        ["Accepted ", "Failed ", "Postponed ", "Invalid user ", "Accepted key "]
            .iter()
            .map(|word| log.matches(word).count())
            .sum()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Sessions outlive the listener, and would keep their user in use.
        let mut pids = children(&self.pid().to_string());
        let below: Vec<String> = pids.iter().flat_map(|pid| children(pid)).collect();
        pids.extend(below);
        let _ = self.child.kill();
        let _ = self.child.wait();
        for pid in pids {
            let _ = Command::new("kill").args(["-9", &pid]).output();
        }
    }
}

pub fn children(pid: &str) -> Vec<String> {
    let output = Command::new("ps").args(["-o", "pid=", "--ppid", pid]).output().unwrap();
    String::from_utf8(output.stdout).unwrap().split_whitespace().map(str::to_owned).collect()
}

pub fn public(path: &Path) -> String {
    let text = fs::read_to_string(path).unwrap();
    text.split(' ').take(2).collect::<Vec<_>>().join(" ").trim().to_owned()
}

pub fn target(ssh: Ssh) -> Target {
    Target {
        node: "n1".to_owned(),
        address: "127.0.0.1".to_owned(),
        address_given: true,
        ssh: Arc::new(Settings { ssh, ..Settings::default() }),
        known: Vec::new(),
        passphrase: None,
        password: None,
        become_password: None,
    }
}

pub fn secret(text: &str) -> Option<Secret> {
    Some(Secret::new(text.to_owned()))
}

/// Keeps what a command writes.
#[derive(Default)]
pub struct Kept {
    pub out: Vec<u8>,
    pub err: Vec<u8>,
    pub stop_after: Option<usize>,
}

impl Output for Kept {
    fn stdout(&mut self, bytes: &[u8]) -> Flow {
        self.out.extend(bytes);
        if self.stop_after.is_some_and(|limit| self.out.len() >= limit) { Flow::Stop } else { Flow::Continue }
    }

    fn stderr(&mut self, bytes: &[u8]) -> Flow {
        self.err.extend(bytes);
        Flow::Continue
    }
}

impl Kept {
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.out).into_owned()
    }
}

pub fn script(text: &str, root: bool) -> Script {
    Script { text: Arc::from(text), root }
}

pub async fn exec(link: &SshLink, text: &str, root: bool) -> (Result<Option<Exit>, ExecError>, Kept) {
    let mut kept = Kept::default();
    let result = link.exec(&script(text, root), &mut kept).await;
    (result, kept)
}

/// Connects, or fails the test with the whole reason.
pub async fn open(connector: &SshConnector, target: &Target) -> SshLink {
    match connector.connect(target).await {
        Ok(link) => link,
        Err(why) => panic!("{why:#?}"),
    }
}

pub async fn refused(connector: &SshConnector, target: &Target) -> LeftOut {
    match connector.connect(target).await {
        Ok(_) => panic!("it connected"),
        Err(why) => why,
    }
}

/// A user that exists as long as this value; with a password.
pub struct User {
    pub name: String,
}

pub const PASSWORD: &str = "Canary-7f3a-pässwörd";

impl User {
    pub fn make(name: &str, shell: &str) -> User {
        need_root();
        let name = format!("pv{}{name}", std::process::id() % 100_000);
        let _ = Command::new("userdel").args(["-r", &name]).output();
        run("useradd", &["-m", "-s", shell, &name]);
        let mut child = Command::new("chpasswd").stdin(Stdio::piped()).spawn().unwrap();
        use std::io::Write as _;
        writeln!(child.stdin.take().unwrap(), "{name}:{PASSWORD}").unwrap();
        assert!(child.wait().unwrap().success());
        User { name }
    }

    /// Writes a sudoers file for this user.
    pub fn sudoers(&self, text: &str) {
        let path = format!("/etc/sudoers.d/{}", self.name);
        fs::write(&path, text.replace("USER", &self.name)).unwrap();
        run("chmod", &["440", &path]);
        run("visudo", &["-cqf", &path]);
    }
}

impl Drop for User {
    fn drop(&mut self) {
        let _ = fs::remove_file(format!("/etc/sudoers.d/{}", self.name));
        let _ = fs::remove_file(format!("/var/lib/sudo/lectured/{}", self.name));
        // What still runs as this user was started by this test; a container's user may have the same number.
        let rest = Command::new("ps").args(["-o", "pid=", "-u", &self.name]).output().unwrap();
        let ours = fs::read_link("/proc/self/ns/pid").unwrap();
        for pid in String::from_utf8_lossy(&rest.stdout).split_whitespace() {
            if fs::read_link(format!("/proc/{pid}/ns/pid")).is_ok_and(|space| space == ours) {
                let _ = Command::new("kill").args(["-9", pid]).output();
            }
        }
        let _ = Command::new("userdel").args(["-rf", &self.name]).output();
    }
}
