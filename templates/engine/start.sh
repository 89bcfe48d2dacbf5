start_fail() {
    printf '%s\n' "$1" >&2
    exit 1
}
start_prepare() {
    base=$1 folder=$1/runs/$2 id=$2
    mkdir -p "$folder/payload" && chmod 700 "$base" "$base/runs" "$folder" || start_fail "cannot make $folder"
    if [ -e "$folder/pid" ] || [ -e "$folder/events" ]; then
        rmdir "$folder/payload" 2>/dev/null
        echo already
        exit 0
    fi
    # The last 20 are kept; names begin with the time, so they sort by age.
    count=0
    for old in "$base"/runs/*; do count=$((count + 1)); done
    for old in "$base"/runs/*; do
        [ "$count" -gt 20 ] || break
        [ "$old" = "$folder" ] || rm -rf -- "$old"
        count=$((count - 1))
    done
}
start_payload() { printf '%s' "$2" >"$folder/payload/$1" || start_fail "cannot write $folder/payload"; }
start_run() {
    if ! printf '%s' "$1" >"$folder/script.new" || ! mv -f "$folder/script.new" "$folder/script"; then
        start_fail "cannot write $folder/script"
    fi
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
    setsid ${PROVISION_SHELL:-sh} "$folder/script" >/dev/null 2>&1 &
    echo started
}
