start_fail() {
    printf '%s\n' "$1" >&2
    exit 1
}
start_prepare() {
    base=$1 folder=$1/runs/$2 id=$2
    for old in "$base" "$base/runs"; do
        # Whoever could exchange these would decide what root runs.
        if [ -L "$old" ]; then start_fail "$old is a symbolic link: not used; remove it"; fi
        if [ -e "$old" ] && { [ ! -d "$old" ] || [ ! -O "$old" ]; }; then
            start_fail "$old is no directory of $(id -un): not used; remove it, or give it to $(id -un)"
        fi
    done
    said=$({ mkdir -p "$folder/payload" && chmod 700 "$base" "$base/runs" "$folder"; } 2>&1) ||
        start_fail "cannot make $folder: ${said##*: }"
    if [ -e "$folder/pid" ] || [ -e "$folder/events" ]; then
        rmdir "$folder/payload" 2>/dev/null
        echo already
        exit 0
    fi
    # What a run that never came to read its secrets has left behind.
    for old in "$base"/runs/*/payload; do
        if [ -d "$old" ] && [ "$old" != "$folder/payload" ] && ! start_alive "${old%/payload}"; then rm -rf -- "$old"; fi
    done
    # The last 20 are kept; names begin with the time, so they sort by age.
    count=0
    for old in "$base"/runs/*; do count=$((count + 1)); done
    for old in "$base"/runs/*; do
        [ "$count" -gt 20 ] || break
        [ "$old" = "$folder" ] || rm -rf -- "$old"
        count=$((count - 1))
    done
}
start_alive() {
    read -r old_pid old_start 2>/dev/null <"$1/pid" && read -r old_stat 2>/dev/null <"/proc/$old_pid/stat" || return 1
    old_stat=${old_stat##*) }
    # shellcheck disable=SC2086
    set -- $old_stat
    shift 19
    [ "$1" = "$old_start" ]
}
# start_write FILE TEXT: the second try is only to learn why the first failed.
start_write() {
    if printf '%s' "$2" 2>/dev/null >"$1"; then return; fi
    said=$(printf '%s' "$2" | dd status=none conv=fsync of="$1" 2>&1)
    rm -rf -- "$folder"
    start_fail "cannot write $1: ${said##*: }"
}
start_payload() { start_write "$folder/payload/$1" "$2"; }
start_run() {
    start_write "$folder/script.new" "$1"
    # Given up when the disk fills, so that the failure can still be written down.
    start_write "$folder/reserve" "$(printf '%65536s' '')"
    mv -f "$folder/script.new" "$folder/script" || start_fail "cannot make $folder/script"
    if [ -d /run/systemd/system ]; then
        for collect in --collect ''; do
            # shellcheck disable=SC2086
            if systemd-run $collect --quiet --unit="provision-$id" sh "$folder/script" >/dev/null 2>"$folder/systemd"; then
                rm -f "$folder/systemd"
                echo started
                return
            fi
        done
    fi
    # Somebody has to wait for the script: where process 1 takes its time, its death would be seen late.
    setsid sh -c '${PROVISION_SHELL:-sh} "$1" & wait' sh "$folder/script" >/dev/null 2>&1 &
    echo started
}
