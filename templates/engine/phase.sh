uptime_centis() {
    read -r centis _ </proc/uptime
    centis=${centis%.*}${centis#*.}
}
# emit KIND FIELD...: one event line in one write.
emit() {
    uptime_centis
    emit_line="@$tab$(((centis - began) * 10))"
    for field in "$@"; do emit_line=$emit_line$tab$field; done
    if printf '%s\n' "$emit_line" 2>/dev/null >>"$folder/events"; then return; fi
    # A half written line is ended first.
    rm -f "$folder/reserve"
    printf '\n%s\n' "$emit_line" 2>/dev/null >>"$folder/events" || exit 74
    case $1 in
    failed | end) ;;
    *)
        printf 'no space left to write to %s\n' "$folder" 2>/dev/null >>"$folder/out"
        fail "${index:-0}" mend 74
        ;;
    esac
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
payload() {
    payload=$(cat "$folder/payload/$1" && printf x)
    # Never goes on with half a secret.
    case $payload in *x) payload=${payload%x} ;; *) exit 71 ;; esac
}
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
        out_trim "$(stat -c %s "$folder/out")"
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
# out_trim SIZE: what commands write must not fill the disk: of more than 8 MiB the last is kept.
out_trim() {
    if [ "${1:-0}" -gt 8388608 ]; then
        tail -c 262144 "$folder/out" >"$folder/out.last"
        cat "$folder/out.last" >"$folder/out"
        rm -f "$folder/out.last"
    fi
}
# out_tail: the last lines since the operation began.
out_tail() {
    if [ "$(stat -c %s "$folder/out")" -lt "${out_from:-0}" ]; then out_from=0; fi
    tail -c +"$((${out_from:-0} + 1))" "$folder/out" | tail -c 16384 | tail -n 20
}
# fail WHAT DURING STATUS: reports, notes it in the journal and ends the phase.
fail() {
    emit failed "$1" "$2" "$3" "$(out_tail | encoded)"
    finish 1 failed
}
finish() {
    rm -rf "$folder/payload" "$folder/now" "$folder/reserve"
    out_trim "$(stat -c %s "$folder/out")"
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
    for reaction in "$@"; do
        { : >"$base/pending/$reaction"; } 2>>"$folder/out" || fail "$index" mend 74
    done
    (
        set -e
        umask 022
        "mend_$index"
    ) </dev/null >>"$folder/out" 2>&1
    status=$?
    if [ "$status" != 0 ]; then fail "$index" mend "$status"; fi
    if ! "agrees_$index" 2>>"$folder/out"; then
        answer=${answer%%"$nl"*}
        printf 'after the change it is "%.300s"; wanted is "%.300s"\n' "$answer" "$wanted" >>"$folder/out"
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
        # A unit that is not there is said once: no later run could do better.
        if [ "$status" = 5 ]; then rm -f -- "$marker"; fi
        if [ "$status" != 0 ]; then fail "$reaction" reaction "$status"; fi
        rm -f -- "$marker"
        uptime_centis
        emit reacted "$reaction" "$(((centis - start) * 10))"
    done
    finish 0 ok
}
react_restart() {
    [ -d /run/systemd/system ] || refuse "systemd does not run here: $1 cannot be restarted"
    react_state=$(systemctl show -p LoadState -p NeedDaemonReload -- "$1")
    case $react_state in
    *LoadState=not-found* | *NeedDaemonReload=yes*)
        systemctl daemon-reload
        react_state=$(systemctl show -p LoadState -- "$1")
        ;;
    esac
    case $react_state in
    *LoadState=not-found*)
        printf 'there is no unit %s on this node to restart\n' "$1"
        exit 5
        ;;
    esac
    if systemctl is-active --quiet -- "$1" || systemctl is-enabled --quiet -- "$1"; then unit_begin restart "$1"; fi
}
