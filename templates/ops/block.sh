# mend_block PATH NAME OWNER GROUP MODE BLOCK: the marked block becomes BLOCK (with its markers; empty: none);
# every other line stays as it is. Owner, group and mode are for a file that is not there yet.
mend_block() {
    if [ ! -e "$1" ]; then
        if [ "$6" ]; then put "$1" "$3" "$4" "$5" block_new "" "" "$6"; fi
        return 0
    fi
    take "$1"
    block_at=0 block_open=
    block_marks=$(sed -n "/$block_begin $2$block_end/{=;s/.*/BEGIN/p;};/^# END provision $2$block_end/{=;s/.*/END/p;}" "$taken")
    block_line=
    for block_mark in $block_marks; do
        case $block_mark in
        BEGIN)
            [ -z "$block_open" ] || block_refuse "$1" "$2"
            block_open=1
            if [ "$block_at" = 0 ]; then block_at=$block_line; fi
            ;;
        END)
            [ "$block_open" ] || block_refuse "$1" "$2"
            block_open=
            ;;
        *) block_line=$block_mark ;;
        esac
    done
    [ -z "$block_open" ] || block_refuse "$1" "$2"
    put "$1" '' '' '' block_new "$taken" "$block_at" "$6" "$2"
}
block_begin='^# BEGIN provision' block_end='[[:space:]]*$'
# block_new FILE LINE BLOCK NAME: the file with BLOCK where the old one began in LINE (0: at the end).
block_new() {
    if [ -z "$1" ]; then
        :
    elif [ "$2" = 0 ]; then
        cat -- "$1"
        if [ "$3" ] && [ -s "$1" ] && [ "$(tail -c 1 -- "$1" | wc -l)" = 0 ]; then echo; fi
    elif [ "$2" != 1 ]; then
        sed "$2,\$d" "$1"
    fi
    if [ "$3" ]; then printf '%s\n' "$3"; fi
    case $2 in
    '' | 0) ;;
    *)
        block_drop="/$block_begin $4$block_end/,/^# END provision $4$block_end/d"
        if [ "$2" != 1 ]; then block_drop="1,$(($2 - 1))d;$block_drop"; fi
        sed "$block_drop" "$1"
        ;;
    esac
}
block_refuse() {
    refuse "$1: the lines '# BEGIN provision $2' and '# END provision $2' do not come in pairs; mend them by hand"
}
