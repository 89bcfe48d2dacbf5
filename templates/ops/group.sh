# mend_group NAME system|login
mend_group() {
    if [ "$2" = system ]; then groupadd -r -- "$1"; else groupadd -- "$1"; fi
}
