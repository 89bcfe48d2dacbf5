nl='
'
tab='	'
in_probe=
# lookup TEXT KEY: in lines "VALUE<tab>KEY" finds the value; 1 when there is none.
lookup() {
    case "$1$nl" in
    *"$tab$2$nl"*)
        found=$1$nl
        found=${found%%"$tab$2$nl"*}
        found=${found##*"$nl"}
        ;;
    *) return 1 ;;
    esac
}
# digests FILE...: one sha256sum for all that can be read, for digest_of.
digests() {
    digests_left=$#
    while [ "$digests_left" -gt 0 ]; do
        digests_left=$((digests_left - 1))
        if [ -f "$1" ] && [ -r "$1" ]; then set -- "$@" "$1"; fi
        shift
    done
    sums=
    if [ $# -gt 0 ]; then sums=$(sha256sum -- "$@"); fi
}
# digest_of FILE: finds it in the lines "DIGEST  FILE"; 1 when there is none. A digest has 64 characters.
# shellcheck disable=SC2027
digest_of() {
    found='????????????????????????????????????????????????????????????????'
    case $nl$sums$nl in
    *"$nl"$found"  $1$nl"*)
        found_before=$nl$sums$nl
        found_before=${found_before%%"$nl"$found"  $1$nl"*}
        found=$nl$sums$nl
        found=${found#"$found_before$nl"}
        found=${found%%"  "*}
        ;;
    *) return 1 ;;
    esac
}
# passwd_entry NAME: the user's line as `entry`; the status is getent's. A probe, in which nothing changes, keeps the last.
passwd_entry() {
    if [ -z "$in_probe" ] || [ "${entry_of:-}" != "$1" ]; then
        entry_of=$1 entry_status=0
        entry=$(getent passwd -- "$1") || entry_status=$?
    fi
    return "$entry_status"
}
