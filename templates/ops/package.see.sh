# see_package NAME...: `absent`, `installed VERSION WANT` (WANT is install or hold) or `broken STATUS VERSION`.
see_package() {
    [ $# -gt 0 ] || return 0
    command -v dpkg-query >/dev/null || return 0
    # shellcheck disable=SC2016
    packages=$(dpkg-query -W -f='${db:Status-Status} ${Version} ${db:Status-Want}\t${Package}\n${db:Status-Status} ${Version} ${db:Status-Want}\t${Package}:${Architecture}\n' -- "$@" 2>/dev/null)
    for package in "$@"; do
        say package "$package"
        if lookup "$packages" "$package"; then
            case $found in
            installed\ *) printf '%s\n' "$found" ;;
            not-installed\ * | config-files\ *) echo absent ;;
            *) printf 'broken %s\n' "$found" ;;
            esac
        else
            echo absent
        fi
    done
}
