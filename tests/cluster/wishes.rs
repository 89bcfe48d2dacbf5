//! Everything a manifest can wish in this build, on one real node: done once, as wished, and not again.

use crate::support::Cluster;

const WISH: &str = r#"version: 1
cluster: wishes
base:
  hosts: cluster
  time: auto
  limits: {memlock: unlimited, nofile: 16384}
  sysctl: {net.core.somaxconn: 4097, net.ipv4.tcp_syn_retries: 5}
trust: {user: train}
packages:
  - {name: jq, version: "1.6*", hold: true}
  - tree
  - {name: nano, state: absent}
files:
  - {path: /srv/plain, content: "héllo 'quoted' $HOME `x`\n\n", mode: "0640", owner: train, group: games}
  - {path: /srv/no-newline, content: "no newline"}
  - {path: /srv/copied, source: side/binary}
  - {path: /srv/filled, template: side/filled.tmpl}
  - {path: /srv/link, state: link, target: plain}
  - {path: /srv/gone, state: absent}
  - {path: /srv/folder, state: directory, mode: "2775", group: games}
  - {path: /srv/touched, state: present, mode: "0600"}
  - {path: /srv/secret, content: "token ${env:WISH_TOKEN}\n", mode: "0400"}
services:
  - {name: cron, enabled: true, running: true}
  - {name: spare.service, enabled: false, running: false}
commands:
  - {name: as-train, user: train, check: test -e ~/was-here, apply: 'id -un >~/was-here'}
  - {name: as-root, check: grep -q root /srv/root, apply: 'id -un >/srv/root'}
"#;

#[test]
fn every_kind_of_wish_is_done_once() {
    let cluster = Cluster::up("t-wishes", 1, Some(&format!("{WISH}\n")));
    let side = cluster.lab.dir.join("side");
    std::fs::create_dir(&side).unwrap();
    std::fs::write(side.join("binary"), [0, 159, 146, 150, b'\n', 0]).unwrap();
    std::fs::write(side.join("filled.tmpl"), "{% for n in cluster.nodes %}{{ n }} {% endfor %}of {{ cluster.name }}\n")
        .unwrap();
    // What the wish must undo, and what is not ours to touch.
    cluster.on(
        "n1",
        "mkdir -p /srv; echo old >/srv/gone; apt-get -qq install -y cron nano >/dev/null 2>&1; systemctl stop cron; \
         printf '[Service]\nExecStart=sleep infinity\n[Install]\nWantedBy=multi-user.target\n' >/etc/systemd/system/spare.service; \
         systemctl enable --now -q spare; \
         echo '192.0.2.9 printer # mine' >>/etc/hosts; useradd -m other; \
         install -d -m 700 -o other /home/other/.ssh; echo 'ssh-rsa AAAA mine' >/home/other/.ssh/authorized_keys",
    )
    .exits(0);

    let apply = |arguments: &[&str]| {
        let mut command = cluster.command(arguments);
        crate::support::Ran::of(command.env("WISH_TOKEN", "canary-1234").output().unwrap())
    };
    let plan = apply(&["plan"]).exits(0);
    assert!(!plan.out.contains("canary"), "{}", plan.out);
    apply(&["apply", "--yes"]).exits(0).says("0 failed");

    let said = cluster.on(
        "n1",
        "sysctl -n net.core.somaxconn net.ipv4.tcp_syn_retries; cat /etc/sysctl.d/*provision*; cat /etc/security/limits.d/*provision*; \
         dpkg-query -W -f '${Package} ${db:Status-Status}\n' jq tree; apt-mark showhold; dpkg -l nano | tail -1 | cut -c1-2; \
         stat -c '%n %a %U %G' /srv/plain /srv/folder /srv/touched /srv/secret; cat /srv/plain; wc -c </srv/no-newline; \
         sha256sum </srv/copied; cat /srv/filled; readlink /srv/link; ls /srv/gone 2>&1; cat /srv/secret; \
         systemctl is-active cron spare.service; systemctl is-enabled cron spare.service; \
         cat /home/train/was-here /srv/root; grep printer /etc/hosts; grep -c 127.0.1.1 /etc/hosts; cat /home/other/.ssh/authorized_keys",
    );
    let expected = "4097
5
# Written by provision.
net.core.somaxconn = 4097
net.ipv4.tcp_syn_retries = 5
# Written by provision.
train - memlock unlimited
train - nofile 16384
jq installed
tree installed
jq
rc
/srv/plain 640 train games
/srv/folder 2775 root games
/srv/touched 600 root root
/srv/secret 400 root root
héllo 'quoted' $HOME `x`

10
";
    assert!(said.out.starts_with(expected), "{}\n{}", said.out, said.err);
    let rest = said.out.strip_prefix(expected).unwrap();
    assert!(rest.contains("n1 of wishes\nplain\n"), "{rest}");
    assert!(rest.ends_with("token canary-1234\nactive\ninactive\nenabled\ndisabled\ntrain\nroot\n192.0.2.9 printer # mine\n0\nssh-rsa AAAA mine\n"), "{rest}");

    let before = cluster.prints();
    apply(&["apply", "--yes"]).exits(0).says("0 changed");
    let mut after = cluster.prints();
    after.retain(|path, print| !path.to_string_lossy().contains("var/l") && before.get(path) != Some(print));
    assert!(after.is_empty(), "{after:?}");

    // Drift is found and mended, one thing at a time, and nothing else.
    cluster.on("n1", "chmod 644 /srv/secret; echo x >>/srv/plain; systemctl stop cron; sysctl -qw net.core.somaxconn=128; apt-mark unhold jq").exits(0);
    let plan = apply(&["plan"]).exits(0);
    assert!(plan.out.contains("1 node: 5 changes"), "{}", plan.out);
    apply(&["apply", "--yes"]).exits(0).says("5 changed, 0 failed");
    apply(&["status"]).exits(0).says("up to date");
}
