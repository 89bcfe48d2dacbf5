# mend_service UNIT enable|disable|- start|stop|-
mend_service() {
    [ -d /run/systemd/system ] || refuse 'systemd does not run here: services cannot be managed'
    case $(systemctl show -p LoadState -p NeedDaemonReload -- "$1") in
    *LoadState=not-found*) systemctl daemon-reload ;;
    *NeedDaemonReload=yes*) systemctl daemon-reload ;;
    esac
    case $(systemctl show -p LoadState -- "$1") in
    *=not-found) if [ "$2" = enable ] || [ "$3" = start ]; then refuse "there is no unit $1 on this node"; fi ;;
    *=masked) if [ "$2" = enable ] || [ "$3" = start ]; then refuse "the unit $1 is masked: systemctl unmask $1"; fi ;;
    esac
    if [ "$2" != - ]; then systemctl "$2" -- "$1"; fi
    if [ "$3" != - ]; then
        if [ "$3" = start ]; then unit_begin start "$1"; else systemctl "$3" -- "$1"; fi
    fi
}
