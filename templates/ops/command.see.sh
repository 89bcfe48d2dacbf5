# see_command (NAME USER SCRIPT)...: `done` when the check exits 0, else `not done`. Its output is not kept.
see_command() {
    while [ $# -gt 0 ]; do
        if command_as "$2" "$3" >/dev/null 2>&1 </dev/null; then
            say command "$1" && echo 'done'
        else
            say command "$1" && echo 'not done'
        fi
        shift 3
    done
}
# command_as USER SCRIPT: the script comes on a pipe, not as an argument that every user could read.
command_as() {
    if [ "${#2}" -le 4096 ] && command_self "$1"; then
        # A short one is read without another program: this is asked of every node every time.
        printf '%s\n' "$2" | sh -c 'script=; while IFS= read -r script_line; do script=$script$script_line"
"; done; unset script_line; exec </dev/null; eval "$script"'
    elif command_self "$1"; then
        printf '%s\n' "$2" | sh -c 'script=$(cat; printf x); exec </dev/null; eval "${script%x}"'
    elif command -v runuser >/dev/null; then
        # The name holds nothing but letters, digits, `_`, `-` and `.`.
        command_home=
        eval "command_home=~$1"
        printf '%s\n' "$2" | HOME=$command_home USER=$1 LOGNAME=$1 runuser -u "$1" -- sh -c 'script=$(cat; printf x); exec </dev/null; eval "${script%x}"'
    else
        printf '%s\n' "$2" | sudo -n -u "$1" -- sh -c 'script=$(cat; printf x); exec </dev/null; eval "${script%x}"'
    fi
}
# command_self USER: whether that is who runs this; root is known without asking a program.
command_self() {
    if [ "$1" != root ]; then
        [ "$1" = "$(id -un)" ]
        return
    fi
    while read -r command_field _ command_uid _; do
        if [ "$command_field" = Uid: ]; then break; fi
    done </proc/self/status
    [ "$command_uid" = 0 ]
}
