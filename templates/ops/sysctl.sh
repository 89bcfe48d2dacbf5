# mend_sysctl KEY VALUE: the running value; what the kernel refuses is said as it is.
mend_sysctl() {
    sysctl_path=$(sysctl_file "$1")
    [ -e "$sysctl_path" ] || refuse "this kernel has no sysctl $1"
    # Not by the shell's own printf: some do not say why a write failed.
    sysctl_said=$(printf '%s\n' "$2" | dd status=none of="$sysctl_path" 2>&1) ||
        refuse "the kernel refused $1 = $2: ${sysctl_said##*: }"
}
