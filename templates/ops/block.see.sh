# see_block (KEY PATH NAME DIGEST)...: `absent`, or the digest of the marked block; with another one, the block as base64.
see_block() {
    while [ $# -gt 0 ]; do
        if [ ! -e "$2" ]; then
            say block "$1" && echo absent
        elif [ ! -f "$2" ]; then
            # Nothing is opened that could make this wait.
            say block "$1" && echo other
        elif [ -r "$2" ]; then
            # In a file that is all ours the block's digest is the file's, which a probe has asked with all others.
            if [ -z "$in_probe" ] || ! digest_of "$2" || [ "$found" != "$4" ]; then
                found=$(block_body "$2" "$3" | sha256sum)
                found=${found%% *}
            fi
            case $found in
            e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855) found=absent ;;
            esac
            say block "$1" && printf '%s\n' "$found"
            if [ "$found" != "$4" ] && [ "$found" != absent ]; then block_body "$2" "$3" | head -c 65536 | base64; fi
        fi
        shift 4
    done
}
# Blanks and carriage returns after a marker are an editor's; the block is still ours.
block_body() { sed -n "/^# BEGIN provision $2[[:space:]]*\$/,/^# END provision $2[[:space:]]*\$/p" "$1"; }
