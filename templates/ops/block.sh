# mend_block PATH NAME OWNER GROUP MODE BLOCK: the marked block becomes BLOCK (with its markers; empty: none);
# every other line stays as it is. Owner, group and mode are for a file that is not there yet.
mend_block() {
    if [ ! -e "$1" ]; then
        if [ "$6" ]; then printf '%s\n' "$6" | put "$1" "$3" "$4" "$5"; fi
        return 0
    fi
    block_at=0 block_open=
    for block_mark in $(grep -nx "# \(BEGIN\|END\) provision $2" -- "$1" | sed 's/:# \([A-Z]*\).*/\1/'); do
        case $block_mark in
        *BEGIN) [ -z "$block_open" ] || block_refuse "$1" "$2"; block_open=1 ;;
        *) [ "$block_open" ] || block_refuse "$1" "$2"; block_open= ;;
        esac
        if [ "$block_at" = 0 ]; then block_at=${block_mark%BEGIN}; fi
    done
    [ -z "$block_open" ] || block_refuse "$1" "$2"
    {
        if [ "$block_at" = 0 ]; then
            cat -- "$1"
            if [ "$6" ] && [ -s "$1" ] && [ "$(tail -c 1 -- "$1" | wc -l)" = 0 ]; then echo; fi
            if [ "$6" ]; then printf '%s\n' "$6"; fi
        else
            head -n "$((block_at - 1))" -- "$1"
            if [ "$6" ]; then printf '%s\n' "$6"; fi
            tail -n "+$block_at" -- "$1" | sed "/^# BEGIN provision $2\$/,/^# END provision $2\$/d"
        fi
    } | put "$1" '' '' ''
}
block_refuse() {
    refuse "$1: the lines '# BEGIN provision $2' and '# END provision $2' do not come in pairs; mend them by hand"
}
