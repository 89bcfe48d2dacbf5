# see_service UNIT...: `LOAD ENABLED ACTIVE` as systemd says, `-` for nothing.
see_service() {
    [ $# -gt 0 ] || return 0
    if [ ! -d /run/systemd/system ]; then
        for unit in "$@"; do say service "$unit" && echo 'no systemd'; done
        return 0
    fi
    units=$(systemctl show -p LoadState -p UnitFileState -p ActiveState -- "$@") || return 0
    units=$units$nl$nl
    for unit in "$@"; do
        one=$nl${units%%"$nl$nl"*}$nl
        units=${units#*"$nl$nl"}
        service_line=
        for property in LoadState UnitFileState ActiveState; do
            value=-
            case $one in
            *"$nl$property="*)
                value=${one#*"$nl$property="}
                value=${value%%"$nl"*}
                ;;
            esac
            service_line="$service_line ${value:--}"
        done
        say service "$unit" && printf '%s\n' "${service_line# }"
    done
}
