# as_user USER SCRIPT ARGUMENT...: runs shell as a user; root needs no help for itself.
as_user() {
    run_user=$1 run_script=$2
    shift 2
    if [ "$run_user" = "$(id -un)" ]; then
        sh -c "$run_script" sh "$@"
    elif command -v runuser >/dev/null; then
        runuser -u "$run_user" -- sh -c "$run_script" sh "$@"
    else
        sudo -n -u "$run_user" -- sh -c "$run_script" sh "$@"
    fi
}
# mend_sshkey USER NAME COMMENT: made as the user, so that no link of theirs makes root write elsewhere.
mend_sshkey() {
    command -v ssh-keygen >/dev/null || refuse 'ssh-keygen is not there: install openssh-client'
    sshkey_entry=$(getent passwd -- "$1") || refuse "there is no user $1"
    sshkey_home=${sshkey_entry%:*} sshkey_home=${sshkey_home##*:}
    # shellcheck disable=SC2016
    as_user "$1" '
        set -e
        umask 077
        cd "$1"
        [ -d .ssh ] || mkdir .ssh
        if [ -f ".ssh/$2" ]; then
            ssh-keygen -y -P "" -f ".ssh/$2" >".ssh/$2.pub.new"
            mv -f ".ssh/$2.pub.new" ".ssh/$2.pub"
        else
            rm -f ".ssh/$2.new" ".ssh/$2.new.pub"
            ssh-keygen -q -t ed25519 -N "" -C "$3" -f ".ssh/$2.new"
            mv -f ".ssh/$2.new.pub" ".ssh/$2.pub"
            mv -f ".ssh/$2.new" ".ssh/$2"
        fi
    ' "$sshkey_home" "$2" "$3"
}
