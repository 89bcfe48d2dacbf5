# see_module NAME...: `loaded`, `builtin`, `absent`.
see_module() {
    module_builtin=
    while [ $# -gt 0 ]; do
        module_name=$(printf '%s' "$1" | tr - _)
        say module "$1"
        # A module may show itself in /sys/module only when it is loaded or has parameters of its own built in.
        if [ -e "/sys/module/$module_name/initstate" ]; then
            echo loaded
        elif [ -e "/sys/module/$module_name" ]; then
            echo builtin
        else
            : "${module_builtin:=$(tr - _ 2>/dev/null <"/lib/modules/$(uname -r)/modules.builtin")$nl}"
            case $module_builtin in *"/$module_name.ko$nl"*) echo builtin ;; *) echo absent ;; esac
        fi
        shift
    done
}
