# mend_line PATH LINE PREFIX OWNER GROUP MODE: LINE is there, no other line begins with PREFIX (either may be empty).
mend_line() {
    if [ -e "$1" ]; then
        line_drop=
        if [ "$3" ]; then line_drop=$(line_rest "$1" "$2" "$3"); fi
        {
            sed "$line_drop" "$1"
            if [ "$2" ] && ! grep -qxF -e "$2" -- "$1"; then
                if [ "$(sed "$line_drop" "$1" | tail -c 1 | wc -l)" = 0 ] && [ -s "$1" ]; then echo; fi
                printf '%s\n' "$2"
            fi
        } | put "$1" '' '' ''
    elif [ "$2" ]; then
        printf '%s\n' "$2" | put "$1" "$4" "$5" "$6"
    fi
}
