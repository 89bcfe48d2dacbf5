apt_get() {
    DEBIAN_FRONTEND=noninteractive NEEDRESTART_MODE=l NEEDRESTART_SUSPEND=1 APT_LISTCHANGES_FRONTEND=none \
        apt-get -y -o DPkg::Lock::Timeout=1500 -o Dpkg::Options::=--force-confdef -o Dpkg::Options::=--force-confold \
        -o Dpkg::Use-Pty=0 "$@"
}
# apt_holder: says who holds the locks, before the wait.
apt_holder() {
    for lock in /var/lib/dpkg/lock-frontend /var/lib/dpkg/lock /var/lib/apt/lists/lock; do
        [ -e "$lock" ] || continue
        lock_inode=$(stat -c %i -- "$lock")
        while read -r _ _ _ _ lock_pid lock_file _; do
            if [ "${lock_file##*:}" = "$lock_inode" ]; then
                printf 'waiting for %s, held by process %s: %s\n' "$lock" "$lock_pid" "$(tr '\0' ' ' <"/proc/$lock_pid/cmdline")"
            fi
        done </proc/locks
    done
}
# mend_package (NAME VERSION present|absent hold|free|-)...: VERSION empty, exact, or a prefix ending in *.
mend_package() {
    command -v apt-get >/dev/null || refuse 'apt-get is not there: only Debian and Ubuntu are served by this build'
    apt_holder
    if [ "$(dpkg --audit 2>/dev/null | wc -l)" != 0 ]; then
        DEBIAN_FRONTEND=noninteractive dpkg --force-confdef --force-confold --configure -a
    fi
    if ! package_known "$@"; then apt_get update; fi
    package_count=$(($# / 4)) package_held=
    apt_hold=' ' apt_free=' '
    while [ "$package_count" -gt 0 ]; do
        package_count=$((package_count - 1))
        case $3 in
        present)
            package_version=$2
            case $2 in *\*) package_version=$(package_newest "$1" "$2") ;; esac
            set -- "$@" "$1${package_version:+=$package_version}"
            ;;
        *) set -- "$@" "$1-" ;;
        esac
        case $4 in
        hold) apt_hold="$apt_hold$1 " ;;
        free) apt_free="$apt_free$1 " ;;
        esac
        package_held="$package_held $1"
        shift 4
    done
    # Only the named ones may move although they are held; apt has one switch for all, so the others are checked before.
    package_plan=$(apt_get -s --allow-downgrades --allow-change-held-packages install -- "$@") || {
        printf '%s\n' "$package_plan"
        apt_get -s --allow-downgrades --allow-change-held-packages install -- "$@"
    }
    for held in $(apt-mark showhold); do
        case " $package_held " in *" $held "*) continue ;; esac
        if printf '%s\n' "$package_plan" | grep -q -e "^Inst $held " -e "^Remv $held "; then
            refuse "this would change the package $held, which is held and not named in the manifest"
        fi
    done
    apt_get --allow-downgrades --allow-change-held-packages install -- "$@"
    # shellcheck disable=SC2086
    if [ "$apt_hold" != ' ' ]; then apt-mark hold -- $apt_hold; fi
    # shellcheck disable=SC2086
    if [ "$apt_free" != ' ' ]; then apt-mark unhold -- $apt_free; fi
}
# package_newest NAME PREFIX*: the newest version of the lists that begins so; else the pattern, for apt to refuse.
package_newest() {
    for newest in $(apt-cache madison -- "$1" | sed 's/^[^|]*| *\([^ |]*\) *|.*/\1/'); do
        # shellcheck disable=SC2254
        case $newest in "${2%\*}"*)
            printf '%s\n' "$newest"
            return
            ;;
        esac
    done
    printf '%s\n' "$2"
}
# package_known (NAME VERSION STATE HOLD)...: whether the lists already have all that is wanted.
package_known() {
    while [ $# -gt 0 ]; do
        if [ "$3" = present ]; then
            known=$(apt-cache madison -- "$1" | sed 's/^[^|]*| *\([^ |]*\) *|.*/ \1/')
            [ "$known" ] || return 1
            if [ "$2" ]; then
                case $known in *" ${2%\*}"*) ;; *) return 1 ;; esac
            fi
        fi
        shift 4
    done
}
