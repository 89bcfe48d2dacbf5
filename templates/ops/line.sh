# mend_line PATH LINE PREFIX OWNER GROUP MODE: LINE is there, no other line begins with PREFIX (either may be empty).
mend_line() {
    if [ -e "$1" ]; then
        take "$1"
        line_drop=
        if [ "$3" ]; then line_drop=$(line_rest "$taken" "$2" "$3"); fi
        put "$1" '' '' '' line_new "$taken" "$2" "$line_drop"
    elif [ "$2" ]; then
        put "$1" "$4" "$5" "$6" put_text "$2$nl"
    fi
}
# line_new FILE LINE DROP: the file without what sed is told to DROP, and with LINE.
line_new() {
    sed "$3" "$1"
    if [ "$2" ] && ! grep -qxF -e "$2" -- "$1"; then
        if [ -s "$1" ] && [ "$(sed "$3" "$1" | tail -c 1 | wc -c)" = 1 ] && [ "$(sed "$3" "$1" | tail -c 1 | wc -l)" = 0 ]; then echo; fi
        printf '%s\n' "$2"
    fi
}
