#!/bin/sh
# The questions that every visit asks: who the node is, what it runs on, which hardware it has.
# Answers are printed as frames by `say KIND KEY`, defined before this text. Writes nothing and never waits:
# small files are read by one grep and by builtins, because starting a process costs more than all the reading.
# facts_root is the tree that is looked at (unset: the real one). Afterwards the working directory is that root.
# shellcheck disable=SC2154

facts_files() {
    say fact files
    grep -s '' etc/os-release etc/machine-id proc/sys/kernel/osrelease proc/sys/kernel/hostname \
        proc/sys/kernel/arch proc/sys/kernel/random/boot_id proc/driver/nvidia/version sys/module/nvidia/version \
        proc/driver/nvidia/gpus/*/information etc/ssh/ssh_host_*_key.pub sys/class/infiniband/*/node_guid \
        sys/class/infiniband/*/ports/1/state sys/class/infiniband/*/ports/1/link_layer \
        sys/class/infiniband/*/ports/1/rate </dev/null
}

# Only NVIDIA's devices, one line each: address, device id, class. The modalias would need one read less, but
# not every tree has it.
facts_pci() {
    [ -e sys/bus/pci/devices ] || return 0
    say fact pci
    set -- sys/bus/pci/devices/*/vendor
    if [ "$#" -gt 50 ]; then
        # From here on one more process is cheaper than reading each file.
        # shellcheck disable=SC2046 # Addresses have no blanks.
        set -- $(grep -lsxF 0x10de "$@" </dev/null)
    fi
    for facts_at in "$@"; do
        facts_at=${facts_at%/vendor} facts_word=
        { read -r facts_word <"$facts_at/vendor"; } 2>/dev/null
        [ "$facts_word" = 0x10de ] || continue
        # A virtual function is a share of a device that is listed itself.
        [ -e "$facts_at/physfn" ] && continue
        facts_device='' facts_class=''
        { read -r facts_device <"$facts_at/device" && read -r facts_class <"$facts_at/class"; } 2>/dev/null
        printf '%s %s %s\n' "${facts_at##*/}" "$facts_device" "$facts_class"
    done
    for facts_at in proc/driver/nvidia-nvswitch/devices/*; do
        [ -e "$facts_at" ] && printf 'nvswitch %s\n' "${facts_at##*/}"
    done
    return 0
}

# A module that was loaded (not built in) has a file `initstate`.
facts_modules() {
    [ -r sys/module ] || return 0
    say fact modules
    cd sys/module && printf '%s\n' */initstate
    cd "${facts_root-}/" || return 0
}

# What builtins alone can tell, `name=value`.
facts_marks() {
    say fact marks
    while read -r facts_word _ facts_rest; do
        [ "$facts_word" = Uid: ] || continue
        # The second number is the effective one.
        printf 'uid=%s\n' "${facts_rest%%[!0-9]*}"
        break
    done 2>/dev/null <proc/self/status
    if [ -d run/systemd/system ]; then echo systemd=yes; else echo systemd=no; fi
    if [ -x usr/bin/apt-get ]; then
        echo package_manager=apt
    elif [ -x usr/bin/dnf ] || [ -x usr/bin/yum ]; then
        echo package_manager=dnf
    else
        echo package_manager=none
    fi
    if [ -e sys/class/infiniband ]; then echo rdma=yes; else echo rdma=no; fi
    if [ -e usr/bin/ofed_info ]; then echo ofed=yes; else echo ofed=no; fi
    # systemd keeps a link here for each unit that is starting or running, so no bus has to be asked.
    if [ -d run/systemd/units ]; then
        echo units=yes
        for facts_word in chrony chronyd systemd-timesyncd ntp ntpsec ntpd openntpd nvidia-fabricmanager; do
            [ -L "run/systemd/units/invocation:$facts_word.service" ] && printf 'running=%s\n' "$facts_word"
        done
    elif [ -d run/systemd/system ]; then
        set -- chrony chronyd systemd-timesyncd ntp ntpsec ntpd openntpd nvidia-fabricmanager
        if facts_rest=$(systemctl is-active -- "$@" </dev/null 2>/dev/null) || [ -n "$facts_rest" ]; then
            echo units=yes
            for facts_word in $facts_rest; do
                [ "$facts_word" = active ] && printf 'running=%s\n' "$1"
                shift
            done
        fi
    fi
    # The user-space part of the driver, from whichever package or installer: its library carries the version.
    for facts_at in usr/lib64/libnvidia-ml.so.*.* usr/lib/libnvidia-ml.so.*.* usr/lib/*-linux-gnu/libnvidia-ml.so.*.* \
        usr/lib/*-linux-gnu/nvidia/*/libnvidia-ml.so.*.*; do
        [ -e "$facts_at" ] && printf 'driver=%s\n' "${facts_at##*libnvidia-ml.so.}"
    done
    return 0
}

facts_system() {
    if [ ! -r proc/sys/kernel/arch ]; then
        say fact arch
        uname -m
    fi
    if command -v getconf >/dev/null 2>&1; then
        say fact glibc
        getconf GNU_LIBC_VERSION 2>/dev/null
    fi
    if command -v ip >/dev/null 2>&1; then
        say fact addresses
        ip address show 2>/dev/null </dev/null
    elif [ -e sys/class/net ]; then
        say fact interfaces
        grep -s '' sys/class/net/*/mtu sys/class/net/*/operstate </dev/null
    fi
    facts_word=
    { read -r facts_word <proc/sys/kernel/hostname; } 2>/dev/null
    if [ -n "$facts_word" ] && [ -r etc/hosts ]; then
        say fact hosts
        grep -iwF -e "$facts_word" etc/hosts </dev/null
    fi
    return 0
}

# Whether the process whose number and start time FILE holds is alive: a number that is used again does not count, nor does
# a dead process that nobody has waited for.
facts_alive() {
    facts_pid='' facts_start='' facts_word=''
    { read -r facts_pid facts_start <"$1" && read -r facts_word <"proc/$facts_pid/stat"; } 2>/dev/null
    facts_word=${facts_word##*) }
    case $facts_word in '' | Z*) return 1 ;; esac
    # shellcheck disable=SC2086 # Fields 3 and on; the start time is field 22.
    set -- $facts_word
    [ "$#" -ge 20 ] && shift 19 && [ "$1" = "$facts_start" ]
}

# What an earlier run left: scripts that still live and have not ended, reactions that were not caught up.
facts_engine() {
    facts_at=var/lib/provision
    if [ -e "$facts_at" ] && [ ! -x "$facts_at" ]; then return 0; fi
    say fact runs
    for facts_file in "$facts_at"/runs/*/pid; do
        facts_alive "$facts_file" || continue
        facts_run=${facts_file%/pid}
        case $(tail -n 1 "$facts_run/events" 2>/dev/null) in @*"	end	"*) continue ;; esac
        printf '%s %s\n' "${facts_run##*/}" "$facts_pid"
    done
    say fact pending
    for facts_file in "$facts_at"/pending/*; do
        [ -e "$facts_file" ] && printf '%s\n' "${facts_file##*/}"
    done
    return 0
}

facts_core() {
    PATH=$PATH:/usr/sbin:/sbin
    LC_ALL=C
    export PATH LC_ALL
    cd "${facts_root-}/" || return 0
    facts_files
    facts_pci
    facts_modules
    facts_marks
    facts_system
    facts_engine
}
facts_core 2>/dev/null || :
