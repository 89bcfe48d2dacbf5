nl='
'
tab=$(printf '\t')
# lookup TEXT KEY: in lines "VALUE<tab>KEY" finds the value; 1 when there is none.
lookup() {
    case "$1$nl" in
    *"$tab$2$nl"*)
        found=$1$nl
        found=${found%%"$tab$2$nl"*}
        found=${found##*"$nl"}
        ;;
    *) return 1 ;;
    esac
}
