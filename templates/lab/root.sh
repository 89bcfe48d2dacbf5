#!/bin/sh
# Makes the shared root tree of the practice cluster ready: run once by mmdebstrap, with the tree as $1.
set -eu
root=$1

chroot "$root" useradd --uid 1000 --create-home --shell /bin/bash admin
echo 'admin ALL=(ALL:ALL) NOPASSWD: ALL' >"$root/etc/sudoers.d/provision-lab"
chmod 0440 "$root/etc/sudoers.d/provision-lab"

# Who a node is lies in a layer of its own over this tree.
rm -f "$root"/etc/ssh/ssh_host_*_key "$root"/etc/ssh/ssh_host_*_key.pub "$root/etc/hostname" "$root/etc/resolv.conf"

# Logs stay in memory: what lies in a node's upper folder was written by a run, not by the boot.
mkdir -p "$root/etc/systemd/journald.conf.d"
printf '[Journal]\nStorage=volatile\nRuntimeMaxUse=8M\n' >"$root/etc/systemd/journald.conf.d/provision-lab.conf"

# What has no meaning without hardware, or would take the package lock by surprise.
for unit in apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer e2scrub_all.timer e2scrub_reap.service \
  fstrim.timer systemd-pstore.service getty@tty1.service console-getty.service systemd-update-done.service \
  systemd-random-seed.service systemd-update-utmp.service systemd-update-utmp-runlevel.service; do
  ln -sf /dev/null "$root/etc/systemd/system/$unit"
done

# sshd answers when logins are allowed, not a moment before.
mkdir -p "$root/etc/systemd/system/ssh.service.d"
printf '[Unit]\nAfter=systemd-user-sessions.service\n' >"$root/etc/systemd/system/ssh.service.d/provision-lab.conf"

# Time services refuse to start in a container, where the clock is the machine's. Here they run and leave it alone.
for unit in chrony systemd-timesyncd; do
  mkdir -p "$root/etc/systemd/system/$unit.service.d"
  printf '[Unit]\nConditionVirtualization=\nConditionCapability=\n' \
    >"$root/etc/systemd/system/$unit.service.d/provision-lab.conf"
done
# shellcheck disable=SC2016 # systemd expands it.
printf '[Service]\nExecStart=\nExecStart=!/usr/sbin/chronyd -x $DAEMON_OPTS\n' \
  >>"$root/etc/systemd/system/chrony.service.d/provision-lab.conf"

# What every boot or the first login would write anyway is here already.
mkdir -p "$root/var/lib/systemd/linger" "$root/var/lib/dbus"
: >"$root/etc/.pwd.lock"
chmod 0600 "$root/etc/.pwd.lock"
ln -sf /etc/machine-id "$root/var/lib/dbus/machine-id"
rm -rf "$root/var/log/journal"
: >"$root/home/admin/.sudo_as_admin_successful"
chroot "$root" chown admin:admin /home/admin/.sudo_as_admin_successful
