# see_group NAME...: `absent`, or the number.
see_group() {
    while [ $# -gt 0 ]; do
        if group_entry=$(getent group -- "$1"); then
            group_entry=${group_entry#*:*:}
            say group "$1" && printf '%s\n' "${group_entry%%:*}"
        elif [ "$?" = 2 ]; then
            say group "$1" && echo absent
        fi
        shift
    done
}
