# see_secret (PATH SALT)...: the digest of salt and content, so that a recorded answer tells nothing.
see_secret() {
    while [ $# -gt 0 ]; do
        if [ ! -e "$1" ] && [ ! -L "$1" ]; then
            say secret "$1" && echo absent
        elif [ -L "$1" ] || [ ! -f "$1" ]; then
            say secret "$1" && echo other
        elif [ -r "$1" ]; then
            found=$({ printf '%s\n' "$2"; cat -- "$1"; } | sha256sum)
            say secret "$1" && printf '%s\n' "${found%% *}"
        fi
        shift 2
    done
}
