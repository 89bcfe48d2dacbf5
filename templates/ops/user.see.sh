# see_user NAME...: `absent`, or `UID GID GROUP,GROUP SHELL HOME`.
see_user() {
    while [ $# -gt 0 ]; do
        if passwd_entry "$1"; then
            user_rest=${entry#*:*:} user_uid=${user_rest%%:*}
            user_rest=${user_rest#*:} user_gid=${user_rest%%:*}
            user_rest=${user_rest#*:*:}
            user_groups=$(id -Gn -- "$1")
            while :; do
                case $user_groups in *' '*) user_groups=${user_groups%% *},${user_groups#* } ;; *) break ;; esac
            done
            say user "$1" &&
                printf '%s %s %s %s %s\n' "$user_uid" "$user_gid" "$user_groups" "${user_rest##*:}" "${user_rest%:*}"
        elif [ "$?" = 2 ]; then
            say user "$1" && echo absent
        fi
        shift
    done
}
