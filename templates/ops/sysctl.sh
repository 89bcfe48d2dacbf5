# mend_sysctl KEY VALUE: the running value; what the kernel refuses is said as it is.
mend_sysctl() {
    sysctl_path=$(sysctl_file "$1")
    [ -e "$sysctl_path" ] || refuse "this kernel has no sysctl $1"
    if ! printf '%s\n' "$2" >"$sysctl_path"; then
        refuse "the kernel refused $1 = $2"
    fi
}
