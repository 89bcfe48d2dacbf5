refuse() {
    printf '%s\n' "$1" >&2
    exit 1
}
# put PATH OWNER GROUP MODE: standard input becomes the content, all at once; an empty owner, group or mode is kept
# from the file that is there (new: root, root, 0644). A symbolic link is replaced, not followed.
put() {
    put_path=$1 put_owner=$2 put_group=$3 put_mode=$4
    put_old_owner=root put_old_group=root put_old_mode=0644
    if [ -L "$put_path" ]; then
        if [ -d "$put_path" ]; then rm -f -- "$put_path"; fi
    elif [ -d "$put_path" ]; then
        refuse "$put_path is a directory, and a file is wanted there"
    elif [ -e "$put_path" ]; then
        [ -f "$put_path" ] || refuse "$put_path is neither a file nor a link: not replaced"
        if [ -z "$put_owner" ] || [ -z "$put_group" ] || [ -z "$put_mode" ]; then
            put_old=$(stat -c '%u %g %a' -- "$put_path")
            put_old_owner=${put_old%% *} put_old_mode=${put_old##* }
            put_old_group=${put_old#* } put_old_group=${put_old_group% *}
        fi
    fi
    put_directory=${put_path%/*}/
    [ -d "$put_directory" ] || refuse "the directory $put_directory does not exist"
    put_temporary=$put_directory.${put_path##*/}.provision
    rm -rf -- "$put_temporary"
    # The temporary file is opened anew and exclusively: a link planted under its name is not followed.
    (
        umask 077
        set -C
        dd conv=fsync 2>/dev/null >"$put_temporary"
    )
    put_owner=${put_owner:-$put_old_owner} put_group=${put_group:-$put_old_group}
    case $put_owner:$put_group in
    root:root | 0:0) if [ -g "$put_directory" ]; then chown -h 0:0 -- "$put_temporary"; fi ;;
    *) chown -h "$put_owner:$put_group" -- "$put_temporary" ;;
    esac
    chmod "${put_mode:-$put_old_mode}" -- "$put_temporary"
    mv -f -- "$put_temporary" "$put_path"
}
