# see_pending (all BASE): the reactions that an earlier run left behind, one a line.
see_pending() {
    say pending "$1"
    for marker in "$2"/pending/*; do
        if [ -e "$marker" ]; then printf '%s\n' "${marker##*/}"; fi
    done
}
