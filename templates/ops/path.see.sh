# see_path (PATH DIGEST)...: `absent`, `TYPE MODE OWNER GROUP DIGEST` or `link TARGET`; DIGEST `-` is not asked.
# A file up to 64 KiB with another digest than the wanted one follows as base64, for the diff.
see_path() {
    [ $# -gt 0 ] || return 0
    stats=$(path_list each "$@") sums=$(path_list sums "$@")
    while [ $# -gt 0 ]; do
        if [ -L "$1" ]; then
            if target=$(readlink -- "$1"); then say path "$1" && printf 'link %s\n' "$target"; fi
        elif [ ! -e "$1" ]; then
            path_hidden "$1" || { say path "$1" && echo absent; }
        elif lookup "$stats" "$1"; then
            path_known=$found
            if [ "$2" = - ]; then
                say path "$1" && printf '%s -\n' "$path_known"
            elif lookup "$sums" "$1"; then
                say path "$1" && printf '%s %s\n' "$path_known" "$found"
                if [ "$found" != "$2" ] && [ "$2" != any ]; then head -c 65536 -- "$1" | base64; fi
            elif [ ! -f "$1" ]; then
                say path "$1" && printf '%s -\n' "$path_known"
            fi
        fi
        shift 2
    done
}
# path_list each|sums (PATH DIGEST)...: one stat, one sha256sum for all of them.
path_list() {
    path_what=$1 path_count=$(($# / 2))
    shift
    while [ "$path_count" -gt 0 ]; do
        path_count=$((path_count - 1))
        case $path_what in
        each) if [ -e "$1" ] && [ ! -L "$1" ]; then set -- "$@" "$1"; fi ;;
        *) if [ "$2" != - ] && [ -f "$1" ] && [ ! -L "$1" ] && [ -r "$1" ]; then set -- "$@" "$1"; fi ;;
        esac
        shift 2
    done
    [ $# -gt 0 ] || return 0
    case $path_what in
    each)
        stat -c "%F|%a %U %G$tab%n" -- "$@" | sed -e 's/^regular empty file|/file /' -e 's/^regular file|/file /' \
            -e 's/^directory|/directory /' -e 's/^[a-z ]*|/other /'
        ;;
    *) sha256sum -- "$@" | sed "s/  /$tab/" ;;
    esac
}
# path_hidden PATH: whether it cannot be known that it is absent, because a directory above may not be entered.
path_hidden() {
    path_above=$1
    while [ ! -e "${path_above:-/}" ] && [ -n "$path_above" ]; do path_above=${path_above%/*}; done
    [ -d "${path_above:-/}" ] && [ ! -x "${path_above:-/}" ]
}
