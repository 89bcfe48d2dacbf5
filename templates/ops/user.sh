# mend_user NAME SHELL HOME system|login: made without a password; one that is there stays as it is.
mend_user() {
    if getent passwd -- "$1" >/dev/null; then return; fi
    user_kind=
    if [ "$4" = system ]; then user_kind=-r; fi
    # A group of this name that is there already becomes its own.
    if getent group -- "$1" >/dev/null; then
        useradd $user_kind -m -d "$3" -s "$2" -g "$1" -- "$1"
    else
        useradd $user_kind -m -d "$3" -s "$2" -U -- "$1"
    fi
}
