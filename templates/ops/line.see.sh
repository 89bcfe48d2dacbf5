# see_line (KEY PATH LINE PREFIX)...: `no file`, or whether the line is there, and how many others begin with PREFIX.
see_line() {
    while [ $# -gt 0 ]; do
        if [ ! -e "$2" ]; then
            say line "$1" && echo 'no file'
        elif [ ! -f "$2" ]; then
            say line "$1" && echo other
        elif [ -r "$2" ]; then
            line_there=absent
            if [ "$3" ] && grep -qxF -e "$3" -- "$2"; then line_there=present; fi
            line_others=0
            if [ "$4" ]; then line_others=$(line_rest "$2" "$3" "$4" | grep -c '') || :; fi
            say line "$1" && printf '%s %s\n' "$line_there" "$line_others"
        fi
        shift 4
    done
}
# line_rest PATH LINE PREFIX: numbers of the lines that begin with PREFIX and are not LINE.
line_rest() {
    LINE=$2 PREFIX=$3 awk 'index($0, ENVIRON["PREFIX"]) == 1 && $0 != ENVIRON["LINE"] { print NR "d" }' "$1"
}
