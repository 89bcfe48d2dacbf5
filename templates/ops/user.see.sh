# see_user NAME...: `absent`, or `UID GID GROUP,GROUP SHELL HOME`.
see_user() {
    while [ $# -gt 0 ]; do
        if user_entry=$(getent passwd -- "$1"); then
            user_rest=${user_entry#*:*:} user_uid=${user_rest%%:*}
            user_rest=${user_rest#*:} user_gid=${user_rest%%:*}
            user_rest=${user_rest#*:*:}
            user_groups=$(id -Gn -- "$1") && user_groups=$(printf '%s' "$user_groups" | tr ' ' ,)
            say user "$1" &&
                printf '%s %s %s %s %s\n' "$user_uid" "$user_gid" "$user_groups" "${user_rest##*:}" "${user_rest%:*}"
        elif [ "$?" = 2 ]; then
            say user "$1" && echo absent
        fi
        shift
    done
}
