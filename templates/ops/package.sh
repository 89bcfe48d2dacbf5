apt_get() {
    DEBIAN_FRONTEND=noninteractive NEEDRESTART_MODE=l NEEDRESTART_SUSPEND=1 APT_LISTCHANGES_FRONTEND=none \
        apt-get -y -o DPkg::Lock::Timeout=1500 -o Dpkg::Options::=--force-confdef -o Dpkg::Options::=--force-confold \
        -o Dpkg::Use-Pty=0 "$@"
}
# apt_wait: waits until nobody holds the locks, and says who does. Not all that is run here waits by itself.
apt_wait() {
    apt_said=
    while :; do
        apt_holders=
        for lock in /var/lib/dpkg/lock-frontend /var/lib/dpkg/lock /var/lib/apt/lists/lock; do
            [ -e "$lock" ] || continue
            lock_inode=$(stat -c %i -- "$lock")
            while read -r _ _ _ _ lock_pid lock_file _; do
                [ "${lock_file##*:}" = "$lock_inode" ] || continue
                # Another file system may have a file of the same number.
                case $(ls -l "/proc/$lock_pid/fd" 2>/dev/null) in
                *"-> $lock"*) apt_holders="$apt_holders $lock_pid" ;;
                esac
            done </proc/locks
        done
        [ "$apt_holders" ] || return 0
        if [ "$apt_holders" != "$apt_said" ]; then
            for lock_pid in $apt_holders; do
                lock_command=$(tr '\0' ' ' 2>/dev/null <"/proc/$lock_pid/cmdline") || :
                printf 'waiting for the locks of dpkg and apt, held by process %s: %s\n' "$lock_pid" "$lock_command"
            done
            apt_said=$apt_holders
        fi
        sleep 1
    done
}
# apt_failed: says last why, from what apt and dpkg have written.
apt_failed() {
    apt_why=$(tail -c +"$((out_from + 1))" "$folder/out" | tail -c 262144 | awk '
        function add(text) { sub(/^ +/, "", text); if (!(text in had)) { had[text] = 1; all = all (all == "" ? "" : "; ") text } }
        /^dpkg: error processing / { head = $0; sub(/^dpkg: error processing /, "", head); sub(/:$/, "", head); next }
        head != "" { text = $0; sub(/^ +/, "", text); add(head ": " text); head = ""; next }
        /^ .*(Depends|Conflicts|Breaks|Recommends): / { add($0) }
        /^E: / { if ($0 !~ /^E: (Sub-process|Unable to correct)/) { last = substr($0, 4) } else if (last == "") last = substr($0, 4) }
        END { print all != "" ? all : last }')
    for apt_word in "$@"; do
        case $apt_why in
        "Version '"*"' for '${apt_word%%=*}' was not found")
            apt_there=$(apt-cache madison -- "${apt_word%%=*}" | sed 's/^[^|]*| *\([^ |]*\) *|.*/\1/' | sort -u | head -n 5 | tr '\n' ' ')
            apt_why="$apt_why; the repositories of this node have: ${apt_there:-none}"
            ;;
        esac
    done
    refuse "apt-get failed: ${apt_why:-it did not say why}"
}
# mend_package (NAME VERSION present|absent hold|free|-)...: VERSION empty, exact, or a prefix ending in *.
mend_package() {
    command -v apt-get >/dev/null || refuse 'apt-get is not there: only Debian and Ubuntu are served by this build'
    apt_wait
    if [ "$(dpkg --audit 2>/dev/null | wc -l)" != 0 ]; then
        # What cannot be configured may be what a newer version below mends: apt is the judge.
        DEBIAN_FRONTEND=noninteractive dpkg --force-confdef --force-confold --configure -a || :
    fi
    apt_fresh=
    if ! package_known "$@"; then
        apt_get update || apt_failed
        apt_fresh=1
    fi
    # A name that the lists do not have would be taken for a regular expression, and change what nobody named.
    package_exact "$@"
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
        *) if dpkg-query -W -f '${db:Status-Status}' -- "$1" >/dev/null 2>&1; then set -- "$@" "$1-"; fi ;;
        esac
        case $4 in
        hold) apt_hold="$apt_hold$1 " ;;
        free) apt_free="$apt_free$1 " ;;
        esac
        package_held="$package_held $1"
        shift 4
    done
    # Only the named ones may move although they are held; apt has one switch for all, so the others are checked before.
    package_plan=$(apt_get -s --allow-downgrades --allow-change-held-packages install -- "$@" 2>&1) || {
        printf '%s\n' "$package_plan"
        apt_failed "$@"
    }
    for held in $(apt-mark showhold); do
        case " $package_held " in *" $held "*) continue ;; esac
        if printf '%s\n' "$package_plan" | grep -q -e "^Inst $held " -e "^Remv $held "; then
            refuse "this would change the package $held, which is held and not named in the manifest"
        fi
    done
    if ! apt_get --allow-downgrades --allow-change-held-packages install -- "$@"; then
        # Lists that are too old name files that the archive no longer has.
        if [ "$apt_fresh" ] || ! tail -c +"$((out_from + 1))" "$folder/out" | grep -q '^E: Failed to fetch'; then
            apt_failed "$@"
        fi
        apt_get update || apt_failed
        apt_get --allow-downgrades --allow-change-held-packages install -- "$@" || apt_failed "$@"
    fi
    # shellcheck disable=SC2086
    if [ "$apt_hold" != ' ' ]; then apt-mark hold -- $apt_hold; fi
    # shellcheck disable=SC2086
    if [ "$apt_free" != ' ' ]; then apt-mark unhold -- $apt_free; fi
}
# package_exact (NAME VERSION STATE HOLD)...: refuses a wanted package that apt does not know by exactly this name.
package_exact() {
    while [ $# -gt 0 ]; do
        if [ "$3" = present ] && ! dpkg-query -W -f '' -- "$1" >/dev/null 2>&1 &&
            [ -z "$(apt-cache madison -- "$1" 2>/dev/null)" ]; then
            refuse "apt-get failed: Unable to locate package $1: the repositories of this node do not have it"
        fi
        shift 4
    done
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
