follow_alive() {
    read -r pid pid_start 2>/dev/null <"$folder/pid" || return 1
    read -r stat_line 2>/dev/null <"/proc/$pid/stat" || return 1
    stat_line=${stat_line##*) }
    # A dead process that nobody has waited for is over.
    case $stat_line in Z*) return 1 ;; esac
    # shellcheck disable=SC2086
    set -- $stat_line
    shift 19
    [ "$1" = "$pid_start" ]
}
follow_ended() {
    case $(tail -n 1 "$folder/events" 2>/dev/null) in
    @*"	end	"*) return 0 ;;
    esac
    return 1
}
follow_events() {
    folder=$1/runs/$2 offset=$3
    tries=0
    while [ ! -s "$folder/pid" ] || [ ! -e "$folder/events" ]; do
        tries=$((tries + 1))
        if [ "$tries" -gt 100 ]; then break; fi
        sleep 0.05 2>/dev/null || sleep 1
    done
    pid=0
    case $(tail --version 2>/dev/null) in
    *GNU*)
        if ! follow_ended && follow_alive; then
            tail -s 0.1 -c "+$((offset + 1))" -f --pid="$pid" "$folder/events"
        else
            tail -c "+$((offset + 1))" "$folder/events"
        fi
        ;;
    *)
        while :; do
            if follow_alive && ! follow_ended; then last=; else last=1; fi
            size=$(wc -c <"$folder/events")
            if [ "$size" -gt "$offset" ]; then
                tail -c "+$((offset + 1))" "$folder/events" | head -c "$((size - offset))"
                offset=$size
            fi
            if [ "$last" ]; then break; fi
            sleep 0.2 2>/dev/null || sleep 1
        done
        ;;
    esac
    # The watcher of the phase may still be about to say how it ended.
    tries=0
    while ! follow_ended && [ "$tries" -lt 30 ] && [ -e "$folder/now" ]; do
        tries=$((tries + 1))
        sleep 0.1 2>/dev/null || sleep 1
    done
    if follow_ended; then :; else printf '\n@\t0\tgone\n'; fi
}
