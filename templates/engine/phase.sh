uptime_centis() {
    read -r centis _ </proc/uptime
    centis=${centis%.*}${centis#*.}
}
# emit KIND FIELD...: one event line in one write.
emit() {
    uptime_centis
    emit_line="@$tab$(((centis - began) * 10))"
    for field in "$@"; do emit_line=$emit_line$tab$field; done
    printf '%s\n' "$emit_line" >>"$folder/events"
}
# start_time PID: when a process began, so that a number used again is not taken for it.
start_time() {
    read -r stat_line 2>/dev/null <"/proc/$1/stat" || return 1
    stat_line=${stat_line##*) }
    # A dead process that nobody has waited for is gone.
    case $stat_line in Z*) return 1 ;; esac
    # shellcheck disable=SC2086
    set -- $stat_line
    group_of=$3
    shift 19
    started=$1
}
encoded() { base64 | tr -d '\n'; }
payload() { payload=$(cat "$folder/payload/$1"; printf x); payload=${payload%x}; }
phase_begin() {
    base=$1 folder=$1/runs/$2 journal=$3 operations=$4
    self=$$
    if ! start_time "$self"; then exit 70; fi
    if [ "${PROVISION_WATCH:-}" ]; then watch_over; fi
    if [ "$group_of" != "$self" ]; then exec setsid ${PROVISION_SHELL:-sh} "$folder/script"; fi
    # Only the first of two starts gets past this line.
    (set -C; printf '%s %s\n' "$self" "$started" >"$folder/pid") 2>/dev/null || exit 0
    mkdir -p "$base/pending"
    : >>"$folder/out"
    uptime_centis
    began=$centis
    emit begin "$operations"
    PROVISION_WATCH="$self $started $began" setsid ${PROVISION_SHELL:-sh} "$folder/script" >/dev/null 2>&1 &
    watcher=$!
    phase_loads
    rm -rf "$folder/payload"
}
# watch_over: a second process that kills an operation past its deadline, and what a killed script left running.
watch_over() {
    # shellcheck disable=SC2086
    set -- $PROVISION_WATCH
    watched=$1 watched_start=$2 began=$3 out_from=0
    while sleep 1; do
        if ! start_time "$watched" || [ "$started" != "$watched_start" ]; then
            kill -KILL "-$watched" 2>/dev/null
            rm -rf "$folder/payload" "$folder/now"
            exit 0
        fi
        read -r now_index now_until out_from 2>/dev/null <"$folder/now" || continue
        uptime_centis
        [ "${now_until:-0}" -gt 0 ] && [ "$centis" -ge "$now_until" ] || continue
        # Stopped while this is written down: who follows sees the end as long as the script is there.
        kill -STOP "-$watched"
        (fail "$now_index" deadline -1)
        kill -KILL "-$watched"
        exit 0
    done
    exit 0
}
# fail WHAT DURING STATUS: reports, notes it in the journal and ends the phase.
fail() {
    emit failed "$1" "$2" "$3" "$(tail -c +"$((${out_from:-0} + 1))" "$folder/out" | tail -n 20 | tail -c 16384 | encoded)"
    finish 1 failed
}
finish() {
    rm -rf "$folder/payload" "$folder/now"
    printf '%s,"time":"%s","result":"%s"}\n' "$journal" "$(date -u +%Y-%m-%dT%H:%M:%SZ)" "$2" >>"$base/journal.jsonl"
    emit end "$1"
    if [ "${watcher:-}" ]; then kill -KILL "-$watcher" 2>/dev/null; fi
    exit "$1"
}
# within SECONDS INDEX: from now on the watcher waits so long for what runs.
within() {
    uptime_centis
    printf '%s %s %s\n' "$2" "$((centis + $1 * 100))" "$out_from" >"$folder/now"
}
phase_operation() {
    index=$1 deadline=$2
    shift 2
    emit start "$index"
    start=$centis
    printf '== %s\n' "$index" >>"$folder/out"
    out_from=$(wc -c <"$folder/out")
    within "$deadline" "$index"
    if "agrees_$index" 2>/dev/null; then
        uptime_centis
        emit fine "$index" "$(((centis - start) * 10))"
        return 0
    fi
    # Recorded before the change, so that a script that is killed in between is caught up by the next.
    for reaction in "$@"; do : >"$base/pending/$reaction"; done
    (
        set -e
        umask 022
        "mend_$index"
    ) </dev/null >>"$folder/out" 2>&1
    status=$?
    if [ "$status" != 0 ]; then fail "$index" mend "$status"; fi
    if ! "agrees_$index" 2>>"$folder/out"; then
        printf 'after the change it still differs: %s\n' "$answer" >>"$folder/out"
        fail "$index" observe 0
    fi
    uptime_centis
    emit changed "$index" "$(((centis - start) * 10))"
}
phase_yield() { emit yield "$1" "$2" "$(printf '%s' "$3" | encoded)" "$(printf '%s' "$answer" | encoded)"; }
phase_pending() { : >"$base/pending/$1"; }
phase_end() {
    for marker in "$base"/pending/*; do
        [ -e "$marker" ] || continue
        reaction=${marker##*/}
        uptime_centis
        start=$centis
        out_from=$(wc -c <"$folder/out")
        within 120 "$reaction"
        (
            set -e
            case $reaction in
            restart:*) react_restart "${reaction#restart:}" ;;
            sysctl) sysctl --system ;;
            esac
        ) </dev/null >>"$folder/out" 2>&1
        status=$?
        if [ "$status" != 0 ]; then fail "$reaction" reaction "$status"; fi
        rm -f -- "$marker"
        uptime_centis
        emit reacted "$reaction" "$(((centis - start) * 10))"
    done
    finish 0 ok
}
react_restart() {
    [ -d /run/systemd/system ] || refuse "systemd does not run here: $1 cannot be restarted"
    if [ "$(systemctl show -p NeedDaemonReload --value -- "$1")" = yes ]; then systemctl daemon-reload; fi
    if systemctl is-active --quiet -- "$1" || systemctl is-enabled --quiet -- "$1"; then systemctl restart -- "$1"; fi
}
