# see_sysctl KEY...: the running value, blanks as one space; `absent` when the kernel has no such key.
see_sysctl() {
    while [ $# -gt 0 ]; do
        sysctl_path=$(sysctl_file "$1")
        if [ ! -e "$sysctl_path" ]; then
            say sysctl "$1" && echo absent
        elif [ -r "$sysctl_path" ]; then
            # Not by `read`: a shell reads byte by byte, and these files give everything to the first read only.
            sysctl_value=$(cat "$sysctl_path")
            # shellcheck disable=SC2086
            say sysctl "$1" && sysctl_join $sysctl_value
        fi
        shift
    done
}
sysctl_join() { printf '%s\n' "$*"; }
# A slash in a key is a dot in the name of an interface.
sysctl_file() { printf '/proc/sys/%s\n' "$(printf '%s' "$1" | tr ./ /.)"; }
