#!/bin/sh
# One node of the practice cluster, from its network cable to its boot loop. Started detached by `provision lab up`.
#
# It runs twice: "outer" on the machine itself, where it takes a cgroup of its own and keeps a handle on the machine's
# network, and "inner" in namespaces of its own, where it plugs the node in, mounts its files and boots it again after
# each reboot. All of the node lives in the process namespace that "outer" opens, so that ending that one process ends
# everything, and its mounts and its interface go with it.
set -eu
mode=$1 lab=$2 name=$3 folder=$4 root=$5 address=$6 prefix=$7 gateway=$8 bridge=$9
shift 9
cable=$1 card=$2

if [ "$mode" = outer ]; then
  # systemd in the node takes the cgroup it finds itself in for its own: two nodes in one would kill each other.
  while read -r _ _ _ _ at _ rest; do
    case $rest in
    *"- cgroup2 "*) ;;
    *"- cgroup "*name=systemd*) ;;
    *) continue ;;
    esac
    # One that is mounted and cannot be written is covered by another mount, or not ours.
    mkdir -p "$at/provision-lab.$lab.$name" 2>/dev/null || continue
    echo $$ >"$at/provision-lab.$lab.$name/cgroup.procs"
  done </proc/self/mountinfo
  # Who this process is, so that nobody ever ends another one that got its number later.
  read -r start </proc/$$/stat
  # shellcheck disable=SC2086 # The fields after the program's name, the 20th of which is when it started.
  set -- ${start##*) }
  shift 19
  read -r boot </proc/sys/kernel/random/boot_id
  echo "$$ $1 $boot" >"$folder/pid"
  exec 9</proc/self/ns/net
  exec unshare --net --mount --pid --fork --kill-child --propagation private \
    sh "$0" inner "$lab" "$name" "$folder" "$root" "$address" "$prefix" "$gateway" "$bridge" "$cable" "$card"
fi

# The cable: one end on the machine's bridge, the other here as eth0.
ip link set lo up
# A node keeps its hardware address when it is started again, else its peers look for the old one for a while.
ip link add eth0 address "$card" type veth peer name "$cable" netns /proc/self/fd/9
nsenter --net=/proc/self/fd/9 ip link set "$cable" master "$bridge" up
exec 9<&-
ip address add "$address/$prefix" dev eth0
ip link set eth0 up
ip route add default via "$gateway"

# Its files: the shared tree, over it who the node is, on top what is written from now on.
mount -t proc proc /proc
mount -t overlay provision-lab -o "lowerdir=$folder/identity:$root,upperdir=$folder/upper,workdir=$folder/work" \
  "$folder/tree"
# A machine whose init mounted no cgroups: the node gets them in its own view.
if ! grep -qe '- cgroup2 ' -e '- cgroup .*name=systemd' /proc/self/mountinfo; then
  mount -t cgroup2 cgroup2 /sys/fs/cgroup
  mkdir -p "/sys/fs/cgroup/provision-lab.$lab.$name"
  echo 0 >"/sys/fs/cgroup/provision-lab.$lab.$name/cgroup.procs"
fi
# Without this a reboot fails: the names of ended nodes stay taken here.
mkdir -p /run/systemd/nspawn
mount -t tmpfs tmpfs /run/systemd/nspawn

while :; do
  date +%s >"$folder/booted"
  status=0
  SYSTEMD_NSPAWN_UNIFIED_HIERARCHY=1 SYSTEMD_NSPAWN_API_VFS_WRITABLE=network \
    systemd-nspawn --quiet --boot --directory="$folder/tree" --machine="$name" --hostname="$name" \
    --network-namespace-path=/proc/self/ns/net --capability=CAP_NET_ADMIN \
    --system-call-filter='add_key keyctl bpf' --register=no --keep-unit --console=pipe --link-journal=no \
    --resolv-conf=off --timezone=off --settings=no </dev/null || status=$?
  # 133 asks to be started again; all else is an end.
  [ "$status" -eq 133 ] || break
  echo "provision-lab: $name reboots"
done
rm -f "$folder/booted"
exit "$status"
