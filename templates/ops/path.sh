# mend_file PATH OWNER GROUP MODE text|base64|keep CONTENT
mend_file() {
    case $5 in
    # What printf says of a closed pipe would hide why put could not write.
    text) printf '%s' "$6" 2>/dev/null | put "$1" "$2" "$3" "$4" ;;
    base64) printf '%s' "$6" 2>/dev/null | base64 -d | put "$1" "$2" "$3" "$4" ;;
    *)
        if [ -e "$1" ] && [ ! -L "$1" ]; then
            [ -f "$1" ] || refuse "$1 is there and is no file: not replaced"
            mend_owner "$1" "$2" "$3" "$4"
        else
            put "$1" "$2" "$3" "$4" </dev/null
        fi
        ;;
    esac
}
mend_owner() {
    if [ "$2$3" ]; then chown -h "$2${3:+:$3}" -- "$1"; fi
    if [ "$4" ]; then chmod "$4" -- "$1"; fi
}
mend_absent() {
    if [ -d "$1" ] && [ ! -L "$1" ]; then refuse "$1 is a directory: not removed"; fi
    rm -f -- "$1"
}
# mend_directory PATH OWNER GROUP MODE
mend_directory() {
    if [ ! -d "$1" ] || [ -L "$1" ]; then
        if [ -e "$1" ] || [ -L "$1" ]; then refuse "$1 is there and is no directory: not replaced"; fi
        mkdir -p -- "$1"
    fi
    mend_owner "$@"
}
# mend_symlink PATH TARGET
mend_symlink() {
    if [ -e "$1" ] && [ ! -L "$1" ]; then refuse "$1 is there and is no symbolic link: not replaced"; fi
    link_temporary=${1%/*}/.${1##*/}.provision
    rm -rf -- "$link_temporary"
    ln -s -- "$2" "$link_temporary"
    if [ -d "$1" ]; then rm -f -- "$1"; fi
    mv -f -- "$link_temporary" "$1"
}
# mend_lists FILE: reads the lists of this repository only.
mend_lists() {
    apt-get -o DPkg::Lock::Timeout=240 -o Dir::Etc::sourcelist="$1" -o Dir::Etc::sourceparts=- \
        -o APT::Get::List-Cleanup=0 -o APT::Update::Error-Mode=any update
}
