# see_hostname (NAME PATH)...: `own` when a line of PATH for 127.0.1.1 names NAME, else `free`.
see_hostname() {
    while [ $# -gt 0 ]; do
        if [ ! -e "$2" ]; then
            say hostname "$1" && echo free
        elif [ ! -f "$2" ]; then
            say hostname "$1" && echo other
        elif [ -r "$2" ]; then
            hostname_own=free
            while read -r hostname_address hostname_names || [ "$hostname_address" ]; do
                [ "$hostname_address" = 127.0.1.1 ] || continue
                case " ${hostname_names%%#*} " in *[[:space:]]"$1"[[:space:]]* | *[[:space:]]"$1".*) hostname_own=own ;; esac
            done <"$2"
            say hostname "$1" && printf '%s\n' "$hostname_own"
        fi
        shift 2
    done
}
