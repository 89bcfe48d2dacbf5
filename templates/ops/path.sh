# mend_file PATH OWNER GROUP MODE text|base64|keep CONTENT
mend_file() {
    case $5 in
    text) put "$1" "$2" "$3" "$4" put_text "$6" ;;
    base64) put "$1" "$2" "$3" "$4" put_decoded "$6" ;;
    *)
        if [ -e "$1" ] && [ ! -L "$1" ]; then
            [ -f "$1" ] || refuse "$1 is there and is no file: not replaced"
            own_file "$@"
        else
            put "$1" "$2" "$3" "$4" :
        fi
        ;;
    esac
}
# own NAME OWNER GROUP MODE: of something in the working directory that nobody can exchange.
own() {
    if [ "$2$3" ]; then chown -h "$2${3:+:$3}" -- "$1"; fi
    # Of a directory chmod keeps setuid and setgid unless told with five digits.
    if [ "$4" ]; then if [ -d "$1" ]; then chmod "00$4" -- "$1"; else chmod "$4" -- "$1"; fi; fi
}
# own_file PATH OWNER GROUP MODE: of a file. Where others could exchange it, it gets a second name that only root can
# reach, and what that name stands for is looked at before it is changed.
own_file() {
    parent "$1"
    enter "$parent"
    own_name=${1##*/}
    case $(stat -c '%u %a' .) in
    "0 "*[0145])
        own "./$own_name" "$2" "$3" "$4"
        return
        ;;
    esac
    own_place=./.$own_name.provision
    rm -rf -- "$own_place"
    mkdir -m 700 -- "$own_place"
    cd -P -- "$own_place"
    [ "$(stat -c '%u %a' .)" = "$(id -u) 700" ] || refuse "$1: its directory changes while it is worked on"
    ln -P -- "../$own_name" file
    own_said=$(stat -c '%F %h' file)
    case $own_said in
    'regular file 2' | 'regular empty file 2') own ./file "$2" "$3" "$4" ;;
    *) own_said="$1 is no file, or has other hard links: left as it is" ;;
    esac
    cd ..
    rm -rf -- "$own_place"
    case $own_said in regular*) ;; *) refuse "$own_said" ;; esac
}
mend_absent() {
    parent "$1"
    [ -d "$parent" ] || return 0
    enter "$parent"
    if [ -d "./${1##*/}" ] && [ ! -L "./${1##*/}" ]; then refuse "$1 is a directory: not removed"; fi
    rm -f -- "./${1##*/}"
}
# mend_directory PATH OWNER GROUP MODE
mend_directory() {
    parent "$1"
    enter "$parent" make
    directory_name=./${1##*/}
    if [ ! -d "$directory_name" ] || [ -L "$directory_name" ]; then
        if [ -e "$directory_name" ] || [ -L "$directory_name" ]; then
            refuse "$1 is there and is no directory: not replaced"
        fi
        mkdir -- "$directory_name"
    fi
    directory_here=$(readlink /proc/self/cwd)
    cd -P -- "$directory_name"
    [ "$(readlink /proc/self/cwd)" = "${directory_here%/}/${1##*/}" ] || refuse "$1 was exchanged while it was entered"
    own . "$2" "$3" "$4"
}
# mend_symlink PATH TARGET
mend_symlink() {
    parent "$1"
    enter "$parent"
    if [ -e "./${1##*/}" ] && [ ! -L "./${1##*/}" ]; then refuse "$1 is there and is no symbolic link: not replaced"; fi
    link_temporary=./.${1##*/}.provision
    rm -rf -- "$link_temporary"
    ln -sT -- "$2" "$link_temporary"
    mv -fT -- "$link_temporary" "./${1##*/}"
}
# mend_lists FILE: reads the lists of this repository only.
mend_lists() {
    apt-get -o DPkg::Lock::Timeout=240 -o Dir::Etc::sourcelist="$1" -o Dir::Etc::sourceparts=- \
        -o APT::Get::List-Cleanup=0 -o APT::Update::Error-Mode=any update
}
