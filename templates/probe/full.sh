#!/bin/sh
# The questions beyond core.sh, for `provision facts`: installed software, what nvidia-smi and Docker say, disks, limits.
# Comes after core.sh and uses its working directory. Writes nothing; whatever could hang runs under `timeout`, and
# where there is no `timeout` it is not asked. nvidia-smi is asked only when the driver is loaded (it would load it),
# Docker only when it runs (its socket would start it).
# shellcheck disable=SC2154

facts_try() {
    command -v timeout >/dev/null 2>&1 && command -v "$1" >/dev/null 2>&1 && timeout 5 "$@" </dev/null 2>/dev/null
}

# Asks a tool and prints its frame only when it answered, so that a failure is "not known" and never "absent".
facts_say() {
    facts_key=$1
    shift
    if facts_text=$(facts_try "$@"); then
        say fact "$facts_key"
        printf '%s\n' "$facts_text"
    fi
}

# `whole` as the last line: the list is whole, so what is not in it is not installed.
facts_packages() {
    facts_wanted='(lib)?nvidia|cuda|libcud|libnccl|nvlsm|docker|moby|containerd|podman|cri-o|unattended|dnf-automatic'
    facts_wanted="$facts_wanted|linux-modules-nvidia|doca|mlnx|datacenter-gpu|kmod-nvidia"
    if command -v dpkg-query >/dev/null 2>&1; then
        # Held packages begin with h, whatever they are.
        # shellcheck disable=SC2016 # The braces are dpkg's.
        facts_text=$({ facts_try dpkg-query -W -f '${db:Status-Abbrev} ${Package} ${Version}\n' && echo whole; } |
            grep -E "^whole\$|^h|^.i. *($facts_wanted)")
        say fact dpkg
        printf '%s\n' "$facts_text"
    fi
    if command -v rpm >/dev/null 2>&1 && [ -e var/lib/rpm ]; then
        facts_text=$({ facts_try rpm -qa --qf '%{NAME} %{VERSION}-%{RELEASE}\n' && echo whole; } |
            grep -E "^whole\$|^($facts_wanted)")
        say fact rpm
        printf '%s\n' "$facts_text"
        say fact versionlock
        grep -shv '^#' etc/yum/pluginconf.d/versionlock.list etc/dnf/plugins/versionlock.list </dev/null
    fi
}

facts_settings() {
    say fact settings
    grep -sE '^[[:space:]]*[^#[:space:]]' etc/nccl.conf etc/environment </dev/null
    grep -s 'Unattended-Upgrade ' etc/apt/apt.conf.d/* etc/apt/apt.conf </dev/null
    grep -s '^apply_updates' etc/dnf/automatic.conf /dev/null </dev/null
    if [ -L etc/systemd/system/timers.target.wants/dnf-automatic-install.timer ]; then echo dnf-timer:install; fi
    if [ -L etc/systemd/system/timers.target.wants/dnf-automatic.timer ]; then echo dnf-timer:configured; fi
    say fact repos
    grep -sE '^(deb |URIs:|Suites:|Enabled:|Types:|$)' etc/apt/sources.list etc/apt/sources.list.d/*.list \
        etc/apt/sources.list.d/*.sources </dev/null
    grep -sE '^(\[|baseurl|mirrorlist|metalink|enabled)' etc/yum.repos.d/*.repo /dev/null </dev/null
    say fact memlock
    # shellcheck disable=SC3045 # dash, bash and busybox all know -l; elsewhere nothing is printed.
    ulimit -l 2>/dev/null
}

# Libraries by their file names; directories of toolkits.
facts_libraries() {
    say fact libraries
    for facts_at in usr/local/cuda usr/local/cuda-*; do
        [ -L "$facts_at" ] && continue
        if [ -e "$facts_at/version.json" ] || [ -e "$facts_at/bin/nvcc" ]; then
            printf 'cuda %s\n' "${facts_at##*/}"
            grep -sA3 '"cuda" *:' "$facts_at/version.json" </dev/null
        fi
        for facts_file in "$facts_at"/compat/libcuda.so.*.*; do
            [ -e "$facts_file" ] && printf 'compat %s\n' "${facts_at##*/}"
        done
    done
    for facts_at in usr/lib64 usr/lib usr/lib/*-linux-gnu usr/local/lib usr/local/cuda*/lib64 \
        usr/local/cuda*/targets/*/lib; do
        [ -L "${facts_at%/lib64}" ] && continue
        for facts_file in "$facts_at"/libcudnn.so.*.*.* "$facts_at"/libnccl.so.*.*.*; do
            [ -e "$facts_file" ] && printf 'library /%s\n' "$facts_file"
        done
    done
    for facts_file in usr/bin/python3.* usr/local/bin/python3.*; do
        [ -x "$facts_file" ] && printf 'python %s\n' "${facts_file##*/python}"
    done
    return 0
}

facts_environments() {
    say fact environments
    for facts_at in opt/* opt/*/* opt/*/envs/* srv/* srv/*/* usr/local usr/local/* home/*/* home/*/.venv home/*/*/envs/* \
        root/* root/*/envs/*; do
        facts_is=''
        [ -e "$facts_at/pyvenv.cfg" ] && facts_is=venv
        [ -e "$facts_at/conda-meta/history" ] && facts_is=conda
        for facts_file in "$facts_at"/lib/python3*/site-packages "$facts_at"/lib/python3*/dist-packages; do
            [ -d "$facts_file" ] || continue
            if [ -z "$facts_is" ]; then
                # Not an environment, but somebody may have installed torch there.
                set -- "$facts_file"/torch-*-info
                [ -e "$1" ] || continue
            fi
            facts_word=${facts_file%/*}
            printf 'environment %s /%s\n' "${facts_word##*/python}" "$facts_at"
            cd "$facts_file" && printf '%s\n' *.dist-info *.egg-info
            cd "${facts_root-}/" || return 0
        done
    done
    return 0
}

facts_gpus() {
    [ -e proc/driver/nvidia/version ] || return 0
    facts_say smi nvidia-smi --query-gpu=pci.bus_id,uuid,mig.mode.current,name --format=csv,noheader
    facts_say processes nvidia-smi --query-compute-apps=pid,used_memory --format=csv,noheader
}

facts_containers() {
    say fact container
    if [ -e sys/fs/cgroup/cgroup.controllers ]; then
        echo cgroup=2
    elif [ -e sys/fs/cgroup ]; then
        echo cgroup=1
    fi
    for facts_word in dockerd podman containerd crio; do
        command -v "$facts_word" >/dev/null 2>&1 && printf 'engine=%s\n' "$facts_word"
    done
    facts_pid=
    { read -r facts_pid <run/docker.pid || read -r facts_pid <var/run/docker.pid; } 2>/dev/null
    if [ -n "$facts_pid" ] && [ -d "proc/$facts_pid" ]; then
        facts_say docker docker info --format '{{.ServerVersion}} {{.CgroupDriver}} {{.CgroupVersion}}'
        facts_say images docker images --format '{{.Repository}}:{{.Tag}}'
    fi
    facts_say ctk nvidia-ctk --version
}

facts_rdma() {
    [ -e sys/class/infiniband ] || return 0
    say fact gids
    # Empty slots answer an error; of the rest only IPv4 addresses and RoCE v2 matter.
    grep -sE '^0000:0000:0000:0000:0000:ffff:|RoCE v2' sys/class/infiniband/*/ports/1/gids/* \
        sys/class/infiniband/*/ports/1/gid_attrs/types/* </dev/null
    [ -e usr/bin/ofed_info ] && facts_say ofed ofed_info -s
}

facts_rest() {
    facts_say disks df -Pk / /var /opt /home /tmp
    if [ -d run/systemd/system ]; then
        facts_say synced timedatectl show -p NTPSynchronized --value
    fi
    if [ -e sys/firmware/efi ]; then
        for facts_at in sys/firmware/efi/efivars/SecureBoot-*; do
            [ -r "$facts_at" ] && facts_say secure_boot od -An -tu1 "$facts_at"
        done
    elif [ -e sys/firmware ]; then
        say fact secure_boot
        echo none
    fi
}

facts_full() {
    cd "${facts_root-}/" || return 0
    facts_packages
    facts_settings
    facts_libraries
    facts_environments
    facts_gpus
    facts_containers
    facts_rdma
    facts_rest
}
facts_full 2>/dev/null || :
