mend_module() { modprobe -- "$1"; }
