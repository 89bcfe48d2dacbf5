# see_path (PATH DIGEST)...: `absent`, `TYPE MODE OWNER GROUP DIGEST` or `link TARGET`; DIGEST `-` is not asked.
# A file up to 64 KiB with another digest than the wanted one follows as base64, for the diff.
see_path() {
    [ $# -gt 0 ] || return 0
    path_stats "$@"
    if [ -z "$in_probe" ]; then path_digests "$@"; fi
    while [ $# -gt 0 ]; do
        if [ -L "$1" ]; then
            if target=$(readlink -- "$1"); then say path "$1" && printf 'link %s\n' "$target"; fi
        elif [ ! -e "$1" ]; then
            path_hidden "$1" || { say path "$1" && echo absent; }
        elif lookup "$stats" "$1"; then
            path_known="${found#*|}"
            case $found in
            'regular file|'* | 'regular empty file|'*) path_known="file $path_known" ;;
            'directory|'*) path_known="directory $path_known" ;;
            *) path_known="other $path_known" ;;
            esac
            if [ "$2" = - ]; then
                say path "$1" && printf '%s -\n' "$path_known"
            elif digest_of "$1"; then
                say path "$1" && printf '%s %s\n' "$path_known" "$found"
                if [ "$found" != "$2" ] && [ "$2" != any ]; then head -c 65536 -- "$1" | base64; fi
            elif [ ! -f "$1" ]; then
                say path "$1" && printf '%s -\n' "$path_known"
            fi
        fi
        shift 2
    done
}
# path_stats (PATH DIGEST)...: one stat for all that is there.
path_stats() {
    path_count=$(($# / 2))
    while [ "$path_count" -gt 0 ]; do
        path_count=$((path_count - 1))
        if [ -e "$1" ] && [ ! -L "$1" ]; then set -- "$@" "$1"; fi
        shift 2
    done
    stats=
    if [ $# -gt 0 ]; then stats=$(stat -c "%F|%a %U %G$tab%n" -- "$@"); fi
}
# path_digests (PATH DIGEST)...: one sha256sum for all whose content is asked.
path_digests() {
    path_count=$(($# / 2))
    while [ "$path_count" -gt 0 ]; do
        path_count=$((path_count - 1))
        if [ "$2" != - ] && [ ! -L "$1" ]; then set -- "$@" "$1"; fi
        shift 2
    done
    digests "$@"
}
# path_hidden PATH: whether it cannot be known that it is absent, because a directory above may not be entered.
path_hidden() {
    path_above=$1
    while [ ! -e "${path_above:-/}" ] && [ -n "$path_above" ]; do path_above=${path_above%/*}; done
    [ -d "${path_above:-/}" ] && [ ! -x "${path_above:-/}" ]
}
