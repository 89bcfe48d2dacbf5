# mend_user NAME SHELL HOME system|login: made without a password; of one that is there only the shell is changed.
mend_user() {
    if getent passwd -- "$1" >/dev/null; then
        usermod -s "$2" -- "$1"
        return
    fi
    user_kind=
    if [ "$4" = system ]; then user_kind=-r; fi
    # A group of this name that is there already becomes its own.
    if getent group -- "$1" >/dev/null; then
        useradd $user_kind -m -d "$3" -s "$2" -g "$1" -- "$1"
    else
        useradd $user_kind -m -d "$3" -s "$2" -U -- "$1"
    fi
}
