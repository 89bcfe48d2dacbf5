refuse() {
    printf '%s\n' "$1" >&2
    exit 1
}
# enter DIRECTORY [make]: goes there, so that what is done to ./NAME cannot be led elsewhere by who owns a directory
# on the way. A link is followed only where root alone could have set it.
enter() {
    if cd -P -- "$1" 2>/dev/null && [ "$(readlink /proc/self/cwd)" = "$1" ]; then return 0; fi
    enter_rest=$1 enter_links=0
    cd /
    while [ "$enter_rest" ]; do
        enter_part=${enter_rest%%/*}
        case $enter_rest in */*) enter_rest=${enter_rest#*/} ;; *) enter_rest= ;; esac
        case $enter_part in '' | .) continue ;; ..) cd -P .. && continue ;; esac
        enter_here=$(readlink /proc/self/cwd)
        enter_next=${enter_here%/}/$enter_part
        if [ -L "./$enter_part" ]; then
            enter_links=$((enter_links + 1))
            [ "$enter_links" -le 20 ] || refuse "$1: too many symbolic links"
            case $(stat -c '%u %a' -- "./$enter_part" .) in
            "0 777${nl}0 "*[0145] | "0 777${nl}0 1"???) ;;
            *) refuse "$enter_next is a symbolic link that others than root can set: not followed" ;;
            esac
            enter_rest=$(readlink -- "./$enter_part")/$enter_rest
            case $enter_rest in /*) cd / ;; esac
            continue
        fi
        if [ ! -e "./$enter_part" ]; then
            [ "${2:-}" ] || refuse "the directory $enter_next does not exist"
            mkdir -- "./$enter_part"
        fi
        [ -d "./$enter_part" ] || refuse "$enter_next is no directory"
        cd -P -- "./$enter_part" || refuse "$enter_next cannot be entered"
        [ "$(readlink /proc/self/cwd)" = "$enter_next" ] || refuse "$enter_next was exchanged while it was entered"
    done
}
# parent PATH: the directory it is in.
parent() {
    parent=${1%/*}
    parent=${parent:-/}
}
# put PATH OWNER GROUP MODE PRODUCER ARGUMENT...: what PRODUCER prints becomes the content, all at once, and only when
# it printed all. An empty owner, group or mode is kept from the file that is there (new: root, root, 0644). A
# symbolic link is replaced, not followed.
put() {
    put_path=$1 put_owner=$2 put_group=$3 put_mode=$4
    shift 4
    put_old_owner=root put_old_group=root put_old_mode=0644
    parent "$put_path"
    enter "$parent"
    put_name=./${put_path##*/}
    if [ ! -L "$put_name" ] && [ -e "$put_name" ]; then
        if [ -d "$put_name" ]; then refuse "$put_path is a directory, and a file is wanted there"; fi
        [ -f "$put_name" ] || refuse "$put_path is neither a file nor a link: not replaced"
        if [ -z "$put_owner" ] || [ -z "$put_group" ] || [ -z "$put_mode" ]; then
            put_old=$(stat -c '%u %g %a' -- "$put_name")
            put_old_owner=${put_old%% *} put_old_mode=${put_old##* }
            put_old_group=${put_old#* } put_old_group=${put_old_group% *}
        fi
    fi
    put_temporary=./.${put_path##*/}.provision
    if [ -e "$put_temporary" ] || [ -L "$put_temporary" ]; then rm -rf -- "$put_temporary"; fi
    # Opened anew and exclusively: a link planted under its name is not followed. From here on it is known by its
    # descriptor; the name may be exchanged by who owns the directory.
    umask 077
    set -C
    trap 'rm -f -- "$put_temporary"' EXIT
    exec 9>"$put_temporary"
    set +C
    umask 022
    put_said=$(
        set +e
        {
            (
                set -e
                "$@" 2>&3
                echo whole >&3
            ) | dd conv=fsync bs=65536 status=none 2>&3 >&9
        } 3>&1
        :
    )
    if [ "$put_said" != whole ]; then
        case $put_said in
        *'dd: '*) put_said=${put_said##*dd: } put_said=${put_said##*: } ;;
        esac
        refuse "$put_path is not written: ${put_said:-its new content broke off}"
    fi
    put_owner=${put_owner:-$put_old_owner} put_group=${put_group:-$put_old_group}
    case $put_owner:$put_group in
    root:root | 0:0) if [ -g . ]; then chown 0:0 /proc/self/fd/9; fi ;;
    *) chown "$put_owner:$put_group" /proc/self/fd/9 ;;
    esac
    chmod "${put_mode:-$put_old_mode}" /proc/self/fd/9
    exec 9>&-
    put_said=$(mv -fT -- "$put_temporary" "$put_name" 2>&1) || put_refuse
    trap - EXIT
}
put_refuse() {
    case $put_said in
    *'not permitted') refuse "$put_path cannot be replaced: Operation not permitted (lsattr shows whether it is immutable)" ;;
    esac
    refuse "$put_path cannot be replaced: ${put_said##*: }"
}
put_text() { printf '%s' "$1"; }
# put_decoded BASE64: cut input would decode well, so that all of it went in is said apart.
put_decoded() {
    { put_fed=$({ { printf '%s' "$1" && echo whole >&4; } | base64 -d >&5; } 4>&1); } 5>&1
    [ "$put_fed" = whole ] || refuse 'the content broke off'
}
# take PATH: $taken is a file with the content of the file at PATH. Where others could exchange it, it is read with
# their rights, so that no link of theirs makes root read for them.
take() {
    parent "$1"
    enter "$parent"
    taken=./${1##*/}
    if [ -L "$taken" ]; then refuse "$1 is a symbolic link: not followed; make it a file, or name the file it points to"; fi
    [ -f "$taken" ] || refuse "$1 is no file: not changed"
    take_owners=$(stat -c '%u %g %a' -- . "$taken")
    case $take_owners in
    "0 "*[0145]"$nl"*) return 0 ;;
    0\ *) take_owner=${take_owners#*"$nl"} ;;
    *) take_owner=$take_owners ;;
    esac
    take_user=${take_owner%% *} take_group=${take_owner#* } take_group=${take_group%% *}
    if [ "$take_user" = "$(id -u)" ]; then return 0; fi
    if ! take_said=$(setpriv --reuid "$take_user" --regid "$take_group" --clear-groups -- cat -- "$taken" 2>&1 >"$folder/taken"); then
        refuse "$1 cannot be read with the rights of user $take_user, to whom it or its directory belongs: ${take_said##*: }"
    fi
    taken=$folder/taken
}
# unit_begin start|restart UNIT: and looks whether it stays: a simple service counts as started before it has done
# anything.
unit_begin() {
    unit_well=1
    systemctl "$1" -- "$2" || unit_well=
    if [ "$unit_well" ]; then
        case $(systemctl show -p Type --value -- "$2") in simple | exec | idle) sleep 0.3 2>/dev/null || sleep 1 ;; esac
        case $(systemctl show -p ActiveState -p SubState -- "$2") in
        *ActiveState=failed* | *SubState=auto-restart*) ;;
        *) return 0 ;;
        esac
    fi
    journalctl --no-pager -q -n 12 -o cat -u "$2" 2>/dev/null || :
    unit_why=$(systemctl show -p Result -p ExecMainStatus -p LoadError -- "$2" | tr '\n' ' ')
    refuse "the unit $2 does not run: ${unit_why% }"
}
