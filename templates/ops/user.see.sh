# see_user NAME...: `absent`, or `UID GID HOME SHELL GROUPS` as in the user database.
see_user() {
    while [ $# -gt 0 ]; do
        if user_entry=$(getent passwd -- "$1"); then
            user_rest=${user_entry#*:*:} user_uid=${user_rest%%:*}
            user_rest=${user_rest#*:} user_gid=${user_rest%%:*}
            user_rest=${user_rest#*:*:}
            say user "$1" && printf '%s %s %s %s\n' "$user_uid" "$user_gid" "${user_rest%:*}" "${user_rest##*:}"
        elif [ "$?" = 2 ]; then
            say user "$1" && echo absent
        fi
        shift
    done
}
